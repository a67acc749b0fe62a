/** Filters of events in the address bar, for the search and the stream. */
import { useEffect, useState } from "preact/hooks";
import type { Filters } from "../api/events";
import { parseKey } from "../api/security";
import { local, millis, t, type Key } from "../i18n";
import { href, navigate, useRoute } from "../router";

const TEXTS: [keyof Filters, Key][] = [
  ["ref", "col.identity"], ["route", "filter.route"], ["plugin", "col.plugin"], ["rule", "filter.rule"], ["action", "col.action"], ["node", "col.node"],
];
const ALL: (keyof Filters)[] = ["reference", "ref", "route", "config", "policy", "rule", "plugin", "outcome", "action", "category", "dry_run", "incident", "node", "type", "id"];

/** Spans of time that end now, in milliseconds. */
const SINCE = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 };

/** The time that the address bar asks for: from when until when, in RFC 3339. */
export function useEventTimes(): { from?: string; until?: string; since?: keyof typeof SINCE } {
  const { query } = useRoute();
  const [from, until, since] = [query.get("from"), query.get("until"), query.get("since")];
  return { ...(from ? { from } : {}), ...(until ? { until } : {}), ...(since && since in SINCE ? { since: since as keyof typeof SINCE } : {}) };
}

/** When a span that ends now begins. */
export function begin(since: keyof typeof SINCE): string {
  return new Date(Date.now() - SINCE[since]).toISOString();
}

/** The filters that the address bar has. */
export function useEventFilters(): Filters {
  const { query } = useRoute();
  const found: Filters = {};
  for (const name of ALL) {
    const value = query.get(name);
    if (value) found[name] = value;
  }
  return found;
}

/** Fields for the filters; they are applied when they are left or Enter is pressed. Each is an entry of the history. `times`: stored events have a time, the stream has none. */
export function EventFilters({ path, filters, times = false, children }: { path: string; filters: Filters; times?: boolean; children?: preact.ComponentChildren }) {
  const { query } = useRoute();
  const { from, until, since } = useEventTimes();
  const change = (more: Record<string, string>) => navigate(href(path, { ...Object.fromEntries(query), ...more }));
  const others = ALL.filter((name) => filters[name] && !TEXTS.some(([known]) => known === name) && !["outcome", "type"].includes(name));
  return (
    <div class="filters" role="search">
      {TEXTS.map(([name, label], index) => <Text key={name} first={index === 0} label={t(label)} value={filters[name] ?? ""} onChange={(value) => change({ [name]: name === "ref" ? (parseKey(value) ?? value) : value })} />)}
      <label><span>{t("filter.outcome")}</span>
        <select value={filters.outcome ?? ""} onChange={(event) => change({ outcome: event.currentTarget.value })}>
          <option value="">{t("filter.all")}</option>
          <option value="blocked">{t("overview.refused")}</option>
          <option value="observed">{t("overview.observed")}</option>
        </select>
      </label>
      <label><span>{t("filter.type")}</span>
        <select value={filters.type ?? ""} onChange={(event) => change({ type: event.currentTarget.value })}>
          <option value="">{t("filter.all")}</option>
          <option value="security">{t("filter.type.security")}</option>
          <option value="trail">{t("filter.type.trail")}</option>
          <option value="audit">{t("filter.type.audit")}</option>
        </select>
      </label>
      {times && (
        <label><span>{t("filter.time")}</span>
          <select value={since ?? ""} onChange={(event) => change({ since: event.currentTarget.value, from: "", until: "" })}>
            <option value="">{t("filter.all")}</option>
            {(["hour", "day", "week"] as const).map((span) => <option key={span} value={span}>{t(`filter.since.${span}`)}</option>)}
          </select>
        </label>
      )}
      {times && ([["from", from], ["until", until]] as const).map(([name, time]) => time && (
        <button key={name} type="button" class="chip" onClick={() => change({ [name]: "" })} aria-label={t("filter.remove", { name: `${t(`filter.${name}`)} ${shown(time)}` })}>{t(`filter.${name}`)} {shown(time)} ✕</button>
      ))}
      {others.map((name) => (
        <button key={name} type="button" class="chip" onClick={() => change({ [name]: "" })} aria-label={t("filter.remove", { name })}>{name}: {filters[name]} ✕</button>
      ))}
      {children}
    </div>
  );
}

/** A time of the address bar; what is none stays as it is. */
function shown(time: string): string {
  const at = millis(/^\d+$/.test(time) ? Number(time) : time);
  return at === null ? time : local(at);
}

function Text({ label, value, onChange, first }: { label: string; value: string; onChange: (value: string) => void; first: boolean }) {
  const [typed, type] = useState(value);
  useEffect(() => type(value), [value]);
  const own = {
    value: typed,
    onInput: (event: Event) => type((event.currentTarget as HTMLInputElement).value),
    onChange: () => void (typed.trim() !== value && onChange(typed.trim())),
    onKeyDown: (event: KeyboardEvent) => void (event.key === "Enter" && typed.trim() !== value && onChange(typed.trim())),
  };
  return <label><span>{label}</span>{first ? <input type="search" {...own} /> : <input {...own} />}</label>;
}

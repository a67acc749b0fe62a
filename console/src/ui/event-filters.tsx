/** Filters of events in the address bar, for the search and the stream. */
import { useEffect, useState } from "preact/hooks";
import type { Filters } from "../api/events";
import { t, type Key } from "../i18n";
import { href, navigate, useRoute } from "../router";

const TEXTS: [keyof Filters, Key][] = [
  ["ref", "col.identity"], ["route", "filter.route"], ["plugin", "col.plugin"], ["rule", "filter.rule"], ["action", "col.action"], ["node", "col.node"],
];
const ALL: (keyof Filters)[] = ["reference", "ref", "route", "config", "rule", "plugin", "outcome", "action", "category", "dry_run", "incident", "node", "type", "id"];

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

/** Fields for the filters; they are applied when they are left or Enter is pressed. */
export function EventFilters({ path, filters, children }: { path: string; filters: Filters; children?: preact.ComponentChildren }) {
  const { query } = useRoute();
  const change = (more: Record<string, string>) => navigate(href(path, { ...Object.fromEntries(query), ...more }), "replace");
  const others = ALL.filter((name) => filters[name] && !TEXTS.some(([known]) => known === name) && !["outcome", "type"].includes(name));
  return (
    <div class="filters" role="search">
      {TEXTS.map(([name, label], index) => <Text key={name} first={index === 0} label={t(label)} value={filters[name] ?? ""} onChange={(value) => change({ [name]: value })} />)}
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
      {others.map((name) => (
        <button key={name} type="button" class="chip" onClick={() => change({ [name]: "" })} aria-label={t("filter.remove", { name })}>{name}: {filters[name]} ✕</button>
      ))}
      {children}
    </div>
  );
}

function Text({ label, value, onChange, first }: { label: string; value: string; onChange: (value: string) => void; first: boolean }) {
  const [typed, type] = useState(value);
  useEffect(() => type(value), [value]);
  const own = {
    value: typed,
    onInput: (event: Event) => type((event.currentTarget as HTMLInputElement).value),
    onChange: () => void (typed.trim() !== value && onChange(typed.trim())),
    onKeyDown: (event: KeyboardEvent) => void (event.key === "Enter" && onChange(typed.trim())),
  };
  return <label><span>{label}</span>{first ? <input type="search" {...own} /> : <input {...own} />}</label>;
}

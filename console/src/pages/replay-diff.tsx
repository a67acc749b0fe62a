/** The differences between two replays: totals, lists by rule, plugin and route, and every request that differs. */
import { useMemo, useState } from "preact/hooks";
import { KINDS, type Changed, type Diff, type Group, type Kind, type Outcome, type Top } from "../api/replay";
import { number, t, word } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { Badge, Facts, Figure, Panel, type Tone } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";

const TONES: Record<Kind, Tone> = { failed: "bad", blocked: "bad", unblocked: "good", answer: "warn", score: "info", rules: "" };
/** What the name of a group without one is in the address bar. */
const NONE = "-";

/** The document as a page; filters are in the address bar. */
export function DiffView({ of, id }: { of: Diff; id: string }) {
  const { query } = useRoute();
  const [shown, show] = useState<Changed | null>(null);
  const set = (more: Record<string, string>) => navigate(href(`/replay/${id}`, { ...Object.fromEntries(query), ...more }), "replace");
  const value = (name: string) => query.get(name) ?? "";
  const rows = useMemo(() => of.changed.filter((row) => fits(row, query)), [of, query.toString()]);
  const { counts } = of;
  const changed = counts.compared - counts.same;
  const bad = of.b.totals.bad_entries.count;
  const unlisted = changed > of.changed.length;
  return (
    <>
      <p class={`notice ${changed === 0 ? "good" : "warn"}`} role="status">{changed === 0 ? t("replay.same", { count: counts.compared }) : t("replay.differs", { count: changed, all: counts.compared })}</p>
      <div class="figures">
        <Figure label={t("replay.compared")} value={number(counts.compared)} note={bad > 0 ? t("replay.unreadable", { count: bad }) : undefined} />
        <Figure label={t("replay.kind.blocked")} value={number(counts.blocked)} tone={counts.blocked ? "bad" : ""} note={t("replay.refused", { before: of.a.totals.effects["blocked"] ?? 0, after: of.b.totals.effects["blocked"] ?? 0 })} />
        <Figure label={t("replay.kind.unblocked")} value={number(counts.unblocked)} tone={counts.unblocked ? "good" : ""} />
        <Figure label={t("replay.kind.answer")} value={number(counts.answer)} tone={counts.answer ? "warn" : ""} />
        <Figure label={t("replay.kind.score")} value={number(counts.score)} tone={counts.score ? "info" : ""} />
        {counts.rules > 0 && <Figure label={t("replay.kind.rules")} value={number(counts.rules)} />}
        {counts.failed > 0 && <Figure label={t("replay.kind.failed")} value={number(counts.failed)} tone="bad" />}
      </div>
      {changed > 0 && (
        <>
          <div class="columns three">
            <Groups title={t("replay.by_plugin")} of={of.plugins} none={t("replay.no_plugin")} chosen={value("plugin")} choose={(plugin) => set({ plugin })} />
            <Groups title={t("replay.by_route")} of={of.routes} none={t("replay.no_route")} chosen={value("route")} choose={(route) => set({ route })} />
            <Rules added={of.rules_added} removed={of.rules_removed} chosen={value("rule")} choose={(rule) => set({ rule })} />
          </div>
          <Panel title={t("replay.requests.changed")}>
            <div class="filters" role="search">
              <label><span>{t("replay.kind")}</span>
                <select value={value("kind")} onChange={(event) => set({ kind: event.currentTarget.value })}>
                  <option value="">{t("filter.all")}</option>
                  {KINDS.filter((kind) => counts[kind] > 0).map((kind) => <option key={kind} value={kind}>{`${word("replay.kind", kind)} (${number(counts[kind])})`}</option>)}
                </select>
              </label>
              <label class="grow"><span>{t("replay.search")}</span>
                <input type="search" value={value("q")} onInput={(event) => set({ q: event.currentTarget.value })} />
              </label>
              {["plugin", "route", "rule"].filter((name) => value(name)).map((name) => (
                <button key={name} type="button" class="chip" aria-label={t("filter.remove", { name })} onClick={() => set({ [name]: "" })}>{name}: {value(name)} ✕</button>
              ))}
            </div>
            <p class="count" role="status">{t("replay.listed", { count: rows.length, all: of.changed.length })}{unlisted ? ` ${t("replay.not_all", { count: changed })}` : ""}</p>
            <Table label={t("replay.requests.changed")} columns={COLUMNS} total={rows.length} row={(index) => rows[index]} id={(row) => row.id} onOpen={show} tone={(row) => (row.kind === "blocked" || row.kind === "failed" ? "tone-bad" : "")} />
          </Panel>
        </>
      )}
      {shown && <Details of={shown} onClose={() => show(null)} />}
    </>
  );
}

function fits(row: Changed, query: URLSearchParams): boolean {
  const [kind, plugin, route, rule] = ["kind", "plugin", "route", "rule"].map((name) => query.get(name) ?? "");
  const text = (query.get("q") ?? "").trim().toLowerCase();
  const named = (wanted: string | undefined, found: string | undefined) => !wanted || (wanted === NONE ? "" : wanted) === (found ?? "");
  const rules = [...(row.rules_added ?? []), ...(row.rules_removed ?? [])].map(String);
  return (!kind || row.kind === kind) && named(plugin, row.after.plugin || row.before.plugin) && named(route, row.route) && (!rule || rules.includes(rule))
    && (!text || `${row.request} ${row.host ?? ""} ${row.caller ?? ""} ${why(row)}`.toLowerCase().includes(text));
}

const COLUMNS: Column<Changed>[] = [
  { key: "kind", head: t("replay.kind"), width: "10rem", cell: (row) => <Badge tone={TONES[row.kind]}>{word("replay.kind", row.kind)}</Badge> },
  { key: "request", head: t("col.request"), width: "minmax(9rem, 2fr)", cell: (row) => <span class="mono" title={row.request}>{row.request}</span> },
  { key: "before", head: t("replay.before"), width: "9rem", wide: true, cell: (row) => outcome(row.before) },
  { key: "after", head: t("replay.after"), width: "9rem", wide: true, cell: (row) => outcome(row.after) },
  { key: "score", head: t("col.score"), width: "6rem", wide: true, end: true, cell: (row) => score(row) },
  { key: "why", head: t("replay.why"), width: "minmax(8rem, 2fr)", wide: true, cell: (row) => <span title={why(row)}>{why(row)}</span> },
];

function outcome(of: Outcome): string {
  const effect = word("replay.effect", of.effect);
  const isPlain = of.action === "none" || (of.action === "deny" && of.effect === "blocked");
  return isPlain ? `${of.status} ${effect}` : `${of.status} ${effect}, ${word("decision", of.action)}`;
}

function score(row: Changed): string {
  const [before, after] = [number(row.before.score), number(row.after.score)];
  return before === after ? after : `${before} → ${after}`;
}

/** The reason of what is other, and the rules. */
function why(row: Changed): string {
  const rules = [...(row.rules_added ?? []).map((rule) => `+${rule}`), ...(row.rules_removed ?? []).map((rule) => `−${rule}`)].join(" ");
  return [row.after.reason || row.before.reason || "", rules].filter(Boolean).join(" · ");
}

function Groups({ title, of, none, chosen, choose }: { title: string; of: Group[]; none: string; chosen: string; choose: (name: string) => void }) {
  return (
    <Panel title={title}>
      <ul class="shares">
        {of.slice(0, 10).map((group) => {
          const name = group.name || NONE;
          return (
            <li key={name}>
              <button type="button" class="row-button share-name" aria-pressed={chosen === name} onClick={() => choose(chosen === name ? "" : name)}>{group.name || none}</button>
              <span class="share-value">{number(group.changed)}</span>
              <span class="tags">{KINDS.filter((kind) => group[kind] > 0).map((kind) => <Badge key={kind} tone={TONES[kind]}>{`${word("replay.kind", kind)} ${number(group[kind])}`}</Badge>)}</span>
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}

function Rules({ added, removed, chosen, choose }: { added: Top; removed: Top; chosen: string; choose: (rule: string) => void }) {
  const all = [...added.entries.map((rule) => ({ ...rule, sign: "+" })), ...removed.entries.map((rule) => ({ ...rule, sign: "−" }))];
  return (
    <Panel title={t("replay.by_rule")}>
      {all.length === 0 ? <p class="empty">{t("replay.no_rule")}</p> : (
        <ul class="shares">
          {all.slice(0, 20).map((rule) => (
            <li key={rule.sign + rule.name}>
              <button type="button" class="row-button share-name" aria-pressed={chosen === rule.name} onClick={() => choose(chosen === rule.name ? "" : rule.name)}>{rule.sign}{rule.name} {rule.label}</button>
              <span class="share-value">{number(rule.count)}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Details({ of, onClose }: { of: Changed; onClose: () => void }) {
  const side = (outcome_: Outcome) => [outcome(outcome_), outcome_.plugin, outcome_.reason].filter(Boolean).join(" · ");
  return (
    <Dialog title={word("replay.kind", of.kind)} onClose={onClose} wide>
      <Facts of={[
        [t("col.request"), <span class="mono">{of.request}</span>],
        [t("replay.host"), <span class="mono">{of.host}</span>],
        [t("col.identity"), <span class="mono">{of.caller}</span>],
        [t("col.route"), of.route ?? ""],
        [t("col.time"), of.at ? <Time at={of.at} /> : ""],
        [t("replay.before"), side(of.before)],
        [t("replay.after"), side(of.after)],
        [t("col.score"), score(of)],
        [t("replay.rules.added"), (of.rules_added ?? []).join(", ")],
        [t("replay.rules.removed"), (of.rules_removed ?? []).join(", ")],
        [t("replay.entry"), <span class="mono">{of.id.split("/").at(-1)}</span>],
      ]} />
    </Dialog>
  );
}

/** The incidents, with filters in the address bar; one of them with its timeline. */
import { useCallback, useRef, useState } from "preact/hooks";
import type { PagedList } from "../api/paged";
import type { Incident } from "../api/security";
import type { PageProps } from "../app";
import { number, t, word } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { Badge } from "../ui/bits";
import { Page } from "../ui/page";
import { PagedTable } from "../ui/paged";
import type { Column } from "../ui/table";
import { Time } from "../ui/time";
import { IncidentPage } from "./incident";

const COLUMNS: Column<Incident>[] = [
  { key: "who", head: t("col.identity"), width: "minmax(13rem, 1.3fr)", cell: (row) => <span class="who mono">{row.key}</span> },
  { key: "state", head: t("col.state"), width: "8.5rem", cell: (row) => <StateBadge of={row} /> },
  { key: "score", head: t("col.score"), width: "6rem", end: true, wide: true, cell: (row) => t("unit.points", { count: row.max_score }) },
  { key: "count", head: t("col.events"), width: "7rem", end: true, wide: true, cell: (row) => number(row.count) },
  { key: "what", head: t("col.last_message"), width: "minmax(10rem, 2.5fr)", wide: true, cell: (row) => <span title={row.last_message}>{row.last_message}</span> },
  { key: "where", head: t("col.routes"), width: "minmax(6rem, 1fr)", wide: true, cell: (row) => row.routes.join(", ") },
  { key: "when", head: t("col.last_seen"), width: "8rem", cell: (row) => <Time at={row.last_seen} how="relative" /> },
];

/** Banned, allowed, or the state that an operator has set. */
export function StateBadge({ of }: { of: Incident }) {
  if (of.banned) return <Badge tone="bad">{t("incident.banned")}</Badge>;
  if (of.allowlisted) return <Badge tone="good">{t("incident.allowed")}</Badge>;
  return <Badge tone={of.state === "open" ? "warn" : of.state === "resolved" ? "good" : "info"}>{word("incident.state", of.state)}</Badge>;
}

/** The list, or the incident that the path names. */
export default function Incidents({ rest }: PageProps) {
  const key = rest[0];
  return key ? <IncidentPage id={key} /> : <List />;
}

function List() {
  const route = useRoute();
  const [turn, setTurn] = useState(0);
  const text = route.query.get("q") ?? "";
  const state = route.query.get("state") ?? "";
  const only = route.query.get("only") ?? "";
  const change = (name: string, value: string) => navigate(href("/incidents", { q: text, state, only, [name]: value }), "replace");
  const newest = useRef({ of: "", at: 0 });
  const [told, tellNew] = useState("");
  const onList = useCallback((list: PagedList<Incident>) => {
    const [of, at] = [JSON.stringify(list.filters), list.row(0)?.last_seen ?? 0];
    if (newest.current.of === of && newest.current.at && at > newest.current.at) tellNew(t("incidents.changed"));
    newest.current = { of, at };
  }, []);
  return (
    <Page title={t("nav.incidents")} intro={t("incidents.intro")}>
      <div class="filters" role="search">
        <label class="grow"><span>{t("filter.search")}</span><input type="search" value={text} placeholder={t("incidents.search")} onInput={(event) => change("q", event.currentTarget.value)} /></label>
        <label><span>{t("col.state")}</span>
          <select value={state} onChange={(event) => change("state", event.currentTarget.value)}>
            <option value="">{t("filter.all")}</option>
            <option value="open">{t("incident.state.open")}</option>
            <option value="acknowledged">{t("incident.state.acknowledged")}</option>
          </select>
        </label>
        <label><span>{t("filter.outcome")}</span>
          <select value={only} onChange={(event) => change("only", event.currentTarget.value)}>
            <option value="">{t("filter.all")}</option>
            <option value="enforced">{t("incidents.only.enforced")}</option>
            <option value="observed">{t("incidents.only.observed")}</option>
            <option value="banned">{t("incident.banned")}</option>
          </select>
        </label>
        <button type="button" onClick={() => setTurn(turn + 1)}>{t("action.reload")}</button>
      </div>
      <p class="sr-only" role="status">{told}</p>
      <PagedTable<Incident>
        label={t("nav.incidents")} path="/security/_incidents" field="incidents" filters={{ "filter.state": state || undefined, "filter.outcome": only || undefined }} text={text} columns={COLUMNS} id={(row) => row.key} turn={turn} everySeconds={15} onList={onList}
        tone={(row) => (row.banned ? "tone-bad" : row.enforced_count ? "tone-warn" : "")}
        onOpen={(row) => navigate(href(`/incidents/${encodeURIComponent(row.key)}`))}
      />
    </Page>
  );
}

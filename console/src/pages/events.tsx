/** Search in stored events. */
import { useEffect, useRef, useState } from "preact/hooks";
import { search, type Stored } from "../api/events";
import { local, t, word } from "../i18n";
import { Badge } from "../ui/bits";
import { EventDetails, actionOf, callerOf, sentence, toneOf } from "../ui/event";
import { EventFilters, begin, useEventFilters, useEventTimes } from "../ui/event-filters";
import { Page, Problem } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";

/** Columns of lists of events. */
export const EVENT_COLUMNS: Column<Stored>[] = [
  { key: "at", head: t("col.time"), width: "7rem", cell: (row) => <Time at={row.at} how="clock" /> },
  { key: "action", head: t("col.action"), width: "8.5rem", cell: (row) => <Badge tone={toneOf(row.event)}>{word("decision", actionOf(row.event))}</Badge> },
  { key: "who", head: t("col.identity"), width: "minmax(8rem, 1fr)", cell: (row) => <span class="mono">{callerOf(row.event)}</span> },
  { key: "request", head: t("col.request"), width: "minmax(8rem, 2fr)", wide: true, cell: (row) => <span class="mono" title={row.event.http?.path}>{row.event.http ? `${row.event.http.method ?? ""} ${row.event.http.path ?? ""}` : ""}</span> },
  { key: "what", head: t("col.message"), width: "minmax(8rem, 2fr)", wide: true, cell: (row) => <span title={sentence(row.event)}>{sentence(row.event)}</span> },
  { key: "score", head: t("col.score"), width: "6rem", end: true, wide: true, cell: (row) => (row.event.threat?.score !== undefined ? t("unit.points", { count: row.event.threat.score }) : "") },
];

/** The search. */
export default function Events() {
  const filters = useEventFilters();
  const times = useEventTimes();
  const key = JSON.stringify([filters, times]);
  const [events, setEvents] = useState<Stored[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [told, tell] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [shown, show] = useState<Stored | null>(null);
  const [busy, setBusy] = useState(true);
  // All calls of a search end with it: an older page that comes late is not of the next one.
  const abort = useRef(new AbortController());
  const load = async (cursor: string | null) => {
    const { signal } = abort.current;
    setBusy(true);
    try {
      const found = await search(filters, { limit: 200, ...(times.since ? { from: begin(times.since) } : times.from ? { from: times.from } : {}), ...(times.until ? { until: times.until } : {}), ...(cursor ? { cursor } : {}) }, signal);
      if (signal.aborted) return;
      setEvents((before) => (cursor ? [...before, ...found.events] : found.events));
      setNext(found.next);
      setError(null);
      tell(found.complete || !found.searched_from ? "" : t("events.searched", { from: local(Date.parse(found.searched_from)) }));
    } catch (error) {
      if (signal.aborted) return;
      setError(error);
    }
    setBusy(false);
  };
  useEffect(() => {
    const one = new AbortController();
    abort.current = one;
    void load(null);
    return () => one.abort();
  }, [key]);
  return (
    <Page title={t("nav.events")} intro={t("events.intro")}>
      <EventFilters path="/events" filters={filters} times />
      {error ? <Problem error={error} retry={() => void load(null)} /> : (
        <>
          <p class="count" role="status">{busy ? t("state.loading") : t("events.count", { count: events.length })} {told}</p>
          <Table label={t("nav.events")} columns={EVENT_COLUMNS} total={events.length} row={(index) => events[index]} id={(row) => row.id} onOpen={show} tone={(row) => `tone-${toneOf(row.event)}`} onView={(_, to) => next && !busy && to >= events.length && events.length > 0 && void load(next)} />
          {next && <button type="button" disabled={busy} onClick={() => void load(next)}>{t("events.older")}</button>}
        </>
      )}
      {shown && <EventDetails of={shown} onClose={() => show(null)} />}
    </Page>
  );
}

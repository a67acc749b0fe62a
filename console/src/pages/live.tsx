/** The stream of events. */
import { useEffect, useRef, useState } from "preact/hooks";
import { eventStatus, type Stored } from "../api/events";
import { me } from "../api/session";
import { Stream, type StreamState } from "../live-stream";
import { local, number, t } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge } from "../ui/bits";
import { EventDetails, toneOf } from "../ui/event";
import { EventFilters, useEventFilters } from "../ui/event-filters";
import { Page, Show } from "../ui/page";
import { Table } from "../ui/table";
import { EVENT_COLUMNS } from "./events";

/** Asks whether this release has a stream, then shows it. */
export default function Live() {
  const status = useLoaded(eventStatus, []);
  return (
    <Page title={t("nav.live")} intro={t("live.intro")}>
      <Show of={status}>{() => <Feed />}</Show>
    </Page>
  );
}

/** The time of a gap for the search, a second longer on both sides: the clock of the browser is another one. */
function around({ from, until }: { from: number; until: number }): { from: string; until: string } {
  return { from: new Date(from - 1000).toISOString(), until: new Date(until + 1000).toISOString() };
}

function Feed() {
  const filters = useEventFilters();
  const key = JSON.stringify(filters);
  const [state, set] = useState<StreamState | null>(null);
  const [shown, show] = useState<Stored | null>(null);
  const stream = useRef<Stream | null>(null);
  useEffect(() => {
    const made = new Stream(filters, set);
    stream.current = made;
    return () => made.close();
  }, [key]);
  // The stream does not keep the session alive: looking at it does, as long as the page is in front.
  useEffect(() => {
    const timer = setInterval(() => document.hidden || void me().catch(() => undefined), 300_000);
    return () => clearInterval(timer);
  }, []);
  const paused = state?.paused ?? false;
  const rows = state?.rows ?? [];
  return (
    <>
      <EventFilters path="/live" filters={filters}>
        <button type="button" class="primary" onClick={() => stream.current?.pause(!paused)}>{paused ? t("live.resume") : t("live.pause")}</button>
        <button type="button" onClick={() => stream.current?.clear()}>{t("live.clear")}</button>
        {(state?.connection === "retrying" || state?.connection === "busy") && <button type="button" onClick={() => stream.current?.retry()}>{t("live.again")}</button>}
      </EventFilters>
      {state && state.gaps.length > 0 && (
        <div class="notice warn" role="status">
          <ul>{state.gaps.map((gap) => <li key={gap.from}><a href={href("/events", { ...filters, ...around(gap) })}>{t("live.gap", { from: local(gap.from), until: local(gap.until) })}</a></li>)}</ul>
        </div>
      )}
      <p class="count">
        <span role="status"><Badge tone={state?.connection === "open" ? "good" : "warn"}>{t(`live.${state?.connection ?? "connecting"}`)}</Badge></span>{" "}
        {t("live.counts", { rate: number(Math.round(state?.rate ?? 0)), seen: number(state?.seen ?? 0), kept: number(rows.length) })}
        {state && state.dropped > 0 ? ` ${t("live.dropped", { count: state.dropped })}` : ""}
        {paused && state && state.waiting > 0 ? ` ${t("live.waiting", { count: state.waiting })}` : ""}
      </p>
      <Table label={t("nav.live")} columns={EVENT_COLUMNS} total={rows.length} row={(index) => rows[rows.length - 1 - index]} id={(row) => row.id} onOpen={show} tone={(row) => `tone-${toneOf(row.event)}`} />
      {shown && <EventDetails of={shown} onClose={() => show(null)} />}
    </>
  );
}

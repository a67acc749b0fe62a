/** One incident: what happened, who contributed, and what to do about it. */
import { useRef, useState } from "preact/hooks";
import { search, type Stored } from "../api/events";
import { get } from "../api/http";
import type { Incident } from "../api/security";
import { Decide, lift, take, type Deciding } from "../decide";
import { t, word } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Facts, Panel } from "../ui/bits";
import { EventDetails, EventLine, Signals } from "../ui/event";
import { Empty, Page, Show } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { Time } from "../ui/time";
import { IncidentState } from "./incident-state";
import { StateBadge } from "./incidents";

/** Loads the incident of a key; null if there is none any more. */
async function load(key: string, signal?: AbortSignal): Promise<{ found: Incident | null }> {
  const { incidents } = await get<{ incidents: Incident[] }>(`/security/_incidents?filter.ref=${encodeURIComponent(key)}`, signal);
  return { found: incidents[0] ?? null };
}

/** The page of the incident with this key. */
export function IncidentPage({ id }: { id: string }) {
  const incident = useLoaded((signal) => load(id, signal), [id], 15);
  // An incident that falls silent keeps its page: a note or a decision may be under way.
  const last = useRef<Incident | null>(null);
  last.current = incident.data?.found ?? last.current;
  return (
    <Page title={id} actions={<a class="button" href={href("/incidents")}>{t("action.back")}</a>}>
      <Show of={incident}>
        {({ found }) => (
          <>
            {!found && <Empty text={t("incident.gone")}><a href={href("/events", { ref: id })}>{t("incident.gone.events")}</a></Empty>}
            {last.current && <Body incident={last.current} reload={incident.reload} />}
          </>
        )}
      </Show>
    </Page>
  );
}

function Body({ incident, reload }: { incident: Incident; reload: () => void }) {
  const [deciding, decide] = useState<Deciding | null>(null);
  const may = useMay("analyst");
  return (
    <>
      <RoleNote least="analyst" />
      <div class="actions" role="group" aria-label={t("incident.decide")}>
        {incident.ban ? (
          <>
            <button type="button" disabled={!may} onClick={() => void lift(incident.ban?.key ?? incident.key, incident.ban, reload)}>{t("action.unban")}</button>
            <button type="button" disabled={!may} onClick={() => decide("extend")}>{t("action.extend")}</button>
          </>
        ) : (
          <button type="button" class="danger" disabled={!may} onClick={() => decide("ban")}>{t("action.ban")}</button>
        )}
        {incident.allowlist_entry ? (
          <button type="button" disabled={!may} onClick={() => void take(incident.allowlist_entry?.key ?? incident.key, incident.allowlist_entry, reload)}>{t("action.disallow")}</button>
        ) : (
          <button type="button" disabled={!may} onClick={() => decide("allow")}>{t("action.allow")}</button>
        )}
      </div>
      <div class="columns two">
        <Panel title={t("incident.summary")}>
          <Facts
            of={[
              [t("col.state"), <StateBadge of={incident} />],
              [t("col.score"), t("unit.points", { count: incident.max_score })],
              [t("col.events"), t("incident.events", { count: incident.count, enforced: incident.enforced_count })],
              [t("incident.first"), <Time at={incident.first_seen} />],
              [t("col.last_seen"), <Time at={incident.last_seen} />],
              [t("col.routes"), incident.routes.join(", ")],
              [t("col.node"), incident.nodes.join(", ")],
              [t("col.category"), incident.categories.join(", ")],
              [t("incident.tags"), incident.tags.length > 0 && <span class="tags">{incident.tags.map((tag) => <Badge key={tag}>{tag}</Badge>)}</span>],
              [t("incident.id"), <code>{incident.id}</code>],
            ]}
          />
        </Panel>
        <div>
          {incident.ban && (
            <Panel title={t("incident.ban")}>
              <Facts of={[[t("col.identity"), incident.ban.key], [t("col.reason"), incident.ban.reason], [t("col.by"), incident.ban.issued_by], [t("col.until"), <Time at={incident.ban.until} />]]} />
              <Signals of={incident.ban.signals} />
            </Panel>
          )}
          <IncidentState incident={incident} read={async () => (await load(incident.key)).found} reload={reload} />
        </div>
      </div>
      <Timeline incident={incident} />
      <Events incident={incident} />
      {deciding && <Decide what={deciding} target={(deciding === "extend" && incident.ban?.key) || incident.key} before={incident.ban} onClose={() => decide(null)} onDone={reload} />}
    </>
  );
}

function Timeline({ incident }: { incident: Incident }) {
  const entries = [...incident.timeline].reverse();
  return (
    <Panel title={t("incident.timeline")}>
      {incident.count > entries.length && <p class="muted">{t("incident.timeline.cut", { shown: entries.length, count: incident.count })}</p>}
      <ol class="timeline">
        {entries.map((entry, index) => (
          <li key={index} class={entry.enforced ? "enforced" : ""}>
            <Time at={entry.at} how="clock" />
            <span><Badge tone={entry.enforced ? "bad" : "info"}>{word("decision", entry.action)}</Badge> {entry.enforced ? "" : <span class="muted">{t("incident.not_enforced")} </span>}{entry.message}</span>
            <span class="muted">{entry.route_name || entry.route_id || t("overview.no_route")} · {t("unit.points", { count: entry.score })} · {word("category", entry.category)}</span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Events({ incident }: { incident: Incident }) {
  const found = useLoaded((signal) => search({ ref: incident.key }, { limit: 100 }, signal), [incident.key, incident.count]);
  const [shown, show] = useState<Stored | null>(null);
  return (
    <Panel title={t("incident.all_events")} actions={<a href={href("/events", { ref: incident.key })}>{t("incident.search")}</a>}>
      <Show of={found}>
        {(found) => (
          found.events.length === 0 ? <Empty text={t("incident.no_events")} /> : (
            <ul class="lines events">
              {found.events.map((stored) => (
                <li key={stored.id}><button type="button" class="row-button" onClick={() => show(stored)}><EventLine of={stored} /></button></li>
              ))}
              {found.next && <li class="muted">{t("events.more", { count: found.events.length })}</li>}
            </ul>
          )
        )}
      </Show>
      {shown && <EventDetails of={shown} onClose={() => show(null)} />}
    </Panel>
  );
}

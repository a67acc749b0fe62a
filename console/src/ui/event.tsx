/** Events: one line, and everything in them. Every value is a text node: attackers write most of them. */
import type { EventBody, Match, Stored } from "../api/events";
import type { Signal } from "../api/security";
import { t, word } from "../i18n";
import { href } from "../router";
import { Badge, Facts, type Tone } from "./bits";
import { Dialog } from "./dialog";
import { Time } from "./time";

/** Whether an event refused, would have, or only saw. */
export function toneOf(event: EventBody): Tone {
  if (event.event?.outcome === "blocked" || event.block) return "bad";
  if (event.decision?.dry_run || event.would_block) return "warn";
  return event["@type"] === "SvcWafSecurityAudit" ? "" : "info";
}

/** The action in a word. */
export function actionOf(event: EventBody): string {
  return event.event?.action ?? event.action ?? (event.block || event.would_block ? "deny" : "log");
}

/** What is said of an event in one sentence. */
export function sentence(event: EventBody): string {
  if (event.message) return event.message;
  if (event["@type"] === "SvcWafSecurityAudit") return [event.user?.name, event.action, event.ref, event.detail].filter(Boolean).join(" · ");
  // A body over a limit is refused by no rule.
  return event.matches?.[0]?.msg ?? event.block?.msg ?? event.would_block?.msg ?? event["@type"] ?? "";
}

/** Whose it is. */
export function callerOf(event: EventBody): string {
  return event.source?.ip ?? event.source?.user ?? event.source?.apikey ?? "";
}

/** One event in one line; `what` takes the place of its sentence. */
export function EventLine({ of, what }: { of: Stored; what?: string | undefined }) {
  const { event } = of;
  return (
    <span class="event-line">
      <Time at={of.at} how="clock" />
      <Badge tone={toneOf(event)}>{word("decision", actionOf(event))}</Badge>
      <span class="mono who">{callerOf(event)}</span>
      <span class="mono path">{event.http ? `${event.http.method ?? ""} ${event.http.host ?? ""}${event.http.path ?? ""}` : ""}</span>
      <span class="sentence" title={what ?? sentence(event)}>{what ?? sentence(event)}</span>
    </span>
  );
}

/** Contributions to a score, the heaviest first. */
export function Signals({ of }: { of: Signal[] | undefined }) {
  if (!of?.length) return null;
  const weight = (signal: Signal) => signal.effective_weight ?? signal.weight ?? 0;
  return (
    <div class="scroll">
      <table class="plain-table">
        <caption>{t("event.signals")}</caption>
        <thead><tr><th scope="col">{t("col.source")}</th><th scope="col">{t("col.tag")}</th><th scope="col" class="end">{t("col.weight")}</th><th scope="col">{t("col.why")}</th></tr></thead>
        <tbody>
          {[...of].sort((a, b) => weight(b) - weight(a)).map((signal, index) => (
            <tr key={index}>
              <th scope="row">{signal.source}</th>
              <td><Badge>{signal.tag ?? signal.kind ?? ""}</Badge></td>
              <td class="end">{t("unit.points", { count: weight(signal) })}</td>
              <td>{typeof signal.detail === "string" ? signal.detail : signal.detail ? JSON.stringify(signal.detail) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Rules that matched, each with the part of the request that it found, marked. */
export function Matches({ of, heading = true }: { of: Match[] | undefined; heading?: boolean }) {
  if (!of?.length) return null;
  return (
    <div class="matches">
      {heading && <h3>{t("event.rules")}</h3>}
      <ul>
        {of.map((match, index) => (
          <li key={index} class={match.refused ? "refused" : ""}>
            <p><code>{match.rule_id}</code> <strong>{match.msg}</strong> {match.refused && <Badge tone="bad">{t("event.refused")}</Badge>}</p>
            {match.variable && <p><span class="mono">{match.variable}</span> <mark class="mono">{match.value}</mark></p>}
            {match.logdata && match.logdata !== match.value && <p class="muted mono">{match.logdata}</p>}
            {match.config?.id && <p class="muted">{t("event.config")} <a href={href(`/policies/waf-configs/${encodeURIComponent(match.config.id)}`)}>{match.config.name || match.config.id}</a></p>}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A whole event in a dialog. */
export function EventDetails({ of, onClose }: { of: Stored; onClose: () => void }) {
  const { event } = of;
  const reference = event.http?.request_id;
  return (
    <Dialog title={sentence(event) || t("event.title")} onClose={onClose} wide>
      <div class="stack">
        <Facts
          of={[
            [t("col.time"), <Time at={of.at} />],
            [t("col.action"), <Badge tone={toneOf(event)}>{word("decision", actionOf(event))}</Badge>],
            [t("col.reason"), event.decision?.reason],
            [t("col.score"), event.threat?.score !== undefined && t("unit.points", { count: event.threat.score })],
            [t("col.request"), event.http && <span class="mono">{`${event.http.method ?? ""} ${event.http.host ?? ""}${event.http.path ?? ""}`}</span>],
            [t("col.status"), event.http?.status ? String(event.http.status) : ""],
            [t("col.identity"), callerOf(event) && <span class="mono">{callerOf(event)}</span>],
            [t("col.route"), event.route?.name ?? event.route?.id],
            [t("col.node"), event.route?.node],
            [t("col.plugin"), event.event?.module],
            [t("col.reference"), reference && <a class="mono" href={href("/why", { reference })}>{reference}</a>],
          ]}
        />
        <Signals of={event.threat?.signals} />
        <Matches of={event.matches} />
        <details><summary>{t("event.json")}</summary><pre tabIndex={0}>{JSON.stringify(event, null, 2)}</pre></details>
      </div>
    </Dialog>
  );
}

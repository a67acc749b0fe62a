/** "Why was this request blocked?": everything that is stored about one reference. */
import { useState } from "preact/hooks";
import { explain, type Explained } from "../api/events";
import { t, word } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Facts, Panel } from "../ui/bits";
import { EventDetails, EventLine, Matches, Signals } from "../ui/event";
import { Page, Show } from "../ui/page";
import { Time } from "../ui/time";

/** Asks for the reference and shows the answer. */
export default function Why() {
  const reference = useRoute().query.get("reference") ?? "";
  const [typed, type] = useState(reference);
  const submit = (event: Event) => {
    event.preventDefault();
    navigate(href("/why", { reference: typed.trim() }));
  };
  return (
    <Page title={t("nav.why")} intro={t("why.intro")}>
      <form class="filters" role="search" onSubmit={submit}>
        <label class="grow"><span>{t("col.reference")}</span><input type="search" class="mono" value={typed} maxLength={128} placeholder="582ca865-6c8e-43de-b2dd-bffc9789d043" onInput={(event) => type(event.currentTarget.value)} /></label>
        <button type="submit" class="primary">{t("why.submit")}</button>
      </form>
      {reference && <Answer key={reference} reference={reference} />}
    </Page>
  );
}

function Answer({ reference }: { reference: string }) {
  const found = useLoaded((signal) => explain(reference, signal), [reference]);
  return <Show of={found}>{(found) => (found.found ? <Explanation of={found} /> : <p class="empty" role="status">{t("why.unknown")}</p>)}</Show>;
}

/** The verdict in one sentence. */
function said(of: Explained): string {
  const { verdict, rules } = of;
  if (!verdict) return t("why.no_verdict");
  const rule = rules.find((rule) => rule.refused) ?? rules[0];
  const parameters = { module: verdict.module, action: word("decision", verdict.action), points: t("why.points", { count: verdict.score }) };
  if (!verdict.enforced) return t(verdict.dry_run ? "why.dry_run" : "why.observed", parameters);
  return rule ? t("why.rule", { ...parameters, rule: String(rule.rule_id ?? ""), msg: rule.msg ?? "" }) : t("why.enforced", parameters);
}

function Explanation({ of }: { of: Explained }) {
  const { request, verdict } = of;
  const [shown, show] = useState(-1);
  const event = of.events[shown];
  const address = request?.source?.ip;
  const policy = /^([a-z-]+)\/(.+)$/.exec(verdict?.policy ?? "");
  return (
    <>
      <p class={`notice ${verdict?.enforced ? "bad" : "warn"}`} role="status"><strong>{said(of)}</strong> {verdict?.reason}</p>
      <div class="columns two">
        <Panel title={t("why.request")}>
          <Facts
            of={[
              [t("col.time"), request && <Time at={request.at} />],
              [t("col.request"), request && <span class="mono">{`${request.method} ${request.host}${request.path}`}</span>],
              [t("col.status"), request?.status ? String(request.status) : ""],
              [t("col.route"), request?.route?.name ?? request?.route?.id],
              [t("col.node"), request?.route?.node],
              [t("col.identity"), address && <a class="mono" href={href(`/incidents/${encodeURIComponent(`ip:${address}`)}`)}>{address}</a>],
              [t("why.user"), request?.source?.user],
            ]}
          />
        </Panel>
        <Panel title={t("why.verdict")}>
          <Facts
            of={[
              [t("col.action"), verdict && <Badge tone={verdict.enforced ? "bad" : "warn"}>{word("decision", verdict.action)}</Badge>],
              [t("col.plugin"), verdict?.module],
              [t("col.policy"), policy && <a href={href(`/policies/${policy[1]}/${encodeURIComponent(policy[2] ?? "")}`)}>{policy[2]}</a>],
              [t("col.score"), verdict && t("unit.points", { count: verdict.score })],
              [t("why.tier"), verdict?.tier !== null && verdict?.tier !== undefined ? String(verdict.tier + 1) : ""],
              [t("why.incident"), of.incident && <a href={href("/events", { incident: of.incident })}>{of.incident}</a>],
            ]}
          />
          <p><a class="button" href={href("/tuning", { reference: of.reference })}>{t("why.tune")}</a> <a class="button" href={href("/rules", { reference: of.reference })}>{t("why.rules.test")}</a></p>
        </Panel>
      </div>
      {of.rules.length > 0 && <Panel title={t("why.rules")}><Matches of={of.rules} heading={false} /></Panel>}
      {of.signals.length > 0 && <Panel title={t("why.signals")}><Signals of={of.signals} /></Panel>}
      <Panel title={t("incident.all_events")}>
        <ul class="lines events">
          {of.events.map((stored, index) => <li key={stored.id}><button type="button" class="row-button" onClick={() => show(index)}><EventLine of={stored} /></button></li>)}
        </ul>
        {of.truncated && <p class="muted">{t("why.truncated")}</p>}
      </Panel>
      {event && <EventDetails of={event} onClose={() => show(-1)} />}
    </>
  );
}

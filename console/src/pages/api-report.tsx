/** What callers ask of routes, compared with their contracts. */
import { apiReport, type ApiRoute, type Operation, type WouldRefuse } from "../api/reports";
import { number, t } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Figure, Panel, type Tone } from "../ui/bits";
import { Empty, Page, Show } from "../ui/page";
import { Time } from "../ui/time";

const TONES: Record<string, Tone> = { zombie: "warn", shadow: "bad", unused: "", used: "good", high: "bad", medium: "warn" };

/** Entries of a route's list, at most. */
const SHOWN = 100;

/** The summary and each route. */
export default function ApiReportPage() {
  const report = useLoaded(apiReport, [], 60);
  return (
    <Page title={t("nav.api")} intro={t("api.intro")}>
      <Show of={report}>
        {({ summary, routes }) => (
          <>
            <div class="figures">
              <Figure label={t("api.with_contract")} value={`${number(summary.with_contract)} / ${number(summary.routes)}`} tone={summary.with_contract < summary.routes ? "warn" : "good"} />
              <Figure label={t("api.shadows")} value={number(summary.shadows)} note={t("api.shadows.note")} tone={summary.shadows ? "bad" : ""} />
              <Figure label={t("api.zombies")} value={number(summary.zombies)} note={t("api.zombies.note")} tone={summary.zombies ? "warn" : ""} />
              <Figure label={t("api.drift")} value={number(summary.drift)} note={t("api.drift.note", { count: summary.sensitive_drift })} />
              <Figure label={t("api.auth")} value={number(summary.auth.high)} note={t("api.auth.note", { count: summary.auth.medium })} tone={summary.auth.high ? "bad" : ""} />
            </div>
            {routes.length === 0 && <Empty text={t("api.none")}><a href={href("/policies/routes/_new")}>{t("policies.new")}</a></Empty>}
            {routes.map((route) => <Route key={route.route_id} route={route} />)}
          </>
        )}
      </Show>
    </Page>
  );
}

/** What the contract would refuse, with the reasons. */
function Refusals({ of }: { of: { what: string; of: WouldRefuse | undefined }[] }) {
  const found = of.filter(({ of }) => of && of.requests > 0);
  if (found.length === 0) return null;
  return (
    <ul class="lines">
      {found.slice(0, SHOWN).map(({ what, of }) => of && (
        <li key={what}><Badge tone="warn">{t("api.would_refuse", { count: of.requests })}</Badge> <span class="mono">{what}</span> <span class="muted">{of.samples.slice(0, 3).map((sample) => [sample.where, sample.detail].filter(Boolean).join(": ")).join(" · ")}</span></li>
      ))}
    </ul>
  );
}

function Route({ route }: { route: ApiRoute }) {
  const { contract } = route;
  const rows: Operation[] = [...route.shadows, ...route.operations, ...route.probes].slice(0, SHOWN);
  return (
    <Panel title={route.route_name || route.route_id} actions={<a href={href(`/policies/routes/${encodeURIComponent(route.route_id)}`)}>{t("api.open")}<span class="sr-only"> {route.route_name || route.route_id}</span></a>}>
      <p>
        {contract ? <a href={href(`/policies/api-contracts/${encodeURIComponent(contract.id)}`)}>{contract.name || contract.id}</a> : <Badge tone="warn">{t("api.no_contract")}</Badge>} {route.mode && <Badge>{route.mode}</Badge>} {route.compiles === false && <Badge tone="bad">{t("api.broken")}</Badge>}
      </p>
      {route.auth.findings.length > 0 && (
        <ul class="lines">{route.auth.findings.slice(0, SHOWN).map((finding, index) => <li key={index}><Badge tone={TONES[finding.severity] ?? ""}>{finding.severity}</Badge> <span class="mono">{finding.method} {finding.path}</span> {finding.detail}</li>)}</ul>
      )}
      {route.drift.length > 0 && (
        <ul class="lines">{route.drift.slice(0, SHOWN).map((drift, index) => <li key={index}><Badge tone={drift.sensitive ? "bad" : "info"}>{drift.kind.replaceAll("_", " ")}</Badge> <span class="mono">{drift.operation} {drift.where}</span> {drift.observed} <span class="muted">{t("api.times", { count: drift.count })}</span></li>)}</ul>
      )}
      <Refusals of={[...route.operations.map((of) => ({ what: `${of.method} ${of.path}`, of: of.would_refuse })), { what: t("api.outside"), of: route.outside_would_refuse }]} />
      {rows.length > 0 && (
        <ul class="lines">{rows.map((row) => <li key={`${row.state} ${row.method} ${row.path}`}><Badge tone={TONES[row.state] ?? ""}>{row.state}</Badge> <span class="mono">{row.method} {row.path}</span> <span class="muted">{t("api.times", { count: row.hits })}{row.last_seen !== null && <> · <Time at={row.last_seen} how="relative" /></>}</span></li>)}</ul>
      )}
    </Panel>
  );
}

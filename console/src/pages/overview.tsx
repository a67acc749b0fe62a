/** What happens now, and what needs a hand. */
import { useMemo } from "preact/hooks";
import type { PageProps } from "../app";
import { overview, type Overview, type Share, type Span } from "../api/events";
import { status, type SecurityStatus } from "../api/security";
import { bytes, number, t } from "../i18n";
import { current, href, navigate, useRoute } from "../router";
import { begun, useLoaded, type Begun } from "../ui/async";
import { Badge, Choice, Facts, Figure, Panel } from "../ui/bits";
import { Chart } from "../ui/chart";
import { Page, Problem, Show } from "../ui/page";
import { Time } from "../ui/time";
import { isMissing } from "../api/http";
import { Unprotected } from "./overview-gaps";

const SPANS: Span[] = ["hour", "day", "week"];

type Calls = ReturnType<typeof begin>;

function spanOf(query: URLSearchParams): Span {
  return SPANS.find((span) => span === query.get("span")) ?? "hour";
}

/** Begins the calls of the page that the address bar names. */
export function begin() {
  return { figures: begun(overview(spanOf(current().query))), state: begun(status()) } satisfies Record<string, Begun<unknown>>;
}

/** The first page. */
export default function OverviewPage({ calls }: PageProps) {
  const first = calls as Calls | undefined;
  const route = useRoute();
  const span = spanOf(route.query);
  const figures = useLoaded((signal) => overview(span, signal), [span], 15, first?.figures);
  const state = useLoaded(status, [], 15, first?.state);
  const choose = (span: Span) => navigate(href("/", { span: span === "hour" ? null : span }), "replace");
  return (
    <Page
      title={t("nav.overview")}
      actions={<Choice label={t("overview.span")} value={span} options={SPANS.map((span) => [span, t(`overview.span.${span}`)])} onChange={choose} />}
    >
      <Show of={state}>{(state) => <State state={state} />}</Show>
      {figures.data === null && isMissing(figures.error) ? <Panel title={t("overview.traffic")}><Problem error={figures.error} /></Panel> : <Show of={figures}>{(data) => <Figures data={data} span={span} />}</Show>}
      <Unprotected />
    </Page>
  );
}

function State({ state }: { state: SecurityStatus }) {
  const { nodes, bans, allowlist } = state;
  return (
    <>
      {(state.bans.last_error ?? state.allowlist.last_error) && <p class="notice bad">{state.bans.last_error ?? state.allowlist.last_error}</p>}
      <div class="figures">
        <Figure label={t("overview.nodes")} value={`${number(nodes.connected)} / ${number(nodes.known)}`} tone={nodes.connected < nodes.known ? "bad" : ""} note={nodes.known === 0 ? t("overview.nodes.none") : nodes.behind + nodes.stale > 0 ? t("overview.nodes.behind", { count: nodes.behind + nodes.stale }) : t("overview.nodes.note")} />
        <Figure label={t("overview.bans")} value={number(bans.bans)} note={<a href={href("/bans")}>{t("overview.open")}</a>} />
        <Figure label={t("overview.allowlist")} value={number(allowlist.entries)} note={<a href={href("/bans", { view: "allowlist" })}>{t("overview.open")}</a>} />
        <Figure label={t("overview.protection")} value={state.enabled ? t("overview.protection.on") : t("overview.protection.off")} tone={state.enabled ? "good" : "warn"} note={state.enabled ? t("overview.protection.on.note") : t("overview.protection.off.note")} />
      </div>
      {state.shared_state.warning && <p class="help">{state.shared_state.warning}</p>}
    </>
  );
}

function change(now: number, before: number): string {
  if (!before) return t("overview.before.none");
  const percent = Math.round(((now - before) / before) * 100);
  return t("overview.before", { change: `${percent > 0 ? "+" : ""}${number(percent)} %` });
}

function Figures({ data, span }: { data: Overview; span: Span }) {
  const times = useMemo(() => data.steps.map((step) => Date.parse(step.at)), [data]);
  const lines = useMemo(
    () => [
      { label: t("overview.refused"), tone: "bad" as const, values: data.steps.map((step) => step.refused) },
      { label: t("overview.observed"), tone: "info" as const, values: data.steps.map((step) => step.observed) },
    ],
    [data],
  );
  const from = data.from;
  return (
    <>
      <Panel title={t("overview.traffic")}>
        <div class="figures">
          <Figure label={t("overview.requests")} value={number(data.totals.requests)} note={change(data.totals.requests, data.before.requests)} />
          <Figure label={t("overview.refused")} value={number(data.totals.refused)} note={change(data.totals.refused, data.before.refused)} tone="bad" />
          <Figure label={t("overview.observed")} value={number(data.totals.observed)} note={change(data.totals.observed, data.before.observed)} tone="info" />
          <Figure label={t("overview.dry_run")} value={number(data.totals.dry_run)} note={<a href={href("/events", { dry_run: "true", from })}>{t("overview.dry_run.show")}</a>} tone="warn" />
        </div>
        <Chart label={t("overview.chart", { span: t(`overview.span.${span}`) })} times={times} lines={lines} />
      </Panel>
      <div class="columns">
        <Shares title={t("overview.by_plugin")} list={data.by_plugin} link={(share) => (share.name ? href("/events", { plugin: share.name, from }) : null)} />
        <Shares title={t("overview.by_route")} list={data.by_route} link={(share) => (share.id ? href("/events", { route: share.id, from }) : null)} />
        <Shares title={t("overview.by_action")} list={data.by_action} link={(share) => (share.name ? href("/events", { action: share.name, from }) : null)} />
      </div>
      <Health health={data.health} />
    </>
  );
}

function Shares({ title, list, link }: { title: string; list: Share[]; link: (share: Share) => string | null }) {
  const most = Math.max(1, ...list.map((share) => share.refused + share.observed));
  return (
    <Panel title={title}>
      {list.length === 0 && <p class="empty">{t("state.quiet")}</p>}
      <ul class="shares">
        {list.map((share) => {
          const to = link(share);
          const name = share.other ? t("overview.others") : (share.name ?? share.id ?? t("overview.no_route"));
          return (
            <li key={name}>
              <span class="share-name">{to ? <a href={to}>{name}</a> : name}</span>
              <span class="share-value">{share.requests > 0 && `${t("overview.share.requests", { count: share.requests })}, `}{t("overview.share", { refused: share.refused, observed: share.observed })}</span>
              <meter min={0} max={most} value={share.refused + share.observed} aria-label={name} />
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}

function Health({ health }: { health: Overview["health"] }) {
  const { event_store: store } = health;
  return (
    <Panel title={t("overview.health")}>
      {health.troubles.length === 0 ? <p><Badge tone="good">{t("overview.health.good")}</Badge></p> : (
        <ul class="lines">
          {health.troubles.map((trouble) => (
            <li key={`${trouble.part} ${trouble.subject}`}>
              <Badge tone="bad">{trouble.part}</Badge> <strong>{trouble.subject}</strong> {trouble.reason} {trouble.since !== null && <span class="muted">{t("overview.since")} <Time at={trouble.since} how="relative" /></span>}
            </li>
          ))}
        </ul>
      )}
      {health.exporters.length > 0 && (
        <ul class="lines">
          {health.exporters.map((exporter) => (
            <li key={exporter.name}>
              <Badge tone={exporter.error || exporter.disk_error ? "bad" : exporter.dropped ? "warn" : "good"}>{exporter.error ? t("overview.exporter.fails") : t("overview.exporter")}</Badge>{" "}
              <strong>{exporter.name}</strong> <span class="muted">{t("overview.exporter.counts", { written: exporter.written, waiting: exporter.waiting, dropped: exporter.dropped })}</span> {exporter.error ?? exporter.disk_error}
            </li>
          ))}
        </ul>
      )}
      <Facts of={[[t("overview.store"), store.enabled ? t("overview.store.value", { events: t("events.count", { count: store.events }), size: bytes(store.bytes), days: t("unit.days", { count: store.retention.days }) }) : t("overview.store.off")], [t("overview.store.oldest"), store.oldest && <Time at={store.oldest} />]]} />
    </Panel>
  );
}

/** The object guard and the login guard: what they found, where they watch, and in which state. */
import { useState } from "preact/hooks";
import { list, type Entity } from "../api/entities";
import type { Span, Stored } from "../api/events";
import { findings, type Finding, type Findings, type Guard } from "../api/guard";
import { chainOf, type ChainStep } from "../chain/chain";
import { loadPolicies } from "../chain/load";
import { number, t, word } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Choice, Figure, Panel } from "../ui/bits";
import { EventDetails, EventLine } from "../ui/event";
import { Empty, Page, Show } from "../ui/page";
import { stateWord } from "./chain";

/** The page of the object guard. */
export const ObjectGuard = () => <GuardPage guard="object-guard" path="/objects" />;
/** The page of the login guard. */
export const LoginGuard = () => <GuardPage guard="login-guard" path="/logins" />;

function GuardPage({ guard, path }: { guard: Guard; path: string }) {
  const { query } = useRoute();
  const span = (["hour", "day", "week"] as const).find((known) => known === query.get("span")) ?? "day";
  const found = useLoaded((signal) => findings(guard, span, signal), [guard, span], 60);
  const places = useLoaded(async (signal) => placesOf(guard, await list("routes", signal), await loadPolicies(signal)), [guard]);
  return (
    <Page title={t(guard === "object-guard" ? "nav.objects" : "nav.logins")} intro={t(guard === "object-guard" ? "guard.objects.intro" : "guard.logins.intro")}>
      <Choice<Span> label={t("overview.span")} value={span} options={[["hour", t("overview.span.hour")], ["day", t("overview.span.day")], ["week", t("overview.span.week")]]} onChange={(span) => navigate(href(path, { span: span === "day" ? "" : span }), "replace")} />
      <Show of={places}>{(places) => <Places of={places} guard={guard} />}</Show>
      <Show of={found}>{(found) => <Found of={found} guard={guard} span={span} />}</Show>
    </Page>
  );
}

interface GuardPlace {
  route: Entity | null;
  step: ChainStep;
  /** The threat response of the same chain, which acts on what the guard adds to the score. */
  response: ChainStep | null;
}

function placesOf(guard: Guard, routes: Entity[], { global, policies }: Awaited<ReturnType<typeof loadPolicies>>): GuardPlace[] {
  return routes.filter((route) => route.enabled !== false).flatMap((route) => {
    const steps = chainOf(route, global, policies);
    const step = steps.find((step) => step.plugin?.name === guard);
    return step ? [{ route, step, response: steps.find((step) => step.plugin?.name === "threat-response" && step.state !== "off") ?? null }] : [];
  });
}

function Places({ of, guard }: { of: GuardPlace[]; guard: Guard }) {
  const config = t(guard === "object-guard" ? "guard.objects.on" : "guard.logins.on");
  if (of.length === 0) return <Panel title={t("guard.places")}><Empty text={t("guard.nowhere")}><p>{config}</p><a href={href("/policies/routes")}>{t("collection.routes")}</a></Empty></Panel>;
  return (
    <Panel title={t("guard.places")}>
      <ul class="lines">
        {of.map(({ route, step, response }) => (
          <li key={route?.id}>
            <a href={href(`/policies/routes/${encodeURIComponent(route?.id ?? "")}`)}>{route?.name || route?.id}</a>{" "}
            <Badge tone={step.state === "active" ? "good" : step.state === "missing" ? "bad" : ""}>{stateWord(step)}</Badge> {word("chain.effect", step.effect)}
            {step.state === "missing" && ` · ${config}`}
            {(step.effect === "scores" || step.effect === "both") && (
              <span class="muted"> · {response ? <>{t("guard.acted")} {response.policy ? <a href={href(`/policies/${response.policy.collection}/${encodeURIComponent(response.policy.id)}`)}>{response.policy.name}</a> : ""} <Badge tone={response.state === "active" ? "good" : "warn"}>{word("chain.state", response.state)}</Badge></> : t("guard.no_response")}</span>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Found({ of, guard, span }: { of: Findings; guard: Guard; span: Span }) {
  const [shown, show] = useState<Stored | null>(null);
  const filters = { plugin: guard, since: span };
  const refused = of.refused + of.byScore;
  if (of.events.length === 0) return <Empty text={t("guard.nothing")} />;
  return (
    <>
      <div class="figures" role="status">
        <Figure label={t("guard.events")} value={`${number(of.events.length)}${of.partial ? "+" : ""}`} note={of.partial ? t("guard.partial") : ""} tone="info" />
        <Figure label={t("geo.callers")} value={number(of.callers.length)} tone="info" />
        <Figure label={t(guard === "object-guard" ? "guard.kinds" : "guard.accounts")} value={number(of.subjects.length)} tone="info" />
        <Figure label={t("overview.refused")} value={number(refused)} note={refused === 0 ? t("guard.refuses_nothing") : of.byScore > 0 && <a href={href("/events", { plugin: "threat-response", outcome: "blocked", since: span })}>{t("guard.by_score", { requests: of.byScore })}</a>} tone={refused ? "bad" : ""} />
      </div>
      <div class="columns two">
        <Panel title={t("guard.patterns")}><Top caption={t("guard.patterns")} of={of.patterns} cell={({ name }) => word("guard.pattern", name)} /></Panel>
        <Panel title={t(guard === "object-guard" ? "guard.kinds" : "guard.accounts")}>
          {of.subjects.length === 0 ? <p class="muted">{t("guard.no_subjects")}</p> : <Top caption={t(guard === "object-guard" ? "guard.kinds" : "guard.accounts")} of={of.subjects} cell={({ name }) => <code>{name}</code>} />}
          {guard === "login-guard" && <p class="help">{t("guard.accounts.help")}</p>}
        </Panel>
        <Panel title={t("geo.callers")}><Top caption={t("geo.callers")} callers={false} of={of.callers} cell={({ name }) => <><a class="mono" href={href("/events", { ...filters, ref: name })}>{name}</a> <a class="muted" href={href(`/incidents/${encodeURIComponent(name)}`)}>{t("guard.incident")}<span class="sr-only"> {name}</span></a></>} /></Panel>
        <Panel title={t("overview.by_route")}><Top caption={t("overview.by_route")} of={of.routes} cell={({ name }) => <a href={href("/events", { ...filters, route: name })}>{name}</a>} /></Panel>
      </div>
      <Panel title={t("guard.last")} actions={<a href={href("/events", filters)}>{t("guard.all")}</a>}>
        <ul class="lines events">
          {of.events.slice(0, 20).map((stored) => <li key={stored.id}><button type="button" class="row-button" onClick={() => show(stored)}><EventLine of={stored} /></button></li>)}
        </ul>
      </Panel>
      {shown && <EventDetails of={shown} onClose={() => show(null)} />}
    </>
  );
}

function Top({ caption, of, cell, callers = true }: { caption: string; of: Finding[]; callers?: boolean; cell: (finding: Finding) => preact.ComponentChildren }) {
  return (
    <div class="scroll">
      <table class="plain-table counts">
        <caption class="sr-only">{caption}</caption>
        <thead><tr><th scope="col">{t("col.name")}</th><th scope="col" class="end">{t("col.events")}</th>{callers && <th scope="col" class="end">{t("geo.callers")}</th>}</tr></thead>
        <tbody>{of.slice(0, 15).map((finding) => <tr key={finding.name}><th scope="row">{cell(finding)}</th><td class="end">{number(finding.events)}</td>{callers && <td class="end">{number(finding.callers)}</td>}</tr>)}</tbody>
      </table>
    </div>
  );
}

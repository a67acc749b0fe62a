/** From dry run to enforcing in one dialog: what would have been held back, what changes, why, and the way back. */
import { useState } from "preact/hooks";
import { list, save, type Entity, type Tagged } from "../api/entities";
import { eventStatus, type Filters, type Stored } from "../api/events";
import { trial, type Tally, type Trial } from "../api/trial";
import { chainOf, enforcedIn, routesOf, type ChainStep } from "../chain/chain";
import { loadPolicies } from "../chain/load";
import { Diff } from "../forms/diff-view";
import { local, number, t, word } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Field } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { EventLine } from "../ui/event";
import { Show } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { tell, tellWarnings } from "../ui/toast";
import { mayRewrite, undoOf, writeProblem } from "../versions";

/** How a policy of a collection enforces, and whether one still does not. */
const POLICIES: Record<string, { enforcing: Record<string, unknown>; isInDryRun: (value: Entity) => boolean }> = {
  "threat-policies": { enforcing: { dry_run: false }, isInDryRun: (value) => value["dry_run"] !== false },
  "waf-configs": { enforcing: { block: true }, isInDryRun: (value) => value["block"] === false },
  "honeypot-policies": { enforcing: { action: "deny" }, isInDryRun: (value) => value["action"] === "monitor" },
};

/** Whether policies of a collection are taken from dry run to enforcing on their own page. */
export const isEnforcedOnItsPage = (collection: string) => collection in POLICIES;

/** Whether a document is one that can be taken from dry run to enforcing on its page, and still is in dry run. */
export function isInDryRun(collection: string, value: Entity): boolean {
  return POLICIES[collection]?.isInDryRun(value) ?? false;
}

/** The key of `metadata` that keeps the reason: it is part of the document, so the history has it. */
const REASON = "enforced_because";

function withReason(after: Entity, reason: string): Entity {
  // In front, so that the difference is a line.
  const { [REASON]: _, ...metadata } = (after["metadata"] ?? {}) as Record<string, unknown>;
  return reason.trim() ? { ...after, metadata: { [REASON]: reason.trim(), ...metadata } } : after;
}

/** What is taken from dry run to enforcing. */
export interface Subject {
  /** For people. */
  title: string;
  collection: string;
  tagged: Tagged;
  /** The document that enforces. */
  after: Entity;
  /** Filters of the events that tell what would have been held back. */
  filters: Filters;
  /** The plugin reports one event a minute for each caller or kind of mismatch, so that more requests are affected than there are events. */
  sampled: boolean;
}

const SAMPLED = new Set(["ip-reputation", "api-contract", "query-guard"]);

/** A policy in dry run, a configuration that only detects, or a honeypot that only watches. */
export function policySubject(collection: string, tagged: Tagged): Subject {
  const { entity } = tagged;
  const filters: Record<string, Filters> = {
    "threat-policies": { policy: `threat-policies/${entity.id}`, type: "security", outcome: "observed", dry_run: "true" },
    "waf-configs": { config: entity.id, dry_run: "true" },
    "honeypot-policies": { policy: `honeypot-policies/${entity.id}`, plugin: "honeypot", outcome: "observed" },
  };
  return { title: entity.name || entity.id, collection, tagged, after: { ...entity, ...POLICIES[collection]?.enforcing }, filters: filters[collection] ?? {}, sampled: false };
}

/** A plugin of a route or of the global chain that has a dry run of its own. */
export function pluginSubject(tagged: Tagged, step: ChainStep): Subject | null {
  const { entity } = tagged;
  if (!step.enforcedBy || !step.plugin) return null;
  const { name } = step.plugin;
  const of = step.global ? word("collection", "global-config") : entity.name || entity.id;
  return {
    title: `${step.title}, ${of}`, collection: step.global ? "global-config" : "routes", tagged, after: enforcedIn(entity, step.global, step.enforcedBy),
    filters: { plugin: name, ...(step.global ? {} : { route: entity.id }), outcome: "observed", dry_run: "true" },
    sampled: SAMPLED.has(name),
  };
}

interface Evidence {
  trial: Trial;
  /** Shown alone: which events count is up to the filters. Null stands for requests without a route. */
  routes: (string | null)[];
  stored: boolean;
  /** Bans would be made, and the gate of the chain does not enforce them. */
  gateIsOpen: boolean;
}

async function evidence(subject: Subject, signal: AbortSignal): Promise<Evidence> {
  const [tried, status, chains] = await Promise.all([trial(subject.filters, signal), eventStatus(signal).catch(() => null), chainsWith(subject, signal)]);
  return { trial: tried, stored: status?.enabled ?? false, ...chains };
}

/** The routes whose chains the document is part of, and whether a gate of them lets banned callers pass. */
async function chainsWith({ collection, tagged: { entity }, filters }: Subject, signal: AbortSignal): Promise<Pick<Evidence, "routes" | "gateIsOpen">> {
  const bans = filters.plugin === "fail2ban";
  if (collection === "routes" && !bans) return { routes: [entity.id], gateIsOpen: false };
  const [{ global, policies }, all] = await Promise.all([loadPolicies(signal), list("routes", signal)]);
  const enabled = all.filter((route) => route.enabled !== false);
  // Bans of the global chain are enforced by the gate of each route, or by one of its own; what has no route reaches no backend.
  const gateIsOpen = bans && (collection === "routes" ? [entity] : enabled).some((route) => {
    const gates = chainOf(route, global, policies).filter(({ plugin }) => plugin?.name === "threat-gate");
    return gates.length > 0 && !gates.some(({ state }) => state === "active");
  });
  if (collection === "routes") return { routes: [entity.id], gateIsOpen };
  // The global chain runs before every route, and where there is none.
  const routes = isEnforcedOnItsPage(collection) ? routesOf(collection, entity.id, enabled, global, policies) : [null, ...enabled.map((route) => route.id)];
  return { routes, gateIsOpen };
}

/** The dialog. */
export function Enforce({ subject, onClose, reload }: { subject: Subject; onClose: () => void; reload: () => void }) {
  const { collection, tagged: { entity, etag }, title } = subject;
  const found = useLoaded((signal) => evidence(subject, signal), [collection, entity.id, title]);
  const [reason, setReason] = useState("");
  const [sure, setSure] = useState(false);
  const may = useMay("admin");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const after = withReason(subject.after, reason);
  const held = found.data?.trial.requests ?? 0;
  const write = async (event: Event) => {
    event.preventDefault();
    if (!mayRewrite(collection, entity.id)) return;
    setBusy(true);
    try {
      const written = await save(collection, after, etag);
      onClose();
      tell(t("enforce.done", { id: title }), undoOf(collection, entity.id, etag, written.etag, reload));
      tellWarnings(written.warnings);
      reload();
    } catch (error) {
      setError(writeProblem(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t("enforce.title", { id: title })} onClose={onClose} wide>
      <form class="stack" onSubmit={(event) => void write(event)}>
        <h3>1. {t("enforce.what")}</h3>
        <Show of={found}>{(evidence) => <Verdict of={evidence} subject={subject} />}</Show>
        <h3>2. {t("enforce.diff")}</h3>
        <Diff before={entity} after={after} />
        <h3>3. {t("enforce.why")}</h3>
        <Field label={t("enforce.reason")} help={t("enforce.reason.help")}>{(field) => <input {...field} required maxLength={500} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
        {held > 0 && <label class="inline"><input type="checkbox" checked={sure} required onChange={(event) => setSure(event.currentTarget.checked)} /> {t(subject.filters.plugin === "fail2ban" ? "enforce.sure.bans" : "enforce.sure", { requests: held })}</label>}
        {error && <p class="notice bad" role="alert">{error}</p>}
        <div class="actions">
          <button type="submit" class="primary" disabled={!may || busy || (found.data === null && !found.error)}>{t("enforce.do")}</button>
          <button type="button" onClick={onClose}>{t("action.cancel")}</button>
        </div>
        <RoleNote least="admin" />
        <p class="help">{t("enforce.undo")}</p>
      </form>
    </Dialog>
  );
}

function Verdict({ of: { trial, routes, stored, gateIsOpen }, subject }: { of: Evidence; subject: Subject }) {
  const from = new Date(Date.now() - 86_400_000).toISOString();
  const filters: Record<string, string> = { ...subject.filters, from };
  const bans = subject.filters.plugin === "fail2ban";
  if (!stored) return <p class="notice warn" role="status">{t("enforce.no_store")}</p>;
  return (
    <div class="stack">
      {trial.requests === 0 ? (
        <p class="notice good" role="status"><strong>{trial.partial ? t("enforce.none.so_far") : t("enforce.none")}</strong> {routes.length === 0 && t("enforce.unused")}</p>
      ) : (
        <p class="notice warn" role="status"><strong>{t(bans ? "enforce.bans" : trial.partial || subject.sampled ? "enforce.some.least" : "enforce.some", { requests: trial.requests, callers: trial.callers })}</strong> <a href={href("/events", filters)}>{t("enforce.events")}</a></p>
      )}
      {gateIsOpen && <p class="notice warn">{t(subject.collection === "global-config" ? "enforce.gate.global" : "enforce.gate")}</p>}
      {subject.sampled && (subject.filters.plugin === "ip-reputation" ? <p class="muted">{t("enforce.sampled.callers")}</p> : <p class="muted">{t("enforce.sampled")} <a href={href("/api")}>{t("nav.api")}</a></p>)}
      {trial.from && <p class="muted">{t("enforce.partial", { from: local(Date.parse(trial.from)) })}</p>}
      <p class="muted">{routes.length > 0 ? <>{t("enforce.routes")} {routes.map((route) => <span key={route ?? ""}><Badge>{route ?? t("overview.no_route")}</Badge> </span>)}</> : ""}</p>
      {trial.requests > 0 && (
        <div class="columns">
          <Top title={t("enforce.by_rule")} of={trial.byRule} link={(name) => (/^\d+$/.test(name) ? href("/events", { ...filters, rule: name }) : null)} />
          <Top title={t("enforce.by_route")} of={trial.byRoute} name={(name) => (name === "-" ? t("overview.no_route") : name)} link={(name) => (name === "-" ? null : href("/events", { ...filters, route: name }))} />
          <Top title={t("enforce.by_caller")} of={trial.byCaller} link={(name) => href("/events", { ...filters, ref: name })} />
          <Top title={t("enforce.by_action")} of={trial.byAction} name={(name) => word("decision", name)} link={(name) => (subject.collection === "waf-configs" ? null : href("/events", { ...filters, action: name }))} />
        </div>
      )}
      {trial.examples.length > 0 && (
        <div>
          <h4>{t("enforce.examples")}</h4>
          <ul class="lines events">
            {trial.examples.map((stored) => <li key={stored.id}><Example of={stored} isOfPolicy={subject.collection === "threat-policies"} /></li>)}
          </ul>
        </div>
      )}
    </div>
  );
}

function Example({ of, isOfPolicy }: { of: Stored; isOfPolicy: boolean }) {
  const reference = of.event.http?.request_id;
  // That a score reaches a tier is known here; what it is made of is not.
  const [heaviest] = [...(of.event.threat?.signals ?? [])].sort((a, b) => (b.effective_weight ?? b.weight ?? 0) - (a.effective_weight ?? a.weight ?? 0));
  const line = <EventLine of={of} what={isOfPolicy && typeof heaviest?.detail === "string" ? heaviest.detail : undefined} />;
  return reference ? <a class="row-button" href={href("/why", { reference })}>{line}</a> : line;
}

function Top({ title, of, link, name = (name) => name }: { title: string; of: Tally[]; link: (name: string) => string | null; name?: (name: string) => string }) {
  if (of.length === 0) return null;
  return (
    <div>
      <table class="plain-table">
        <caption>{title}</caption>
        <tbody>
          {of.slice(0, 8).map((entry) => {
            const to = link(entry.name);
            return <tr key={entry.name}><th scope="row">{to ? <a href={to}>{name(entry.name)}</a> : name(entry.name)} {entry.note && <span class="note muted" title={entry.note}>{entry.note}</span>}</th><td class="end">{number(entry.requests)}</td></tr>;
          })}
        </tbody>
      </table>
    </div>
  );
}

/**
 * The chain of a route, as the compiler lays it down: presets give way to their plugins, which run by phase, and within a phase by
 * `plugin_index`. The table of plugins is made of the sources by scripts/chain-plugins.mjs.
 */
import type { Entity } from "../api/entities";
import table from "./plugins.json";

/** A plugin as scripts/chain-plugins.mjs found it. */
export interface PluginInfo {
  name: string;
  title: string;
  classes: string[];
  order: number;
  role: string;
  references: Record<string, string>;
  preset: { index: number; switch: string | null; on: boolean; needs: string | null; fields: string[]; references: Record<string, string> } | null;
}

/** The phases in their order: who calls, the request, the score, the response. */
export type ChainPhase = "access" | "request" | "score" | "response";
/** What a plugin does at present. `builtin`: no policy is enabled, and the built-in one enforces nothing. */
export type ChainState = "off" | "missing" | "builtin" | "dry_run" | "active";
/** How a plugin acts: it refuses by itself, adds to the score, both, reports, replaces responses, or decides by the score. */
export type Effect = "refuses" | "scores" | "both" | "reports" | "replaces" | "decides" | "bans";

/** One plugin of a chain. */
export interface ChainStep {
  plugin: PluginInfo | null;
  title: string;
  phase: ChainPhase;
  index: number | null;
  /** In the global chain, which runs before every route. */
  global: boolean;
  fromPreset: boolean;
  state: ChainState;
  effect: Effect;
  policy: { collection: string; id: string; name: string } | null;
  /** The field that ends a dry run of the plugin itself: in the configuration of the plugin at `slot` of the route or of the global chain. */
  enforcedBy: { slot: number; field: string; value: unknown } | null;
}

/** The entities that a chain refers to, by collection. */
export type Policies = Record<string, Entity[]>;

/** The collections whose entities [`chainOf`] reads. */
export const CHAIN_COLLECTIONS = ["threat-policies", "waf-configs", "bot-policies", "honeypot-policies"] as const;

/** Where the IP reputation gets addresses from: without an enabled one of these it is left out. */
export const REPUTATION_COLLECTIONS = ["threat-feeds", "svc-bouncers", "asn-databases"] as const;

export const PLUGINS = (table as unknown as { plugins: PluginInfo[] }).plugins;
const PRESETS = new Set((table as { presets: string[] }).presets);

/** A plugin as a route or the global configuration lists it. */
export interface Slot {
  plugin?: string;
  enabled?: boolean;
  plugin_index?: number | null;
  config?: Record<string, unknown>;
}

interface Placed {
  plugin: PluginInfo | null;
  name: string;
  enabled: boolean;
  index: number | null;
  config: Record<string, unknown>;
  fromPreset: boolean;
  slot: number;
}

const isRead = (collection: string) => (CHAIN_COLLECTIONS as readonly string[]).includes(collection);
const byName = (name: string) => PLUGINS.find((plugin) => plugin.name === name || plugin.classes.includes(name)) ?? null;

/** The slots of a route or of the global configuration, presets expanded, in the order in which the compiler places them. */
function placed(slots: Slot[], sorted: boolean): Placed[] {
  const all = slots.flatMap((slot, at): Placed[] => {
    const [name, config, enabled] = [slot.plugin ?? "?", slot.config ?? {}, slot.enabled !== false];
    if (!PRESETS.has(name)) return [{ plugin: byName(name), name, enabled, index: slot.plugin_index ?? null, config, fromPreset: false, slot: at }];
    return PLUGINS.flatMap((plugin): Placed[] => {
      const { preset } = plugin;
      if (!preset) return [];
      const switched = preset.switch === null || (config[preset.switch] ?? preset.on) === true;
      const on = switched && (preset.needs === null || typeof config[preset.needs] === "string");
      // What a preset lays down only where it is asked to is not shown as switched off: no one has switched it off.
      if (!on && !(preset.on && preset.switch !== null)) return [];
      return [{ plugin, name: plugin.name, enabled: enabled && on, index: preset.index, config: fromPreset(plugin, config), fromPreset: true, slot: at }];
    });
  });
  if (!sorted) return all;
  return all.map((step, at) => ({ step, at })).sort((a, b) => (a.step.index ?? Infinity) - (b.step.index ?? Infinity) || a.at - b.at).map(({ step }) => step);
}

/** A plugin's own configuration, from the fields of a preset. */
function fromPreset(plugin: PluginInfo, config: Record<string, unknown>): Record<string, unknown> {
  const fields = plugin.preset?.fields ?? [];
  const mode = fields.find((field) => field.endsWith("_mode"));
  const policy = plugin.name === "threat-response" ? "threat_policy" : Object.keys(plugin.preset?.references ?? {})[0];
  const [reference] = Object.keys(plugin.references);
  return {
    ...(mode && config[mode] !== undefined ? { mode: config[mode] } : {}),
    ...(policy && reference ? { [reference]: config[policy] ?? null } : {}),
    ...(plugin.name === "fail2ban" ? { dry_run: config["fail2ban_dry_run"] ?? true } : {}),
    ...(plugin.name === "login-guard" ? { login_paths: config["login_paths"] ?? [] } : {}),
    ...(plugin.name === "object-guard" ? { contribute: config["objects_mode"] === "score", budget: config["objects_budget"] ?? 0 } : {}),
  };
}

function phaseOf(plugin: PluginInfo | null): ChainPhase {
  const order = plugin?.order ?? 200;
  return order < 200 ? "access" : order < 300 ? "request" : order < 400 ? "score" : "response";
}

const PHASES: ChainPhase[] = ["access", "request", "score", "response"];

/** The steps of the global chain and of a route, in the order in which requests pass them. */
export function chainOf(route: Entity | null, global: Entity | null, policies: Policies): ChainStep[] {
  const list = (of: Entity | null, field: string) => (of && Array.isArray(of[field]) ? (of[field] as Slot[]) : []);
  const listings = hasListings(global);
  const steps = [
    ...placed(list(global, "incoming_request_validators"), false).map((step) => describe(step, true, policies, listings)),
    ...placed(list(route, "plugins"), true).map((step) => describe(step, false, policies, listings)),
  ];
  return PHASES.flatMap((phase) => steps.filter((step) => step.phase === phase));
}

function describe({ plugin, name, enabled, index, config, fromPreset, slot }: Placed, global: boolean, policies: Policies, listings: boolean): ChainStep {
  const [found, policy] = plugin ? policyOf(plugin, config, policies) : [null, null];
  const idle = plugin?.name === "ip-reputation" && !hasSource(policies, listings);
  const { state, effect } = idle ? { state: "missing" as const, effect: "scores" as const } : behaviour(plugin?.name ?? "", config, found);
  const missing = policy !== null && isRead(policy.collection) && !found;
  const disabled = found?.enabled === false;
  // A disabled threat policy gives way to the built-in one; without another policy its plugin does nothing.
  const now = !enabled ? "off" : missing ? "missing" : disabled ? (policy?.collection === "threat-policies" ? "builtin" : "off") : state;
  return { plugin, title: plugin?.title ?? name, phase: phaseOf(plugin), index, global, fromPreset, state: now, effect, policy, enforcedBy: plugin && now === "dry_run" && !(policy && isRead(policy.collection)) ? switchOf(plugin, fromPreset, slot) : null };
}

/** Whether DNS blocklists are asked. */
function hasListings(global: Entity | null): boolean {
  const { dnsbl } = (global?.["security"] ?? {}) as { dnsbl?: { zones?: { enabled?: boolean }[] } };
  return (dnsbl?.zones ?? []).some((zone) => zone.enabled !== false);
}

/** Whether anything lists addresses; an ASN database does where it has classes of networks. */
function hasSource(policies: Policies, listings: boolean): boolean {
  const counts = (source: Entity) => source.enabled !== false && (!("categories" in source) || (Array.isArray(source["categories"]) && source["categories"].length > 0));
  return listings || REPUTATION_COLLECTIONS.some((collection) => (policies[collection] ?? []).some(counts));
}

/** The entity that a plugin follows: the one that it names, or the first enabled one where it may name none. */
function policyOf(plugin: PluginInfo, config: Record<string, unknown>, policies: Policies): [Entity | null, ChainStep["policy"]] {
  const [field, collection] = Object.entries(plugin.references)[0] ?? [];
  if (!field || !collection) return [null, null];
  const id = config[field];
  // An entity that says nothing about the state is a link alone.
  if (!isRead(collection)) return [null, typeof id === "string" ? { collection, id, name: id } : null];
  const all = policies[collection] ?? [];
  if (typeof id === "string") {
    const found = all.find((policy) => policy.id === id) ?? null;
    return [found, { collection, id, name: found?.name || id }];
  }
  if (collection !== "threat-policies" && collection !== "bot-policies") return [null, null];
  const first = [...all].sort((a, b) => (a.id < b.id ? -1 : 1)).find((policy) => policy.enabled !== false) ?? null;
  return [first, first && { collection, id: first.id, name: first.name || first.id }];
}

/** The values that end the dry run of plugins that have one of their own (docs/plugins.md). */
const ENFORCING: Record<string, [field: string, value: unknown]> = {
  fail2ban: ["dry_run", false], "ip-reputation": ["mode", "block"], "api-contract": ["mode", "enforce"], "query-guard": ["mode", "enforce"], "upload-guard": ["mode", "enforce"], "error-leakage": ["mode", "mask"], "sensitive-data": ["mode", "enforce"],
};

function switchOf(plugin: PluginInfo, fromPreset: boolean, slot: number): ChainStep["enforcedBy"] {
  const [own, value] = ENFORCING[plugin.name] ?? [];
  const field = fromPreset ? plugin.preset?.fields.find((field) => own && field.endsWith(`_${own}`)) : own;
  return field ? { slot, field, value } : null;
}

/** The document, a route or the global configuration, in which the plugin of a step enforces. */
export function enforcedIn(document: Entity, global: boolean, { slot, field, value }: NonNullable<ChainStep["enforcedBy"]>): Entity {
  const list = global ? "incoming_request_validators" : "plugins";
  const slots = (document[list] as Slot[]).map((other, at) => (at === slot ? { ...other, config: { ...other.config, [field]: value } } : other));
  return { ...document, [list]: slots };
}

const REFUSING = new Set(["deny", "maze", "ban"]);

/** What a plugin does, by its configuration and its policy (docs/plugins.md). */
function behaviour(name: string, config: Record<string, unknown>, policy: Entity | null): { state: ChainState; effect: Effect } {
  const active = (effect: Effect) => ({ state: "active" as const, effect });
  const unless = (dry: boolean, effect: Effect) => ({ state: dry ? ("dry_run" as const) : ("active" as const), effect });
  switch (name) {
    case "honeypot":
      return unless(policy?.["action"] === "monitor", "both");
    case "threat-gate":
      return policy ? unless(policy["dry_run"] !== false, "refuses") : { state: "builtin", effect: "refuses" };
    case "threat-response":
      return policy ? unless(policy["dry_run"] !== false, "decides") : { state: "builtin", effect: "decides" };
    case "bot-guard": {
      if (!policy) return { state: "missing", effect: "scores" };
      const rules = Array.isArray(policy["rules"]) ? (policy["rules"] as { action?: string }[]) : [];
      return active(policy["impersonator_action"] === "deny" || rules.some((rule) => REFUSING.has(rule.action ?? "")) ? "both" : "scores");
    }
    case "ip-reputation":
      return unless(config["mode"] === "monitor", "both");
    case "fail2ban":
      return unless(config["dry_run"] !== false, "bans");
    case "api-contract":
    case "query-guard":
      return unless(config["mode"] !== "enforce", config["contribute"] === true ? "both" : "refuses");
    case "waf":
      return unless(policy?.["block"] === false, config["contribute"] === false ? "refuses" : "both");
    case "upload-guard":
      return unless(config["mode"] === "monitor", "refuses");
    case "login-guard":
      return Array.isArray(config["login_paths"]) && config["login_paths"].length > 0 ? active("scores") : { state: "missing", effect: "scores" };
    case "object-guard": {
      const refuses = Number(config["budget"] ?? 0) > 0 && config["budget_action"] !== "log";
      const scores = config["contribute"] === true;
      return active(refuses && scores ? "both" : refuses ? "refuses" : scores ? "scores" : "reports");
    }
    case "error-leakage":
    case "sensitive-data":
      return unless(config["mode"] === "monitor", "replaces");
    default:
      return active("scores");
  }
}

/** The ids of the routes whose chains follow a policy; null stands for requests without a route, which the global chain sees. */
export function routesOf(collection: string, id: string, routes: Entity[], global: Entity | null, policies: Policies): (string | null)[] {
  const follows = (steps: ChainStep[]) => steps.some(({ policy, state }) => state !== "off" && policy?.collection === collection && policy.id === id);
  return [...(follows(chainOf(null, global, policies)) ? [null] : []), ...routes.filter((route) => follows(chainOf(route, global, policies))).map((route) => route.id)];
}

/** Endpoints of plugins: rules, tuning, learning, reputation, bots. */
import { ApiError, call, get, post } from "./http";

/** An input of a request that a rule looks at. */
export interface Target {
  collection: string;
  member: string | null;
  full: string;
  excludable: boolean;
}

/** A rule that matched an input of requests. */
export interface Match {
  key: string;
  id: string;
  count: number;
  would_block: number;
  callers: number;
  rule_id: number;
  target: Target;
  method: string;
  path: string;
  blocked: boolean;
  last_seen: number;
  references: string[];
  config_ref: string;
  route_name: string;
  msg: string;
  matched_value: string;
}

/** What an exclusion changes. */
export interface Preview {
  compiles: boolean;
  error: string | null;
  reproduced: boolean;
  effective: boolean;
  safe: boolean;
  regressions: { name: string; category: string }[];
  collateral_rules: number[];
  corpus: { attacks: number; caught_before: number; caught_after: number };
  also_ended: string[];
  is_covered: boolean;
  recording: RecordedOutcome | null;
  recording_error: string | null;
}

/** What the requests of the recording that was uploaded last come to. */
export interface RecordedOutcome {
  name: string;
  total: number;
  requests: number;
  refused_before: number;
  refused_after: number;
  matched_before: number;
  matched_after: number;
}

/** An exclusion that tuning proposes. */
export interface Proposal {
  kind: string;
  title: string;
  seclang: string;
  reach: string;
  rationale: string;
  recommended: boolean;
  preview: Preview;
}

/** The proposals for a match. */
export interface Proposed {
  config: { id: string };
  rule_id: number;
  target: Target;
  path: string;
  sample_id: string | null;
  proposals: Proposal[];
}

/** What values of a parameter look like. */
export interface Profiled {
  key: string;
  target: Target;
  path: string;
  /** Paths that it was seen on: more than one where names at a place of them are one. */
  paths: number;
  requests: number;
  callers: number;
  networks: number;
  distinct: number;
  kind: "number" | "word" | "identifier" | "text" | "unknown";
  values: string | null;
  fitting: number | null;
  seclang: string | null;
  /** The number of the rule that is written already. */
  written: number | null;
  note: string;
}

/** The report of a learning window, as far as the console shows it. */
export interface Report {
  running: boolean;
  run: { requests: number; matched: number; would_block: number; would_block_rate: number; started_at: number; stopped_at: number | null };
  nodes: number;
  mode: { mode: string; note: string };
  entries: { rule_id: number; target: Target; path: string; count: number; would_block: number; callers: number; networks: number }[];
  exclusions: { key: string; entry: { rule_id: number; target: Target; path: string; count: number }; accepted: boolean; ended: boolean; note: string }[];
  paranoia: { current: number; recommended: number | null; rationale: string };
  threshold: { current: number; recommended: number | null; rationale: string };
  impact: { rationale: string };
  proof: { attacks: number; attacks_missed_before: number; attacks_missed_after: number };
  profile: { parameters: Profiled[]; known: number; with_rule: number };
  verdict: string;
}

/** What was written into the config's own ruleset. */
export interface Written {
  count: number;
  applied: { exclusion: number; ruleset_id: string; entry: string }[];
}

/** A caret message of the compiler. */
export interface RuleError {
  index: number;
  origin: string;
  message: string;
}

/** What the compiler says of rules. */
export interface Compiled {
  done: boolean;
  error?: string;
  errors?: RuleError[];
  warning?: string | null;
  missing_rulesets?: string[];
}

/** A rule that matched a test request. */
export interface TestedRule {
  id: number;
  phase: number;
  msg: string;
  severity: string | number | null;
  data: string;
  matched: { variable: string; value: string }[];
  tags: string[];
  count: number;
  disruptive: boolean;
  logged: boolean;
}

/** What happened to a test request. */
export interface TestResult {
  disposition: { action_type: string; status?: number; msg?: string; rule_id: number | null; phase?: number; would_block?: { status: number; rule_id: number; msg: string } | null };
  matched_rules: TestedRule[];
  phases: { phase: number; name: string; evaluated: boolean; rule_ids: number[]; interruption: { rule_id: number; status: number } | null }[];
  scores: { inbound: number | null; inbound_threshold: number | null; detection?: { inbound: number | null } | null } & Record<string, unknown>;
}

/** The answer of a test. */
export interface Tested {
  done: boolean;
  error?: string;
  errors?: RuleError[];
  result?: TestResult;
}

/** What is known of an address. */
export interface Verdict {
  ip: string;
  score: number;
  blocking: boolean;
  tags: string[];
  hits: { kind: string; name?: string; id?: string; weight?: number; action?: string; detail?: unknown }[];
  location: { country_name: string | null; city: string | null; org: string | null; asn: number | null } | null;
}

/** A feed or a database with its list in force. */
export interface Source {
  id: string;
  name: string;
  enabled: boolean;
  url: string;
  snapshot?: { entries?: number; ranges?: number; fetched_at?: number | null; error?: string | null } | null;
  previous?: { entries: number } | null;
  refreshing?: boolean;
}

/** Feeds and databases. */
export interface Sources {
  feeds: Source[];
  svc_bouncers: { id: string; name: string; enabled: boolean; lapi_url: string; last_error?: string | null; store?: { decisions?: number; last_error?: string | null } }[];
  asn: Source[];
  geo: Source[];
}

/** Rules that match inputs of clients. */
export const matches = (signal?: AbortSignal) => get<{ store: { retained: number; max: number }; matches: Match[] }>("/tuning/_matches", signal);
/** Exclusions for a match, or for the request with a reference. */
export const propose = (of: { sample_id: string } | { reference: string }) => post<Proposed>("/tuning/_propose", of);
/** Writes an exclusion. */
export const apply = (sample_id: string, proposal: Proposal, reason: string, force: boolean) =>
  post<{ applied: { exclusion: number; ruleset_id: string } }>("/tuning/_apply", { sample_id, seclang: proposal.seclang, kind: proposal.kind, reason, force });
/** Takes an exclusion back. */
export const unapply = (config_ref: string, exclusion: number) => post("/tuning/_revert", { config_ref, exclusion });
/** A call of a learning window: `_start`, `_stop`, `_discard`. */
export const learning = (what: "_start" | "_stop" | "_discard", config_ref: string) => post(`/learning/${what}`, { config_ref });
/** The report of a window; null where the config has none. */
export async function report(config_ref: string, signal?: AbortSignal): Promise<{ window: Report | null }> {
  try {
    return { window: await post<Report>("/learning/_report", { config_ref }, signal) };
  } catch (error) {
    // The endpoint has no other way to say that there is none.
    if (error instanceof ApiError && error.status === 400 && error.message.includes("no such learning window")) return { window: null };
    throw error;
  }
}
/** Writes the verified exclusions of a window. */
export const learn = (config_ref: string, reason: string) => post<{ count: number }>("/learning/_apply", { config_ref, reason });
/** Writes rules that report values outside the profiles of parameters. */
export const learnProfile = (config_ref: string, parameters: string[], reason: string) => post<Written>("/learning/_apply", { config_ref, parameters, reason });
/** Checks rules; errors are part of the answer. */
export const compile = (body: unknown) => raw<Compiled>("/utils/_compile", body);
/** Runs a request through rules; errors are part of the answer. */
export const test = (body: unknown) => raw<Tested>("/utils/_test", body);
/** What lists and databases know of an address. */
export const lookup = (ip: string) => post<{ verdict: Verdict }>("/reputation/_lookup", { ip });
/** Feeds and databases with their state. */
export const sources = (signal?: AbortSignal) => get<Sources>("/reputation/_status", signal);
/** Fetches a feed, or everything of a kind. */
export const refresh = (body: unknown) => post("/reputation/_refresh", body);
/** Restores the previous list of a feed. */
export const rollback = (feed: string) => post("/reputation/_rollback", { feed });

async function raw<T>(path: string, body: unknown): Promise<T> {
  return (await call<T>("POST", path, { body })).body;
}


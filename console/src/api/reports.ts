/** The API report and bots. Times are milliseconds since 1970. */
import { get, post } from "./http";

/** An operation that was asked for: declared, or not. */
export interface Operation {
  method: string;
  path: string;
  state: string;
  hits: number;
  last_seen: number | null;
}

/** What a route's callers ask for, compared with its contract. */
export interface ApiRoute {
  route_id: string;
  route_name: string;
  contract: { id: string; name: string } | null;
  mode: string | null;
  compiles: boolean | null;
  operations: Operation[];
  shadows: Operation[];
  probes: Operation[];
  drift: { operation: string; kind: string; where: string; observed: string; sensitive: boolean; count: number }[];
  auth: { findings: { severity: string; kind: string; method: string; path: string; detail: string }[] };
}

/** The report over all enabled routes. */
export interface ApiReport {
  summary: { routes: number; with_contract: number; operations: number; zombies: number; unused: number; shadows: number; drift: number; sensitive_drift: number; would_refuse: number; auth: { high: number; medium: number } };
  routes: ApiRoute[];
}

/** How bots are verified. */
export interface BotStatus {
  verification: { resolvers: string[]; error: string | null; verified: number; impersonators: number; unverifiable: number; waiting: number } | null;
  ranges: { url: string; bot: string; in_force: boolean; ranges: number; fetched_at: number | null; error: string | null }[];
  key_directories: { url: string; bot: string; in_force: boolean; keys: number; fetched_at: number | null; error: string | null }[];
}

/** A TLS fingerprint that came with agents of a software. */
export interface Fingerprint {
  family: string;
  ja4: string;
  state: string;
  networks: number;
  last_seen: number;
}

/** The API report. */
export const apiReport = (signal?: AbortSignal) => get<ApiReport>("/security/_api_report", signal);
/** The state of the verification of bots. */
export const botStatus = (signal?: AbortSignal) => get<BotStatus>("/security/_bot_status", signal);
/** Learned fingerprints, those of the most networks first. */
export const fingerprints = () => post<{ entries: Fingerprint[]; total: number }>("/security/_fingerprints", { page_size: 500 });
/** Accepts, rejects or forgets a fingerprint. */
export const decideFingerprint = (of: Fingerprint, decision: "accept" | "reject" | "forget") => post("/security/_fingerprint_decide", { family: of.family, ja4: of.ja4, decision });

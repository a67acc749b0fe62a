/** The API report and bots. Times are milliseconds since 1970. */
import { get, post } from "./http";

/** An operation that was asked for: declared, or not. */
export interface Operation {
  method: string;
  path: string;
  state: string;
  hits: number;
  last_seen: number | null;
  would_refuse?: WouldRefuse;
}

/** What the contract would refuse. */
export interface WouldRefuse {
  requests: number;
  callers: number;
  samples: { kind: string; requests: number; where: string; detail: string }[];
}

/** A known bot. */
export interface BotSignature {
  name: string;
  category: string;
  ua_contains: string | string[];
  rdns_suffixes: string[];
  verifiable: boolean;
  ip_ranges: string | null;
  key_directory: string | null;
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
  outside_would_refuse?: WouldRefuse;
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
/** Every known bot. */
export const botCatalog = (signal?: AbortSignal) => get<{ entries: BotSignature[] }>("/security/_bot_catalog", signal);
/** The robots.txt and llms.txt that a policy makes. */
export const robots = (policy: string) => post<{ robots_txt: string; llms_txt: string }>("/security/_robots_txt", { policy });
/** The state of the verification of bots. */
export const botStatus = (signal?: AbortSignal) => get<BotStatus>("/security/_bot_status", signal);
/** Learned fingerprints, those of the most networks first. */
export const fingerprints = (signal?: AbortSignal) => post<{ entries: Fingerprint[]; total: number }>("/security/_fingerprints", { page_size: 500 }, signal);
/** Accepts, rejects or forgets a fingerprint. */
export const decideFingerprint = (of: Fingerprint, decision: "accept" | "reject" | "forget") => post("/security/_fingerprint_decide", { family: of.family, ja4: of.ja4, decision });

/** Bans, the allowlist and incidents (`security/…`). Times are milliseconds since 1970. */
import { get, post, query } from "./http";

/** An identity in two parts, such as `{kind: "ip", value: "192.0.2.1"}`. */
export interface Ref {
  kind: string;
  value: string;
}

/** A contribution to a score. */
export interface Signal {
  /** The plugin that has added it. */
  module?: string | null;
  source?: string;
  kind?: string;
  tag?: string;
  weight?: number;
  effective_weight?: number;
  confidence?: number;
  detail?: unknown;
  at?: number | string;
  /** Of the WAF: the rule that refused or would have, and those that matched; at most 16. `message` is null where it quotes the request. */
  rules?: { id: number; message: string | null }[];
}

/** A ban in force. */
export interface Ban {
  ref: Ref;
  key: string;
  reason: string;
  tags: string[];
  score: number;
  issued_at: number;
  until: number;
  issued_by: string;
  signals: Signal[];
  timeline: { action: string; by: string; at: number; reason?: string }[];
  last_action: string | null;
  last_action_by: string | null;
  last_action_at: number | null;
}

/** An entry of the allowlist. */
export interface Allowance {
  ref: Ref;
  key: string;
  reason: string;
  added_by: string;
  added_at: number;
  until: number | null;
  permanent: boolean;
}

/** What an operator made of an incident. */
export interface Workflow {
  key: string;
  state: string;
  by: string;
  at: number;
  note: string;
}

/** The events of one identity that belong together. */
export interface Incident {
  id: string;
  ref: Ref;
  key: string;
  first_seen: number;
  last_seen: number;
  count: number;
  enforced_count: number;
  max_score: number;
  categories: string[];
  tags: string[];
  actions: string[];
  routes: string[];
  last_message: string;
  node: string;
  nodes: string[];
  timeline: { at: number; category: string; action: string; score: number; enforced: boolean; route_id: string; route_name: string; message: string }[];
  state: string;
  workflow: Workflow | null;
  banned: boolean;
  ban: Ban | null;
  allowlisted: boolean;
  allowlist_entry: Allowance | null;
}

/** `_status`, as far as the console shows it. */
export interface SecurityStatus {
  enabled: boolean;
  bans: { bans: number; last_error: string | null };
  allowlist: { entries: number; last_error: string | null };
  shared_state: { warning: string | null };
  nodes: { known: number; connected: number; behind: number; stale: number; links: number };
  tables: { name: string; workers: { current: number; behind: number } }[];
  problems: unknown[];
}

/** The state of the decision fabric. */
export const status = (signal?: AbortSignal) => get<SecurityStatus>("/security/_status", signal);

/** Bans an identity, for `seconds`. */
export const ban = (ref: string, seconds: number, reason: string) =>
  post<{ enforced: boolean; reason?: string; ban: Ban }>("/security/_ban", { ref, duration_seconds: seconds, reason });

/** The ban of exactly this identity that is in force. */
export const banOf = async (ref: string): Promise<Ban | null> => (await get<{ bans: Ban[] }>(`/security/_bans${query({ "filter.ref": ref })}`)).bans[0] ?? null;

/** Bans that are read to keep a way back to those of a range. */
const MOST_READ = 10_000;

/**
 * The bans that an entry of the allowlist for this identity may lift: its own, and those of a range within it. Of very many some are missing.
 * The control plane searches by text, so what the keys within a range begin with narrows it.
 */
export async function bansWithin(ref: string): Promise<Ban[]> {
  const [address = "", bits = ""] = ref.replace(/^ip:/, "").split("/");
  if (!ref.startsWith("ip:") || !bits) return [await banOf(ref)].filter((ban) => ban !== null);
  const groups = address.includes(":") ? address.split(":").slice(0, Math.min(1, Math.floor(Number(bits) / 16))) : address.split(".").slice(0, Math.floor(Number(bits) / 8));
  const start = groups.length && groups[0] ? `ip:${groups.join(address.includes(":") ? ":" : ".")}` : "ip:";
  return (await get<{ bans: Ban[] }>(`/security/_bans${query({ "filter.text": start, pageSize: MOST_READ })}`)).bans;
}

/** The entry of the allowlist for exactly this identity. */
export const allowanceOf = async (ref: string): Promise<Allowance | null> => (await get<{ entries: Allowance[] }>(`/security/_allowlist${query({ "filter.ref": ref })}`)).entries[0] ?? null;

/** Moves the end of a ban by `seconds`; it is never moved back. */
export const extend = (ref: string, seconds: number) => post<{ enforced: boolean; ban: Ban }>("/security/_extend", { ref, duration_seconds: seconds });

/** Lifts a ban. Answers the wider bans that still cover the identity. */
export const unban = (ref: string) => post<{ still_banned_by?: string[] }>("/security/_unban", { ref });

/** Puts an identity on the allowlist, for `seconds` or for good, and lifts its ban. */
export const allow = (ref: string, reason: string, seconds: number | null) =>
  post<{ released: boolean; lifted: string[] }>("/security/_allow", { ref, reason, unban: true, duration_seconds: seconds });

/** Takes an identity off the allowlist. */
export const disallow = (ref: string) => post("/security/_disallow", { ref });

/** Sets the state of an incident, with a note. */
export const setState = (key: string, state: string, note: string) => post<{ workflow: Workflow }>("/security/_incident_state", { key, state, note });

/** Reads an identity as an operator types it: an address, a CIDR, or `kind:value`. Answers its key; null if it is none. */
export function parseKey(text: string): string | null {
  const value = text.trim();
  if (/^(ip|apikey|user|ja4):.+$/.test(value)) return value;
  const isAddress = /^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(value) || /^[0-9a-f:]*:[0-9a-f:.]*(\/\d{1,3})?$/i.test(value);
  return isAddress ? `ip:${value}` : null;
}

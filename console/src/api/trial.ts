/** What a policy in dry run would have done to the requests of the last day, from stored events. */
import { search, type Filters, type Stored } from "./events";

/** A name with how many requests it stands for. */
export interface Tally {
  name: string;
  requests: number;
}

/** The figures. */
export interface Trial {
  requests: number;
  callers: number;
  byRule: Tally[];
  byRoute: Tally[];
  byCaller: Tally[];
  byAction: Tally[];
  /** Not all events were read: the figures are at least these. */
  partial: boolean;
  /** The oldest event that was looked at, if not all of the day was. */
  from: string | null;
}

const PAGES = 12;
/** What a dry run does not hold back: these let the request pass in any case. */
const HARMLESS = new Set(["log", "allow", "monitor"]);

/** Whether the event's request would have been held back. */
function isHeldBack({ event }: Stored): boolean {
  if (event["@type"] === "SvcWafTrailEvent" || event.would_block) return !!event.would_block;
  // What another plugin has refused names the dry run of the threat response that was asked about it, and was refused all the same.
  if (event.event?.outcome === "blocked" || event.decision?.enforced === true) return false;
  return event.decision?.dry_run === true && !HARMLESS.has(event.decision.action ?? event.event?.action ?? "log");
}

/** The plugins that follow a threat policy. Refusals that the WAF did not make are dry runs as well, and are its own. */
const OF_THREAT_POLICIES = new Set(["threat-gate", "threat-response"]);

/** Whether a plugin only reported what it would otherwise have done. */
const isReported = ({ event }: Stored) => event.event?.outcome === "observed";

/** The identity that an event names, as filters take it. */
export function refOf({ event: { source } }: Stored): string {
  if (source?.apikey) return `apikey:${source.apikey}`;
  if (source?.user) return `user:${source.user}`;
  return source?.ip ? `ip:${source.ip}` : "";
}

/** Rules of the WAF, and signals of other plugins, that led to the decision. */
function causes({ event }: Stored): string[] {
  if (event.would_block?.rule_id) return [String(event.would_block.rule_id), ...(event.matches ?? []).map((match) => String(match.rule_id ?? "")).filter((id) => id && id !== String(event.would_block?.rule_id))];
  return (event.threat?.signals ?? []).map((signal) => signal.tag ?? signal.source ?? "");
}

/**
 * Reads the events of the last day that `filters` select; `routes` are those whose chain follows the threat policy, null for requests
 * without a route. At most 6,000 events are read. With a filter for a plugin, what it has reported counts: plugins that monitor have no dry run.
 */
export async function trial(filters: Filters, routes: (string | null)[] | null, signal?: AbortSignal): Promise<Trial> {
  const from = new Date(Date.now() - 86_400_000).toISOString();
  const found: Stored[] = [];
  let cursor: string | null = null;
  let searched: string | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const answer: Awaited<ReturnType<typeof search>> = await search(filters, { from, limit: 500, ...(cursor ? { cursor } : {}) }, signal);
    found.push(...answer.events);
    cursor = answer.next;
    searched = answer.searched_from;
    if (!cursor) break;
  }
  const counts = filters.plugin ? isReported : isHeldBack;
  const own = found.filter((stored) => counts(stored) && (routes === null || (routes.includes(stored.event.route?.id ?? null) && OF_THREAT_POLICIES.has(stored.event.event?.module ?? ""))));
  return { ...tally(own), partial: cursor !== null, from: cursor ? searched ?? found.at(-1)?.at ?? null : null };
}

function tally(events: Stored[]): Omit<Trial, "partial" | "from"> {
  const seen = new Set<string>();
  const sets: Record<"rule" | "route" | "caller" | "action", Map<string, Set<string>>> = { rule: new Map(), route: new Map(), caller: new Map(), action: new Map() };
  for (const stored of events) {
    const request = stored.event.http?.request_id ?? stored.id;
    seen.add(request);
    const add = (of: Map<string, Set<string>>, name: string) => {
      if (name) of.set(name, (of.get(name) ?? new Set()).add(request));
    };
    for (const cause of new Set(causes(stored))) add(sets.rule, cause);
    add(sets.route, stored.event.route?.id ?? "-");
    add(sets.caller, refOf(stored));
    add(sets.action, stored.event.decision?.action ?? (stored.event.would_block ? "deny" : ""));
  }
  const top = (of: Map<string, Set<string>>) => [...of].map(([name, requests]) => ({ name, requests: requests.size })).sort((a, b) => b.requests - a.requests);
  return { requests: seen.size, callers: sets.caller.size, byRule: top(sets.rule), byRoute: top(sets.route), byCaller: top(sets.caller), byAction: top(sets.action) };
}

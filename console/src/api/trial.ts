/** What a policy in dry run would have done to the requests of the last day, from stored events. */
import { refOf, search, type Filters, type Stored } from "./events";

/** A name with how many requests it stands for. */
export interface Tally {
  name: string;
  requests: number;
  /** What the rule of this name says that it finds; empty for other names. */
  note: string;
}

/** The figures. */
export interface Trial {
  requests: number;
  callers: number;
  byRule: Tally[];
  byRoute: Tally[];
  byCaller: Tally[];
  byAction: Tally[];
  /** The newest requests, one for each path and cause; at most [`EXAMPLES`]. */
  examples: Stored[];
  /** Not all events were read: the figures are at least these. */
  partial: boolean;
  /** The oldest event that was looked at, if not all of the day was. */
  from: string | null;
}

const PAGES = 12;
/** Examples that are kept at most. */
export const EXAMPLES = 5;
/** What a dry run does not hold back: these let the request pass in any case. */
const HARMLESS = new Set(["log", "allow", "monitor"]);

/** Whether the event's request would have been held back. */
function isHeldBack({ event }: Stored): boolean {
  if (event["@type"] === "SvcWafTrailEvent" || event.would_block) return !!event.would_block;
  // What another plugin has refused names the dry run of the threat response that was asked about it, and was refused all the same.
  if (event.event?.outcome === "blocked" || event.decision?.enforced === true) return false;
  return event.decision?.dry_run === true && !HARMLESS.has(event.decision.action ?? event.event?.action ?? "log");
}

/** Whether a plugin would have refused the request, changed or replaced the response, or banned the caller, if it were not for its own dry run. */
const isReported = ({ event }: Stored) => event.event?.outcome === "observed" && event.decision?.dry_run === true;

/** Whether a honeypot has watched a request that it would refuse otherwise. */
const isWatched = ({ event }: Stored) => event.event?.outcome === "observed" && event.event.module === "honeypot";

/** Rules of the Core Rule Set that only write its scores down. */
const isReport = (rule: number) => rule >= 980_000 && rule < 981_000;

interface Cause {
  name: string;
  note: string;
}

/** Rules of the WAF, and signals of other plugins, that led to the decision; of a plugin, its own; of a honeypot, the decoys and canaries. */
function causes({ event }: Stored, plugin: string | undefined): Cause[] {
  const { would_block: refusal } = event;
  if (refusal) {
    // Rule 0 is a limit: what was not inspected is in the message alone.
    const first = refusal.rule_id ? [{ name: String(refusal.rule_id), note: refusal.msg ?? "" }] : [{ name: refusal.msg ?? "", note: "" }];
    return [...first, ...(event.matches ?? []).flatMap(({ rule_id, msg }) => (rule_id && !isReport(rule_id) ? [{ name: String(rule_id), note: msg ?? "" }] : []))];
  }
  // An event has the signals of the plugins before it as well.
  const own = (event.threat?.signals ?? []).filter(({ module }) => !plugin || module === plugin);
  return own.flatMap(({ tag, source, detail, rules = [] }): Cause[] => {
    const name = tag ?? source ?? "";
    if (plugin === "honeypot") return [{ name: typeof detail === "string" ? detail : name, note: "" }];
    const named = rules.filter(({ id }) => !isReport(id)).map(({ id, message }) => ({ name: String(id), note: message ?? "" }));
    return [{ name, note: "" }, ...named];
  });
}

/** Reads the events of the last day that `filters` select, at most 6,000. With a filter for a plugin, what it has reported counts. */
export async function trial(filters: Filters, signal?: AbortSignal): Promise<Trial> {
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
  const counts = filters.plugin === "honeypot" ? isWatched : filters.plugin ? isReported : isHeldBack;
  const own = found.filter(counts);
  return { ...tally(own, filters.plugin), partial: cursor !== null, from: cursor ? searched ?? found.at(-1)?.at ?? null : null };
}

/** What two messages of a rule have in common: some end with what they found in their request, such as a score in parentheses. */
function shared(one: string, other: string): string {
  if (one === other) return one;
  let end = 0;
  while (end < one.length && one[end] === other[end]) end += 1;
  return one.slice(0, end).replace(/\s*\([^)]*$/, "").trimEnd();
}

function tally(events: Stored[], plugin: string | undefined): Omit<Trial, "partial" | "from"> {
  const seen = new Set<string>();
  const shown = new Set<string>();
  const examples: Stored[] = [];
  const notes = new Map<string, string>();
  const sets: Record<"rule" | "route" | "caller" | "action", Map<string, Set<string>>> = { rule: new Map(), route: new Map(), caller: new Map(), action: new Map() };
  for (const stored of events) {
    const { event } = stored;
    const request = event.http?.request_id ?? stored.id;
    const add = (of: Map<string, Set<string>>, name: string) => {
      if (name) of.set(name, (of.get(name) ?? new Set()).add(request));
    };
    const found = causes(stored, plugin);
    for (const { name, note } of found) {
      add(sets.rule, name);
      if (note) notes.set(name, notes.has(name) ? shared(notes.get(name) ?? "", note) : note);
    }
    add(sets.route, event.route?.id ?? "-");
    add(sets.caller, refOf(stored));
    const action = event.would_block ? "deny" : event.decision?.action ?? "";
    // A response that would have been masked has `log`: it is not held back.
    if (!HARMLESS.has(action)) add(sets.action, action);
    const alike = JSON.stringify([event.http?.path, found.map(({ name }) => name)]);
    if (examples.length < EXAMPLES && !seen.has(request) && !shown.has(alike)) examples.push(stored);
    shown.add(alike);
    seen.add(request);
  }
  const top = (of: Map<string, Set<string>>) => [...of].map(([name, requests]) => ({ name, requests: requests.size, note: notes.get(name) ?? "" })).sort((a, b) => b.requests - a.requests);
  return { requests: seen.size, callers: sets.caller.size, byRule: top(sets.rule), byRoute: top(sets.route), byCaller: top(sets.caller), byAction: top(sets.action), examples };
}

/** What a guard found: its stored events, summed up. */
import { search, type Span, type Stored } from "./events";
import { SPANS } from "./geo";

/** Guards with a page of their own. */
export type Guard = "object-guard" | "login-guard";

/** A name with what was found under it. */
export interface Finding {
  name: string;
  events: number;
  callers: number;
  refused: number;
}

/** The sums. */
export interface Findings {
  events: Stored[];
  callers: Finding[];
  patterns: Finding[];
  routes: Finding[];
  /** Kinds of objects as `/users/{id}`, or accounts by the digits of their keyed hash. */
  subjects: Finding[];
  refused: number;
  partial: boolean;
}

const PAGES = 8;
const TAGS: Record<Guard, string> = { "object-guard": "objects:", "login-guard": "login:" };

/** The kind of objects, or the account, that the sentence of an event names. */
export function subjectOf(guard: Guard, message: string): string | null {
  const found = guard === "login-guard" ? /; the account is ([0-9a-f]{12})\b/.exec(message) : /`([^`]{1,400})`/.exec(message);
  return found?.[1] ?? null;
}

/** The tags of the guard in an event. */
export function patternsOf(guard: Guard, { event }: Stored): string[] {
  const tags = [...(event.threat?.tags ?? []), ...(event.threat?.signals ?? []).map((signal) => signal.tag ?? "")];
  const own = [...new Set(tags.filter((tag) => tag.startsWith(TAGS[guard])))];
  return own.length > 1 ? own.filter((tag) => (event.message ?? "").toLowerCase().includes(tag.slice(TAGS[guard].length).split("_").at(-1) ?? "")) : own;
}

/** Reads the events of a guard in a span; at most 4,000. */
export async function findings(guard: Guard, span: Span, signal?: AbortSignal): Promise<Findings> {
  const from = new Date(Date.now() - SPANS[span]).toISOString();
  const events: Stored[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const answer: Awaited<ReturnType<typeof search>> = await search({ plugin: guard }, { from, limit: 500, ...(cursor ? { cursor } : {}) }, signal);
    events.push(...answer.events);
    cursor = answer.next;
    if (!cursor) break;
  }
  const isRefused = ({ event }: Stored) => event.event?.outcome === "blocked";
  const by = (namesOf: (stored: Stored) => (string | null | undefined)[]): Finding[] => {
    const found = new Map<string, { events: number; refused: number; callers: Set<string> }>();
    for (const stored of events) {
      for (const name of namesOf(stored)) {
        if (!name) continue;
        const row = found.get(name) ?? { events: 0, refused: 0, callers: new Set<string>() };
        row.events += 1;
        if (isRefused(stored)) row.refused += 1;
        row.callers.add(stored.event.source?.ip ?? "");
        found.set(name, row);
      }
    }
    return [...found].map(([name, { events, refused, callers }]) => ({ name, events, refused, callers: callers.size })).sort((a, b) => b.events - a.events);
  };
  return {
    events,
    callers: by(({ event: { source } }) => [source?.apikey ? `apikey:${source.apikey}` : source?.user ? `user:${source.user}` : source?.ip ? `ip:${source.ip}` : null]),
    patterns: by((stored) => patternsOf(guard, stored)),
    routes: by(({ event }) => [event.route?.id]),
    subjects: by(({ event }) => [subjectOf(guard, event.message ?? "")]),
    refused: events.filter(isRefused).length,
    partial: cursor !== null,
  };
}

/** What a guard found: its stored events, summed up. */
import { refOf, search, type Filters, type Span, type Stored } from "./events";
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
  /** Requests that the guard itself has refused. */
  refused: number;
  /** Further requests that a threat response has refused, with a pattern of the guard in their score. */
  byScore: number;
  partial: boolean;
}

const PAGES = 8;
const TAGS: Record<Guard, string> = { "object-guard": "objects:", "login-guard": "login:" };

async function read(filters: Filters, from: string, signal?: AbortSignal): Promise<{ events: Stored[]; partial: boolean }> {
  const events: Stored[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const answer: Awaited<ReturnType<typeof search>> = await search(filters, { from, limit: 500, ...(cursor ? { cursor } : {}) }, signal);
    events.push(...answer.events);
    cursor = answer.next;
    if (!cursor) break;
  }
  return { events, partial: cursor !== null };
}

/** Reads the events of a guard in a span, and the refusals of threat responses; at most 4,000 of each. */
export async function findings(guard: Guard, span: Span, signal?: AbortSignal): Promise<Findings> {
  const from = new Date(Date.now() - SPANS[span]).toISOString();
  const [{ events, partial }, scored] = await Promise.all([read({ plugin: guard }, from, signal), read({ plugin: "threat-response", outcome: "blocked" }, from, signal)]);
  const isRefused = ({ event }: Stored) => event.event?.outcome === "blocked";
  const by = (namesOf: (stored: Stored) => (string | null | undefined)[]): Finding[] => {
    const found = new Map<string, { events: number; refused: number; callers: Set<string> }>();
    for (const stored of events) {
      for (const name of namesOf(stored)) {
        if (!name) continue;
        const row = found.get(name) ?? { events: 0, refused: 0, callers: new Set<string>() };
        row.events += 1;
        if (isRefused(stored)) row.refused += 1;
        row.callers.add(refOf(stored));
        found.set(name, row);
      }
    }
    return [...found].map(([name, { events, refused, callers }]) => ({ name, events, refused, callers: callers.size })).sort((a, b) => b.events - a.events);
  };
  const requestOf = ({ id, event }: Stored) => event.http?.request_id ?? id;
  const refused = new Set(events.filter(isRefused).map(requestOf));
  const byScore = new Set(scored.events.filter(({ event }) => event.threat?.tags?.some((tag) => tag.startsWith(TAGS[guard]))).map(requestOf).filter((request) => !refused.has(request)));
  return {
    events,
    callers: by((stored) => [refOf(stored)]),
    patterns: by(({ event }) => [event.decision?.tag]),
    routes: by(({ event }) => [event.route?.id]),
    subjects: by(({ event }) => [event.decision?.subject]),
    refused: refused.size,
    byScore: byScore.size,
    partial: partial || scored.partial,
  };
}

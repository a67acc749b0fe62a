/** Where callers are: addresses of events or incidents, looked up in the databases that are in force. */
import { addressRef, search, type Filters, type Span } from "./events";
import { call, post, query } from "./http";
import type { Incident } from "./security";

/** What the databases have of an address. */
export interface GeoPlace {
  asn: number | null;
  country: string | null;
  org: string | null;
  country_name: string | null;
  continent_name: string | null;
  city: string | null;
  /** False: the country is only where the network is registered. */
  located: boolean;
}

/** A caller with what it did. */
export interface GeoCaller {
  /** An identity as filters take it, such as `ip:192.0.2.1`; of IPv6 the network by which callers are judged. */
  ref: string;
  /** The address that is looked up: of a network one that was met. */
  ip: string;
  refused: number;
  observed: number;
  place: GeoPlace | null;
}

/** All that the page shows. */
export interface Geography {
  callers: GeoCaller[];
  sources: { kind: string; id: string; name: string }[];
  attributions: { text: string; url: string }[];
  /** Not all events or addresses were read. */
  partial: boolean;
}

/** Milliseconds of the spans. */
export const SPANS: Record<Span, number> = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 };

const BATCH = 500;
const PAGES = 20;
/** Addresses that are looked up at most, the busiest first. */
const MOST = 5000;

type Figures = Omit<GeoCaller, "place">;

/** The address of an identity: of a network its first one. */
function addressOf(ref: string): string | null {
  if (!ref.startsWith("ip:")) return null;
  return ref.slice(3).split("/")[0] ?? null;
}

/** Callers of stored events. */
export async function callersOfEvents(span: Span, filters: Filters, signal?: AbortSignal): Promise<{ callers: Figures[]; partial: boolean }> {
  const from = new Date(Date.now() - SPANS[span]).toISOString();
  const found = new Map<string, { ip: string; requests: Map<string, boolean> }>();
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const answer: Awaited<ReturnType<typeof search>> = await search(filters, { from, limit: BATCH, ...(cursor ? { cursor } : {}) }, signal);
    for (const { id, event } of answer.events) {
      // Decisions of operators and bans by the ledger are about no request.
      if (!event.source?.ip || !event.http || event["@type"] === "SvcWafSecurityAudit") continue;
      const ref = addressRef(event.source);
      const caller = found.get(ref) ?? { ip: event.source.ip, requests: new Map<string, boolean>() };
      const refused = event.event?.outcome === "blocked" || !!event.block;
      // Several plugins report one request, and one of them may have refused it.
      const request = event.http.request_id ?? id;
      caller.requests.set(request, refused || (caller.requests.get(request) ?? false));
      found.set(ref, caller);
    }
    cursor = answer.next;
    if (!cursor) break;
  }
  const callers = [...found].map(([ref, { ip, requests }]) => {
    const refused = [...requests.values()].filter(Boolean).length;
    return { ref, ip, refused, observed: requests.size - refused };
  });
  return { callers, partial: cursor !== null };
}

/** Callers of the incidents of the last half hour. */
export async function callersOfIncidents(signal?: AbortSignal): Promise<{ callers: Figures[]; partial: boolean }> {
  const { body, headers } = await call<{ incidents: Incident[] }>("GET", `/security/_incidents${query({ page: 1, pageSize: 10_000 })}`, signal ? { signal } : {});
  const callers = body.incidents.flatMap(({ key, count, enforced_count }): Figures[] => {
    const ip = addressOf(key);
    return ip ? [{ ref: key, ip, refused: enforced_count, observed: Math.max(0, count - enforced_count) }] : [];
  });
  return { callers, partial: Number(headers.get("x-pages") ?? 1) > 1 };
}

/** Looks the busiest callers up, in batches. */
export async function locate({ callers, partial }: { callers: Figures[]; partial: boolean }): Promise<Geography> {
  const busiest = [...callers].sort((a, b) => b.refused + b.observed - a.refused - a.observed).slice(0, MOST);
  const found: Geography = { callers: [], sources: [], attributions: [], partial: partial || callers.length > MOST };
  for (let start = 0; start === 0 || start < busiest.length; start += BATCH) {
    const batch = busiest.slice(start, start + BATCH);
    const answer = await post<{ sources: Geography["sources"]; attributions: Geography["attributions"]; results: Record<string, GeoPlace | null> }>("/reputation/_geo", { ips: batch.map(({ ip }) => ip) });
    found.sources = answer.sources;
    found.attributions = answer.attributions;
    found.callers.push(...batch.map((caller) => ({ ...caller, place: answer.results[caller.ip] ?? null })));
  }
  return found;
}

/** Callers, and what they did, under one name. */
export interface GeoGroup {
  key: string;
  name: string;
  callers: number;
  refused: number;
  observed: number;
}

/** Sums callers up by what `of` says of them; the most callers with refusals first. */
export function grouped(callers: GeoCaller[], of: (caller: GeoCaller) => { key: string; name: string }): GeoGroup[] {
  const groups = new Map<string, GeoGroup>();
  for (const caller of callers) {
    const { key, name } = of(caller);
    const group = groups.get(key) ?? { key, name, callers: 0, refused: 0, observed: 0 };
    group.callers += 1;
    group.refused += caller.refused;
    group.observed += caller.observed;
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.refused + b.observed - a.refused - a.observed || b.callers - a.callers);
}

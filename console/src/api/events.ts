/** Stored events, figures of the overview and the stream (`events/…`). */
import { NS, get, query } from "./http";
import type { Signal } from "./security";

/** An event as exporters get it. Fields are optional: three types of events share this shape. */
export interface EventBody {
  "@type"?: string;
  "@id"?: string;
  "@timestamp"?: string;
  message?: string;
  action?: string;
  ref?: string | null;
  detail?: string | null;
  request_id?: string | null;
  user?: { name?: string; email?: string } | null;
  event?: { category?: string; action?: string; outcome?: string; severity?: number; module?: string };
  /** `network` of callers of IPv6: what they are judged by. */
  source?: { ip?: string; network?: string; apikey?: string | null; user?: string | null };
  threat?: { score?: number; tags?: string[]; signals?: Signal[] };
  incident?: { id?: string; count?: number };
  route?: { id?: string | null; name?: string | null; node?: string | null };
  http?: { request_id?: string | null; method?: string; host?: string; path?: string; status?: number | null };
  decision?: { action?: string; score?: number; tier?: number | null; dry_run?: boolean; enforced?: boolean; reason?: string; policy?: string | null; tag?: string | null; subject?: string | null };
  matches?: Match[];
  config?: { id?: string; name?: string };
  block?: { status?: number; rule_id?: number; msg?: string } | null;
  would_block?: { status?: number; rule_id?: number; msg?: string } | null;
}

/** A rule of the WAF that matched. */
export interface Match {
  rule_id?: number;
  phase?: number;
  msg?: string;
  severity?: string | number | null;
  tags?: string[];
  variable?: string;
  value?: string;
  logdata?: string;
  config?: { id?: string; name?: string };
  refused?: boolean;
}

/** A stored event. */
export interface Stored {
  id: string;
  at: string;
  event: EventBody;
}

/** The address of a caller, as filters take it. Callers of IPv6 are judged by their network. */
export function addressRef({ ip, network }: NonNullable<EventBody["source"]>): string {
  return ip ? `ip:${ip.includes(":") ? network ?? ip : ip}` : "";
}

/** The most specific identity that an event names, as filters take it. */
export function refOf({ event: { source } }: Stored): string {
  if (source?.apikey) return `apikey:${source.apikey}`;
  if (source?.user) return `user:${source.user}`;
  return source ? addressRef(source) : "";
}

/** A page of a search. */
export interface Found {
  events: Stored[];
  next: string | null;
  complete: boolean;
  searched_from: string | null;
  examined: number;
}

/** Why a request was treated as it was. */
export interface Explained {
  reference: string;
  found: boolean;
  request: { at: string; method: string; host: string; path: string; status: number | null; route: { id: string | null; name: string | null; node: string | null } | null; source: { ip?: string; network?: string; apikey?: string | null; user?: string | null } | null } | null;
  verdict: { outcome: string; action: string; module: string; dry_run: boolean; enforced: boolean; score: number; tier: number | null; reason: string; policy: string | null } | null;
  incident: string | null;
  signals: Signal[];
  rules: Match[];
  events: Stored[];
  truncated: boolean;
}

/** Counts of events, and of all requests: those in sums and by route alone. */
export interface Counts {
  requests: number;
  refused: number;
  observed: number;
  dry_run: number;
}

/** One line of a list of the overview. */
export interface Share extends Counts {
  name?: string | null;
  id?: string | null;
  other?: boolean;
  steps?: number[];
}

/** The state of the event store. */
export interface StoreStatus {
  enabled: boolean;
  events: number;
  bytes: number;
  oldest: string | null;
  retention: { days: number; max_mib: number; max_events: number };
  waiting: number;
  dropped: number;
  error: string | null;
  live_clients: number;
  live_clients_max: number;
}

/** Figures of a span of time. */
export interface Overview {
  span: Span;
  step_seconds: number;
  from: string;
  until: string;
  steps: (Counts & { at: string })[];
  totals: Counts;
  before: Counts;
  by_plugin: Share[];
  by_route: Share[];
  by_action: Share[];
  by_category: Share[];
  health: {
    troubles: { part: string; subject: string; reason: string; since: string | number | null }[];
    exporters: { name: string; waiting: number; on_disk: number; written: number; dropped: number; retries: number; error: string | null; disk_error: string | null }[];
    event_store: StoreStatus;
  };
}

/** The spans of the overview. */
export type Span = "hour" | "day" | "week";

/** Filters of a search and of the stream, without their prefix. */
export type Filters = Partial<Record<"reference" | "ref" | "route" | "config" | "policy" | "rule" | "plugin" | "outcome" | "action" | "category" | "dry_run" | "incident" | "node" | "type" | "id", string>>;

function prefixed(filters: Filters): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(filters).map(([name, value]) => [`filter.${name}`, value]));
}

/** Stored events, newest first. */
export const search = (filters: Filters, more: { from?: string; until?: string; limit?: number; cursor?: string } = {}, signal?: AbortSignal) =>
  get<Found>(`/events/_search${query({ ...prefixed(filters), ...more })}`, signal);

/** All that is stored about one request. */
export const explain = (reference: string, signal?: AbortSignal) => get<Explained>(`/events/_reference${query({ reference })}`, signal);

/** Figures of a span. */
export const overview = (span: Span, signal?: AbortSignal) => get<Overview>(`/events/_overview${query({ span })}`, signal);

/** Whether this release has stored events, and how many. */
export const eventStatus = (signal?: AbortSignal) => get<StoreStatus>("/events/_status", signal);

/** The path of the stream below the namespace. */
export const livePath = (filters: Filters) => `/events/_live${query(prefixed(filters))}`;

/** The address of the stream. */
export const liveUrl = (filters: Filters) => NS + livePath(filters);

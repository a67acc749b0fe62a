/** Entities: their collections, schemas, history, and trial runs of changes. */
import { problem } from "../problem";
import { ApiError, call, get, isMissing, query, type FieldError } from "./http";

/** An entity. */
export type Entity = { id: string; name?: string; description?: string; enabled?: boolean } & Record<string, unknown>;

/** An entity with the tag of its version. */
export interface Tagged {
  entity: Entity;
  etag: string;
  warnings: string[];
}

/** The collections, in the order in which the console lists them. */
export const COLLECTIONS = [
  "routes", "threat-policies", "waf-configs", "waf-rulesets", "bot-policies", "honeypot-policies", "challenge-providers", "api-contracts",
  "threat-feeds", "asn-databases", "geo-databases", "svc-bouncers", "malware-scanners", "alert-rules", "global-config",
] as const;

/** A version of an entity. */
export interface Version {
  version: number;
  at: string | null;
  author: { kind: string; id?: string; name?: string } | null;
  action: string;
  detail: string | null;
  in_force: boolean;
  document?: Entity | null;
  /** Of one version: the pointers of secrets that differ although both are shown as masks. */
  changes?: { secrets?: string[] } | null;
}

/** A JSON Schema, as far as forms read it. */
export interface Schema {
  title?: string;
  description?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  default?: unknown;
  examples?: unknown[];
  minimum?: number;
  maximum?: number;
  format?: string;
  /** It is shown as a mask, never as it is. */
  writeOnly?: boolean;
  additionalProperties?: boolean | Schema;
}

const path = (collection: string, id?: string) => `/entities/${encodeURIComponent(collection)}${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;

/** All entities of a collection. */
export async function list(collection: string, signal?: AbortSignal): Promise<Entity[]> {
  return get<Entity[]>(path(collection), signal);
}

/** The fields that say that a collection's entity only observes. */
const OBSERVES: Record<string, string[]> = { "threat-policies": ["dry_run"], "waf-configs": ["block"], "honeypot-policies": ["kind", "action"] };

/** All entities of a collection with the fields that its list shows: whole documents, such as rulesets, may be long. */
export async function heads(collection: string, signal?: AbortSignal): Promise<Entity[]> {
  const fields = ["id", "name", "description", "tags", "metadata.updated_at", ...(collection === "global-config" ? [] : ["enabled"]), ...(OBSERVES[collection] ?? [])];
  return get<Entity[]>(`${path(collection)}${query({ fields: fields.join(",") })}`, signal);
}

/** How many entities a collection has. */
export const count = (collection: string, signal?: AbortSignal) => get<{ count: number }>(`${path(collection)}/_count`, signal);
/** The schema of a collection's documents. */
export const schema = (collection: string, signal?: AbortSignal) => get<Schema>(`${path(collection)}/_schema`, signal);
/** A document to start from. */
export const template = (collection: string, signal?: AbortSignal) => get<Entity>(`${path(collection)}/_template`, signal);

/** One entity. */
export async function read(collection: string, id: string, signal?: AbortSignal): Promise<Tagged> {
  return tagged(await call<Entity>("GET", path(collection, id), signal ? { signal } : {}));
}

/** Whether there is an entity of this id. */
export async function exists(collection: string, id: string): Promise<boolean> {
  try {
    await read(collection, id);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** Creates an entity, or replaces the one that `etag` stands for. */
export async function save(collection: string, entity: Entity, etag: string | null): Promise<Tagged> {
  if (etag === null) return tagged(await call<Entity>("POST", path(collection), { body: entity }));
  return tagged(await call<Entity>("PUT", path(collection, entity.id), { body: entity, headers: { "if-match": etag } }));
}

/** Deletes an entity. `force` deletes it although others refer to it. */
export async function remove(collection: string, id: string, etag: string, force = false): Promise<void> {
  await call("DELETE", path(collection, id) + query({ force: force || null }), { headers: { "if-match": etag } });
}

/** Checks a document as a write would, and writes nothing. Answers what is wrong with it. */
export async function tryOut(collection: string, entity: Entity, isNew: boolean, signal?: AbortSignal): Promise<FieldError[]> {
  const { body } = await call<string>(isNew ? "POST" : "PUT", `${path(collection)}/_bulk?dry_run=true`, {
    body: `${JSON.stringify(entity)}\n`,
    type: "application/x-ndjson",
    headers: { accept: "application/x-ndjson" },
    ...(signal ? { signal } : {}),
  });
  const line = JSON.parse(String(body).split("\n")[0] ?? "{}") as { status?: number; error_description?: string; pointer?: string; errors?: FieldError[] };
  if ((line.status ?? 200) < 400) return [];
  if (line.errors?.length) return line.errors;
  return [{ message: line.error_description ?? "", ...(line.pointer ? { pointer: line.pointer } : {}) }];
}

/** The versions of an entity, newest first. */
export const history = (collection: string, id: string, signal?: AbortSignal) => get<Version[]>(`${path(collection, id)}/_history?page=1&pageSize=100`, signal);
/** One version with its document, and how it differs from the version `since`. */
export const version = (collection: string, id: string, number: number, since: number, signal?: AbortSignal) => get<Version>(`${path(collection, id)}/_history/${number}${query({ since })}`, signal);
/** The number of the version that a tag stands for. */
export const versionOf = (etag: string) => Number(etag.replaceAll(/\D/g, ""));

/** Writes the document of a version again, with its secrets. With `etag`, only over the version that it stands for. */
export async function revert(collection: string, id: string, number: number, etag: string | null = null): Promise<Tagged> {
  return tagged(await call<Entity>("POST", `${path(collection, id)}/_revert`, { body: { version: number }, ...(etag === null ? {} : { headers: { "if-match": etag } }) }));
}

function tagged(answer: { body: Entity; headers: Headers }): Tagged {
  const warnings = answer.headers.get("x-palisade-warnings");
  return { entity: answer.body, etag: answer.headers.get("etag") ?? "", warnings: warnings ? readWarnings(warnings) : [] };
}

function readWarnings(header: string): string[] {
  try {
    const list = JSON.parse(header) as unknown;
    return Array.isArray(list) ? list.map(String) : [header];
  } catch {
    return [header];
  }
}

/** What is wrong with each field, by its JSON pointer, of an error of a write; without a pointer why it failed otherwise. */
export function fieldErrors(error: unknown): FieldError[] {
  return error instanceof ApiError && error.fields.length ? error.fields : [{ message: problem(error) }];
}

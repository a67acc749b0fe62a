/** What the chain of a route refers to, read from the entities. */
import { read, type Entity, type Tagged } from "../api/entities";
import { get, query } from "../api/http";
import { CHAIN_COLLECTIONS, REPUTATION_COLLECTIONS, type Policies } from "./chain";

const READ = [...CHAIN_COLLECTIONS, ...REPUTATION_COLLECTIONS];

/** What a chain needs of each policy; rules of a WAF configuration may be megabytes. */
const FIELDS: Record<(typeof READ)[number], string> = {
  "threat-policies": "id,name,enabled,dry_run", "waf-configs": "id,name,enabled,block", "bot-policies": "id,name,enabled,rules,impersonator_action", "honeypot-policies": "id,name,enabled,action",
  "threat-feeds": "id,enabled", "svc-bouncers": "id,enabled", "asn-databases": "id,enabled,categories",
};

/** The global configuration, also with the tag of its version, and the policies that chains follow. */
export async function loadPolicies(signal?: AbortSignal): Promise<{ global: Entity | null; stored: Tagged | null; policies: Policies }> {
  const [stored, ...lists] = await Promise.all([
    read("global-config", "global-config", signal).catch(() => null),
    ...READ.map((collection) => get<Entity[]>(`/entities/${collection}${query({ fields: FIELDS[collection] })}`, signal)),
  ]);
  return { global: stored?.entity ?? null, stored, policies: Object.fromEntries(READ.map((collection, index) => [collection, lists[index] ?? []])) };
}

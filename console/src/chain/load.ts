/** What the chain of a route refers to, read from the entities. */
import { read, type Entity } from "../api/entities";
import { get, query } from "../api/http";
import { CHAIN_COLLECTIONS, REPUTATION_COLLECTIONS, type Policies } from "./chain";

const READ = [...CHAIN_COLLECTIONS, ...REPUTATION_COLLECTIONS];

/** What a chain needs of each policy; rules of a WAF configuration may be megabytes. */
const FIELDS: Record<(typeof READ)[number], string> = {
  "threat-policies": "id,name,enabled,dry_run", "waf-configs": "id,name,enabled,block", "bot-policies": "id,name,enabled,rules,impersonator_action", "honeypot-policies": "id,name,enabled,action",
  "threat-feeds": "id,enabled", "svc-bouncers": "id,enabled", "asn-databases": "id,enabled,categories",
};

/** The global configuration, and the policies that chains follow. */
export async function loadPolicies(signal?: AbortSignal): Promise<{ global: Entity | null; policies: Policies }> {
  const [global, ...lists] = await Promise.all([
    read("global-config", "global-config", signal).then((tagged) => tagged.entity, () => null),
    ...READ.map((collection) => get<Entity[]>(`/entities/${collection}${query({ fields: FIELDS[collection] })}`, signal)),
  ]);
  return { global, policies: Object.fromEntries(READ.map((collection, index) => [collection, lists[index] ?? []])) };
}

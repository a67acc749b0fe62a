/** Answers of endpoints whose data only gateways can make, with the attacker's texts in every field of theirs. */
import { SCRIPT } from "./support.mjs";

const MINUTE = 60_000;

/** A fixed pseudorandom sequence, so that screenshots stay alike. */
function sequence(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

/** What plugins report, in their words: the detail of the signal, the action, the tag, the score, and the source of the signal with its kind. */
const WHAT = [
  ["rule 949110: Inbound Anomaly Score Exceeded (Total Score: 23)", "deny", "waf:blocked", 50, "waf.seclang", "waf"],
  ["the address is on the threat feed `Spamhaus DROP`", "deny", "feed:drop", 65, "reputation.feed", "feed"],
  ["password spraying: one password failed for 41 accounts (window 900 s)", "ban", "login:password_spraying", 92, "login", "login"],
  ["the decoy path `/wp-admin/setup.php` was asked for", "challenge", "honeypot:path", 40, "honeypot", "honeypot"],
  ["rule 942100: SQL Injection Attack Detected via libinjection and 3 more", "log", "waf:match", 30, "waf.seclang", "waf"],
];

/** `count` incidents; the second one is an attack on the console. */
export function incidents(count, now = Date.now()) {
  const random = sequence(7);
  return Array.from({ length: count }, (_, index) => {
    const attack = index === 1;
    const [message, action, tag, score] = WHAT[Math.floor(random() * WHAT.length)];
    const key = `ip:${index % 3 ? "203.0" : "198.51"}.${(index >> 8) % 256}.${index % 256}`;
    const enforced = Math.floor(random() * 40);
    const events = enforced + Math.floor(random() * 20) + 1;
    const text = attack ? SCRIPT : message;
    const timeline = Array.from({ length: Math.min(events, 8) }, (_, at) => ({ at: now - index * 900 - (8 - at) * 17_000, category: "threat", action, score, enforced: at % 3 !== 0, route_id: "shop", route_name: attack ? SCRIPT : "Shop", message: text }));
    return {
      id: `incident_${index.toString(16).padStart(16, "0")}`, ref: { kind: "ip", value: key.slice(3) }, key, first_seen: now - 20 * MINUTE, last_seen: now - index * 900, count: events, enforced_count: enforced,
      max_score: score, categories: ["threat"], tags: attack ? [SCRIPT] : [tag], actions: [action], routes: [attack ? SCRIPT : ["Shop", "Login", "API"][index % 3]], last_message: text, node: "gateway-1",
      nodes: ["gateway-1", "gateway-2"], timeline, state: index % 9 === 4 ? "acknowledged" : "open", workflow: null, banned: index % 11 === 2, ban: null, allowlisted: false, allowlist_entry: null,
    };
  });
}

/** Which entries the filters of a list leave, as `_bans` and `_incidents` have them. */
export function wantedBy(url) {
  const [key, text, state, outcome] = ["ref", "text", "state", "outcome"].map((name) => url.searchParams.get(`filter.${name}`));
  const low = text?.trim().toLowerCase();
  const texts = (row) => [row.key, row.reason, row.issued_by, row.last_message, row.node, ...(row.tags ?? []), ...(row.routes ?? []), ...(row.categories ?? []), ...(row.actions ?? [])];
  return (row) => (!key || row.key === key) && (!state || row.state === state) && (!low || texts(row).some((text) => text?.toLowerCase().includes(low)))
    && (!outcome || (outcome === "banned" ? row.banned : (row.enforced_count > 0) === (outcome === "enforced")));
}

/** A page of a list, as `_bans` and `_incidents` answer it. */
export function paged(list, field) {
  return (url) => {
    const [page, size] = [Number(url.searchParams.get("page") ?? 1), Number(url.searchParams.get("pageSize") ?? 1000)];
    const found = list.filter(wantedBy(url));
    return { headers: { "x-total": String(found.length), "x-pages": String(Math.max(1, Math.ceil(found.length / size))) }, body: { [field]: found.slice((page - 1) * size, page * size) } };
  };
}

/** `count` bans. */
export function bans(count, now = Date.now()) {
  return Array.from({ length: count }, (_, index) => ({
    ref: { kind: "ip", value: "" }, key: `ip:${10 + (index >> 16)}.${(index >> 8) % 256}.${index % 256}.7`, reason: index === 3 ? SCRIPT : WHAT[index % WHAT.length][0], tags: ["waf:blocked"], score: 50 + (index % 50),
    issued_at: now - (index % 500) * MINUTE, until: now + (1 + (index % 90)) * MINUTE, issued_by: index % 4 ? "gateway-1" : "ledger", signals: [], timeline: [], last_action: null, last_action_by: null, last_action_at: null,
  }));
}

/** An event about a request. */
export function event(index, now = Date.now()) {
  const [message, action, tag, score, source, kind] = WHAT[index % WHAT.length];
  const attack = index === 1;
  const at = new Date(now - index * 4100).toISOString();
  return {
    id: `event_${index.toString(16).padStart(16, "0")}`, at,
    event: {
      "@type": "SvcSecurityEvent", "@id": `event_${index}`, "@timestamp": at, message: attack ? SCRIPT : message,
      event: { kind: "alert", category: "threat", action, outcome: index % 3 === 2 ? "observed" : "blocked", severity: 3, module: index % 2 ? "threat-response" : "waf", dataset: "svc.threat" },
      source: { ip: `203.0.113.${index % 200}`, apikey: null, user: null }, threat: { score, tags: [tag], signals: [{ source, kind, tag, weight: score, effective_weight: score, confidence: 1, detail: attack ? SCRIPT : message, at: now }] },
      incident: { id: "incident_0", count: index }, route: { id: "shop", name: "Shop", node: "gateway-1" },
      http: { request_id: `582ca865-6c8e-43de-b2dd-${index.toString(16).padStart(12, "0")}`, method: "GET", host: attack ? SCRIPT : "shop.example", path: attack ? `/${SCRIPT}` : ["/search", "/login", "/cart/7", "/api/orders/19"][index % 4], status: 403 },
      decision: { action, score, tier: 1, dry_run: index % 5 === 4, enforced: index % 3 !== 2, reason: message },
    },
  };
}

/** The state of the event store. */
export const store = { enabled: true, events: 48_213, bytes: 61_300_000, oldest: "2026-11-20T08:12:00.000Z", retention: { days: 30, max_mib: 512, max_events: 1_000_000 }, waiting: 0, dropped: 0, error: null, live_clients: 1, live_clients_max: 32 };

/** Figures of an hour, a day or a week. */
export function overview(url) {
  const span = url.searchParams.get("span") ?? "hour";
  const [count, step] = { hour: [60, 60], day: [144, 600], week: [168, 3600] }[span];
  const random = sequence(3);
  const now = Math.floor(Date.now() / 60_000) * 60_000;
  const steps = Array.from({ length: count }, (_, index) => {
    const burst = index > count * 0.6 && index < count * 0.68 ? 40 : 0;
    const refused = Math.round(6 + 5 * Math.sin(index / 7) + random() * 6 + burst);
    return { at: new Date(now - (count - 1 - index) * step * 1000).toISOString(), requests: 900 + Math.round(random() * 200) + 9 * refused, refused, observed: Math.round(refused * 0.6 + random() * 12), dry_run: Math.round(random() * 3) };
  });
  const sum = (name) => steps.reduce((sum, step) => sum + step[name], 0);
  const share = (name, refused, observed) => ({ name, requests: 0, refused, observed, dry_run: 0, steps: [] });
  return {
    body: {
      span, step_seconds: step, from: steps[0].at, until: new Date(now).toISOString(), steps, totals: { requests: sum("requests"), refused: sum("refused"), observed: sum("observed"), dry_run: sum("dry_run") },
      before: { requests: Math.round(sum("requests") * 0.97), refused: Math.round(sum("refused") * 0.83), observed: sum("observed"), dry_run: 0 },
      by_plugin: [share("threat-response", 412, 96), share("waf", 301, 210), share("ip-reputation", 120, 12), share("login-guard", 41, 3), share(SCRIPT, 2, 1)],
      by_route: [{ id: "shop", requests: 48_210, refused: 510, observed: 200, dry_run: 0, steps: [] }, { id: "login", requests: 9_340, refused: 211, observed: 40, dry_run: 0, steps: [] }, { id: null, requests: 1_204, refused: 20, observed: 4, dry_run: 0, steps: [] }],
      by_action: [share("deny", 620, 0), share("log", 0, 220), share("challenge", 88, 14), share("ban", 33, 0)], by_category: [share("threat", 700, 220)],
      health: { troubles: [{ part: "feed", subject: "Spamhaus DROP", reason: "503 Service Unavailable", since: new Date(now - 3_600_000).toISOString() }], exporters: [{ name: "elasticsearch", waiting: 12, on_disk: 0, written: 481_220, dropped: 0, retries: 2, error: null, disk_error: null }], event_store: store },
    },
  };
}

/** The explanation of a reference. */
export function explained(reference) {
  return {
    reference, found: true,
    request: { at: new Date(Date.now() - 90_000).toISOString(), method: "GET", host: "shop.example", path: `/search/${SCRIPT}`, status: 403, route: { id: "shop", name: "Shop", node: "gateway-1" }, source: { ip: "203.0.113.9" } },
    verdict: { outcome: "blocked", action: "deny", module: "threat-response", dry_run: false, enforced: true, score: 50, tier: 1, reason: "score 50 reaches tier 2" }, incident: "incident_0000000000000001",
    signals: [{ source: "waf.seclang", kind: "waf", tag: "waf:blocked", weight: 50, effective_weight: 50, confidence: 1, detail: "rule 942100: SQL Injection Attack Detected via libinjection" }, { source: "reputation.feed", kind: "feed", tag: "feed:drop", weight: 20, effective_weight: 10, confidence: 0.5, detail: "the address is on the threat feed `Spamhaus DROP`" }],
    rules: [{ rule_id: 942100, msg: "SQL Injection Attack Detected via libinjection", phase: 2, severity: "CRITICAL", tags: ["attack-sqli"], variable: "ARGS:q", value: `1' UNION SELECT password FROM users-- ${SCRIPT}`, logdata: "Matched Data: 1UEkn found within ARGS:q", config: { id: "shop-waf", name: "Shop" }, refused: true }],
    events: [event(0), event(1)], truncated: false,
  };
}

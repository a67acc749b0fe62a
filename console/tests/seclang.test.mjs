/** SecLang as the editor reads it: completion, places of messages, steps of a test. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { source } from "./sources.mjs";

const { wordsAt, offers } = await source("seclang/complete.ts");
const { locate } = await source("seclang/problems.ts");
const { covered, stepsOf, masked } = await source("seclang/steps.ts");
const { chainOf, routesOf } = await source("chain/chain.ts");

test("what can be written depends on the place in a directive", () => {
  const cases = [
    ["", "directives", ""],
    ["SecRu", "directives", "SecRu"],
    ["SecRule ARGS \"@rx a\" \"id:1\"\nSec", "directives", "Sec"],
    ["SecRule ", "variables", ""],
    ["SecRule ARGS:q|REQUEST_H", "variables", "REQUEST_H"],
    ["SecRule \"ARGS|!REQ", "variables", "REQ"],
    ["SecRule ARGS \"@", "operators", ""],
    ["SecRule ARGS \"!@conta", "operators", "conta"],
    ["SecRule ARGS \"@rx a\" \"", "actions", ""],
    ["SecRule ARGS \"@rx a\" \"id:1,ph", "actions", "ph"],
    ["SecRule ARGS \"@rx a\" \\\n    \"id:1,\\\n    de", "actions", "de"],
    ["SecRule ARGS \"@rx a\" \"id:1,t:low", "transformations", "low"],
    ["SecAction \"id:1,ctl:rule", "controls", "rule"],
    ["SecRuleUpdateTargetById 942100 \"!AR", "variables", "AR"],
    ["SecRuleUpdateActionById 942100 \"pa", "actions", "pa"],
  ];
  for (const [text, kind, typed] of cases) assert.deepEqual(wordsAt(text), { kind, typed }, text);
  for (const text of ["# Sec", "SecRule ARGS:us", "SecRule ARGS \"@rx de", "SecRule ARGS \"@rx a\" \"id:1,msg:'de", "SecRule ARGS \"@rx a\" \"id:1,status:4", "SecRuleEngine O"]) assert.equal(wordsAt(text), null, text);
});

test("every word has a line of help, and refused words are not offered", () => {
  for (const kind of ["directives", "variables", "operators", "transformations", "actions", "controls"]) {
    for (const [name, help] of offers(kind)) assert.ok(name && help.length > 3, `${kind} ${name}`);
  }
  const names = (kind) => offers(kind).map(([name]) => name);
  assert.ok(names("operators").includes("detectSQLi") && !names("operators").includes("inspectFile"));
  assert.ok(names("actions").includes("setvar") && !names("actions").includes("exec"));
  assert.ok(!names("directives").includes("Include"));
});

test("a message of the compiler is found in the text, also behind characters of several bytes", () => {
  const text = "# größe\nSecRule ARGX \"@rx ü\" \"id:1,foo\"";
  const at = (line, column) => locate({ index: 0, origin: "rule 1", message: `error: unknown (rule 1)\n  --> rule 1, line ${line}, column ${column}\n   | x\n   | ^\n   = help: did you mean 'y'?` }, text);
  assert.deepEqual(at(2, 9), { line: 2, from: 16, to: 20, message: "unknown (rule 1): did you mean 'y'?" });
  const bytes = Buffer.byteLength("SecRule ARGX \"@rx ü\" \"id:1,");
  assert.equal(text.slice(at(2, bytes + 1).from), "foo\"");
  assert.equal(at(9, 1), null);
  assert.equal(locate({ index: 0, origin: "", message: "no place" }, text), null);
});

test("steps have scores where severities add up to what the engine reports, and none where they do not", () => {
  const rule = (id, phase, severity, more = {}) => ({ id, phase, msg: `rule ${id}`, severity, data: "", matched: [], tags: ["OWASP_CRS"], count: 1, disruptive: false, logged: true, ...more });
  const phase = (number, more = {}) => ({ phase: number, name: `phase ${number}`, evaluated: number < 3, rule_ids: [], interruption: null, ...more });
  const result = (inbound) => ({
    disposition: { action_type: "block", status: 403, rule_id: 949110 },
    matched_rules: [rule(901100, 1, null, { logged: false }), rule(920350, 1, "WARNING"), rule(942100, 2, "CRITICAL"), rule(949110, 2, "CRITICAL", { disruptive: true })],
    phases: [phase(1), phase(2, { interruption: { rule_id: 949110, status: 403 } }), phase(3), phase(4), phase(5)],
    scores: { inbound, inbound_threshold: 5 },
  });
  const steps = stepsOf(result(8), false);
  assert.deepEqual(steps.map(({ kind, rule, before, after }) => [kind, rule?.id ?? null, before, after]), [
    ["match", 920350, 0, 3], ["match", 942100, 3, 8], ["match", 949110, 8, 8], ["refused", null, 8, 8], ["not_run", null, 8, 8], ["not_run", null, 8, 8], ["not_run", null, 8, 8], ["verdict", null, 8, 8],
  ]);
  assert.deepEqual(stepsOf(result(13), false).map(({ after }) => after), Array(8).fill(null));
  assert.equal(stepsOf(result(8), true).length, 9);
});

test("values of names that say secret are covered", () => {
  assert.equal(masked("ARGS:password", "hunter2hunter2"), "hu••••••••••••");
  assert.equal(masked("REQUEST_HEADERS:authorization", "Basic x"), "Ba•••••");
  assert.equal(masked("ARGS:q", "UNION SELECT"), "UNION SELECT");
  const matched_rules = [{ matched: [{ variable: "ARGS:token", value: "abcdef" }, { variable: "ARGS:q", value: "open" }] }];
  assert.equal(covered("found abcdef and open", { matched_rules }), "found ab•••• and open");
});

test("a preset gives way to its plugins, by phase and index, each with its state", () => {
  const policies = { "threat-policies": [{ id: "live", dry_run: false }, { id: "trial", dry_run: true, name: "Trial" }], "waf-configs": [{ id: "main", block: false }], "bot-policies": [], "honeypot-policies": [{ id: "traps", action: "ban" }], "threat-feeds": [{ id: "off", enabled: false }] };
  const preset = (config, more = {}) => ({ id: "shop", plugins: [{ plugin: "SecuritySuitePreset", config, ...more }] });
  const shown = (route, global = null) => chainOf(route, global, policies).map(({ title, state, effect, policy }) => `${title} ${state} ${effect}${policy ? ` ${policy.id}` : ""}`);
  assert.deepEqual(shown(preset({ threat_policy: "trial", waf_config: "main", honeypot_policy: "traps", api_contract: true, objects: true, objects_budget: 5, reputation: false, error_leakage: true })), [
    "honeypot active both traps", "threat gate dry_run refuses trial", "bot guard missing scores", "IP reputation off scores", "API contract check dry_run refuses", "WAF dry_run both main", "object guard active refuses",
    "threat response dry_run decides trial", "error leakage guard active replaces",
  ]);
  // No policy named: the first enabled one by id. No WAF config: no WAF.
  assert.deepEqual(shown(preset({ bots: false, reputation: false })), ["threat gate active refuses live", "bot guard off scores", "IP reputation off scores", "WAF off both", "threat response active decides live"]);
  // The IP reputation is left out where nothing lists addresses.
  const reputation = (more, global) => chainOf(preset({}), global, { ...policies, ...more }).find(({ title }) => title === "IP reputation").state;
  assert.equal(reputation({}, null), "missing");
  assert.equal(reputation({ "threat-feeds": [{ id: "on", enabled: true }] }, null), "active");
  assert.equal(reputation({ "asn-databases": [{ id: "bare", enabled: true, categories: [] }] }, null), "missing");
  assert.equal(reputation({}, { security: { dnsbl: { zones: [{ zone: "bl.example" }] } } }), "active");
  assert.ok(shown(preset({}, { enabled: false })).every((step) => step.includes(" off ")));
  const single = { id: "x", plugins: [{ plugin: "SvcThreatResponse", plugin_index: 900, config: { policy: "gone" } }, { plugin: "SvcWaf", plugin_index: 3, config: { ref: "main", contribute: false } }, { plugin: "SvcThreatGate", plugin_index: 1, config: {} }] };
  assert.deepEqual(shown(single, { incoming_request_validators: [{ plugin: "IncomingRequestValidatorSvcHoneypot", config: { policy: "traps" } }] }), ["honeypot active both traps", "threat gate active refuses live", "WAF dry_run refuses main", "threat response missing decides gone"]);
  assert.deepEqual(routesOf("threat-policies", "trial", [preset({ threat_policy: "trial" }), { ...single }], null, policies), ["shop"]);
});

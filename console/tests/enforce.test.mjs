/** The chain of a route, and the step from dry run to enforcing. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { BIN, SCRIPT, Server, answer, axe, launch, login, open, shot } from "./support.mjs";
import { event, store } from "./samples.mjs";
import { source } from "./sources.mjs";

let server, browser, api;
before(async () => {
  server = await Server.start();
  browser = await launch();
  api = await server.api();
  await api("POST", "/entities/threat-policies", { id: "trial", name: `Trial ${SCRIPT}`, dry_run: true, tiers: [{ min_score: 50, action: "deny" }] });
  await api("POST", "/entities/threat-policies", { id: "quiet", name: "Quiet", dry_run: true });
  await api("POST", "/entities/waf-configs", { id: "main", name: "Main", block: false, rules: ["SecRule ARGS \"@rx a\" \"id:1,phase:2,deny\""] });
  await api("POST", "/entities/honeypot-policies", { id: "traps", name: "Traps", action: "deny" });
  await api("POST", "/entities/routes", {
    id: "shop", name: SCRIPT, hosts: ["shop.example"],
    plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "trial", waf_config: "main", honeypot_policy: "traps", fail2ban: true, login: true, login_paths: ["/login"], objects: true, error_leakage: true, bots: false } }],
  });
  await api("POST", "/entities/threat-policies", { id: "web", name: "Web shop", dry_run: true, tiers: [{ min_score: 50, action: "deny" }] });
  await api("POST", "/entities/routes", { id: "web", name: "Web shop", hosts: ["web.example"], plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "web", waf_config: "main", honeypot_policy: "traps", login: true, login_paths: ["/login"], objects: true, objects_mode: "score", uploads: true } }] });
  await api("POST", "/entities/routes", { id: "bare", name: "Bare", hosts: ["bare.example"] });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** As the WAF names them: the one that would refuse, one whose message quotes the request, and one that only writes scores down. */
const RULES = [{ id: 949110, message: null }, { id: 942100, message: "SQL Injection Attack Detected via libinjection" }, { id: 77, message: SCRIPT }, { id: 980170, message: "Scores" }];

/** Stored events of dry runs: of the policy and of another one, some of them harmless, some about the same request. */
function dryRun(url) {
  if (url.searchParams.get("filter.dry_run") !== "true") return { body: { events: [], next: null, complete: true, searched_from: null, examined: 0 } };
  const made = (index, more, decision = {}) => {
    const stored = event(index);
    Object.assign(stored.event, { route: { id: "shop", name: "Shop", node: "gateway-1" }, source: { ip: `203.0.113.${index % 3}` } }, more);
    const policy = stored.event.route.id === "web" ? "web" : "trial";
    Object.assign(stored.event.decision, { action: "deny", dry_run: true, enforced: false, policy: `threat-policies/${policy}` }, decision);
    Object.assign(stored.event.event, { action: stored.event.decision.action, outcome: index === 11 ? "blocked" : "observed" });
    stored.event.event.module = index === 10 ? "waf" : index % 2 ? "threat-gate" : "threat-response";
    // A request that a WAF would have refused; one of them with the attacker's text in place of the tag.
    stored.event.message = stored.event.decision.reason = "score 50 reaches tier 0 of policy `Trial`";
    Object.assign(stored.event.threat.signals[0], { source: "waf.seclang", kind: "waf", tag: index === 1 ? SCRIPT : "waf:match", detail: "rule 942100: SQL Injection Attack Detected via libinjection and 4 more", rules: RULES, more_rules: 1 });
    return stored;
  };
  const same = made(4, {});
  const events = [made(0, {}), made(1, {}), made(2, {}), made(3, {}), same, { ...same, id: "event_again" }, made(5, {}, { action: "log" }), made(10, {}, { policy: "waf-configs/main" }), made(11, {}, { enforced: true }), ...[6, 7, 8, 9].map((index) => made(index, { route: { id: "web", name: "Web shop", node: "gateway-1" } }))];
  const wanted = url.searchParams.get("filter.policy");
  const found = events.filter(({ event }) => wanted === null || event.decision.policy === wanted);
  return { body: { events: found, next: null, complete: true, searched_from: null, examined: events.length } };
}

test("the chain of a route is drawn in the order of execution, with states and policies", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/routes/shop");
  const steps = page.locator(".flow-step");
  await steps.first().waitFor();
  assert.deepEqual(await page.locator(".flow-step > strong").allTextContents(), ["honeypot", "threat gate", "bot guard", "IP reputation", "fail2ban", "WAF", "login guard", "object guard", "threat response", "error leakage guard"]);
  const line = (name) => steps.filter({ has: page.locator("strong", { hasText: new RegExp(`^${name}$`) }) });
  for (const [name, state, effect] of [["honeypot", "enforces", "refuses by itself and adds to the score"], ["threat gate", "dry run", "refuses by itself"], ["bot guard", "off", ""], ["fail2ban", "dry run", "bans callers"], ["WAF", "dry run", "adds to the score"], ["object guard", "on", "only reports"], ["threat response", "dry run", "decides by the score"]]) {
    assert.equal(await line(name).locator(".badge").textContent(), state, name);
    assert.match(await line(name).textContent(), new RegExp(effect), name);
  }
  assert.equal(await page.locator(".flow ol").nth(1).getAttribute("start"), "6");
  await line("WAF").getByRole("link", { name: "Main" }).waitFor();
  await axe(page, "a chain");
  await line("threat response").getByRole("link", { name: "Enforce … threat response" }).click();
  await page.getByRole("dialog").getByRole("heading", { name: /From dry run to enforcing/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.doesNotMatch(page.url(), /enforce/);
  await page.goto("/console/policies/routes/web");
  await steps.first().waitFor();
  await shot(page, "chain");
  await page.goto("/console/policies/routes/bare");
  await page.getByText("This route has no plugin").waitFor();
  await page.done();
});

test("the fields of presets in the table of plugins are those that the server takes", async () => {
  const { plugins } = JSON.parse(readFileSync(new URL("../src/chain/plugins.json", import.meta.url), "utf8"));
  const preset = (config) => api("PATCH", "/entities/routes/bare", { plugins: [{ plugin: "SecuritySuitePreset", config }] });
  const switches = plugins.map((plugin) => plugin.preset?.switch).filter(Boolean);
  assert.ok(switches.length > 10, switches.join());
  await preset(Object.fromEntries(switches.map((name) => [name, false])));
  await assert.rejects(preset({ no_such_switch: false }), /no_such_switch/);
  await api("PATCH", "/entities/routes/bare", { plugins: [] });
});

test("within each phase the order is that of the snapshot that the compiler makes", async () => {
  const config = { threat_policy: "live", waf_config: "main", honeypot_policy: "traps", bot_policy: "bots", api_contract_id: "spec", login_paths: ["/login"] };
  for (const name of ["fail2ban", "traffic", "api_contract", "uploads", "login", "objects", "error_leakage", "sensitive_data"]) config[name] = true;
  const plugins = [{ plugin: "SecuritySuitePreset", config }, { plugin: "SvcQueryGuard", plugin_index: 0.7, config: { endpoints: [{ path: "/graphql", kind: "graphql" }] } }];
  const spec = JSON.stringify({ openapi: "3.0.0", info: { title: "t", version: "1" }, paths: { "/a": { get: { responses: { 200: { description: "x" } } } } } });
  const entities = {
    route: { kind: "route", id: "shop", hosts: ["shop.example"], plugins }, policy: { kind: "threat-policy", id: "live", dry_run: false }, waf: { kind: "waf-config", id: "main", rules: ["SecRule ARGS \"@rx a\" \"id:1,phase:2,deny\""] },
    honeypot: { kind: "honeypot-policy", id: "traps" }, bots: { kind: "bot-policy", id: "bots" }, contract: { kind: "api-contract", id: "spec", spec },
  };
  const folder = mkdtempSync(join(tmpdir(), "palisade-chain-"));
  for (const [name, entity] of Object.entries(entities)) writeFileSync(join(folder, `${name}.json`), JSON.stringify(entity));
  const compiled = spawnSync(BIN, ["compile", "--entities", folder, "--format", "snapshot", "--out", join(folder, "out")]);
  assert.equal(compiled.status, 0, String(compiled.stderr));
  const snapshot = readFileSync(join(folder, "out"));
  rmSync(folder, { recursive: true });
  const { PLUGINS, chainOf } = await source("chain/chain.ts");
  // A step of a snapshot begins with its plugin's name, field 1 of its message.
  const position = (name) => snapshot.indexOf(Buffer.concat([Buffer.from([0x0a, name.length]), Buffer.from(name)]));
  const laid = PLUGINS.filter(({ name }) => position(name) >= 0).sort((a, b) => position(a.name) - position(b.name)).map(({ name }) => name);
  assert.equal(laid.length, 14, laid.join());
  const policies = { "threat-policies": [entities.policy], "waf-configs": [entities.waf], "bot-policies": [entities.bots], "honeypot-policies": [entities.honeypot] };
  const steps = chainOf(entities.route, null, policies).filter(({ plugin }) => laid.includes(plugin.name));
  for (const phase of ["access", "request", "score", "response"]) {
    const shown = steps.filter((step) => step.phase === phase).map(({ plugin }) => plugin.name);
    assert.ok(shown.length > 0, phase);
    assert.deepEqual(shown, laid.filter((name) => shown.includes(name)), phase);
  }
  assert.equal(steps.length, laid.length);
});

test("from dry run to enforcing: what would have been held back, the difference, the reason, and the way back", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_status", store);
  await answer(page, "/events/_search", dryRun);
  await login(page, "/console/policies/threat-policies/trial");
  await page.getByRole("button", { name: "Enforce …" }).click();
  const dialog = page.getByRole("dialog");
  // Five requests of three callers: one of them has two events; a harmless action, another route, the WAF's own and what was refused do not count.
  await dialog.getByText("Would have been held back in the last day: requests 5, callers 3.").waitFor();
  const row = (caption, name) => dialog.getByRole("table", { name: caption }).getByRole("row", { name });
  await row("By rule or signal", /waf:match.*4/).waitFor();
  await row("By rule or signal", /942100 SQL Injection Attack Detected via libinjection.*5/).waitFor();
  await row("By rule or signal", /949110 5$/).waitFor();
  await row("By rule or signal", /77 .*img src=x.*5/).waitFor();
  await row("By rule or signal", /^.{0,3}<img src=x.*1$/).waitFor();
  assert.equal(await row("By rule or signal", /980170/).count(), 0, "it only writes scores down");
  assert.match(await dialog.getByRole("link", { name: "942100", exact: true }).getAttribute("href"), /\/console\/events\?policy=threat-policies%2Ftrial&type=security&outcome=observed&dry_run=true&from=.*&rule=942100$/);
  await row("By route", /shop.*5/).waitFor();
  await row("Top callers", /ip:203.0.113.0.*2/).waitFor();
  assert.match(await dialog.getByRole("link", { name: "ip:203.0.113.0" }).getAttribute("href"), /\/console\/events\?policy=threat-policies%2Ftrial&type=security&outcome=observed&dry_run=true&from=.*&ref=ip%3A203\.0\.113\.0/);
  await dialog.locator(".diff .added", { hasText: '"dry_run": false' }).waitFor();
  await axe(page, "enforce");
  await dialog.getByRole("button", { name: "Enforce now" }).click();
  assert.equal((await api("GET", "/entities/threat-policies/trial")).dry_run, true, "nothing is written without a reason");
  await dialog.getByLabel("Reason").fill(`reviewed ${SCRIPT}`);
  await dialog.locator(".diff .added", { hasText: "reviewed" }).waitFor();
  await dialog.getByLabel("Hold back requests like these (5)").check();
  await dialog.getByLabel("Reason").press("Enter");
  await page.locator(".toast", { hasText: "enforces." }).waitFor();
  const written = await api("GET", "/entities/threat-policies/trial");
  assert.deepEqual([written.dry_run, written.metadata.enforced_because], [false, `reviewed ${SCRIPT}`]);
  await page.getByRole("button", { name: "Enforce …" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
  const back = await api("GET", "/entities/threat-policies/trial");
  assert.deepEqual([back.dry_run, back.metadata.enforced_because], [true, undefined]);
  const [last] = await api("GET", "/entities/threat-policies/trial/_history?page=1&pageSize=10");
  assert.equal(last.action, "revert");
  await page.goto("/console/policies/threat-policies/web?enforce=1");
  await dialog.getByText("requests 4, callers 3").waitFor();
  await dialog.getByLabel("Reason").fill("a day of dry run, reviewed");
  await dialog.evaluate((element) => element.scrollTo(0, 0));
  await shot(page, "enforce");
  await page.done();
});

test("a plugin with a dry run of its own goes to enforcing from the chain of its route", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_status", store);
  await answer(page, "/events/_search", (url) => {
    const wanted = ["plugin", "route", "outcome", "dry_run"].map((name) => url.searchParams.get(`filter.${name}`));
    assert.deepEqual(wanted, ["fail2ban", "shop", "observed", "true"]);
    const reported = [0, 1].map((index) => {
      const stored = event(index);
      Object.assign(stored.event.event, { category: "fail2ban", outcome: "observed", action: "ban", module: "fail2ban" });
      Object.assign(stored.event.decision, { action: "ban", dry_run: true, enforced: false });
      return stored;
    });
    return { body: { events: reported, next: null, complete: true, searched_from: null, examined: 2 } };
  });
  await login(page, "/console/policies/routes/shop");
  await page.getByRole("button", { name: "Enforce … fail2ban" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("callers 2, bans 2").waitFor();
  await dialog.getByText(/The threat gate of this chain does not enforce/).waitFor();
  await dialog.locator(".diff .added", { hasText: '"fail2ban_dry_run": false' }).waitFor();
  await axe(page, "enforce a plugin");
  await dialog.getByLabel("Reason").fill("quiet for a week");
  await dialog.getByLabel("Ban callers like these (2)").check();
  await dialog.getByRole("button", { name: "Enforce now" }).click();
  await page.locator(".toast", { hasText: "enforces." }).waitFor();
  const { plugins, metadata } = await api("GET", "/entities/routes/shop");
  assert.deepEqual([plugins.length, plugins[0].config.fail2ban_dry_run, plugins[0].config.waf_config, metadata.enforced_because], [1, false, "main", "quiet for a week"]);
  await page.getByRole("button", { name: "Enforce … fail2ban" }).waitFor({ state: "detached" });
  // A plugin that reports once a minute: the figures are at least these.
  await api("PATCH", "/entities/routes/bare", { plugins: [{ plugin: "SvcApiContract", plugin_index: 1, config: {} }] });
  const other = await page.context().newPage();
  await answer(other, "/events/_status", store);
  await answer(other, "/events/_search", () => ({ body: { events: [{ ...event(0), event: { ...event(0).event, event: { category: "api", action: "log", outcome: "observed", module: "api-contract" }, decision: { action: "log", dry_run: true, enforced: false } } }], next: null, complete: true, searched_from: null, examined: 1 } }));
  await other.goto("/console/policies/routes/bare");
  await other.getByRole("button", { name: "Enforce … API contract check" }).click();
  await other.getByText("at least: requests 1, callers 1").waitFor();
  await other.getByRole("dialog").locator(".diff .added", { hasText: '"mode": "enforce"' }).waitFor();
  await other.close();
  // A route with unsaved changes is not written from here.
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("button", { name: "Enforce … fail2ban" }).waitFor();
  await page.getByLabel("Description", { exact: true }).fill("changed");
  await page.getByRole("button", { name: "Enforce … fail2ban" }).waitFor({ state: "detached" });
  await page.done();
});

test("fail2ban of a preset of the global chain: the gates of every route count, and the global configuration is written", async () => {
  const { incoming_request_validators: none } = await api("GET", "/entities/global-config/global-config");
  assert.deepEqual(none, []);
  const validators = [{ plugin: "IncomingRequestValidatorSvcHoneypot", config: { policy: "traps" } }, { plugin: "SecuritySuiteGlobalPreset", config: { threat_policy: "web", response: false, reputation: false, bots: false, fail2ban: true } }];
  await api("PATCH", "/entities/global-config/global-config", { incoming_request_validators: validators });
  const page = await open(browser, server);
  await answer(page, "/events/_status", store);
  await answer(page, "/events/_search", (url) => {
    const wanted = ["plugin", "route", "outcome", "dry_run"].map((name) => url.searchParams.get(`filter.${name}`));
    assert.deepEqual(wanted, ["fail2ban", null, "observed", "true"]);
    const stored = event(0);
    Object.assign(stored.event.event, { category: "fail2ban", outcome: "observed", action: "ban", module: "fail2ban" });
    Object.assign(stored.event.decision, { action: "ban", dry_run: true, enforced: false });
    return { body: { events: [stored], next: null, complete: true, searched_from: null, examined: 1 } };
  });
  await login(page, "/console/policies/global-config/global-config");
  assert.deepEqual(await page.locator(".flow-step > strong").first().textContent(), "honeypot");
  await page.getByRole("button", { name: "Enforce … fail2ban" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("callers 1, bans 1").waitFor();
  // The gates of the global chain and of the routes follow policies in dry run.
  await dialog.getByText(/On a route no threat gate enforces/).waitFor();
  await dialog.locator(".diff .added", { hasText: '"fail2ban_dry_run": false' }).waitFor();
  await dialog.getByLabel("Reason").fill("quiet for a week");
  await dialog.getByLabel("Ban callers like these (1)").check();
  await dialog.getByRole("button", { name: "Enforce now" }).click();
  await page.locator(".toast", { hasText: "enforces." }).waitFor();
  const written = await api("GET", "/entities/global-config/global-config");
  assert.deepEqual(written.incoming_request_validators.map(({ config }) => config), [validators[0].config, { ...validators[1].config, fail2ban_dry_run: false }]);
  assert.equal(written.metadata.enforced_because, "quiet for a week");
  await page.getByRole("button", { name: "Enforce … fail2ban" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("button", { name: "Enforce … fail2ban" }).waitFor();
  // A gate before every route that enforces is enough.
  await api("PATCH", "/entities/threat-policies/web", { dry_run: false });
  await page.reload();
  await page.getByRole("button", { name: "Enforce … fail2ban" }).click();
  await dialog.getByText("callers 1, bans 1").waitFor();
  assert.equal(await dialog.getByText(/On a route no threat gate enforces/).count(), 0);
  // Without one, those of the routes: that of the shop does not enforce.
  await api("PATCH", "/entities/global-config/global-config", { incoming_request_validators: [{ plugin: "SvcFail2Ban", config: {} }] });
  await page.reload();
  await page.getByRole("button", { name: "Enforce … fail2ban" }).click();
  await dialog.getByText(/On a route no threat gate enforces/).waitFor();
  await dialog.locator(".diff .added", { hasText: '"dry_run": false' }).waitFor();
  await page.keyboard.press("Escape");
  // What is typed is drawn before it is saved.
  const json = page.getByRole("textbox", { name: "JSON" });
  await json.fill(JSON.stringify({ ...JSON.parse(await json.inputValue()), incoming_request_validators: [] }));
  await page.getByText("There is no global plugin").waitFor();
  await api("PATCH", "/entities/threat-policies/web", { dry_run: true });
  await api("PATCH", "/entities/global-config/global-config", { incoming_request_validators: [] });
  await page.done();
});

test("a honeypot that only watches: what it has seen in the chains that follow it, and no other honeypot", async () => {
  await api("POST", "/entities/honeypot-policies", { id: "baits", name: "Baits", action: "monitor" });
  await api("POST", "/entities/routes", { id: "baited", name: "Baited", hosts: ["baited.example"], plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "trial", waf: false, honeypot_policy: "baits" } }] });
  const page = await open(browser, server);
  await answer(page, "/events/_status", store);
  await answer(page, "/events/_search", (url) => {
    const wanted = ["policy", "plugin", "outcome", "dry_run", "route"].map((name) => url.searchParams.get(`filter.${name}`));
    assert.deepEqual(wanted, ["honeypot-policies/baits", "honeypot", "observed", null, null]);
    const seen = (index, route) => {
      const stored = event(index);
      Object.assign(stored.event, { route: route && { id: route, name: route, node: "gateway-1" }, message: "honeypot `Baits`: the decoy path `/.env` was asked for", decision: { action: "log", dry_run: false, enforced: false, policy: "honeypot-policies/baits" } });
      Object.assign(stored.event.event, { category: "honeypot", outcome: "observed", action: "log", module: "honeypot" });
      stored.event.threat.signals = [{ module: "honeypot", source: "honeypot.path", kind: "honeypot", tag: "honeypot:path", detail: "the decoy path `/.env` was asked for" }, { module: "traffic-guard", source: "traffic", tag: "traffic:burst", detail: "many requests" }];
      return stored;
    };
    return { body: { events: [seen(0, "baited")], next: null, complete: true, searched_from: null, examined: 1 } };
  });
  await login(page, "/console/policies/routes/baited");
  const step = page.locator(".flow-step", { hasText: "Baits" });
  assert.equal(await step.locator(".badge").textContent(), "dry run");
  await step.getByRole("link", { name: "Enforce … honeypot" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Would have been held back in the last day: requests 1, callers 1.").waitFor();
  assert.deepEqual(await dialog.getByRole("table", { name: "By rule or signal" }).locator("th").allTextContents(), ["the decoy path `/.env` was asked for "]);
  assert.match(await dialog.getByRole("link", { name: "Show the events" }).getAttribute("href"), /policy=honeypot-policies%2Fbaits&plugin=honeypot&outcome=observed/);
  await dialog.getByLabel("Reason").fill("scanners alone");
  await dialog.getByRole("checkbox").check();
  await dialog.getByRole("button", { name: "Enforce now" }).click();
  await page.locator(".toast", { hasText: "enforces." }).waitFor();
  assert.equal((await api("GET", "/entities/honeypot-policies/baits")).action, "deny");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("This honeypot only watches").waitFor();
  assert.equal((await api("GET", "/entities/honeypot-policies/baits")).action, "monitor");
  await page.done();
});

test("nothing would have been held back; a configuration that only detects; a release without stored events", async () => {
  const page = await open(browser, server, { colorScheme: "dark" });
  await answer(page, "/events/_status", store);
  await answer(page, "/events/_search", (url) => {
    if (url.searchParams.get("filter.config") !== "main") return { body: { events: [], next: null, complete: true, searched_from: null, examined: 0 } };
    assert.equal(url.searchParams.get("filter.dry_run"), "true");
    const trail = event(0);
    trail.event = { "@type": "SvcWafTrailEvent", config: { id: "main", name: "Main" }, blocking: false, block: null, source: { ip: "203.0.113.9", apikey: null, user: null }, http: trail.event.http, route: trail.event.route, rule_ids: [7], matches: [{ rule_id: 7, phase: 2, msg: SCRIPT, variable: "ARGS:q", value: SCRIPT }], would_block: { rule_id: 1, status: 403, msg: SCRIPT } };
    return { body: { events: [trail], next: null, complete: true, searched_from: null, examined: 1 } };
  });
  await login(page, "/console/policies/threat-policies/quiet?enforce=1");
  await page.getByText("Nothing would have been held back in the last day.").waitFor();
  await page.getByText("No chain follows it, so nothing was tried.").waitFor();
  await axe(page, "enforce, dark");
  await page.goto("/console/policies/waf-configs/main");
  await page.getByText(/This configuration only detects/).waitFor();
  await page.getByRole("button", { name: "Enforce …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("requests 1, callers 1").waitFor();
  await dialog.locator(".diff .added", { hasText: '"block": true' }).waitFor();
  await answer(page, "/events/_status", () => ({ status: 404, body: { error: "not_found" } }));
  await page.reload();
  await page.getByRole("button", { name: "Enforce …" }).click();
  await dialog.getByText(/No events are stored/).waitFor();
  await page.done();
  const phone = await open(browser, server, { viewport: { width: 390, height: 844 } });
  await answer(phone, "/events/_status", store);
  await answer(phone, "/events/_search", dryRun);
  await phone.goto("/console/policies/threat-policies/trial?enforce=1");
  await phone.getByLabel("Name").fill("alice");
  await phone.getByLabel("Password").fill("correct horse battery");
  await phone.keyboard.press("Enter");
  await phone.getByText("requests 5, callers 3").waitFor();
  await axe(phone, "enforce, phone");
  await phone.keyboard.press("Escape");
  await phone.goto("/console/policies/routes/shop");
  await phone.locator(".flow-step").first().waitFor();
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the phone");
  await axe(phone, "a chain, phone");
  await phone.done();
});

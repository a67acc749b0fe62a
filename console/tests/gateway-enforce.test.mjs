/** From dry run to enforcing, with what a real gateway has reported in dry run: the evidence, the step, and the way back. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { axe, launch, login, open } from "./support.mjs";
import { Gateway, until } from "./gateway.mjs";

const INJECTION = "/search?q=1'+UNION+SELECT+password+FROM+users--+-";
const HARMLESS = "/search?q=red+shoes";
const ATTACKER = "203.0.113.9";
const SECOND = "203.0.113.10";
const NETWORK = "2001:db8:1:2";
const CUSTOMER = "198.51.100.20";
const SPEC = { openapi: "3.0.3", info: { title: "Shop", version: "1" }, paths: { "/items": { get: { parameters: [{ name: "limit", in: "query", schema: { type: "integer" } }], responses: { 200: { description: "items" } } } } } };
/** What the backend answers that the guards of responses find. */
const LEAKS = {
  "/trace": "java.lang.NullPointerException\n\tat com.example.shop.Cart.total(Cart.java:42)\n\tat com.example.shop.Main.main(Main.java:7)\n",
  "/card": "paid with 4111 1111 1111 1111",
  "/customers": Array.from({ length: 60 }, (_, index) => `customer${index}@example.com`).join(" "),
};

const PHP = `--b\r\ncontent-disposition: form-data; name="file"; filename="shell.php"\r\ncontent-type: text/plain\r\n\r\n<?php echo 1; ?>\r\n--b--\r\n`;

let gateway, browser;
const at = (host, more = {}) => ({ ...more, headers: { host: `${host}.example`, ...more.headers } });
const stored = async (filters) => (await gateway.api("GET", `/events/_search?limit=500&${filters}`)).events;
before(async () => {
  const reply = (request, _, response) => {
    if (request.url === "/login") response.statusCode = 401;
    if (LEAKS[request.url]) response.setHeader("content-type", "text/plain");
    return LEAKS[request.url];
  };
  gateway = await Gateway.start(async (api, backend) => {
    for (const [id, block] of [["rules", false], ["shop", false], ["strict", true]]) await api("POST", "/entities/waf-configs", { id, name: `Rules of ${id}`, block, rules: [id === "strict" ? `SecRule ARGS "@contains UNION" "id:10,phase:2,deny,status:403,log,msg:'UNION'"` : "@import_preset crs"] });
    for (const [id, dry_run] of [["trial", true], ["other", true], ["live", false]]) await api("POST", "/entities/threat-policies", { id, name: `Policy ${id}`, dry_run, tiers: [{ min_score: 20, action: "log" }, { min_score: 50, action: "deny", status: 403 }] });
    await api("POST", "/entities/api-contracts", { id: "shop", name: "Shop", spec: JSON.stringify(SPEC) });
    const route = (id, config, plugins = []) => api("POST", "/entities/routes", { id, name: `Route ${id}`, hosts: [`${id}.example`], backend, plugins: [{ plugin: "SecuritySuitePreset", config }, ...plugins] });
    await route("rules", { threat_policy: "other", waf_config: "rules" });
    await route("shop", { threat_policy: "trial", waf_config: "shop" });
    await route("strict", { threat_policy: "other", waf_config: "strict" });
    const monitors = { waf: false, fail2ban: true, api_contract: true, api_contract_id: "shop", uploads: true, uploads_mode: "monitor", error_leakage: true, error_leakage_mode: "monitor", sensitive_data: true, sensitive_data_mode: "monitor" };
    await route("guarded", { threat_policy: "live", ...monitors }, [{ plugin: "SvcQueryGuard", plugin_index: 0.7, config: { endpoints: [{ path: "/graphql", kind: "graphql" }] } }]);
  }, { reply });
  browser = await launch();
  await gateway.answers(200, "/items", at("guarded", { from: CUSTOMER }));
  const passes = async (status, target, options) => assert.equal((await gateway.send(target, options)).status, status, target);
  for (const host of ["rules", "shop"]) {
    for (const from of [ATTACKER, ATTACKER, SECOND, `${NETWORK}::7`, `${NETWORK}::8`]) await passes(200, INJECTION, at(host, { from }));
    await passes(200, "/search?q=/etc/passwd", at(host, { from: SECOND }));
    for (let number = 0; number < 3; number += 1) await passes(200, HARMLESS, at(host, { from: CUSTOMER }));
  }
  // Over the limit of bodies: refused by no rule.
  await passes(200, "/notes", at("rules", { from: "198.51.100.30", method: "POST", headers: { "content-type": "application/x-www-form-urlencoded" }, body: `text=${"a".repeat(1_100_000)}` }));
  // A configuration that blocks, under a policy in dry run.
  await passes(403, INJECTION, at("strict", { from: "203.0.113.77" }));
  await passes(200, "/items?limit=many", at("guarded", { from: ATTACKER }));
  for (const target of Object.keys(LEAKS)) await passes(200, target, at("guarded", { from: CUSTOMER }));
  await passes(200, "/files", at("guarded", { from: SECOND, method: "POST", headers: { "content-type": "multipart/form-data; boundary=b" }, body: PHP }));
  await passes(200, "/graphql", at("guarded", { from: SECOND, method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query: "{ __schema { types { name } } }" }) }));
  for (let number = 0; number < 5; number += 1) await passes(401, "/login", at("guarded", { from: "203.0.113.50" }));
  await until("the events are stored", async () => (await stored("filter.type=trail&filter.dry_run=true")).length >= 13 && (await stored("filter.plugin=fail2ban")).length >= 1);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** The rows of a table of the open dialog, each as `name figure`. */
function rows(page, caption) {
  const table = page.getByRole("dialog").getByRole("table", { name: caption });
  return table.locator("tr").evaluateAll((rows) => rows.map((row) => `${row.querySelector("th a, th").firstChild.textContent.trim()} ${row.querySelector("td").textContent}`));
}

/** Follows a link to the search of events, which finds as many. */
async function leadsTo(page, link, count) {
  const other = await page.context().newPage();
  await other.goto(await link.getAttribute("href"));
  await other.getByText(`${count} events`, { exact: true }).waitFor({ timeout: 15_000 });
  await other.locator(".rows .row").first().waitFor();
  await other.close();
}

/** Confirms the step in the open dialog. */
async function enforce(page, reason) {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByRole("checkbox").check();
  await dialog.getByRole("button", { name: "Enforce now" }).click();
  await page.getByText(/enforces\.$/).waitFor();
}

async function undo(page) {
  await page.locator(".toast", { hasText: "enforces." }).getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
}

test("a WAF configuration: what its rules would have refused, the step, refusals by Envoy, and the way back", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/policies/waf-configs/rules");
  await page.getByRole("button", { name: "Enforce …" }).click();
  const dialog = page.getByRole("dialog");
  // Two addresses of a network of IPv6 are one caller, as gateways judge them.
  await dialog.getByText("Would have been held back in the last day: requests 7, callers 4.").waitFor();
  const rules = await rows(page, "By rule or signal");
  assert.ok(["949110 6", "942100 5", "930120 1"].every((row) => rules.includes(row)), rules.join());
  assert.ok(!rules.some((row) => row.startsWith("980")), `a rule that writes scores down: ${rules}`);
  assert.deepEqual(await rows(page, "By route"), ["rules 7"]);
  assert.deepEqual((await rows(page, "Top callers")).sort(), ["ip:198.51.100.30 1", `ip:${NETWORK}::/64 2`, `ip:${ATTACKER} 2`, `ip:${SECOND} 2`].sort());
  await dialog.getByRole("row", { name: /^942100 SQL Injection Attack Detected via libinjection 5$/ }).waitFor();
  // Its message has the score of each request.
  await dialog.getByRole("row", { name: /^949110 Inbound Anomaly Score Exceeded 6$/ }).waitFor();
  const examples = dialog.locator(".events li");
  assert.deepEqual((await examples.locator(".sentence").allTextContents()).sort(), ["OS File Access Attempt", "REQUEST_BODY is not inspected beyond bytes without files 1048576", "SQL Injection Attack Detected via libinjection"]);
  assert.deepEqual([...new Set(await examples.locator(".badge").allTextContents())], ["refused"]);
  await axe(page, "evidence of a WAF configuration");

  // What a line leads to is what it counts.
  for (const [name, count] of [["942100", 5], [`ip:${NETWORK}::/64`, 2], ["Show the events", 7]]) await leadsTo(page, dialog.getByRole("link", { name, exact: true }), count);
  const why = await page.context().newPage();
  await why.goto(await examples.locator("a", { hasText: "SQL Injection" }).getAttribute("href"));
  await why.locator("mark", { hasText: /union select/i }).first().waitFor();
  await why.close();

  await enforce(page, "six attacks and an upload that is too long");
  await gateway.answers(403, INJECTION, at("rules", { from: ATTACKER }));
  assert.equal((await gateway.send(HARMLESS, at("rules", { from: CUSTOMER }))).status, 200);
  await undo(page);
  await gateway.answers(200, INJECTION, at("rules", { from: "203.0.113.11" }));
  await page.done();
});

test("a threat policy: the requests of its own routes alone, the step, refusals by Envoy, and the way back", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/policies/threat-policies/trial?enforce=1");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Would have been held back in the last day: requests 6, callers 3.").waitFor();
  const found = await rows(page, "By rule or signal");
  // Each rule that matched, beside the signal, and not the first one of a request alone.
  assert.ok(["waf:match 6", "949110 6", "942100 5"].every((row) => found.includes(row)) && found.length === 8, found.join());
  assert.ok(!found.some((row) => row.startsWith("980")), `a rule that writes scores down: ${found}`);
  assert.deepEqual(await rows(page, "By route"), ["shop 6"]);
  assert.deepEqual(await rows(page, "By action"), ["refused 6"]);
  assert.deepEqual((await rows(page, "Top callers")).sort(), [`ip:${NETWORK}::/64 2`, `ip:${ATTACKER} 2`, `ip:${SECOND} 2`].sort());
  assert.deepEqual((await dialog.locator(".events .sentence").allTextContents()).sort().map((text) => text.replace(/ and \d+ more$/, "")), ["rule 930120: OS File Access Attempt", "rule 942100: SQL Injection Attack Detected via libinjection"]);
  await axe(page, "evidence of a threat policy");
  for (const [name, count] of [["Show the events", 6], ["942100", 5], [`ip:${SECOND}`, 2]]) await leadsTo(page, dialog.getByRole("link", { name, exact: true }), count);
  await enforce(page, "six attacks");
  await gateway.answers(403, INJECTION, at("shop", { from: ATTACKER }));
  assert.equal((await gateway.send(HARMLESS, at("shop", { from: CUSTOMER }))).status, 200);
  await undo(page);
  await gateway.answers(200, INJECTION, at("shop", { from: ATTACKER }));
  // What a configuration that blocks has refused under a policy in dry run was refused in any case.
  await page.goto("/console/policies/threat-policies/other?enforce=1");
  await dialog.getByText(/would have been held back/i).last().waitFor();
  assert.ok(!(await rows(page, "By route")).some((row) => row.startsWith("strict")));
  await page.done();
});

test("plugins with a dry run of their own: what each would have done, and bans that the gate enforces", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/policies/routes/guarded");
  const dialog = page.getByRole("dialog");
  for (const [title, verdict, rules] of [
    ["upload guard", "requests 1, callers 1", ["upload:denied_extension 1", "upload:denied_type 1"]],
    ["error leakage guard", "requests 1, callers 1", ["leakage:java 1"]],
    // Many addresses of mail are only reported in either mode.
    ["sensitive data guard", "requests 1, callers 1", ["dlp:card 1"]],
    ["query guard", "at least: requests 1, callers 1", ["api:query_introspection 1"]],
  ]) {
    await page.getByRole("button", { name: `Enforce … ${title}` }).click();
    await dialog.getByText(verdict).waitFor();
    assert.deepEqual(await rows(page, "By rule or signal"), rules, title);
    assert.ok(!(await rows(page, "By action")).some((row) => /log/.test(row)), `${title}: what it does now is not what it would do`);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  await page.getByRole("button", { name: "Enforce … API contract check" }).click();
  await dialog.getByText(/at least: requests \d+, callers \d+/).waitFor();
  const kinds = await rows(page, "By rule or signal");
  assert.ok(kinds.some((row) => row.startsWith("api:invalid_parameter")) && kinds.every((row) => row.startsWith("api:") && !row.includes("query_")), kinds.join());
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: "Enforce … fail2ban" }).click();
  await dialog.getByText("Would have been banned in the last day: callers 1, bans 1.").waitFor();
  await dialog.getByRole("link", { name: "ip:203.0.113.50", exact: true }).waitFor();
  await axe(page, "evidence of fail2ban");
  await enforce(page, "guessed passwords");
  await gateway.answers(403, "/login", at("guarded", { from: "203.0.113.51" }));
  assert.equal((await gateway.send("/items", at("guarded", { from: CUSTOMER }))).status, 200);
  await undo(page);
  let last = 0;
  await until("fail2ban only reports again", async () => {
    last += 1;
    for (let number = 0; number < 5; number += 1) await gateway.send("/login", at("guarded", { from: `192.0.2.${last}` }));
    return (await stored("filter.plugin=fail2ban&filter.outcome=observed")).some(({ event }) => event.source.ip.startsWith("192.0.2."));
  });
  // A gate that does not enforce makes bans of no effect.
  await gateway.api("PATCH", "/entities/threat-policies/live", { dry_run: true });
  await page.reload();
  await page.getByRole("button", { name: "Enforce … fail2ban" }).click();
  await dialog.getByText(/The threat gate of this chain does not enforce/).waitFor();
  await page.done();
});

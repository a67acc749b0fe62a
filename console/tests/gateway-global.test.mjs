/** The global chain: what its plugins have only reported of requests to a real gateway, the step to enforcing, and the way back. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { axe, launch, login, open } from "./support.mjs";
import { Gateway, until } from "./gateway.mjs";

const SCANNER = "203.0.113.9";
const SECOND = "203.0.113.10";
const CUSTOMER = "198.51.100.20";
const LISTED = ["192.0.2.200", "192.0.2.201"];
const CANARY = "AKIACANARY0000";
const PHP = `--b\r\ncontent-disposition: form-data; name="file"; filename="shell.php"\r\ncontent-type: text/plain\r\n\r\n<?php echo 1; ?>\r\n--b--\r\n`;

let gateway, browser, lists;
const at = (host, more = {}) => ({ ...more, headers: { host: `${host}.example`, ...more.headers } });
const upload = (host, from) => ["/files", at(host, { from, method: "POST", headers: { "content-type": "multipart/form-data; boundary=b" }, body: PHP })];
const stored = async (filters) => (await gateway.api("GET", `/events/_search?limit=500&${filters}`)).events;
before(async () => {
  lists = createServer((_, response) => response.end(LISTED.join("\n"))).listen(0, "127.0.0.1");
  await once(lists, "listening");
  gateway = await Gateway.start(async (api, backend) => {
    await api("POST", "/entities/honeypot-policies", { id: "traps", name: "Traps", action: "monitor", weight: 1, paths: ["/.env", "/old-admin"], canaries: [{ value: CANARY, description: "the key in the wiki" }] });
    await api("POST", "/entities/honeypot-policies", { id: "lures", name: "Lures", action: "monitor", weight: 1, paths: ["/lure"] });
    await api("POST", "/entities/threat-policies", { id: "live", name: "Live", dry_run: false, tiers: [{ min_score: 80, action: "deny" }] });
    await api("POST", "/entities/threat-feeds", { id: "listed", name: "Listed", url: `http://127.0.0.1:${lists.address().port}/`, allow_private: true, action: "block", weight: 1, enabled: true });
    await api("PATCH", "/entities/global-config/global-config", { incoming_request_validators: [
      { plugin: "IncomingRequestValidatorSvcHoneypot", config: { policy: "traps" } },
      { plugin: "IncomingRequestValidatorSvcIpReputation", config: { mode: "monitor" } },
      { plugin: "SvcUploadGuard", config: { mode: "monitor" } },
    ] });
    const route = (id, more) => api("POST", "/entities/routes", { id, name: `Route ${id}`, hosts: [`${id}.example`], backend, plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "live", waf: false, reputation: false, ...more } }] });
    await route("web", {});
    await route("own", { honeypot_policy: "lures" });
  });
  browser = await launch();
  await gateway.answers(200, "/items", at("web", { from: CUSTOMER }));
  const answers = async (status, target, options) => assert.equal((await gateway.send(target, options)).status, status, target);
  for (const [host, target, from] of [["web", "/.env", SCANNER], ["web", "/.env", SECOND], ["own", "/.env", SCANNER], ["own", "/lure", SCANNER], ["web", `/search?key=${CANARY}`, SECOND]]) await answers(200, target, at(host, { from }));
  await answers(404, "/old-admin", at("nowhere", { from: CUSTOMER }));
  for (const host of ["web", "own"]) await answers(200, ...upload(host, SECOND));
  await until("the feed is in force", async () => (await gateway.send("/items", at("web", { from: LISTED[0] }))) && (await stored("filter.plugin=ip-reputation")).length > 0);
  for (const from of [...LISTED, LISTED[1]]) await answers(200, "/items", at("own", { from }));
  await until("the events are stored", async () => (await stored("filter.plugin=honeypot")).length >= 6 && (await stored("filter.plugin=upload-guard")).length >= 2 && (await stored("filter.plugin=ip-reputation")).length >= 2);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
  lists?.close();
});

const step = (page, title) => page.locator(".flow-step").filter({ has: page.locator("strong", { hasText: new RegExp(`^${title}$`) }), hasText: "global, before every route" });
const state = (page, title, word) => step(page, title).locator(".badge", { hasText: new RegExp(`^${word}$`) }).waitFor();

/** The rows of a table of the open dialog, each as `name figure`. */
const rows = async (page, caption) => (await page.getByRole("dialog").getByRole("table", { name: caption }).locator("tr").evaluateAll((rows) => rows.map((row) => `${row.querySelector("th a, th").firstChild.textContent.trim()} ${row.querySelector("td").textContent}`))).sort();

/** Confirms the step in the open dialog. */
async function enforce(page, reason) {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByRole("checkbox").check();
  await dialog.getByRole("button", { name: "Enforce now" }).click();
  await page.locator(".toast", { hasText: "enforces." }).waitFor();
}

async function undo(page) {
  await page.locator(".toast", { hasText: "enforces." }).getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
}

test("IP reputation of the global chain: whom it would have refused, the step, refusals by Envoy, and the way back", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/policies/routes/web");
  await state(page, "IP reputation", "dry run");
  await page.goto("/console/policies/global-config/global-config");
  await page.getByRole("button", { name: "Enforce … IP reputation" }).click();
  const dialog = page.getByRole("dialog");
  // One event a minute for each caller.
  await dialog.getByText("at least: requests 2, callers 2").waitFor();
  assert.deepEqual(await rows(page, "By rule or signal"), ["feed:listed 2", "reputation:listed 2"]);
  assert.deepEqual(await rows(page, "Top callers"), LISTED.map((address) => `ip:${address} 1`));
  await dialog.getByText("one event a minute for each caller").waitFor();
  await dialog.locator(".diff .added", { hasText: '"mode": "block"' }).waitFor();
  await axe(page, "evidence of the IP reputation");
  await enforce(page, "two callers of the list");
  await gateway.answers(403, "/items", at("web", { from: LISTED[0] }));
  assert.equal((await gateway.send("/items", at("web", { from: CUSTOMER }))).status, 200);
  await undo(page);
  await gateway.answers(200, "/items", at("web", { from: LISTED[0] }));
  await page.done();
});

test("a honeypot of the global chain: who has touched its bait, the step, refusals by Envoy, and the way back", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/policies/routes/web");
  await state(page, "honeypot", "dry run");
  await step(page, "honeypot").getByRole("link", { name: "Enforce … honeypot" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Would have been held back in the last day: requests 5, callers 3.").waitFor();
  assert.deepEqual(await rows(page, "By rule or signal"), ["the canary `the key in the wiki` was in the query 1", "the decoy path `/.env` was asked for 3", "the decoy path `/old-admin` was asked for 1"]);
  assert.deepEqual(await rows(page, "By route"), ["no route 1", "own 1", "web 3"]);
  assert.deepEqual(await rows(page, "Top callers"), [`ip:${CUSTOMER} 1`, `ip:${SECOND} 2`, `ip:${SCANNER} 2`].sort());
  assert.deepEqual(await dialog.locator("p", { hasText: "In the chain of:" }).locator(".badge").allTextContents(), ["no route", "own", "web"]);
  assert.ok(!(await dialog.textContent()).includes(CANARY), "the value of a canary");
  await dialog.locator(".diff .added", { hasText: '"action": "deny"' }).waitFor();
  await axe(page, "evidence of a honeypot");
  await enforce(page, "five requests for bait");
  await page.getByText("This honeypot only watches").waitFor({ state: "detached" });
  await gateway.answers(404, "/.env", at("web", { from: "203.0.113.20" }));
  await gateway.answers(404, "/old-admin", at("own", { from: "203.0.113.21" }));
  assert.equal((await gateway.send("/lure", at("own", { from: "203.0.113.22" }))).status, 200, "the other honeypot");
  assert.equal((await gateway.send("/items", at("web", { from: CUSTOMER }))).status, 200);
  await undo(page);
  await gateway.answers(200, "/.env", at("web", { from: "203.0.113.23" }));
  await page.getByText("This honeypot only watches").waitFor();
  // The other honeypot, of one route.
  await until("the events are stored", async () => (await stored("filter.plugin=honeypot")).some(({ event }) => event.source.ip === "203.0.113.22"));
  await page.goto("/console/policies/honeypot-policies/lures?enforce=1");
  await dialog.getByText("requests 2, callers 2").waitFor();
  assert.deepEqual(await rows(page, "By rule or signal"), ["the decoy path `/lure` was asked for 2"]);
  await page.goto("/console/policies/honeypot-policies");
  for (const name of ["Traps", "Lures"]) await page.locator(".rows .row", { hasText: name }).getByText("monitors", { exact: true }).waitFor();
  await page.done();
});

test("a plugin of the global chain with a dry run of its own: the step is a change of the global configuration", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/policies/routes/web");
  await state(page, "upload guard", "dry run");
  await step(page, "upload guard").getByRole("button", { name: "Enforce … upload guard" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "From dry run to enforcing: upload guard, Global configuration" }).waitFor();
  await dialog.getByText("Would have been held back in the last day: requests 2, callers 1.").waitFor();
  assert.deepEqual(await rows(page, "By rule or signal"), ["upload:denied_extension 2", "upload:denied_type 2"]);
  assert.deepEqual(await rows(page, "By route"), ["own 1", "web 1"]);
  assert.deepEqual(await dialog.locator("p", { hasText: "In the chain of:" }).locator(".badge").allTextContents(), ["no route", "own", "web"]);
  await dialog.locator(".diff .added", { hasText: '"mode": "enforce"' }).waitFor();
  await axe(page, "evidence of a global plugin");
  await enforce(page, "nothing but shells");
  await state(page, "upload guard", "enforces");
  const { incoming_request_validators: validators, metadata } = await gateway.api("GET", "/entities/global-config/global-config");
  assert.deepEqual(validators.map(({ plugin, config }) => [plugin, config.mode]), [["IncomingRequestValidatorSvcHoneypot", undefined], ["IncomingRequestValidatorSvcIpReputation", "monitor"], ["SvcUploadGuard", "enforce"]]);
  assert.equal(metadata.enforced_because, "nothing but shells");
  for (const host of ["web", "own"]) await gateway.answers(415, ...upload(host, "203.0.113.30"));
  assert.equal((await gateway.send("/items", at("web", { from: CUSTOMER }))).status, 200);
  await undo(page);
  await state(page, "upload guard", "dry run");
  await gateway.answers(200, ...upload("web", "203.0.113.31"));
  // Changes that are not saved are not written from here, neither on the page of the route nor on that of the global configuration.
  await page.getByLabel("Description", { exact: true }).fill("changed");
  await page.getByRole("button", { name: "Enforce … upload guard" }).waitFor({ state: "detached" });
  await page.goto("/console/policies/global-config/global-config");
  await state(page, "upload guard", "dry run");
  assert.deepEqual(await page.locator(".flow-step > strong").allTextContents(), ["honeypot", "IP reputation", "upload guard"]);
  await axe(page, "the global chain");
  await step(page, "upload guard").getByRole("button", { name: "Enforce … upload guard" }).click();
  await dialog.getByText("Would have been held back in the last day").waitFor();
  await page.keyboard.press("Escape");
  await page.done();
});

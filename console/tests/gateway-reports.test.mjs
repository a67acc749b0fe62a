/** The API report and bots, with what a real gateway has counted: behind TLS, so that clients have fingerprints. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { axe, launch, login, open } from "./support.mjs";
import { Gateway, until } from "./gateway.mjs";

const SPEC = {
  openapi: "3.0.3", info: { title: "Shop", version: "1" },
  paths: {
    "/items": { get: { operationId: "listItems", parameters: [{ name: "limit", in: "query", schema: { type: "integer" } }], responses: { 200: { description: "items", content: { "application/json": { schema: { type: "object", properties: { items: { type: "array" } } } } } } } } },
    "/orders": { get: { operationId: "listOrders", responses: { 200: { description: "orders" } } } },
  },
};
const PYTHON = { "user-agent": "python-requests/2.32.3" };

let gateway, browser;
before(async () => {
  gateway = await Gateway.start(async (api, backend) => {
    await api("POST", "/entities/api-contracts", { id: "shop", name: "Shop contract", spec: JSON.stringify(SPEC) });
    await api("POST", "/entities/bot-policies", { id: "shop", name: "Bots", serve_robots_txt: true, robots_extra: "# by hand", fingerprints: { enabled: true, learn: true } });
    const config = { waf: false, api_contract: true, api_contract_id: "shop", api_contract_mode: "monitor", bots: true, bot_policy: "shop" };
    await api("POST", "/entities/routes", { id: "shop", name: "Shop", backend, plugins: [{ plugin: "SecuritySuitePreset", config }] });
    await api("POST", "/entities/routes", { id: "bare", name: "Without a contract", backend, hosts: ["bare.example"], plugins: [] });
  }, { tls: true });
  browser = await launch();
  await gateway.answers(200, "/items", { headers: PYTHON });
  for (let number = 0; number < 6; number += 1) {
    await gateway.send("/items?limit=many", { from: `198.51.${number}.7`, headers: PYTHON });
    await gateway.send("/legacy/export", { from: `198.51.${number}.7`, headers: PYTHON });
    await gateway.send("/missing/wp-login.php", { from: `198.51.${number}.7`, headers: PYTHON });
  }
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test("the API report: shadows, what is not used, what would be refused", async () => {
  const report = await until("the report", async () => {
    const report = await gateway.api("GET", "/security/_api_report");
    const [shop] = report.routes.filter((route) => route.route_id === "shop");
    return shop?.shadows.some((shadow) => shadow.path === "/legacy/export" && shadow.hits === 6) && shop.operations.some((of) => of.path === "/items" && of.hits >= 7) && report;
  });
  const page = await open(browser, gateway.server);
  await login(page, "/console/api");
  const shop = page.locator("section", { has: page.getByRole("heading", { name: "Shop", exact: true }) });
  await shop.locator("li", { hasText: "/legacy/export" }).getByText("6 times").waitFor();
  await shop.locator("li", { hasText: "GET /orders" }).getByText("unused").waitFor();
  await page.getByText("1 / 2").waitFor();
  await page.locator("section", { hasText: "Without a contract" }).getByText("no contract", { exact: true }).waitFor();
  assert.ok(report.summary.would_refuse >= 6, JSON.stringify(report.summary));
  await shop.getByText(/would be refused/).first().waitFor();
  await axe(page, "API report");
  await shop.getByRole("link", { name: "Shop contract" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/policies/api-contracts/shop");
  await page.done();
});

test("bots: fingerprints are accepted, rejected, and back to the decision before, forgotten", async () => {
  const of = async () => (await gateway.api("POST", "/security/_fingerprints", {})).entries.find((entry) => entry.family === "python");
  await until("the fingerprint is learned", async () => (await of())?.networks >= 5);
  const page = await open(browser, gateway.server);
  await login(page, "/console/bots");
  const row = page.locator(".rows .row", { hasText: "python" });
  await row.getByText("candidate").waitFor();
  await axe(page, "bots");
  await row.getByRole("button", { name: /Accept/ }).press("Enter");
  await row.getByText("accepted", { exact: true }).waitFor();
  assert.equal((await of()).state, "accepted");
  assert.equal(await page.locator(".toast").last().getByRole("button", { name: "Undo" }).count(), 0, "a candidate has no way back, and it is offered");
  await row.getByRole("button", { name: /Reject/ }).press("Enter");
  await row.getByText("rejected", { exact: true }).waitFor();
  assert.equal((await of()).state, "rejected");
  await page.locator(".toast").last().getByRole("button", { name: "Undo" }).press("Enter");
  await row.getByText("accepted", { exact: true }).waitFor();
  assert.equal((await of()).state, "accepted");
  await axe(page, "bots, decided");
  await row.getByRole("button", { name: /Forget/ }).press("Enter");
  await row.waitFor({ state: "detached" });
  assert.equal(await of(), undefined);
  await page.done();
});

test("bots: robots.txt as gateways serve it, and the catalog of known bots", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/bots");
  await page.getByRole("button", { name: "Show robots.txt" }).press("Enter");
  const text = page.getByRole("dialog").locator("pre").first();
  await text.getByText("# by hand").waitFor();
  const served = (await gateway.send("/robots.txt", { headers: { "user-agent": "curl/8.5.0" } })).body;
  assert.ok(served.includes("# by hand"), served);
  assert.equal((await text.textContent()).trim(), served.replace(/^[0-9a-f]+\r\n|\r\n0\r\n\r\n$/g, "").trim(), "the page shows what gateways serve");
  await axe(page, "robots.txt");
  await page.keyboard.press("Escape");
  const catalog = await gateway.api("GET", "/security/_bot_catalog");
  await page.getByRole("searchbox").fill("googlebot");
  await page.locator(".rows .row", { hasText: "Googlebot" }).first().waitFor();
  await page.getByText(new RegExp(`^\\d+ of ${catalog.entries.length} entries$`)).waitFor();
  await axe(page, "the catalog of bots");
  await page.done();
});

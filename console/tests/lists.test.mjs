/** Long lists: an identity is found before the list is there, a failure is said, entities come without what the list does not show. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, axe, login, open, withServer } from "./support.mjs";
import { bans } from "./samples.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

/** Answers `_bans`: the first page, one identity, and whatever `rest` does with the other pages. */
async function long(page, list, rest) {
  await page.route((url) => url.pathname === `${NS}/security/_bans`, async (route) => {
    const query = new URL(route.request().url()).searchParams;
    const wanted = query.get("filter.ref");
    const found = wanted ? list.filter((row) => row.key === wanted) : list;
    const size = Number(query.get("pageSize") ?? 1000);
    if (!wanted && size !== 1000) return rest(route, query);
    const at = (Number(query.get("page") ?? 1) - 1) * size;
    await route.fulfill({ contentType: "application/json", headers: { "x-total": String(found.length) }, body: JSON.stringify({ bans: found.slice(at, at + size) }) });
  });
}

test("an address is found at once, although the list is still on its way", async () => {
  const list = bans(20_000);
  const last = list.at(-1).key;
  const page = await open(browser, server);
  // The pages of the whole list never come.
  await long(page, list, () => undefined);
  await login(page, "/console/bans");
  await page.getByText("20,000 entries").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(last.slice(3));
  await page.locator(".rows .row", { hasText: last }).waitFor();
  await page.getByText(/^1 of 20,000 entries.*Still searching/).waitFor();
  await page.keyboard.press("Tab");
  await axe(page, "a search that goes on");
  await page.getByRole("searchbox").fill("gateway-1");
  await page.getByText(/^\d+ of 20,000 entries.*Still searching/).waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.done();
});

test("a search whose list cannot be loaded says so, and tries again", async () => {
  let fails = true;
  const list = bans(5000);
  const page = await open(browser, server);
  await long(page, list, (route, query) => {
    if (fails) return route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "busy", error_description: "the store is busy" }) });
    const [at, size] = [(Number(query.get("page")) - 1) * Number(query.get("pageSize")), Number(query.get("pageSize"))];
    return route.fulfill({ contentType: "application/json", headers: { "x-total": "5000" }, body: JSON.stringify({ bans: list.slice(at, at + size) }) });
  });
  await login(page, "/console/bans");
  await page.getByText("5,000 entries").waitFor();
  await page.getByRole("searchbox").fill("decoy path");
  await page.getByRole("alert").getByText("the store is busy").waitFor();
  assert.equal(await page.getByText("Still searching").count(), 0, "it says that it goes on, and does not");
  await axe(page, "a search that has failed");
  fails = false;
  await page.getByRole("button", { name: "Try again" }).press("Enter");
  await page.getByText("999 of 5,000 entries", { exact: true }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await page.done();
});

test("the list of a collection asks for what it shows", async () => {
  await api("POST", "/entities/threat-policies", { id: "trial", name: "Trial", description: "only looks", tags: ["shop"], dry_run: true });
  await api("POST", "/entities/waf-configs", { id: "watch", name: "Watch", rules: [], block: false });
  await api("POST", "/entities/routes", { id: "closed", name: "Closed", enabled: false });
  const page = await open(browser, server);
  const asked = [];
  page.on("request", (request) => request.url().includes("/entities/") && asked.push(new URL(request.url())));
  await login(page, "/console/policies/threat-policies");
  const row = page.locator(".rows .row", { hasText: "Trial" });
  await row.getByText("dry run").waitFor();
  await row.getByText("only looks").waitFor();
  await row.locator("time").waitFor();
  assert.match(asked.find((url) => url.pathname.endsWith("/threat-policies")).searchParams.get("fields"), /dry_run/);
  await page.getByRole("searchbox").fill("shop");
  await page.getByText("1 of 1 entry").waitFor();
  await page.goto("/console/policies/waf-configs");
  await page.locator(".rows .row", { hasText: "Watch" }).getByText("monitors").waitFor();
  await page.goto("/console/policies/routes");
  await page.locator(".rows .row", { hasText: "Closed" }).getByText("off", { exact: true }).waitFor();
  // No collection refuses a field of the list.
  for (const name of ["waf-rulesets", "bot-policies", "honeypot-policies", "challenge-providers", "api-contracts", "threat-feeds", "asn-databases", "geo-databases", "svc-bouncers", "malware-scanners", "alert-rules", "global-config"]) {
    await page.goto(`/console/policies/${name}`);
    await page.locator(".count").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0, name);
  }
  await axe(page, "a collection");
  await page.done();
});

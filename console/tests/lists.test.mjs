/** Long lists: the server searches, a failure is said, entities come without what the list does not show. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, axe, login, open, withServer } from "./support.mjs";
import { bans, paged } from "./samples.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

/** Answers `_bans`; `instead` answers searches, where it is there. */
async function long(page, list, instead) {
  await page.route((url) => url.pathname === `${NS}/security/_bans`, async (route) => {
    const url = new URL(route.request().url());
    if (instead && url.searchParams.has("filter.text")) return instead(route, url);
    const { headers, body } = paged(list, "bans")(url);
    await route.fulfill({ contentType: "application/json", headers, body: JSON.stringify(body) });
  });
}

test("bans are searched by the server: in every text of theirs, and by an address as people write it", async () => {
  for (const [ref, reason] of [["ip:192.0.2.7", "probes the login"], ["ip:2001:db8::/64", "Scrapes"], ["user:ada", "probes the SHOP"]]) {
    await api("POST", "/security/_ban", { ref, reason });
  }
  const page = await open(browser, server);
  await login(page, "/console/bans");
  await page.getByText("3 entries", { exact: true }).waitFor();
  const rows = page.locator(".rows .row");
  for (const [typed, count, shown] of [["shop", "1 entry found", "user:ada"], ["2001:db8::9", "1 entry found", "ip:2001:db8::/64"], ["SCRAPES", "1 entry found", "ip:2001:db8::/64"], ["probes", "2 entries found", "ip:192.0.2.7"], ["nothing like it", "0 entries found", null]]) {
    await page.getByRole("searchbox").fill(typed);
    await page.getByText(count, { exact: true }).waitFor();
    if (shown) await rows.filter({ hasText: shown }).waitFor();
    else assert.equal(await rows.count(), 0, typed);
  }
  await axe(page, "a search without an entry");
  await page.reload();
  await page.getByText("0 entries found", { exact: true }).waitFor();
  await page.getByRole("searchbox").fill("");
  await page.getByText("3 entries", { exact: true }).waitFor();
  await page.done();
});

test("a search shows what was there until its answer is, and the last one typed is the one that counts", async () => {
  const list = bans(20_000);
  const held = [];
  const page = await open(browser, server);
  await long(page, list, (route, url) => void held.push([route, url]));
  await login(page, "/console/bans");
  await page.getByText("20,000 entries").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("ledger");
  await page.getByText(/^20,000 entries.*Still searching/).waitFor();
  assert.ok((await page.locator(".rows .row").count()) > 3, "the rows have gone");
  await axe(page, "a search that goes on");
  while (held.length === 0) await page.waitForTimeout(20);
  const before = held.length;
  await page.getByRole("searchbox").fill(list.at(-1).key);
  while (held.length === before) await page.waitForTimeout(20);
  for (const [route, url] of held.reverse()) {
    const { headers, body } = paged(list, "bans")(url);
    await route.fulfill({ contentType: "application/json", headers, body: JSON.stringify(body) }).catch(() => undefined);
  }
  await page.getByText("1 entry found", { exact: true }).waitFor();
  await page.locator(".rows .row", { hasText: list.at(-1).key }).waitFor();
  await page.done();
});

test("a search that fails says so, and tries again", async () => {
  let fails = true;
  const list = bans(5000);
  const page = await open(browser, server);
  await long(page, list, (route, url) => {
    if (fails) return route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "busy", error_description: "the store is busy" }) });
    const { headers, body } = paged(list, "bans")(url);
    return route.fulfill({ contentType: "application/json", headers, body: JSON.stringify(body) });
  });
  await login(page, "/console/bans");
  await page.getByText("5,000 entries").waitFor();
  await page.getByRole("searchbox").fill("decoy path");
  await page.getByRole("alert").getByText("the store is busy").waitFor();
  assert.equal(await page.getByText("Still searching").count(), 0, "it says that it goes on, and does not");
  await axe(page, "a search that has failed");
  fails = false;
  await page.getByRole("button", { name: "Try again" }).press("Enter");
  await page.getByText("999 entries found", { exact: true }).waitFor();
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

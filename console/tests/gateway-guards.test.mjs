/** The pages of the object guard and of the login guard, with what both have reported of requests through a real gateway. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { axe, launch, login, open } from "./support.mjs";
import { Gateway, until } from "./gateway.mjs";

const [STUFFER, WALKER, NETWORK, REFUSED_WALKER, GUESSER] = ["198.51.100.7", "198.51.100.99", "2001:db8:9:9", "203.0.113.5", "198.51.100.98"];
/** Words of users and passwords, which no page may have. */
const SECRETS = ["stuffed-user", "stolen-word", "sprayed-user", "Summer2026", "victim-user", "guessed-word", "right-word"];

let gateway, browser;
const stored = async (filters) => (await gateway.api("GET", `/events/_search?limit=500&${filters}`)).events;
const form = (host, from, user, password) => ["/login", { from, method: "POST", headers: { host: `${host}.example`, "content-type": "application/x-www-form-urlencoded" }, body: `username=${user}&password=${password}` }];
before(async () => {
  const reply = (request, body, response) => {
    if (request.url === "/login" && !body.includes("right-word")) response.statusCode = 401;
  };
  gateway = await Gateway.start(async (api, backend) => {
    // Bans would end the walks before the guards have seen them.
    await api("PATCH", "/entities/global-config/global-config", { security: { ledger: { enabled: false } } });
    for (const [id, dry_run] of [["live", false], ["trial", true]]) await api("POST", "/entities/threat-policies", { id, name: `Policy ${id}`, dry_run, tiers: [{ min_score: 50, action: "deny", status: 403 }] });
    const route = (id, config) => api("POST", "/entities/routes", { id, name: `Route ${id}`, hosts: [`${id}.example`], backend, plugins: [{ plugin: "SecuritySuitePreset", config: { waf: false, ...config } }] });
    const logins = { login: true, login_paths: ["/login"] };
    await route("portal", { threat_policy: "trial", ...logins });
    await route("shop", { threat_policy: "live", ...logins });
    await route("orders", { threat_policy: "trial", objects: true, objects_mode: "score", objects_budget: 40 });
    await route("users", { threat_policy: "live", objects: true, objects_mode: "score" });
  }, { reply });
  browser = await launch();
  const send = async (target, options) => (await gateway.send(target, options)).status;
  await gateway.answers(200, "/", { headers: { host: "users.example" } });
  // A list of stolen passwords, which the policy refuses from the tenth account on.
  const statuses = [];
  for (let number = 0; number < 14; number += 1) statuses.push(await send(...form("shop", STUFFER, `stuffed-user-${number}`, `stolen-word-${number}`)));
  assert.deepEqual(statuses, [...Array(9).fill(401), ...Array(5).fill(403)]);
  // One password for many accounts, many passwords for one account, and a login to it that succeeds.
  for (let number = 0; number < 12; number += 1) assert.equal(await send(...form("portal", `198.51.${number}.8`, `sprayed-user-${number}`, "Summer2026")), 401);
  for (let number = 0; number < 12; number += 1) assert.equal(await send(...form("portal", `192.0.2.${number}`, "victim-user", `guessed-word-${number}`)), 401);
  assert.equal(await send(...form("portal", "192.0.2.200", "victim-user", "right-word")), 200);

  const object = (host, path, from) => send(path, { from, headers: { host: `${host}.example` } });
  // Beyond the budget; a window of it may end in between.
  let refused = 0;
  for (let number = 1000; refused < 5 && number < 1200; number += 1) if ((await object("orders", `/orders/${number}`, WALKER)) === 429) refused += 1;
  assert.equal(refused, 5);
  for (let number = 1; number <= 31; number += 1) assert.equal(await object("orders", `/invoices/${number}`, `${NETWORK}::${number.toString(16)}`), 200);
  for (let number = 1; number <= 25; number += 1) assert.equal(await object("orders", `/missing/${number * 977}`, GUESSER), 404);
  const walk = [];
  for (let number = 1; number <= 33; number += 1) walk.push(await object("users", `/users/${number}`, REFUSED_WALKER));
  assert.deepEqual(walk, [...Array(29).fill(200), ...Array(4).fill(403)]);
  await until("the events are stored", async () => (await stored("filter.plugin=login-guard")).length >= 4 && (await stored("filter.plugin=object-guard")).length >= 9 && (await stored("filter.plugin=threat-response&filter.outcome=blocked")).length >= 9);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** The rows of a table: the name, then the figures. */
const rows = async (page, caption) => (await page.getByRole("table", { name: caption, exact: true }).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => (cell.querySelector("a, code") ?? cell).textContent.trim()).join(" | ")))).sort();
const figure = async (page, label) => (await page.locator(".figure", { has: page.getByText(label, { exact: true }) }).locator(".figure-value").textContent()).trim();

test("the login guard: patterns, the attacked account by its hash, refusals by the score, and no user or password", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/logins");
  await page.getByRole("table", { name: "Patterns", exact: true }).waitFor();
  assert.deepEqual(await rows(page, "Patterns"), ["Account takeover | 1 | 1", "Account under attack | 1 | 1", "Credential stuffing | 1 | 1", "Password spraying | 1 | 1"]);
  const accounts = await rows(page, "Accounts");
  assert.equal(accounts.length, 1, accounts.join());
  assert.match(accounts[0], /^[0-9a-f]{12} \| 2 \| 2$/);
  assert.deepEqual(await rows(page, "By route"), ["portal | 3 | 3", "shop | 1 | 1"]);
  assert.deepEqual([await figure(page, "Events"), await figure(page, "Callers"), await figure(page, "Refused")], ["4", "4", "5"]);
  const scored = page.getByRole("link", { name: "5 of them by the threat response, for the score" });
  const places = page.locator("section", { hasText: "Where it watches" }).locator("li");
  assert.match(await places.filter({ hasText: "Route shop" }).textContent(), /on adds to the score · acted on by Policy live enforces/);
  assert.match(await places.filter({ hasText: "Route portal" }).textContent(), /acted on by Policy trial dry run/);
  await axe(page, "login guard, with a gateway");

  const hides = async (what) => {
    const text = await page.content();
    for (const secret of SECRETS) assert.ok(!text.includes(secret), `${what} has ${secret}`);
  };
  await hides("the page");
  for (const sentence of ["account takeover", "password spraying", "credential stuffing"]) {
    await page.locator(".events button", { hasText: sentence }).click();
    const dialog = page.getByRole("dialog");
    await dialog.locator("summary").click();
    await dialog.locator("pre", { hasText: "login-guard" }).waitFor();
    await hides(sentence);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  await scored.click();
  await page.waitForURL(/\/console\/events\?plugin=threat-response&outcome=blocked&since=day/);
  await page.locator(".rows .row", { hasText: STUFFER }).first().waitFor();
  await hides("the events");
  await page.goto("/console/logins");
  await page.getByRole("table", { name: "Callers", exact: true }).getByRole("link", { name: `ip:${STUFFER}`, exact: true }).click();
  await page.waitForURL(/\/console\/events\?plugin=login-guard&since=day&ref=ip%3A198\.51\.100\.7/);
  await page.locator(".rows .row", { hasText: "credential stuffing" }).waitFor();
  assert.equal(await page.locator(".rows .row").count(), 1);
  await page.done();
});

test("the object guard: walks, an enumeration, a budget, a network of IPv6 as one caller, and refusals by the score", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/objects");
  await page.getByRole("table", { name: "Patterns", exact: true }).waitFor();
  // Requests beyond the budget are part of the walk as well; their events are about the budget.
  assert.deepEqual(await rows(page, "Patterns"), ["Budget used up | 5 | 1", "Enumeration | 1 | 1", "Walk | 3 | 3"]);
  assert.deepEqual(await rows(page, "Kinds of objects"), ["/invoices/{id} | 1 | 1", "/missing/{id} | 1 | 1", "/orders/{id} | 6 | 1", "/users/{id} | 1 | 1"]);
  assert.deepEqual(await rows(page, "Callers"), [`ip:${GUESSER} | 1`, `ip:${NETWORK}::/64 | 1`, `ip:${REFUSED_WALKER} | 1`, `ip:${WALKER} | 6`].sort());
  assert.deepEqual(await rows(page, "By route"), ["orders | 8 | 3", "users | 1 | 1"]);
  assert.deepEqual([await figure(page, "Events"), await figure(page, "Callers"), await figure(page, "Refused")], ["9", "4", "9"]);
  await page.getByText("4 of them by the threat response, for the score").waitFor();
  const places = page.locator("section", { hasText: "Where it watches" }).locator("li");
  assert.match(await places.filter({ hasText: "Route orders" }).textContent(), /refuses by itself and adds to the score · acted on by Policy trial dry run/);
  await axe(page, "object guard, with a gateway");
  await page.locator(".events button", { hasText: "budget of objects" }).first().click();
  await page.getByRole("dialog").getByText("objects:budget").first().waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await page.getByRole("link", { name: `incident ip:${NETWORK}::/64` }).click();
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await page.goBack();
  await page.getByRole("table", { name: "Callers", exact: true }).getByRole("link", { name: `ip:${WALKER}`, exact: true }).click();
  await page.waitForURL(/\/console\/events\?plugin=object-guard&since=day&ref=ip%3A198\.51\.100\.99/);
  await page.getByText("6 events", { exact: true }).waitFor();
  await page.done();
});

/** The pages of the object guard and of the login guard. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, answer, axe, login, open, shot, withServer } from "./support.mjs";
import { event } from "./samples.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

const stored = (index, module, message, tag, { subject = null, ...more } = {}) => {
  const made = event(index);
  made.event.decision = { ...made.event.decision, tag, subject };
  const category = module === "object-guard" ? "objects" : "login";
  made.event = { ...made.event, message, event: { category, action: "log", outcome: "observed", severity: 3, module, ...more.event }, source: { ip: `203.0.113.${index % 4}` }, threat: { score: 50, tags: [...more.tags ?? [], tag, "feed:drop"], signals: [] }, route: { id: index === 3 ? SCRIPT : "shop", name: "Shop", node: "gateway-1" } };
  return made;
};
const OBJECTS = [
  stored(0, "object-guard", "sequential walk: 30 numbered objects of `/users/{id}` between 1 and 90 in 600 s with a median gap of 3", "objects:sequential", { subject: "/users/{id}" }),
  stored(1, "object-guard", "enumeration of objects: 20 of 30 requests for `/orders/{id}` in 300 s were denied", "objects:enumeration", { subject: "/orders/{id}" }),
  stored(2, "object-guard", `surge of objects: 200 of \`/x${SCRIPT.replaceAll("`", "")}/{id}\` in 60 s that were not read lately; 2.0 are usual, and more than 30 a surge`, "objects:surge", { subject: `/x${SCRIPT}/{id}` }),
  stored(3, "object-guard", "budget of objects: one more than 100 distinct objects of `/users/{id}` in the window of 3600 s, which ends in 90 s", "objects:budget", { subject: "/users/{id}", tags: ["objects:sequential"], event: { outcome: "blocked", action: "deny" } }),
  stored(4, "object-guard", "sequential walk: 31 numbered objects of `/users/{id}` between 1 and 99 in 600 s with a median gap of 3", "objects:sequential", { subject: "/users/{id}" }),
];
const LOGINS = [
  stored(0, "login-guard", "credential stuffing: logins to 12 accounts failed from one source (window 900 s)", "login:credential_stuffing"),
  stored(1, "login-guard", "account takeover: a login to an account succeeded from a new place after 12 different logins to an account failed from 6 sources (window 900 s); the account is 0123456789ab", "login:account_takeover", { subject: "0123456789ab", tags: ["login:account_under_attack"] }),
  stored(2, "login-guard", `password spraying: ${SCRIPT}`, "login:password_spraying"),
];
const answers = (url) => {
  const plugin = url.searchParams.get("filter.plugin");
  assert.ok(url.searchParams.get("from"));
  const events = plugin === "object-guard" ? OBJECTS : plugin === "login-guard" ? LOGINS : [];
  return { body: { events, next: null, complete: true, searched_from: null, examined: events.length } };
};
const row = (page, table, name) => page.getByRole("table", { name: table, exact: true }).getByRole("row", { name });

test("without a guard in a chain the pages say how to add it, by the server's own answers", async () => {
  const page = await open(browser, server);
  await login(page, "/console/objects");
  await page.getByText("The guard is in no chain.").waitFor();
  await page.getByText("Set objects in the preset of a route.").waitFor();
  await page.getByText("The guard found nothing in this span.").waitFor();
  await axe(page, "object guard, none");
  await page.goto("/console/logins");
  await page.getByText("Set login and login_paths in the preset of a route.").waitFor();
  await axe(page, "login guard, none");
  await page.done();
});

test("what the object guard found, where it watches, and what acts on it", async () => {
  await api("POST", "/entities/threat-policies", { id: "trial", name: SCRIPT, dry_run: true });
  const preset = (id, name, config) => api("POST", "/entities/routes", { id, name, hosts: [`${id}.example`], plugins: [{ plugin: "SecuritySuitePreset", config }] });
  await preset("shop", SCRIPT, { objects: true, objects_mode: "score", objects_budget: 100, login: true, login_paths: ["/login"], threat_policy: "trial" });
  await preset("api", "API", { objects: true, login: true, response: false });
  const page = await open(browser, server);
  await answer(page, "/events/_search", answers);
  await login(page, "/console/objects");
  await row(page, "Patterns", /^Walk 2 1$/).waitFor();
  await row(page, "Patterns", /^Budget used up 1 1$/).waitFor();
  await row(page, "Kinds of objects", /^\/users\/\{id\} 3 2$/).waitFor();
  await row(page, "Kinds of objects", /img src=x/).waitFor();
  await page.locator(".figure", { hasText: "Refused" }).getByText("1", { exact: true }).waitFor();
  const places = page.locator("section", { hasText: "Where it watches" }).locator("li");
  assert.match(await places.filter({ hasText: "API" }).textContent(), /API on only reports/);
  assert.match(await places.filter({ hasText: "img src" }).textContent(), /enforces refuses by itself and adds to the score · acted on by .* dry run/);
  assert.match(await row(page, "Callers", /203\.0\.113\.0/).getByRole("link").first().getAttribute("href"), /events\?plugin=object-guard&since=day&ref=ip%3A203\.0\.113\.0/);
  assert.match(await row(page, "Callers", /203\.0\.113\.0/).getByRole("link", { name: /incident/ }).getAttribute("href"), /incidents\/ip%3A203\.0\.113\.0/);
  await axe(page, "object guard");
  await page.getByRole("button", { name: "1 week" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/objects?span=week");
  await page.locator(".events button").first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText(/sequential walk/).first().waitFor();
  await page.keyboard.press("Escape");
  await page.done();
});

test("what the login guard found, in the dark and on a phone", async () => {
  const page = await open(browser, server, { colorScheme: "dark" });
  await answer(page, "/events/_search", answers);
  await login(page, "/console/logins");
  await row(page, "Patterns", /^Account takeover 1 1$/).waitFor();
  await row(page, "Accounts", /^0123456789ab 1 1$/).waitFor();
  assert.equal(await page.getByRole("table", { name: "Accounts" }).locator("tbody tr").count(), 1);
  const places = page.locator("section", { hasText: "Where it watches" }).locator("li");
  assert.match(await places.filter({ hasText: "API" }).textContent(), /has nothing to do .*Set login and login_paths.* no threat response acts on it/);
  await page.locator(".event-line .sentence", { hasText: "password spraying" }).getByText(/img src=x/).waitFor();
  await axe(page, "login guard, dark");
  await page.done();
  const phone = await open(browser, server, { viewport: { width: 390, height: 844 } });
  await answer(phone, "/events/_search", answers);
  await phone.goto("/console/objects");
  await phone.getByLabel("Name").fill("alice");
  await phone.getByLabel("Password").fill("correct horse battery");
  await phone.keyboard.press("Enter");
  await row(phone, "Patterns", /^Walk/).waitFor();
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the phone");
  await axe(phone, "object guard, phone");
  await phone.done();
});

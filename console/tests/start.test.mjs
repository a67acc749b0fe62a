/** What a browser loads first: nothing of the application without a session, and everything of a page before its first drawing. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, PASSWORD, answer, axe, login, open, withServer } from "./support.mjs";

let server, browser;
withServer((it) => ({ server, browser } = it));

/** The scripts that a page has asked for, by their names without the hash. */
function scripts(page) {
  const asked = [];
  page.on("request", (request) => {
    const name = /\/console\/([a-z-]+)-[A-Z0-9]{8}\.js$/.exec(request.url())?.[1];
    if (name) asked.push(name);
  });
  return asked;
}

test("the login loads nothing of the application until someone types", async () => {
  const page = await open(browser, server);
  const asked = scripts(page);
  await page.goto("/console/");
  await page.getByLabel("Password").waitFor();
  await page.waitForLoadState("networkidle");
  assert.deepEqual(asked, ["main"]);
  assert.equal(await page.getByLabel("Name").evaluate((field) => field === document.activeElement), true, "the field for the name has the focus");
  await Promise.all([page.waitForRequest(/\/console\/app-[A-Z0-9]{8}\.js$/), page.keyboard.type("a")]);
  await page.done();
});

test("the theme that is kept is there before anything is drawn, also at the login", async () => {
  const page = await open(browser, server, { colorScheme: "light" });
  await page.goto("/console/");
  await page.getByLabel("Theme").selectOption("dark");
  await page.getByLabel("Language").selectOption("de");
  await page.getByRole("heading", { name: "Anmelden" }).waitFor();
  // The answer of the session is late: the empty page is dark already.
  await page.route(`**${NS}/session/_me`, async (route) => setTimeout(() => void route.continue(), 1000));
  await page.goto("/console/");
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
  assert.equal(await page.locator("form").count(), 0);
  await page.getByText("Lädt …").waitFor();
  await page.getByRole("heading", { name: "Anmelden" }).waitFor();
  assert.equal(await page.getByLabel("Farben").inputValue(), "dark");
  await axe(page, "the login in German, dark");
  await page.done();
});

test("a control plane that does not answer is explained, and asked again", async () => {
  const page = await open(browser, server);
  let fails = true;
  await answer(page, "/session/_me", () => (fails ? { status: 502, body: {} } : { status: 401, body: { error: "unauthenticated" } }));
  await page.goto("/console/bans");
  await page.getByRole("alert").getByText("Bad Gateway").waitFor();
  await axe(page, "no answer");
  fails = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByLabel("Password").waitFor();
  assert.equal(new URL(page.url()).search, "?next=%2Fconsole%2Fbans");
  await page.done();
});

test("a session that ends leads to the login, the login back to the page, and the way back asks again", async () => {
  const page = await open(browser, server);
  await login(page, "/console/bans");
  await page.getByText("0 entries", { exact: true }).waitFor();
  const api = await server.session();
  await page.context().clearCookies();
  await page.getByRole("link", { name: "Incidents" }).click();
  await page.waitForURL("**/console/login?next=%2Fconsole%2Fincidents");
  await page.getByLabel("Name").fill("alice");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/incidents");
  await page.getByRole("heading", { name: "Incidents" }).waitFor();
  // With a session, the address of the login leads on.
  await page.goto("/console/login?next=%2Fconsole%2Fbans");
  await page.waitForURL("**/console/bans");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  await page.getByLabel("Password").waitFor();
  await page.goBack();
  await page.waitForURL("**/console/login?next=%2Fconsole%2Fbans");
  await page.getByLabel("Password").waitFor();
  assert.equal((await api("GET", "/session/_me")).status, 200, "another session goes on");
  await page.done();
});

test("an application that cannot be loaded is explained", async () => {
  const page = await open(browser, server);
  await login(page);
  await page.route(/\/console\/app-[A-Z0-9]{8}\.js$/, (route) => route.fulfill({ status: 404, body: "" }));
  await page.goto("/console/");
  await page.getByRole("alert").waitFor();
  await page.unroute(/\/console\/app-[A-Z0-9]{8}\.js$/);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.context().close();
});

test("the figures of the first drawing are not those of an overview that is opened again", async () => {
  const page = await open(browser, server);
  let bans = 7;
  const status = await (await server.session())("GET", "/security/_status").then((response) => response.json());
  await answer(page, "/security/_status", () => ({ body: { ...status, bans: { ...status.bans, bans } } }));
  await login(page);
  const figure = page.locator(".figure", { hasText: "Bans in force" }).locator(".figure-value");
  await page.goto("/console/");
  await figure.waitFor();
  assert.equal(await figure.textContent(), "7");
  await page.getByRole("link", { name: "Audit log" }).click();
  await page.getByRole("heading", { name: "Audit log" }).waitFor();
  bans = 8;
  await page.getByRole("link", { name: "Overview" }).click();
  await figure.waitFor();
  assert.equal(await figure.textContent(), "8");
  await page.done();
});

test("the overview is one drawing of three files beside the entry, without the texts of other pages", async () => {
  const page = await open(browser, server);
  await login(page);
  const asked = scripts(page);
  await page.goto("/console/");
  await page.locator(".figure").first().waitFor();
  assert.deepEqual([...new Set(asked)].sort(), ["app", "chunk", "main", "overview"]);
  assert.equal(asked.length, 4);
  // The next page brings them.
  await page.getByRole("link", { name: "Audit log" }).click();
  await page.getByRole("heading", { name: "Audit log" }).waitFor();
  assert.ok(asked.includes("en"));
  await page.done();
});

test("what is below the screen waits until it is looked at, and no longer than a few seconds", async () => {
  const page = await open(browser, server, { viewport: { width: 1360, height: 400 } });
  await login(page);
  let lists = 0;
  page.on("request", (request) => (lists += request.url().includes("/entities/") ? 1 : 0));
  await page.goto("/console/");
  const panel = page.locator(".panel", { hasText: "What is not protected" });
  await panel.getByText("Loading …").waitFor();
  await page.waitForLoadState("networkidle");
  assert.equal(lists, 0);
  await panel.scrollIntoViewIfNeeded();
  await panel.getByText("Loading …").waitFor({ state: "detached" });
  assert.equal(lists, 3);
  // Without scrolling as well: a search in the page finds it.
  await page.goto("/console/");
  await panel.getByText("Loading …").waitFor();
  await panel.getByText("Loading …").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => scrollY), 0);
  await page.done();
});

test("a page whose figures are late says so", async () => {
  const page = await open(browser, server);
  await login(page);
  await page.route((url) => url.pathname === `${NS}/security/_status`, async (route) => setTimeout(() => void route.continue(), 1500));
  await page.goto("/console/");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.locator("main").getByText("Loading …").first().waitFor();
  await page.locator(".figure", { hasText: "Bans in force" }).waitFor();
  await page.done();
});

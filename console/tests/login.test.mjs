/** The login, the session, and attacks on both. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, PASSWORD, axe, login, open, shot, withServer } from "./support.mjs";

let server, browser;
withServer((it) => ({ server, browser } = it));

test("the page has a strict policy and cannot be framed", async () => {
  const answer = await fetch(`${server.url}/console/`, { headers: { "accept-encoding": "br" } });
  const policy = answer.headers.get("content-security-policy");
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.equal(answer.headers.get("x-frame-options"), "DENY");
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  const page = await open(browser, server);
  await page.goto("/healthz");
  await page.setContent(`<iframe src="${server.url}/console/login"></iframe>`);
  await page.waitForTimeout(500);
  const framed = page.frames().find((frame) => frame.url().includes("/console/login"));
  assert.ok(!framed || !(await framed.content().catch(() => "")).includes("Password"), "the console is in a frame");
  await page.context().close();
});

test("an operator logs in, lands where the link led, and logs out", async () => {
  const page = await open(browser, server);
  await page.goto("/console/bans?q=203.0");
  await page.waitForURL("**/console/login?**");
  await axe(page, "login");
  await shot(page, "login");
  await page.getByLabel("Name").fill("alice");
  await page.getByLabel("Password").fill("not the password");
  await page.keyboard.press("Enter");
  assert.match(await page.getByRole("alert").textContent(), /not known or the password is wrong/);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/bans?q=203.0");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  await page.goto("/console/incidents");
  await page.waitForURL("**/console/login?**");
  await page.done();
});

test("a link cannot lead elsewhere after the login", async () => {
  for (const next of ["//evil.example/", "https://evil.example/console/", "javascript:alert(1)", "/console/../evil", "\\\\evil.example", "/consolevil"]) {
    const page = await open(browser, server);
    await login(page, `/console/login?next=${encodeURIComponent(next)}`);
    const url = new URL(page.url());
    assert.equal(url.origin, server.url, next);
    assert.equal(url.pathname, "/console/", next);
    await page.done();
  }
});

test("the login gives another session: a planted cookie is not taken over", async () => {
  const page = await open(browser, server);
  const planted = "A".repeat(43);
  await page.context().addCookies([{ name: "palisade_session", value: planted, domain: "127.0.0.1", path: NS, httpOnly: true }]);
  await login(page);
  const cookies = (await page.context().cookies(`${server.url}${NS}/session/_me`)).filter((cookie) => cookie.name === "palisade_session");
  assert.equal(cookies.length, 1);
  assert.notEqual(cookies[0].value, planted);
  assert.ok(cookies[0].httpOnly && cookies[0].sameSite === "Strict");
  const forged = await page.evaluate(async (ns) => (await fetch(`${ns}/session/_logout`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })).status, NS);
  assert.equal(forged, 403, "a change without the token against forged requests");
  await page.done();
});

test("the login works by keyboard, on a phone, in German", async () => {
  const page = await open(browser, server, { locale: "de-DE", viewport: { width: 390, height: 780 }, colorScheme: "dark" });
  await page.goto("/console/");
  await page.getByRole("heading", { name: "Anmelden" }).waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "de");
  await page.locator("input:focus").waitFor();
  await page.keyboard.type("alice");
  await page.keyboard.press("Tab");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Übersicht" }).waitFor();
  await page.done();
});

test("the throttling is explained", async () => {
  const page = await open(browser, server);
  await page.goto("/console/");
  await page.getByLabel("Name").fill("mallory");
  for (let turn = 0; turn < 12; turn += 1) {
    await page.getByLabel("Password").fill(`wrong password ${turn}`);
    const answered = page.waitForResponse((response) => response.url().endsWith("_login"));
    await page.keyboard.press("Enter");
    if ((await answered).status() === 429) break;
    await page.getByRole("button", { name: "Log in" }).and(page.locator(":enabled")).waitFor();
  }
  await page.getByText(/Too many failed logins. Try again in \d+ s/).waitFor();
  await page.done();
});

/** A session that changes under an open page: a first password, and logins in another tab. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, PASSWORD, answer, axe, login, open, withServer } from "./support.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it), (port) => ["--console-url", `http://localhost:${port}`]);

/** Passkeys need a host name. */
const named = () => ({ url: server.url.replace("127.0.0.1", "localhost") });
const panel = (page, name) => page.locator(".panel", { has: page.getByRole("heading", { name, exact: true }) });

test("who logs in by a link and sets a password is asked for it from then on, without a reload", async () => {
  const { link } = await api("POST", "/operators/_add", { name: "lena", email: "lena@example.com", role: "viewer" });
  const page = await open(browser, named());
  await page.goto(link.path);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Account" }).click();
  await panel(page, "Passkeys").getByLabel("Name of the new passkey").waitFor();
  assert.equal(await panel(page, "Passkeys").getByLabel("Current password").count(), 0);
  await panel(page, "Password").getByLabel("New password").fill("a first long password");
  await panel(page, "Password").getByRole("button", { name: "Set the password" }).click();
  await page.getByText("The password is set").waitFor();
  await panel(page, "Passkeys").getByLabel("Current password").fill("a first long password");
  await axe(page, "an account with its first password");
  const debug = await page.context().newCDPSession(page);
  await debug.send("WebAuthn.enable");
  await debug.send("WebAuthn.addVirtualAuthenticator", { options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } });
  await panel(page, "Passkeys").getByLabel("Name of the new passkey").fill("laptop");
  await panel(page, "Passkeys").getByRole("button", { name: "Add a passkey" }).click();
  await page.getByText("The passkey is added").waitFor();
  assert.equal(await page.locator(".toast.bad").count(), 0);
  await page.done();
});

/** Logs another operator in in the browser of a page, beside the page: the cookie is theirs from then on, and the session before goes on. */
async function takeBrowser(page, name) {
  const answer = await page.context().request.post(`${NS}/session/_login`, { data: { name, password: PASSWORD } });
  assert.equal(answer.status(), 200, await answer.text());
}

test("the live page does not go on with the session of another operator", async () => {
  server.add("lotte", "admin");
  const page = await open(browser, server);
  // A stream that ends is asked for again, and the session is looked at before.
  await answer(page, "/events/_live", () => ({ type: "text/event-stream", body: `event: hello\ndata: {"heartbeat_seconds":15,"queue":1000}\n\nevent: end\ndata: {"reason":"shutdown"}\n\n` }));
  await login(page, "/console/live");
  await page.getByText("not connected, trying again").waitFor();
  await page.evaluate(() => (window.isAlice = true));
  await takeBrowser(page, "lotte");
  await page.getByRole("navigation").getByText("lotte").waitFor({ timeout: 40_000 });
  assert.equal(await page.evaluate(() => "isAlice" in window), false, "the page goes on");
  await page.done();
});

test("an operator with edits may stay on a page that another operator's login has ended: they are asked once", async () => {
  server.add("olga", "admin");
  const page = await open(browser, server);
  const dialogs = [];
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.type());
    void dialog.dismiss();
  });
  await login(page, "/console/policies/threat-policies/_new");
  const text = page.getByLabel("Description", { exact: true });
  await text.pressSequentially("half of a");
  await page.getByText("Checking").waitFor({ state: "detached" });
  await takeBrowser(page, "olga");
  const checked = () => page.waitForResponse((response) => response.url().includes("/session/_me"));
  for (const more of [" sentence", " and"]) {
    const asked = checked();
    await text.pressSequentially(more);
    await asked;
    await page.getByRole("alert").getByText("Another operator has logged in in this browser", { exact: false }).waitFor();
  }
  assert.equal(await text.inputValue(), "half of a sentence and");
  assert.deepEqual(dialogs, ["beforeunload"]);
  await page.done();
});

test("an operator who stays at the end of a session is asked again at the next end", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/_new");
  const text = page.getByLabel("Description", { exact: true });
  await text.fill("half of a");
  const endsAgain = async (more) => {
    await page.context().clearCookies();
    const asked = page.waitForEvent("dialog").then(async (dialog) => {
      await dialog.dismiss();
      return dialog.message();
    });
    await text.pressSequentially(more);
    assert.match(await asked, /session has ended/);
  };
  await endsAgain(" sentence");
  await takeBrowser(page, "alice");
  await Promise.all([page.waitForResponse((response) => response.url().includes("/_bulk") && response.ok()), text.pressSequentially(",")]);
  await endsAgain(" and more");
  assert.equal(await text.inputValue(), "half of a sentence, and more");
  await page.done();
});

test("a logout after the session has ended leads to the login", async () => {
  const page = await open(browser, server);
  await login(page, "/console/account");
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.waitForLoadState("networkidle");
  await page.context().clearCookies();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  assert.equal(await page.locator(".toast").count(), 0);
  await page.done();
});

test("after a new login in another tab changes go on, of another operator the page is loaded again", async () => {
  server.add("otto", "admin");
  const page = await open(browser, server);
  await login(page, "/console/bans");
  const other = await page.context().newPage();
  const again = async (name) => {
    await other.goto("/console/");
    await other.getByRole("button", { name: "Log out" }).click();
    await other.waitForURL("**/console/login");
    await login(other, "/console/login", name);
  };
  await again("alice");
  const ban = async (address) => {
    await page.getByRole("searchbox").fill(address);
    await page.getByRole("button", { name: "Ban", exact: true }).click();
    await page.getByLabel("Reason").fill("scans");
    await page.keyboard.press("Enter");
  };
  await ban("203.0.113.50");
  await page.getByText("ip:203.0.113.50 is banned", { exact: false }).waitFor();
  await again("otto");
  await ban("203.0.113.51");
  await page.getByRole("navigation").getByText("otto").waitFor();
  assert.deepEqual((await api("GET", "/security/_bans")).bans.map((ban) => ban.key), ["ip:203.0.113.50"], "another operator's session was used unseen");
  await page.done();
});

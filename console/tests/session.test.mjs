/** A session that changes under an open page: a first password, and logins in another tab. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, axe, login, open, withServer } from "./support.mjs";

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

/** Logins at a provider, and passkeys of a virtual authenticator. The provider is on 127.0.0.1 and the console on localhost: another site. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer } from "node:http";
import { PASSWORD, Server, axe, launch, login, open } from "./support.mjs";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A provider that logs the person of `claims` in without asking. */
class Provider {
  claims = { sub: "1", preferred_username: "grace", email: "grace@example.com", groups: ["soc"] };
  codes = new Map();

  static async start() {
    const provider = new Provider();
    provider.server = createServer((request, response) => void provider.answer(request, response));
    await new Promise((resolve) => provider.server.listen(0, "127.0.0.1", resolve));
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  async answer(request, response) {
    const { url } = this;
    const asked = new URL(request.url, url);
    const json = (value, status = 200) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (asked.pathname === "/.well-known/openid-configuration") return json({ issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token`, jwks_uri: `${url}/jwks` });
    if (asked.pathname === "/jwks") return json({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", use: "sig" }] });
    if (asked.pathname === "/authorize") {
      const query = asked.searchParams;
      const code = randomUUID();
      this.codes.set(code, { nonce: query.get("nonce"), challenge: query.get("code_challenge") });
      const back = new URL(query.get("redirect_uri"));
      back.search = new URLSearchParams({ code, state: query.get("state"), iss: url });
      return response.writeHead(302, { location: back.href }).end();
    }
    let body = "";
    for await (const chunk of request) body += chunk;
    const form = new URLSearchParams(body);
    const code = this.codes.get(form.get("code"));
    this.codes.delete(form.get("code"));
    if (!code || createHash("sha256").update(form.get("code_verifier")).digest("base64url") !== code.challenge) return json({ error: "invalid_grant" }, 400);
    const now = Math.floor(Date.now() / 1000);
    const message = `${part({ alg: "RS256", kid: "one" })}.${part({ iss: url, aud: "palisade", iat: now, exp: now + 300, nonce: code.nonce, ...this.claims })}`;
    return json({ access_token: "a", token_type: "Bearer", id_token: `${message}.${sign("sha256", Buffer.from(message), privateKey).toString("base64url")}` });
  }
}

let provider, server, browser;
before(async () => {
  provider = await Provider.start();
  server = await Server.start((port) => ["--console-url", `http://localhost:${port}`, "--oidc-issuer", provider.url, "--oidc-client-id", "palisade", "--oidc-name", "Example", "--oidc-role-claim", "groups", "--oidc-roles", "soc=analyst", "--oidc-create"]);
  server.address = server.url;
  server.url = server.url.replace("127.0.0.1", "localhost");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  provider?.server.close();
});

const toProvider = (page) => page.getByRole("button", { name: "Log in with Example" }).click();

test("a login at the provider lands where the operator wanted to be, with nothing of it in the address bar", async () => {
  const page = await open(browser, server);
  await page.goto("/console/bans?q=203.0");
  await page.waitForURL("**/console/login?**");
  await page.getByRole("button", { name: "Log in with Example" }).waitFor();
  await axe(page, "login with a provider");
  await toProvider(page);
  await page.waitForURL("**/console/bans?q=203.0");
  const cookies = await page.context().cookies(`${server.url}/extensions/svc/extensions/waf/session/_me`);
  assert.deepEqual(cookies.map(({ name, sameSite, httpOnly }) => [name, sameSite, httpOnly]), [["palisade_session", "Strict", true]]);
  await page.goto("/console/account");
  await page.getByText("grace@example.com").waitFor();
  await page.done();
});

test("a provider leads to pages of the console alone", async () => {
  for (const next of ["//evil.example/", "https://evil.example/console/", "javascript:alert(1)", "\\\\evil.example"]) {
    const page = await open(browser, server);
    await page.goto(`/console/login?next=${encodeURIComponent(next)}`);
    await toProvider(page);
    await page.getByRole("navigation").waitFor();
    assert.equal(page.url(), `${server.url}/console/`, next);
    await page.done();
  }
});

test("a refused login says so with a reference, and an answer is of no use in another browser", async () => {
  const page = await open(browser, server);
  const before = provider.claims;
  provider.claims = { ...before, sub: "2", groups: [] };
  await page.goto("/console/login");
  await toProvider(page);
  assert.match(await page.getByRole("alert").textContent(), /no access here.*Reference: [\w-]{8,}/);
  assert.equal(page.url(), `${server.url}/console/login`);
  provider.claims = before;
  await page.goto(`/console/login?code=${randomUUID()}&state=${"A".repeat(43)}`);
  assert.match(await page.getByRole("alert").textContent(), /begun in another browser.*Reference/);
  await page.getByLabel("Password").waitFor();
  await page.done();
});

/**
 * The browser's own software authenticator, which verifies its user. The end of any other debugging session of the page takes it away:
 * `carry` gives it back with what it had.
 */
async function authenticator(page) {
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
  let debug, authenticatorId;
  const add = async () => {
    debug = await page.context().newCDPSession(page);
    await debug.send("WebAuthn.enable");
    ({ authenticatorId } = await debug.send("WebAuthn.addVirtualAuthenticator", { options }));
  };
  const device = (method, more = {}) => debug.send(`WebAuthn.${method}`, { authenticatorId, ...more });
  device.carry = async (over) => {
    const { credentials } = await device("getCredentials");
    await over();
    await add();
    for (const credential of credentials) await device("addCredential", { credential });
  };
  await add();
  return device;
}

test("a passkey is added, logs in alone and as a second step, and is refused as a copy and once it is removed", async () => {
  const page = await open(browser, server);
  const device = await authenticator(page);
  await login(page);
  await page.goto("/console/account");
  const panel = page.locator(".panel", { has: page.getByRole("heading", { name: "Passkeys" }) });
  await panel.getByLabel("Current password").fill(PASSWORD);
  await panel.getByLabel("Name of the new passkey").fill("laptop");
  await panel.getByRole("button", { name: "Add a passkey" }).click();
  await panel.getByText("laptop").first().waitFor();
  await device.carry(() => axe(page, "account with a passkey"));
  const out = async () => {
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/console/login");
  };
  await out();
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("navigation").waitFor();
  await out();
  await page.getByLabel("Name").fill("alice");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByText("Now show your passkey.").waitFor();
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("navigation").waitFor();
  await out();
  // A copy of an earlier state.
  const { credentials } = await device("getCredentials");
  assert.ok(credentials[0].signCount >= 2, JSON.stringify(credentials));
  await device("removeCredential", { credentialId: credentials[0].credentialId });
  await device("addCredential", { credential: { ...credentials[0], signCount: 0 } });
  await page.getByRole("button", { name: "Use a passkey" }).click();
  assert.match(await page.getByRole("alert").textContent(), /not known here.*Reference/);
  await device("removeCredential", { credentialId: credentials[0].credentialId });
  await device("addCredential", { credential: { ...credentials[0], signCount: 20 } });
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("navigation").waitFor();
  await page.goto("/console/account");
  // An app and a new password need the passkey as well: the page asks for it by itself.
  const renewal = page.locator(".panel", { has: page.getByRole("heading", { name: "Password", exact: true }) });
  await renewal.getByLabel("Current password").fill(PASSWORD);
  await renewal.getByLabel("New password").fill(PASSWORD);
  await renewal.getByRole("button", { name: "Set the password" }).click();
  await page.getByText("The password is set").waitFor();
  const app = page.locator(".panel", { has: page.getByRole("heading", { name: "Second factor" }) });
  await app.getByLabel("Password").fill(PASSWORD);
  await app.getByRole("button", { name: "Set up" }).click();
  await app.getByRole("link", { name: "Open in an authenticator" }).waitFor();
  await panel.getByLabel("Current password").fill(PASSWORD);
  await panel.getByRole("button", { name: "Remove laptop" }).click();
  await page.getByText("The passkey is removed.").waitFor();
  await out();
  await page.getByRole("button", { name: "Use a passkey" }).click();
  assert.match(await page.getByRole("alert").textContent(), /not known here.*Reference/);
  await page.done();
});

test("an address can have no passkeys, and the page says where they work", async () => {
  const page = await open(browser, { url: server.address });
  await page.goto("/console/login");
  await page.getByText(`Passkeys work at ${server.url}`).waitFor();
  assert.equal(await page.getByRole("button", { name: "Use a passkey" }).count(), 0);
  await page.done();
});

/** Logins at an independent, certified provider: its pages, its tokens, its refusals. `sso.test.mjs` has what such a provider never does. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Provider, loginAt, logoutAt, signingKey } from "./provider.mjs";
import { NS, Server, axe, launch, login, open } from "./support.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const FAKETIME = join(process.env.PALISADE_FAKETIME ?? join(here, "../../.cache/faketime"), "lib/libfaketimeMT.so.1");

/** All that a secret may have (RFC 6749, appendix A.2) and that would mean something else if it were not encoded before it is sent. */
const SECRET = "a+b c%20d:e&f=g/".repeat(3);

let browser, folder;
const ends = [];
before(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "palisade-console-oidc-"));
});
after(async () => {
  await browser?.close();
  for (const end of ends.reverse()) await end();
  rmSync(folder, { recursive: true, force: true });
});

/** A provider, and a control plane whose operators log in there. `client` is what the provider knows about it. */
async function pair({ client = {}, keys = [signingKey("RS256", "one")], config = {}, secret = SECRET, more = [], env = {} } = {}) {
  const provider = await Provider.start();
  ends.push(() => provider.stop());
  const file = join(folder, `secret-${provider.server.address().port}`);
  if (secret) writeFileSync(file, `${secret}\n`);
  const id = "palisade: staff+console";
  const server = await Server.start((port) => {
    provider.serve({ client_id: id, ...(secret ? { client_secret: secret } : {}), redirect_uris: [`http://localhost:${port}/console/login`], post_logout_redirect_uris: [`http://localhost:${port}/console/login`], id_token_signed_response_alg: keys[0].alg, ...client }, keys, config);
    return [
      "--console-url", `http://localhost:${port}`, "--oidc-issuer", provider.url, "--oidc-client-id", id, ...(secret ? ["--oidc-client-secret-file", file] : []), "--oidc-name", "Example",
      "--oidc-scopes", "openid profile email groups", "--oidc-role-claim", "groups", "--oidc-roles", "admins=admin,soc=analyst,staff=viewer", "--oidc-create", ...more,
    ];
  }, env);
  ends.push(() => server.stop());
  server.url = server.url.replace("127.0.0.1", "localhost");
  return { provider, server };
}

/** The login page, and from there to the provider. Nothing but loopback is asked. */
async function toProvider(server, path = "/console/") {
  const page = await open(browser, server);
  await page.context().route((url) => !["localhost", "127.0.0.1"].includes(url.hostname), (route) => route.abort());
  await page.goto(path);
  await page.getByRole("button", { name: "Log in with Example" }).click();
  return page;
}

/** A part of a JWT: 0 is its header, 1 its claims. */
const tokenPart = (token, index) => JSON.parse(Buffer.from(token.split(".")[index], "base64url"));
const inside = (page) => page.getByRole("navigation").waitFor();
const me = (page) => page.evaluate(async (path) => (await fetch(path)).json(), `${NS}/session/_me`);

const GRACE = { preferred_username: "grace", email: "grace@example.com", email_verified: true, groups: ["staff", "soc"] };

test("from the login page through the pages of the provider to where the operator wanted to be, and out again", async () => {
  const { provider, server } = await pair({ more: ["--oidc-local-logout"] });
  provider.people["7-grace"] = { ...GRACE };
  const page = await toProvider(server, "/console/bans?q=203.0");
  await loginAt(page, "7-grace");
  await page.waitForURL(`${server.url}/console/bans?q=203.0`);
  await inside(page);
  assert.deepEqual((await me(page)).operator, { name: "grace", email: "grace@example.com", role: "analyst", has_password: false, second_factor: false, passkeys: 0 });
  // The role, where it shows: what needs an admin cannot be pressed.
  await page.goto("/console/operators");
  await page.getByText("This needs the role").first().waitFor();
  await axe(page, "an operator of the provider");

  // With another name and other groups at the provider it is the same operator, with another role.
  Object.assign(provider.people["7-grace"], { preferred_username: "hopper", groups: ["admins"] });
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  assert.equal((await page.evaluate(async (path) => (await fetch(path)).status, `${NS}/session/_me`)), 401);
  // The session at the provider goes on: it asks for nothing.
  await page.getByRole("button", { name: "Log in with Example" }).click();
  await inside(page);
  const { operator } = await me(page);
  assert.deepEqual([operator.name, operator.role], ["grace", "admin"]);
  const { operators } = await (await server.api())("GET", "/operators/_list");
  assert.deepEqual(operators.map(({ name, role }) => [name, role]), [["alice", "admin"], ["grace", "admin"]]);
  await page.goto("/console/operators");
  await page.getByRole("listitem").filter({ hasText: "grace@example.com" }).getByText("provider", { exact: true }).waitFor();
  // Without a group that gives a role the login is refused.
  provider.people["7-grace"].groups = ["guests"];
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  await page.getByRole("button", { name: "Log in with Example" }).click();
  assert.match(await page.getByRole("alert").textContent(), /You are logged in at the provider, and have no access here\. .* Reference: [\w-]{8,}/);
  assert.equal(page.url(), `${server.url}/console/login`);
  assert.deepEqual(provider.failures, []);
  await page.done();
});

test("a logout ends the session here, then the one at the provider, and comes back to the login page", async () => {
  const { provider, server } = await pair();
  provider.people.grace = { ...GRACE };
  const page = await toProvider(server);
  await loginAt(page, "grace");
  await inside(page);
  const leave = async () => {
    const sent = page.waitForRequest((request) => request.url().startsWith(`${provider.url}/session/end?`));
    await page.getByRole("button", { name: "Log out" }).click();
    return new URL((await sent).url()).searchParams;
  };
  const asked = await leave();
  assert.deepEqual([...asked.keys()], ["client_id", "post_logout_redirect_uri", "state", "id_token_hint"]);
  assert.deepEqual([asked.get("client_id"), asked.get("post_logout_redirect_uri")], ["palisade: staff+console", `${server.url}/console/login`]);
  assert.equal(tokenPart(asked.get("id_token_hint"), 1).sub, "grace");
  // Nothing is left here, whatever is chosen there.
  await page.getByRole("button", { name: "Yes, sign me out" }).waitFor();
  assert.deepEqual(await page.context().cookies(`${server.url}${NS}/session/_logout`), []);
  await logoutAt(page);
  await page.waitForURL(`${server.url}/console/login`);
  await page.getByText("You are logged out.").waitFor();
  await axe(page, "the login after a logout");
  // The provider asks who it is.
  await page.getByRole("button", { name: "Log in with Example" }).click();
  await loginAt(page, "grace");
  await inside(page);
  // Who stays logged in there is logged out here all the same.
  assert.notEqual((await leave()).get("state"), asked.get("state"));
  await logoutAt(page, false);
  await page.waitForURL(`${server.url}/console/login`);
  await page.getByText("You are logged out.").waitFor();
  assert.equal(await page.evaluate(async (path) => (await fetch(path)).status, `${NS}/session/_me`), 401);
  // Who has declined is known there still; only what this client was allowed is asked again.
  await page.getByRole("button", { name: "Log in with Example" }).click();
  const allow = page.getByRole("button", { name: "Continue" });
  await allow.waitFor();
  assert.equal(await page.getByPlaceholder("Enter any login").count(), 0);
  await allow.click();
  await inside(page);
  // A state that this tab has not sent says nothing, and is no answer to a login.
  await leave();
  await page.goto(`${server.url}/console/login?state=${asked.get("state")}`);
  await page.getByLabel("Password").waitFor();
  assert.equal(page.url(), `${server.url}/console/login`);
  assert.deepEqual([await page.getByText("You are logged out.").count(), await page.getByRole("alert").count()], [0, 0]);
  // One who logs in by a password has no session there.
  const ends = () => provider.seen.filter((call) => call.startsWith("GET /session/end")).length;
  const before = ends();
  await login(page, "/console/");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Password").waitFor();
  assert.equal(ends(), before);
  assert.deepEqual(provider.failures, []);
  await page.done();
});

test("a login that is cancelled at the provider says so, and the next one succeeds", async () => {
  const { provider, server } = await pair();
  provider.people.grace = { ...GRACE };
  const page = await toProvider(server);
  await page.getByRole("link", { name: "Cancel" }).click();
  assert.match(await page.getByRole("alert").textContent(), /^The provider has refused the login, or it was cancelled there\. Reference: [\w-]{8,}/);
  assert.equal(page.url(), `${server.url}/console/login`);
  await axe(page, "a cancelled login");
  await page.getByRole("button", { name: "Log in with Example" }).click();
  // At the consent as well.
  await page.getByPlaceholder("Enter any login").fill("grace");
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).waitFor();
  await page.getByRole("link", { name: "Cancel" }).click();
  assert.match(await page.getByRole("alert").textContent(), /cancelled there/);
  await page.getByRole("button", { name: "Log in with Example" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await inside(page);
  await page.done();
});

const TOKENS = [
  ["RS256, the secret by HTTP basic, claims from the userinfo endpoint", { client: { token_endpoint_auth_method: "client_secret_basic" } }, ["POST /token 200 Basic", "GET /me 200 Bearer"]],
  ["ES256, the secret in the body, claims in the ID token", { client: { token_endpoint_auth_method: "client_secret_post" }, config: { clientAuthMethods: ["client_secret_post"], conformIdTokenClaims: false }, keys: [signingKey("ES256", "one")] }, ["POST /token 200"]],
  ["EdDSA, a public client", { client: { token_endpoint_auth_method: "none" }, secret: "", keys: [signingKey("EdDSA", "one")] }, ["POST /token 200", "GET /me 200 Bearer"]],
  ["Ed25519, the newer name of EdDSA", { keys: [signingKey("Ed25519", "one")] }, ["POST /token 200 Basic", "GET /me 200 Bearer"]],
];
for (const [name, options, calls] of TOKENS) {
  test(`ID tokens: ${name}`, async () => {
    const { provider, server } = await pair(options);
    provider.people.ada = { preferred_username: "ada", email: "ada@example.com", groups: ["soc"] };
    const page = await toProvider(server);
    await loginAt(page, "ada");
    await inside(page);
    const { operator } = await me(page);
    assert.deepEqual([operator.name, operator.email, operator.role], ["ada", "ada@example.com", "analyst"]);
    const [{ value: token }] = (await page.context().cookies(`${server.url}${NS}/session/_logout`)).filter((cookie) => cookie.name === "palisade_id_token");
    assert.equal(tokenPart(token, 0).alg, name.split(",")[0]);
    assert.deepEqual(provider.seen.filter((call) => /^\S+ \/(token|me) /.test(call)), calls);
    assert.deepEqual(provider.failures, []);
    await page.done();
  });
}

test("a wrong secret is a fault of the provider's settings, and passwords go on", async () => {
  const { provider, server } = await pair();
  provider.people.grace = { ...GRACE };
  provider.serve({ ...provider.client, client_secret: "another one, of the same client" }, [signingKey("RS256", "one")]);
  const page = await toProvider(server);
  await loginAt(page, "grace");
  assert.match(await page.getByRole("alert").textContent(), /The login provider does not answer as it should\. Log in with a password.* Reference: [\w-]{8,}/);
  await login(page, "/console/");
  await page.done();
});

test("the provider demands PKCE, and accepts a code for the login alone that it was made for", async () => {
  const { provider, server } = await pair();
  provider.people.grace = { ...GRACE };
  provider.people.mallory = { preferred_username: "mallory", email: "mallory@example.com", groups: ["staff"] };
  // Without a challenge the provider refuses what the control plane sends.
  const begun = await fetch(`${server.url}${NS}/session/_oidc_begin`, { method: "POST", headers: { "content-type": "application/json", origin: server.url }, body: "{}" });
  const asked = new URL((await begun.json()).url);
  assert.equal(asked.searchParams.get("code_challenge_method"), "S256");
  for (const name of ["code_challenge", "code_challenge_method"]) asked.searchParams.delete(name);
  const refused = await fetch(asked, { redirect: "manual" });
  assert.match(new URL(refused.headers.get("location") ?? "", asked).searchParams.get("error_description") ?? "", /PKCE/, `${refused.status} ${await refused.text()}`);
  // The answer of one login, caught on its way back, in the place of the code of another one.
  const catching = async (person) => {
    const page = await toProvider(server);
    const path = `${NS}/session/_oidc_finish`;
    await page.route((url) => url.pathname === path, (route) => route.abort(), { times: 1 });
    const sent = page.waitForRequest((request) => new URL(request.url()).pathname === path);
    await loginAt(page, person);
    return [page, (await sent).postDataJSON()];
  };
  const [own, ofMallory] = await catching("mallory");
  const [other, ofGrace] = await catching("grace");
  const back = (answer) => `/console/login?${new URLSearchParams(answer)}`;
  await own.goto(back({ ...ofMallory, code: ofGrace.code }));
  assert.match(await own.getByRole("alert").textContent(), /Begin it again\. Reference/);
  assert.deepEqual(provider.seen.filter((call) => call.startsWith("POST /token")), ["POST /token 400 Basic"]);
  await other.goto(back(ofGrace));
  await inside(other);
  assert.equal((await me(other)).operator.name, "grace");
  await own.done();
  await other.done();
});

test("keys that are changed at the provider are read again; an unknown key, and one that has the id of a known one, are explained", { skip: existsSync(FAKETIME) ? false : "there is no libfaketime: run `make faketime`" }, async () => {
  const clock = join(folder, "clock");
  writeFileSync(clock, "+0s");
  const [first, second] = [signingKey("ES256", "first"), signingKey("ES256", "second")];
  const { provider, server } = await pair({ keys: [first], more: ["--oidc-local-logout"], env: { LD_PRELOAD: FAKETIME, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_NO_CACHE: "1", FAKETIME_DONT_FAKE_MONOTONIC: "1" } });
  provider.people.grace = { ...GRACE };
  const page = await toProvider(server);
  await loginAt(page, "grace");
  await inside(page);
  const again = async (isInside = true) => {
    if (isInside) await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/console/login");
    await page.getByRole("button", { name: "Log in with Example" }).click();
    await loginAt(page, "grace");
  };
  const reads = () => provider.seen.filter((call) => call === "GET /jwks 200").length;
  assert.equal(reads(), 1);
  // Announced before it signs, as providers do: there is nothing to read again as long as the first one signs.
  provider.rotate([first, second]);
  await again();
  await inside(page);
  assert.equal(reads(), 1);
  // For an unknown key the set is read again, a minute after it was read.
  provider.rotate([second]);
  writeFileSync(clock, "+65s");
  await again();
  await inside(page);
  assert.equal(reads(), 2);
  // One that signs before the set is read again: what is wrong, and until when.
  provider.rotate([signingKey("ES256", "third")]);
  writeFileSync(clock, "+80s");
  await again();
  const [, seconds] = /^The provider has signed with a key that it does not publish\. Try again in (\d+) s\..* Reference: [\w-]{8,}/.exec(await page.getByRole("alert").textContent());
  assert.ok(seconds > 0 && seconds <= 45, seconds);
  assert.equal(reads(), 2);
  assert.match(server.log, /the ID token is signed with the key `third` \(ES256\); the key set \(http:\/\/[\w.:]+\/jwks, read at [\dT:.-]+Z\) has `second` \(ES256\)/);
  await axe(page, "an unknown key");
  // Another key with the id of one that is known: its signature is wrong, and nothing is read for it.
  provider.rotate([signingKey("ES256", "second")]);
  writeFileSync(clock, "+130s");
  await again(false);
  assert.match(await page.getByRole("alert").textContent(), /^The provider’s answer about you is not accepted\..* Reference/);
  assert.equal(reads(), 2);
  assert.deepEqual(provider.failures, []);
  await page.done();
});

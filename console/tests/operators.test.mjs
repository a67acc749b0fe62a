/** Operators, admin keys, the second factor and the audit log, from the page to what the control plane answers from then on. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, PASSWORD, axe, login, open, withServer } from "./support.mjs";
import { code } from "./people.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

const operator = async (name) => (await api("GET", "/operators/_list")).operators.find((of) => of.name === name);
const person = (page, name) => page.locator(".entries > li", { hasText: `${name}@example.com` });
/** Presses a button by keyboard. */
async function press(button) {
  await button.focus();
  await button.press("Enter");
}
/** Presses an arrow key in a selection, which chooses `value` there and makes no change. */
async function arrowChangesNothing(page, selection, value) {
  const changes = [];
  page.on("request", (request) => request.method() === "POST" && changes.push(request.url()));
  await selection.focus();
  await page.keyboard.press("ArrowDown");
  assert.equal(await selection.inputValue(), value);
  await page.waitForTimeout(300);
  assert.deepEqual(changes, [], "an arrow key is a change");
}
async function dialogText(page) {
  return (await page.getByRole("dialog").locator("pre").textContent()).trim();
}

test("the test's codes are those of RFC 6238", () => {
  const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
  assert.equal(code(secret, 0, 59_000), "287082");
  assert.equal(code(secret, 0, 1_111_111_109_000), "081804");
  assert.equal(code(secret, 0, 20_000_000_000_000), "353130");
});

test("operators: added, their link logs in once, roles, the last admin, reset, sessions, removed", async () => {
  const page = await open(browser, server);
  await login(page, "/console/operators");
  await page.getByLabel("Name", { exact: true }).focus();
  await page.keyboard.type("bob");
  await page.keyboard.press("Tab");
  await page.keyboard.type("bob@example.com");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("This is shown once.").waitFor();
  await axe(page, "the link of a new operator");
  const link = await dialogText(page);
  assert.ok(link.startsWith(`${server.url}/console/#login=`), link);
  await page.keyboard.press("Escape");
  await person(page, "bob").waitFor();
  assert.equal((await page.content()).includes(link.split("=")[1]), false, "the link is still in the page");

  const bob = await open(browser, server);
  await bob.goto(link);
  await bob.getByRole("button", { name: "Log in" }).click();
  await bob.getByRole("navigation").getByText("bob").waitFor();
  assert.equal(new URL(bob.url()).hash, "", "the token stays in the address");
  const again = await open(browser, server);
  await again.goto(link);
  await again.getByRole("button", { name: "Log in" }).click();
  await again.getByText("The link is unknown, used or too old.").waitFor();
  await axe(again, "a used link");
  await again.done();

  await page.reload();
  await person(page, "bob").getByText("1 session", { exact: false }).waitFor();
  await axe(page, "operators");
  await press(person(page, "bob").getByRole("button", { name: /End sessions/ }));
  await person(page, "bob").getByText("0 sessions", { exact: false }).waitFor();
  await bob.goto("/console/incidents");
  await bob.waitForURL("**/console/login?**");
  await bob.done();

  await arrowChangesNothing(page, page.getByLabel("Role of bob"), "analyst");
  await press(person(page, "bob").getByRole("button", { name: /Set the role/ }));
  // The browser shows the choice before the control plane has it.
  for (let turn = 0; turn < 100 && (await operator("bob")).role !== "analyst"; turn += 1) await page.waitForTimeout(100);
  assert.equal((await operator("bob")).role, "analyst");
  await page.getByLabel("Role of alice").selectOption("viewer");
  await press(person(page, "alice").getByRole("button", { name: /Set the role/ }));
  await page.getByRole("dialog").getByText("Your own role changes").waitFor();
  await axe(page, "asked before one's own role changes");
  await press(page.getByRole("dialog").getByRole("button", { name: "Set the role" }));
  await page.locator(".toast.bad").waitFor();
  assert.equal((await operator("alice")).role, "admin");
  await page.waitForFunction(() => document.querySelector("[aria-label='Role of alice']").value === "admin");

  server.add("carol", "viewer");
  await page.reload();
  await press(person(page, "carol").getByRole("button", { name: /Reset the password/ }));
  await axe(page, "asked before the password is reset");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.equal((await operator("carol")).has_password, true, "the password went although it was cancelled");
  await press(person(page, "carol").getByRole("button", { name: /Reset the password/ }));
  await press(page.getByRole("dialog").getByRole("button", { name: "Reset the password" }));
  await page.getByRole("dialog", { name: "Login link" }).waitFor();
  assert.equal((await operator("carol")).has_password, false);
  await page.keyboard.press("Escape");

  await press(person(page, "bob").getByRole("button", { name: /Delete/ }));
  await page.getByRole("dialog").getByText("audit log").waitFor();
  await press(page.getByRole("dialog").getByRole("button", { name: "Delete" }));
  await person(page, "bob").waitFor({ state: "detached" });
  assert.equal(await operator("bob"), undefined);
  assert.equal(await person(page, "alice").getByRole("button", { name: /Delete/ }).count(), 0, "the own account can be removed");
  await page.done();
});

test("admin keys: the secret is shown once and works, until it is rotated, ended or revoked", async () => {
  const page = await open(browser, server);
  await login(page, "/console/operators");
  const use = async (secret) => (await fetch(`${server.url}/apis/palisade.svc/v1/routes`, { headers: { authorization: `Basic ${Buffer.from(secret).toString("base64")}` } })).status;
  const key = (name) => page.locator(".entries > li", { has: page.locator("strong", { hasText: new RegExp(`^${name}$`) }) });
  const create = async (name) => {
    await page.getByLabel("Name of the key").focus();
    await page.keyboard.type(name);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    const secret = await dialogText(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    return secret;
  };
  const secret = await create("ci");
  assert.equal(await use(secret), 200);
  assert.equal((await page.content()).includes(secret.split(":")[1]), false, "the secret is still in the page");
  await key("ci").getByText("active").waitFor();
  await axe(page, "admin keys");

  await press(key("ci").getByRole("button", { name: /Rotate/ }));
  await page.getByRole("dialog").waitFor();
  await axe(page, "the secret of a key");
  const next = await dialogText(page);
  await page.keyboard.press("Escape");
  assert.notEqual(next, secret);
  assert.deepEqual([await use(secret), await use(next)], [200, 200], "the old key serves for a day");
  await page.waitForFunction(() => [...document.querySelectorAll(".entries strong")].filter((name) => name.textContent === "ci").length === 2);

  const ended = await create("report");
  await arrowChangesNothing(page, page.getByLabel("End of the key report"), "0");
  await press(key("report").getByRole("button", { name: /Set the end/ }));
  await page.getByRole("dialog").getByText("The key ends at once").waitFor();
  await press(page.getByRole("dialog").getByRole("button", { name: "Set the end" }));
  await key("report").getByText("expired").waitFor();
  assert.equal(await use(ended), 401);
  await page.getByLabel("End of the key report").selectOption({ label: "for good" });
  await press(key("report").getByRole("button", { name: /Set the end/ }));
  await key("report").getByText("active").waitFor();
  assert.equal(await use(ended), 200);
  await press(key("report").getByRole("button", { name: /Revoke/ }));
  await press(page.getByRole("dialog").getByRole("button", { name: "Revoke" }));
  await key("report").getByText("revoked").waitFor();
  assert.equal(await use(ended), 401);
  assert.equal(await key("report").getByRole("button").count(), 0, "a revoked key can be changed");

  await page.getByLabel("read", { exact: true }).uncheck();
  assert.ok(await page.getByRole("button", { name: "Create a key" }).isDisabled(), "a key without scopes can be created");
  await page.done();
});

test("the second factor: enrolled, asked at the login, a recovery code once, removed", async () => {
  server.add("dora", "viewer");
  const page = await open(browser, server);
  await login(page, "/console/account", "dora");
  const panel = page.locator("section", { has: page.getByRole("heading", { name: "Second factor" }) });
  await panel.getByLabel("Password").fill(PASSWORD);
  await page.keyboard.press("Enter");
  await panel.getByLabel("Code").waitFor();
  await axe(page, "enrolment");
  const secret = (await panel.locator("code").first().textContent()).trim();
  await panel.getByLabel("Code").fill("000000");
  await page.keyboard.press("Enter");
  await page.locator(".toast.bad").first().waitFor();
  await panel.getByLabel("Code").fill(code(secret, -1));
  await page.keyboard.press("Enter");
  await panel.getByText("Keep these recovery codes; they are shown once.").waitFor();
  await axe(page, "recovery codes");
  const recovery = (await panel.locator("pre").textContent()).trim().split("\n");
  assert.equal(recovery.length, 10);
  assert.equal((await page.content()).includes(secret), false, "the secret is still in the page");
  await page.reload();
  await panel.getByText("10 recovery codes left").waitFor();
  assert.equal((await page.content()).includes(recovery[0]), false, "the codes are shown again");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");

  const enter = async (text) => {
    await page.getByLabel("Name").waitFor();
    await page.getByLabel("Name").fill("dora");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByLabel("Code").waitFor();
    await page.getByLabel("Code").fill(text);
    await page.keyboard.press("Enter");
  };
  await page.goto("/console/account");
  await enter(code(secret, 0));
  await panel.getByText("10 recovery codes left").waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  await page.goto("/console/account");
  await enter(recovery[0]);
  await panel.getByText("9 recovery codes left").waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  await page.goto("/console/account");
  await enter(recovery[0]);
  await page.getByText("The code is wrong or was used.").waitFor();
  await axe(page, "a wrong code");
  await page.getByLabel("Code").fill(recovery[1]);
  await page.keyboard.press("Enter");
  await panel.getByText("8 recovery codes left").waitFor();
  await panel.getByLabel("Password").fill(PASSWORD);
  await panel.getByLabel("Code").fill(recovery[2]);
  await page.keyboard.press("Enter");
  await page.getByText("The second factor is removed.").waitFor();
  await panel.getByRole("button", { name: "Set up" }).waitFor();
  await axe(page, "without a second factor");
  await page.done();
});

test("the audit log: who did what, by a search in the address bar, with its details", async () => {
  const page = await open(browser, server);
  await login(page, "/console/audit");
  await page.locator(".rows .row", { hasText: "key-revoke" }).waitFor();
  await axe(page, "audit log");
  await page.keyboard.press("/");
  await page.keyboard.type("second-factor-add");
  await page.waitForURL("**/console/audit?q=second-factor-add");
  await page.waitForFunction(() => document.querySelectorAll(".rows .row").length === 1);
  await page.getByText("operators/dora").waitFor();
  await page.reload();
  await page.locator(".rows .row", { hasText: "second-factor-add" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.getByRole("dialog").getByText("dora").first().waitFor();
  await axe(page, "an audit event");
  await page.keyboard.press("Escape");
  await page.getByRole("searchbox").fill("nothing that there is");
  await page.getByText(/^0 of \d+ entries$/).waitFor();
  await page.done();
});

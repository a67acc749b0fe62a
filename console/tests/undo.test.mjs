/** The way back of each decision, and policies from the form to the server and back. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, axe, login, open, withServer } from "./support.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

const HOUR = 3_600_000;
const banOf = async (key) => (await api("GET", `/security/_bans?filter.ref=${encodeURIComponent(key)}`)).bans[0];
const entryOf = async (key) => (await api("GET", `/security/_allowlist?filter.ref=${encodeURIComponent(key)}`)).entries[0];
/** Chooses Undo of the last message by keyboard, and waits until it is done. */
async function undo(page) {
  const before = await page.getByText("Undone.").count();
  const button = page.locator(".toast").last().getByRole("button", { name: "Undo" });
  await button.focus();
  await button.press("Enter");
  await page.waitForFunction((before) => [...document.querySelectorAll(".toast")].filter((toast) => toast.textContent.includes("Undone.")).length > before, before);
}
async function close(page) {
  const closes = page.locator(".toast").getByRole("button", { name: "Close" });
  while ((await closes.count()) > 0) await closes.first().click();
}
async function openBan(page, key) {
  await page.getByRole("searchbox").fill(key.slice(3));
  const row = page.locator(".rows .row", { hasText: key });
  await row.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
}

test("undo of a ban, an extension, a lift, an allowance, and of an entry taken off the allowlist", async () => {
  const page = await open(browser, server);
  await login(page, "/console/bans");
  const key = "ip:203.0.113.77";
  await page.getByRole("searchbox").fill("203.0.113.77");
  await page.getByRole("button", { name: "Ban", exact: true }).press("Enter");
  await page.getByLabel("Reason").fill("first");
  await page.keyboard.press("Enter");
  await page.getByText(/is banned/).waitFor();
  assert.equal((await banOf(key)).reason, "first");
  await axe(page, "a message with a way back");
  await undo(page);
  assert.equal(await banOf(key), undefined, "the ban is undone");
  await close(page);

  await api("POST", "/security/_ban", { ref: key, duration_seconds: 7200, reason: "scans" });
  await page.getByRole("button", { name: "Reload" }).click();
  const was = await banOf(key);
  await openBan(page, key);
  await page.getByRole("button", { name: "Extend the ban" }).press("Enter");
  await page.getByLabel("By", { exact: true }).selectOption({ label: "7 days" });
  await page.getByRole("dialog").getByRole("button", { name: "Extend the ban" }).click();
  await page.getByText(/was extended/).waitFor();
  assert.equal((await banOf(key)).until, was.until + 7 * 24 * HOUR);
  await undo(page);
  assert.ok(Math.abs((await banOf(key)).until - was.until) < 60_000, "the end is where it was");
  await close(page);

  await openBan(page, key);
  await page.getByRole("button", { name: "Lift the ban" }).press("Enter");
  await page.getByText(/is lifted/).waitFor();
  assert.equal(await banOf(key), undefined);
  await undo(page);
  const back = await banOf(key);
  assert.ok(back && back.reason === "scans" && Math.abs(back.until - was.until) < 60_000, JSON.stringify(back));
  await close(page);

  await openBan(page, key);
  await page.getByRole("button", { name: "Allow", exact: true }).last().press("Enter");
  await page.getByLabel("Reason").fill("a customer");
  await page.keyboard.press("Enter");
  await page.getByText(/is on the allowlist/).waitFor();
  assert.deepEqual([await banOf(key), (await entryOf(key)).reason], [undefined, "a customer"]);
  await undo(page);
  assert.deepEqual([(await banOf(key)).reason, await entryOf(key)], ["scans", undefined], "the ban is back, the entry is gone");
  await close(page);

  await api("POST", "/security/_allow", { ref: "ip:198.51.100.7", reason: "the office", duration_seconds: 86_400 });
  const until = (await entryOf("ip:198.51.100.7")).until;
  await page.getByRole("button", { name: "Allowlist" }).click();
  await openBan(page, "ip:198.51.100.7");
  await axe(page, "an entry of the allowlist");
  await page.getByRole("button", { name: "Take off the allowlist" }).press("Enter");
  await page.getByText(/is off the allowlist/).waitFor();
  assert.equal(await entryOf("ip:198.51.100.7"), undefined);
  await undo(page);
  const again = await entryOf("ip:198.51.100.7");
  assert.ok(again.reason === "the office" && Math.abs(again.until - until) < 60_000, JSON.stringify(again));
  await page.done();
});

test("allowing a banned caller by the search field keeps a way back to the ban", async () => {
  const page = await open(browser, server);
  const key = "ip:203.0.113.78";
  await api("POST", "/security/_ban", { ref: key, duration_seconds: 7200, reason: "tries passwords" });
  await login(page, "/console/bans?q=203.0.113.78");
  await page.locator(".rows .row", { hasText: key }).waitFor();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByLabel("Reason").fill("by mistake");
  await page.keyboard.press("Enter");
  await page.getByText(/is on the allowlist/).waitFor();
  assert.equal(await banOf(key), undefined);
  await undo(page);
  assert.equal((await banOf(key))?.reason, "tries passwords", "the ban that the allowance lifted is back");
  await page.done();
});

test("allowing a range is undone to all bans that it lifted, and allowing one address of IPv6 to none", async () => {
  const page = await open(browser, server);
  const keys = ["ip:203.0.112.7", "ip:203.0.112.90"];
  for (const [index, ref] of keys.entries()) await api("POST", "/security/_ban", { ref, duration_seconds: 7200 * (index + 1), reason: `scans ${index}` });
  const before = await Promise.all(keys.map(banOf));
  await login(page, "/console/bans?q=203.0.112.0%2F24");
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByLabel("Reason").fill("a customer");
  await page.keyboard.press("Enter");
  await page.getByText("2 bans were lifted.").waitFor();
  assert.deepEqual(await Promise.all(keys.map(banOf)), [undefined, undefined]);
  await undo(page);
  assert.equal(await entryOf("ip:203.0.112.0/24"), undefined);
  const back = await Promise.all(keys.map(banOf));
  back.forEach((ban, index) => assert.ok(ban?.reason === `scans ${index}` && Math.abs(ban.until - before[index].until) < 60_000, JSON.stringify(ban)));
  await close(page);

  await api("POST", "/security/_ban", { ref: "ip:2001:db8:5::1", duration_seconds: 7200, reason: "their network" });
  const network = await banOf("ip:2001:db8:5::1");
  await page.getByRole("searchbox").fill("2001:db8:5::9");
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByLabel("Reason").fill("one of them");
  await page.keyboard.press("Enter");
  await page.getByText("ip:2001:db8:5::9 is on the allowlist.", { exact: true }).waitFor();
  await undo(page);
  assert.deepEqual(await banOf("ip:2001:db8:5::1"), network, "a ban that was never lifted is made again");
  await page.done();
});

test("allowing an allowed caller again is undone to the entry that there was", async () => {
  const page = await open(browser, server);
  const key = "ip:198.51.100.8";
  await api("POST", "/security/_allow", { ref: key, reason: "the office", duration_seconds: 86_400 });
  const was = await entryOf(key);
  await login(page, "/console/bans?view=allowlist&q=198.51.100.8");
  await page.locator(".rows .row", { hasText: key }).waitFor();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByLabel("For").selectOption({ label: "for good" });
  await page.getByLabel("Reason").fill("another");
  await page.keyboard.press("Enter");
  await page.getByText(/is on the allowlist/).waitFor();
  assert.deepEqual([(await entryOf(key)).reason, (await entryOf(key)).until], ["another", null]);
  await undo(page);
  const back = await entryOf(key);
  assert.ok(back && back.reason === "the office" && Math.abs(back.until - was.until) < 60_000, JSON.stringify(back));
  await page.done();
});

test("banning a banned caller again is undone to the ban that there was", async () => {
  const page = await open(browser, server);
  const key = "ip:203.0.113.79";
  await api("POST", "/security/_ban", { ref: key, duration_seconds: 7200, reason: "first" });
  const was = await banOf(key);
  await login(page, "/console/bans?q=203.0.113.79");
  await page.locator(".rows .row", { hasText: key }).waitFor();
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByLabel("For").selectOption({ label: "30 days" });
  await page.getByLabel("Reason").fill("second");
  await page.keyboard.press("Enter");
  await page.getByText(/is banned/).waitFor();
  await undo(page);
  const back = await banOf(key);
  assert.ok(back && Math.abs(back.until - was.until) < 60_000, `the first ban is back: ${JSON.stringify(back)}`);
  await page.done();
});

test("a policy: created by the form, the error at its field, the difference, a conflict, the history and the way back", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies");
  await page.getByRole("link", { name: "New" }).focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Id", { exact: true }).fill("shop");
  await page.getByLabel("Name", { exact: true }).fill(`Shop ${SCRIPT}`);
  const weight = page.getByLabel("Waf block weight");
  await weight.fill("700");
  await page.locator(".field", { has: weight }).locator(".error").waitFor();
  assert.equal(await weight.getAttribute("aria-invalid"), "true");
  const about = await page.locator(`[id="${await weight.getAttribute("aria-describedby")}"]`).textContent();
  assert.match(about, /100/, "the message at the field says what is allowed");
  assert.ok(await page.getByRole("button", { name: "Review changes" }).isDisabled(), "a wrong document can be saved");
  await axe(page, "the error at its field");
  await weight.fill("60");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).press("Enter");
  await page.getByRole("dialog").locator(".added", { hasText: '"waf_block_weight": 60' }).waitFor();
  await axe(page, "the difference");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).press("Enter");
  await page.waitForURL("**/console/policies/threat-policies/shop");
  assert.equal((await api("GET", "/entities/threat-policies/shop")).waf_block_weight, 60);

  await page.getByLabel("Description", { exact: true }).fill("mine");
  await page.getByText("Valid and compiles").waitFor();
  await api("PATCH", "/entities/threat-policies/shop", { description: "theirs" });
  await page.getByRole("button", { name: "Review changes" }).click();
  const written = page.waitForResponse((response) => response.request().method() === "PUT" && response.url().endsWith("/shop"));
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  assert.equal((await written).status(), 412);
  await page.getByText(/Someone has changed it meanwhile/).waitFor();
  await axe(page, "a conflict");
  assert.equal((await api("GET", "/entities/threat-policies/shop")).description, "theirs");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(await page.getByLabel("Description", { exact: true }).inputValue(), "mine", "the own change is lost");

  await page.reload();
  await page.getByText("in force", { exact: true }).waitFor();
  await page.getByRole("button", { name: /Compare/ }).last().press("Enter");
  await page.getByRole("dialog").locator(".gone", { hasText: "theirs" }).waitFor();
  await page.getByRole("button", { name: "Write this version again" }).press("Enter");
  await page.getByText(/is in force again/).waitFor();
  assert.notEqual((await api("GET", "/entities/threat-policies/shop")).description, "theirs");
  await page.done();
});

const bouncer = { id: "crowd", name: "Crowd", enabled: false, api_key: "first-key-of-the-bouncer" };
/** The pointers of secrets in which the version in force differs from `since`. */
async function secretsSince(since) {
  const [{ version }] = await api("GET", "/entities/svc-bouncers/crowd/_history");
  assert.notEqual(version, since, "there is no further version");
  return (await api("GET", `/entities/svc-bouncers/crowd/_history/${version}?since=${since}`)).changes.secrets;
}

test("undo of a save and of a deletion brings secrets back", async () => {
  await api("POST", "/entities/svc-bouncers", bouncer);
  const [{ version }] = await api("GET", "/entities/svc-bouncers/crowd/_history");
  const page = await open(browser, server);
  await login(page, "/console/policies/svc-bouncers/crowd");
  const key = page.getByLabel("Api key", { exact: false }).first();
  assert.deepEqual([await key.getAttribute("type"), await key.inputValue()], ["password", ""], "the mask of a secret can be typed behind");
  await key.pressSequentially("second-key-of-the-bouncer");
  await page.getByText("Valid and compiles").waitFor();
  await axe(page, "a secret");
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText(/is saved/).waitFor();
  assert.deepEqual(await secretsSince(version), ["/api_key"], "the new key is stored");

  await page.getByRole("button", { name: `Compare ${version}` }).click();
  await page.getByRole("dialog").getByText("Secrets that differ: /api_key").waitFor();
  assert.equal(await page.getByText("Nothing differs.").count(), 0);
  await axe(page, "a version that differs in a secret");
  await page.keyboard.press("Escape");
  await undo(page);
  assert.deepEqual(await secretsSince(version), [], "the key before is in force");
  await close(page);

  await page.getByRole("button", { name: "Delete" }).click();
  await page.waitForURL("**/console/policies/svc-bouncers");
  await undo(page);
  assert.deepEqual(await secretsSince(version), [], "the deleted entity is back with its key");
  await close(page);

  await page.goto("/console/policies/svc-bouncers/crowd");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.waitForURL("**/console/policies/svc-bouncers");
  await api("POST", "/entities/svc-bouncers", { ...bouncer, name: "Theirs" });
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await page.getByText(/Someone has changed it meanwhile/).waitFor();
  assert.equal((await api("GET", "/entities/svc-bouncers/crowd")).name, "Theirs", "an entity that was created meanwhile is written over");
  await page.done();
});

test("the focus is at the heading after Undo, and after a dialog whose button is gone", async () => {
  await api("POST", "/entities/threat-policies", { id: "focus", name: "Focus" });
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/focus");
  const atHeading = () => page.waitForFunction(() => document.activeElement === document.querySelector("main h1"));
  await page.getByLabel("Description", { exact: true }).fill("changed");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).press("Enter");
  await page.getByText("Focus is saved.").waitFor();
  await atHeading();
  await undo(page);
  await atHeading();
  await page.done();
});

test("an earlier version is not written over a change that was not seen", async () => {
  await api("POST", "/entities/threat-policies", { id: "seen", name: "Seen" });
  await api("PATCH", "/entities/threat-policies/seen", { description: "mine" });
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/seen");
  await page.getByRole("button", { name: /Compare/ }).last().click();
  await page.getByRole("dialog").locator(".gone", { hasText: "mine" }).waitFor();
  await api("PATCH", "/entities/threat-policies/seen", { description: "theirs" });
  await page.getByRole("button", { name: "Write this version again" }).click();
  await page.getByRole("dialog").getByText(/Someone has changed it meanwhile/).waitFor();
  assert.equal((await api("GET", "/entities/threat-policies/seen")).description, "theirs");
  await page.done();
});

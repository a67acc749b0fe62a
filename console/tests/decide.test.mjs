/** Bans, policies, rules, and every other page by axe. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, answer, axe, login, open, shot, withServer } from "./support.mjs";
import { bans, paged } from "./samples.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

test("a ban by hand, its extension, its end, the allowlist, and the way back", async () => {
  const page = await open(browser, server);
  await login(page, "/console/bans");
  await page.getByText("0 entries").waitFor();
  await page.getByRole("searchbox").fill("203.0.113.9");
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByLabel("Reason").fill(SCRIPT);
  await page.getByRole("dialog").getByRole("button", { name: "Ban" }).click();
  await page.getByText(/ip:203.0.113.9 is banned/).waitFor();
  const row = page.locator(".rows .row", { hasText: "ip:203.0.113.9" });
  await row.waitFor();
  await axe(page, "bans");
  await row.click();
  await page.getByRole("button", { name: "Extend the ban" }).click();
  await page.getByLabel("By", { exact: true }).selectOption({ label: "7 days" });
  await page.getByRole("dialog").getByRole("button", { name: "Extend the ban" }).click();
  await page.getByText(/was extended/).waitFor();
  const [ban] = (await api("GET", "/security/_bans")).bans;
  assert.ok(ban.until - Date.now() > 6 * 86_400_000 && ban.reason === SCRIPT);
  await row.click();
  await axe(page, "a ban");
  await page.getByRole("button", { name: "Lift the ban" }).click();
  await page.getByText(/is lifted/).waitFor();
  assert.equal((await api("GET", "/security/_bans")).bans.length, 0);
  await page.getByRole("button", { name: "Undo" }).last().click();
  await page.getByText("Undone.").waitFor();
  assert.equal((await api("GET", "/security/_bans")).bans.length, 1);
  await page.getByRole("button", { name: "Allowlist" }).click();
  await page.getByRole("searchbox").fill("192.0.2.0/24");
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByLabel("For").selectOption({ label: "for good" });
  await page.getByLabel("Reason").fill("the office");
  await page.getByRole("dialog").getByRole("button", { name: "Allow" }).click();
  await page.locator(".rows .row", { hasText: "the office" }).waitFor();
  await page.done();
});

test("100,000 bans scroll and filter", async () => {
  const page = await open(browser, server);
  await answer(page, "/security/_bans", paged(bans(100_000), "bans"));
  await login(page, "/console/bans");
  await page.getByText("100,000 entries").waitFor();
  await axe(page, "many bans");
  await shot(page, "bans");
  await page.locator(".rows .row").first().focus();
  await page.keyboard.press("End");
  await page.locator(".row:focus", { hasText: "ip:11.134.159.7" }).waitFor();
  await page.getByRole("searchbox").fill("11.134.1");
  await page.getByText(/^[\d,]+ entries found$/).waitFor({ timeout: 60_000 });
  const times = await page.evaluate(async () => {
    const input = document.querySelector("main input[type=search]");
    const times = [];
    for (const text of ["10.200.", "spraying", "ledger", "11.1"]) {
      const count = document.querySelector(".count");
      const before = count.textContent;
      const begun = performance.now();
      input.value = text;
      input.dispatchEvent(new Event("input", { bubbles: true }));
      while ((count.textContent === before || count.textContent.endsWith("…")) && performance.now() - begun < 3000) await new Promise(requestAnimationFrame);
      times.push(Math.round(performance.now() - begun));
    }
    return times;
  });
  console.log("100,000 bans, filter in milliseconds:", JSON.stringify(times));
  await page.done();
});

test("a policy: form, JSON, errors as it is typed, difference, history and revert", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies");
  await page.getByRole("link", { name: /Threat policies/ }).waitFor();
  await axe(page, "policies");
  await shot(page, "policies");
  await page.getByRole("link", { name: /Threat policies/ }).click();
  await page.getByRole("link", { name: "New" }).click();
  await page.getByLabel("Id", { exact: true }).fill("shop");
  await page.getByLabel("Name", { exact: true }).fill(SCRIPT);
  await page.getByLabel("Waf block weight").fill("700");
  await page.getByText(/1 to correct/).waitFor();
  await axe(page, "an entity with an error");
  await page.getByLabel("Waf block weight").fill("60");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByText('"waf_block_weight": 60').waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(/is saved/).waitFor();
  await page.getByRole("heading", { name: SCRIPT }).waitFor();
  await page.getByLabel("Name", { exact: true }).fill("Shop policy");
  await page.getByLabel("Description", { exact: true }).fill("What happens to callers with a score");
  await page.getByRole("button", { name: "Add an entry" }).click();
  await page.getByLabel(/Min score/).fill("70");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").locator(".added").first().waitFor();
  await axe(page, "review");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Shop policy" }).waitFor();
  assert.equal((await api("GET", "/entities/threat-policies/shop")).tiers.length, 1);
  await page.getByText("in force", { exact: true }).waitFor();
  await axe(page, "an entity");
  await shot(page, "policy");
  await page.getByRole("button", { name: /Compare/ }).first().click();
  await page.getByRole("button", { name: "Write this version again" }).click();
  await page.getByText(/is in force again/).waitFor();
  await page.getByRole("heading", { name: SCRIPT }).waitFor();
  assert.equal((await api("GET", "/entities/threat-policies/shop")).tiers.length, 0);
  await page.done();
});

test("two operators at once: the second one is told", async () => {
  await api("POST", "/entities/threat-policies", { id: "both", name: "Both" });
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/both");
  await page.getByLabel("Description", { exact: true }).fill("mine");
  await api("PATCH", "/entities/threat-policies/both", { description: "theirs" });
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(/Someone has changed it meanwhile/).waitFor();
  assert.equal((await api("GET", "/entities/threat-policies/both")).description, "theirs");
  await page.done();
});

test("rules are compiled as they are typed and tried on a request", async () => {
  const page = await open(browser, server);
  await login(page, "/console/rules");
  await page.getByText("Compiles", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Test the request" }).click();
  await page.getByText("Refused with 403 by rule 10001.").waitFor();
  await page.locator("mark", { hasText: "DROP TABLE" }).or(page.locator("mark", { hasText: "drop table" })).first().waitFor();
  await axe(page, "rules");
  await shot(page, "rules");
  await page.getByRole("textbox", { name: "SecLang rules" }).focus();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.insertText(`SecRule ARGX "@rx a" "id:1,phase:2,deny"`);
  await page.getByText(/unknown variable/).first().waitFor();
  await axe(page, "rules with an error");
  await page.done();
});

test("every page, light and dark, has a heading and no violation", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(browser, server, { colorScheme });
    await login(page);
    for (const path of ["bans", "tuning", "learning", "lookup?ip=192.0.2.1", "sources", "api", "bots", "operators", "account", "events", "audit", "why", "policies/routes", "policies/global-config/global-config", "policies/waf-configs/_new", "policies/bot-policies/_new", "nothing"]) {
      await page.goto(`/console/${path}`);
      await page.locator("main h1").waitFor();
      await page.waitForLoadState("networkidle");
      await axe(page, `${path}, ${colorScheme}`);
    }
    await page.done();
  }
});

test("the keyboard reaches everything: skip link, help, shortcuts", async () => {
  const page = await open(browser, server);
  await login(page, "/console/bans");
  await page.reload();
  await page.locator("main h1").waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").textContent(), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Shortcuts" }).waitFor();
  await axe(page, "shortcuts");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.waitForURL("**/console/policies");
  await page.locator("h1:focus", { hasText: "Policies" }).waitFor({ state: "attached" });
  await page.done();
});

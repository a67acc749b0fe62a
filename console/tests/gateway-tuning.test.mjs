/** Tuning and learning with a real gateway: from a false positive to the exclusion that ends it, and back. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, axe, launch, login, open } from "./support.mjs";
import { Gateway, referenceOf, until } from "./gateway.mjs";

/** A rule that is too eager, and one that catches some of the known attacks: with the Core Rule Set all that is tried takes a minute in a test build. */
const RULES = [
  `SecRule ARGS "@contains zebra crossing" "id:10050,phase:2,deny,status:403,log,msg:'a zebra <img src=x onerror=attacked=1>'"`,
  `SecRule ARGS "@rx (?i)union.{1,40}select" "id:10051,phase:2,deny,status:403,log,msg:'SQL'"`,
];
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const comment = (number) => [`/posts/${number}/comments`, { method: "POST", headers: FORM, body: "content=meet+at+the+zebra+crossing&page=1" }];

let gateway, browser;
before(async () => {
  gateway = await Gateway.start(async (api, backend) => {
    await api("POST", "/entities/waf-configs", { id: "shop", name: "Shop", rules: RULES });
    await api("POST", "/entities/threat-policies", { id: "shop", name: "Shop", dry_run: false, tiers: [] });
    await api("POST", "/entities/routes", { id: "shop", name: "Shop", backend, plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "shop", waf_config: "shop" } }] });
  });
  browser = await launch();
  await gateway.answers(403, ...comment(4200));
  for (let number = 0; number < 5; number += 1) assert.equal((await gateway.send(...comment(4300 + number))).status, 403);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** Counts clicks of the mouse from now on, also on fields. */
async function clicks(page) {
  await page.evaluate(() => {
    window.clicks = 0;
    addEventListener("pointerdown", () => (window.clicks += 1), true);
  });
  return () => page.evaluate(() => window.clicks);
}

test("tuning: from the false positive to the verified exclusion in four clicks, and the way back", async () => {
  await until("the match", async () => (await gateway.api("GET", "/tuning/_matches")).matches.some((match) => match.rule_id === 10050 && match.count >= 6));
  const lines = ["the+zebra+crossing", "hello"].map((content) => JSON.stringify({ request: { method: "POST", path: "/posts/1/comments", host: "shop.example", headers: Object.entries(FORM), body: `content=${content}` }, response: { status: 200 } }));
  const call = await gateway.server.session();
  const uploaded = await call("POST", "/replay/_upload?name=monday.jsonl", `${lines.join("\n")}\n`, { "content-type": "application/octet-stream" });
  assert.equal(uploaded.status, 200, await uploaded.text());
  const page = await open(browser, gateway.server);
  await login(page);
  const counted = await clicks(page);
  await page.getByRole("navigation").getByRole("link", { name: "Tuning" }).click();
  await page.locator(".rows .row", { hasText: "ARGS:content" }).click();
  const recommended = page.locator(".proposals > li", { hasText: "recommended" });
  await recommended.waitFor({ timeout: 60_000 });
  await recommended.getByText("safe", { exact: true }).waitFor();
  await recommended.getByText("monday.jsonl: of 2 requests the rule matches 1 before, 0 after; 1 refused before, 0 after").waitFor();
  await axe(page, "proposals");
  await recommended.getByLabel("Reason").click();
  await page.keyboard.type(`children's books ${SCRIPT}`);
  await recommended.getByRole("button", { name: "Apply this exclusion" }).click();
  await page.getByText("Exclusion 50000 is written.").waitFor({ timeout: 60_000 });
  assert.equal(await counted(), 4, "clicks from the overview to the exclusion");
  await gateway.answers(200, ...comment(4207));
  const other = "/posts/7000/comments?other=zebra+crossing";
  assert.equal((await gateway.send(other)).status, 403, "another input is still looked at");

  await page.locator(".toast").last().getByRole("button", { name: "Undo" }).press("Enter");
  await page.getByText("Undone.").waitFor();
  await gateway.answers(403, ...comment(4207));
  await page.done();
});

test("tuning by keyboard, from the reference that the refused caller reports", async () => {
  const reference = referenceOf(await gateway.send("/letters/7000/comments?content=a+zebra+crossing"));
  await until("the match of the reference", async () => (await gateway.api("GET", "/tuning/_matches")).matches.some((match) => match.references.includes(reference)));
  const page = await open(browser, gateway.server);
  await login(page, "/console/why");
  await page.getByRole("searchbox").fill(reference);
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "It was refused wrongly: find an exclusion" }).press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("recommended").waitFor({ timeout: 60_000 });
  await dialog.getByText("/letters/{id}/comments").first().waitFor();
  // What would let attacks pass is not written without a word.
  const unsafe = dialog.locator(".proposals > li", { hasText: "not safe" }).first();
  if ((await unsafe.count()) > 0) {
    assert.ok(await unsafe.getByRole("button", { name: "Apply this exclusion" }).isDisabled());
    await unsafe.getByLabel("Apply although attacks would pass").check();
    assert.ok(await unsafe.getByRole("button", { name: "Apply this exclusion" }).isEnabled());
  }
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(new URL(page.url()).searchParams.get("reference"), null, "a closed dialog opens again with the next reload");
  await page.goto("/console/tuning?q=letters");
  await page.locator(".rows .row", { hasText: "/letters/{id}/comments" }).waitFor();
  assert.equal(await page.locator(".rows .row", { hasText: "/posts/" }).count(), 0);
  await axe(page, "tuning");
  await page.getByLabel("Reference").fill("no such reference");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").waitFor();
  await axe(page, "an unknown reference");
  await page.done();
});

test("tuning for lower roles: an analyst sees the proposals and applies none, a viewer sees the matches", async () => {
  gateway.server.add("anna", "analyst");
  gateway.server.add("vera", "viewer");
  await until("a match", async () => (await gateway.api("GET", "/tuning/_matches")).matches.some((match) => match.rule_id === 10050));
  const analyst = await open(browser, gateway.server);
  await login(analyst, "/console/tuning", "anna");
  await analyst.locator(".rows .row", { hasText: "ARGS:content" }).first().click();
  const first = analyst.locator(".proposals > li").first();
  await first.waitFor({ timeout: 60_000 });
  assert.equal(await first.locator("[data-role=admin]").textContent(), "This needs the role admin; yours is analyst.");
  assert.ok(await first.getByRole("button", { name: "Apply this exclusion" }).isDisabled());
  await axe(analyst, "proposals, for an analyst");
  await analyst.done();
  const viewer = await open(browser, gateway.server);
  await login(viewer, "/console/tuning", "vera");
  await viewer.locator(".rows .row", { hasText: "ARGS:content" }).first().click();
  await viewer.locator("main [data-role=analyst]").waitFor();
  await viewer.waitForTimeout(300);
  assert.equal(await viewer.getByRole("dialog").count(), 0, "a viewer gets a dialog whose call is refused");
  await viewer.done();
});

test("learning: no window, start, report, apply, stop, discard", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/learning");
  await page.getByText("No learning window: nothing is counted for this configuration.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Discard" }).isDisabled());
  await axe(page, "without a window");
  // What is refused is not inspected to its end: the config only detects while it learns.
  await gateway.api("PATCH", "/entities/waf-configs/shop", { block: false });
  await gateway.answers(200, ...comment(5000));
  await page.getByRole("button", { name: "Start a window" }).press("Enter");
  await page.getByText("Counting has begun.").waitFor();
  await page.getByText("running", { exact: true }).waitFor();
  await axe(page, "a window");

  for (let number = 0; number < 400; number += 1) {
    const text = number % 5 ? "nothing" : "the+zebra+crossing+again";
    await gateway.send(`/blog/${number}000?page=${number}&text=${text}`, { from: `198.51.${number % 4}.${1 + (number % 9)}` });
  }
  await until("the report", async () => (await gateway.api("POST", "/learning/_report", { config_ref: "shop" })).exclusions.some((exclusion) => exclusion.accepted), 120_000);
  await page.reload();
  await page.getByRole("button", { name: "Write the verified exclusion" }).waitFor({ timeout: 60_000 });
  await page.getByRole("row", { name: /10050/ }).first().waitFor();
  await axe(page, "a report");
  await page.getByLabel("Reason").fill("ordinary texts");
  await page.keyboard.press("Enter");
  await page.getByText("1 exclusion written").waitFor({ timeout: 60_000 });
  const ruleset = await gateway.api("GET", "/entities/waf-rulesets/exclusions-shop");
  assert.ok(ruleset.rules.some((rule) => rule.includes("ordinary texts") && rule.includes("10050")), JSON.stringify(ruleset.rules));

  // What everybody sends alike has a rule that reports other values.
  let pages = 400;
  await until("the profile", async () => {
    for (const more of Array.from({ length: 20 }, (_, index) => index)) await gateway.send(`/blog/7000?page=${(pages += 1)}`, { from: `198.51.${more % 4}.${1 + (more % 9)}` });
    const { profile } = await gateway.api("POST", "/learning/_report", { config_ref: "shop" });
    return profile.parameters.some((one) => one.target.full === "ARGS:page" && one.seclang);
  }, 120_000);
  await page.reload();
  const row = page.getByRole("row", { name: /ARGS:page/ });
  await row.getByText("number", { exact: true }).waitFor();
  await row.getByRole("checkbox").press("Space");
  await page.getByLabel("Rules").getByText(/ARGS:page is not what it usually is/).waitFor();
  await axe(page, "a profile");
  const reason = page.locator("form", { has: page.getByLabel("Rules") }).getByLabel("Reason");
  await reason.fill("pages are numbers");
  await reason.press("Enter");
  await page.getByText("1 rule written").waitFor({ timeout: 60_000 });
  const profiled = async () => (await gateway.api("GET", "/entities/waf-rulesets/exclusions-shop")).rules.filter((rule) => rule.startsWith("# Profile") && rule.includes("pages are numbers")).length;
  assert.equal(await profiled(), 1);
  await page.getByRole("button", { name: "Undo" }).click();
  await until("the rule is taken back", async () => (await profiled()) === 0);

  await page.getByRole("button", { name: "Stop" }).press("Enter");
  await page.getByText("stopped", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Discard" }).press("Enter");
  await page.getByText("No learning window: nothing is counted for this configuration.").waitFor();
  await axe(page, "after the window was discarded");
  await page.done();
});

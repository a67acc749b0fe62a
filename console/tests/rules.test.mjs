/** The rules editor and the steps of a test. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, answer, axe, login, open, shot, withServer } from "./support.mjs";
import { explained } from "./samples.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

const editor = (page) => page.getByRole("textbox", { name: "SecLang rules" });
const ready = (page) => page.locator(".seclang[data-ready=true]").first().waitFor();
/** Replaces the text of an editor as an operator would, who selects all and pastes. */
async function replace(page, box, text) {
  await box.focus();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.insertText(text);
}
/** The text of the editor, from its lines. */
const text = (page) => page.locator(".cm-line").allTextContents().then((lines) => lines.join("\n"));

test("rules are written by keyboard alone: completion, messages at their lines, and the way out", async () => {
  const page = await open(browser, server);
  await login(page, "/console/rules");
  await ready(page);
  await editor(page).focus();
  await page.keyboard.press("ControlOrMeta+A");
  // The letters of the console's shortcuts are only letters here.
  await page.keyboard.type("# go live? /\nSecR");
  await page.getByRole("option", { name: /^SecRule a rule/ }).waitFor();
  await axe(page, "completion");
  await page.keyboard.press("Escape");
  await page.keyboard.type("ule ARGS:q \"@detectS");
  await page.getByRole("option", { name: /detectSQLi.*SQL injection/ }).waitFor();
  // The list takes keys only when it has been there for a moment, so that typing on does not choose.
  await page.waitForTimeout(150);
  await page.keyboard.press("Enter");
  assert.match(await text(page), /# go live\? \/\nSecRule ARGS:q "@detectSQLi"$/);
  assert.match(page.url(), /\/console\/rules$/);
  await page.keyboard.press("End");
  await page.keyboard.type(" \"id:7,phase:2,deny,foo");
  await page.locator(".cm-problem", { hasText: "foo" }).waitFor();
  await page.locator(".cm-gutter-lint .cm-lint-marker-error").waitFor();
  assert.equal(await page.locator(".cm-problem").count(), 1);
  assert.equal(await editor(page).getAttribute("aria-invalid"), "true");
  await axe(page, "an error at its line");
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.press("F8");
  assert.match(await page.evaluate(() => document.querySelector(".seclang > div").shadowRoot.querySelector(".cm-activeLine").textContent), /SecRule/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.type), "checkbox");
  await page.getByRole("button", { name: "Go to line 2" }).click();
  await page.locator(".cm-editor.cm-focused").waitFor();
  await page.done();
});

test("fast typing, undo and a text from outside keep the text as it is", async () => {
  const page = await open(browser, server);
  await login(page, "/console/rules");
  await ready(page);
  await editor(page).focus();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.press("Delete");
  const line = "SecRule ARGS:abcdefghijklmnopqrstuvwxyz 0123456789";
  await page.keyboard.type(line);
  assert.equal(await text(page), line);
  await page.locator(".cm-problem").first().waitFor();
  assert.equal(await text(page), line);
  await page.keyboard.press("ControlOrMeta+Z");
  assert.notEqual(await text(page), line);
  await page.done();
});

test("a test of a request goes step by step, with scores and covered values", async () => {
  const page = await open(browser, server);
  await login(page, "/console/rules");
  await ready(page);
  await page.getByLabel("With the Core Rule Set").check();
  await page.getByLabel("Path and query").fill("/login?password=1'%20UNION%20SELECT%20x%20FROM%20users--&q=<script>window.attacked=1</script>");
  await page.getByRole("button", { name: "Test the request" }).click();
  await page.getByText(/Refused with 403 by rule 949110/).first().waitFor({ timeout: 60_000 });
  const steps = page.getByRole("list", { name: "What matched, step by step" });
  await steps.locator("button[aria-current]").focus();
  await page.keyboard.press("Home");
  await page.getByText(/^Step 1 of \d+$/).waitFor();
  let sqli = false;
  let last = 0;
  for (let turn = 0; turn < 40; turn += 1) {
    const shown = await page.locator(".step").textContent();
    const score = /(\d+) before, (\d+) after/.exec(shown);
    if (score) {
      assert.equal(Number(score[1]), last, shown);
      assert.ok(Number(score[2]) > last, shown);
      last = Number(score[2]);
    }
    if (/ARGS:password/.test(shown)) {
      sqli = true;
      assert.doesNotMatch(shown, /UNION/);
      assert.match(shown, /1'••••/);
    }
    if (/Verdict/.test(shown)) break;
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((before) => document.querySelector(".step").textContent !== before, shown);
  }
  assert.ok(sqli, "no step has the argument that matched");
  assert.match(await page.locator(".notice").first().textContent(), new RegExp(`Anomaly score ${last} of 5`));
  await page.keyboard.press("Home");
  await page.getByText(/^Step 1 of/).waitFor();
  await page.getByRole("button", { name: "Next →" }).click();
  await page.getByText(/^Step 2 of/).waitFor();
  await page.getByRole("button", { name: "← Back" }).click();
  await page.getByText(/^Step 1 of/).waitFor();
  await steps.getByRole("button", { name: /942/ }).first().click();
  await page.getByLabel("show values that may be secrets").check();
  await page.locator("mark", { hasText: "UNION" }).first().waitFor();
  await axe(page, "steps");
  await page.getByLabel("show values that may be secrets").uncheck();
  await page.setViewportSize({ width: 1360, height: 1560 });
  await shot(page, "rules-steps");
  await page.done();
});

test("a request is rebuilt from stored events, whatever they have in them", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_reference", (url) => ({ body: url.searchParams.get("reference") === "known" ? explained("known") : { ...explained("x"), found: false, request: null, rules: [] } }));
  await login(page, "/console/why?reference=known");
  await page.getByRole("link", { name: "Test rules with it" }).click();
  await page.waitForURL("**/console/rules?reference=known");
  await page.getByText(/Rebuilt from what is stored/).waitFor();
  const target = await page.getByLabel("Path and query").inputValue();
  assert.match(target, /^\/search\/.*\?q=1'%20UNION%20SELECT/);
  assert.ok(decodeURIComponent(target).includes(SCRIPT));
  assert.equal(await page.getByLabel("Address of the client").inputValue(), "203.0.113.9");
  await ready(page);
  await replace(page, editor(page), `SecRule ARGS:q "@contains union" "id:3,phase:2,deny,status:418,t:lowercase,log,msg:'found %{MATCHED_VAR}'"`);
  await page.getByText("Compiles", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Test the request" }).click();
  await page.getByText("Refused with 418 by rule 3.").first().waitFor();
  await page.locator("mark", { hasText: "<img src=x" }).or(page.locator("mark", { hasText: "onerror" })).first().waitFor();
  await axe(page, "a rebuilt request");
  await page.getByLabel("Reference of a request").fill("other");
  await page.getByRole("button", { name: "Take the request" }).click();
  await page.getByText("Nothing is stored about this reference.").waitFor();
  await page.done();
});

test("rules of entities have the editor, with the message at the line", async () => {
  await api("POST", "/entities/waf-rulesets", { id: "own", name: SCRIPT, rules: ["SecRule ARGS \"@rx a\" \\\n  \"id:1,phase:2,pass\"", `SecAction "id:2,phase:1,pass,msg:'x'"`] });
  const page = await open(browser, server);
  await login(page, "/console/policies/waf-rulesets/own");
  await page.locator("summary", { hasText: "SecAction" }).click();
  await ready(page);
  const second = page.getByRole("textbox", { name: "SecLang, entry 2" });
  await replace(page, second, "# one\nSecRule ARGX \"@rx b\" \"id:2,phase:2,pass\"");
  await page.locator(".cm-problem", { hasText: "ARGX" }).waitFor();
  await axe(page, "a ruleset with an error");
  await replace(page, second, "# one\nSecRule ARGS \"@rx b\" \\\n  \"id:2,phase:2,pass\"");
  await page.getByText("Valid and compiles").waitFor();
  assert.equal(await page.locator(".cm-problem").count(), 0);
  assert.equal(await second.getAttribute("aria-invalid"), "false");
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(/is saved/).waitFor();
  assert.deepEqual((await api("GET", "/entities/waf-rulesets/own")).rules, ["SecRule ARGS \"@rx a\" \\\n  \"id:1,phase:2,pass\"", "# one\nSecRule ARGS \"@rx b\" \\\n  \"id:2,phase:2,pass\""]);
  await page.done();
});

test("the editor in the dark, in German and on a phone", async () => {
  const page = await open(browser, server, { colorScheme: "dark", locale: "de-DE" });
  await page.goto("/console/rules");
  await page.getByLabel("Name").fill("alice");
  await page.getByLabel("Passwort").fill("correct horse battery");
  await page.keyboard.press("Enter");
  await ready(page);
  await page.getByRole("button", { name: "Anfrage probieren" }).click();
  await page.getByText("Mit 403 abgewiesen von Regel 10001.").first().waitFor();
  await axe(page, "rules, dark");
  await page.done();
  const phone = await open(browser, server, { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 });
  await phone.goto("/console/rules");
  await phone.getByLabel("Name").fill("alice");
  await phone.getByLabel("Password").fill("correct horse battery");
  await phone.keyboard.press("Enter");
  await ready(phone);
  await phone.getByRole("button", { name: "Test the request" }).click();
  await phone.getByText("Refused with 403 by rule 10001.").first().waitFor();
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the phone");
  await axe(phone, "rules, phone");
  await phone.done();
});

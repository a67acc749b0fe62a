/** Forms of entities: errors at their controls, groups that stay open, numbers, edits that are not saved, messages. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, PASSWORD, axe, login, open, withServer } from "./support.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

/** The text that describes an element. */
async function description(page, element) {
  const id = await element.getAttribute("aria-describedby");
  return id === null ? "" : page.locator(`[id="${id}"]`).textContent();
}
/** Answers the checks of a collection with these errors. */
async function errors(page, collection, errors) {
  await page.route((url) => url.pathname === `${NS}/entities/${collection}/_bulk`, (route) => route.fulfill({ contentType: "application/x-ndjson", body: `${JSON.stringify({ status: 400, error: "invalid_entity", error_description: "no", errors })}\n` }));
}
/** What the next question of the browser says, and its answer. */
async function nextDialog(page, accept) {
  const dialog = await page.waitForEvent("dialog");
  await (accept ? dialog.accept() : dialog.dismiss());
  return dialog.message();
}

test("an error is at the control that has its part, or above the form", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/asn-databases/_new");
  await page.getByLabel("Id", { exact: false }).first().fill("networks");
  const first = page.locator("fieldset.entry").first();
  await first.getByLabel("Name", { exact: false }).first().fill("Not A Name");
  await page.getByText(/1 to correct/).waitFor();
  assert.match(await description(page, first.getByLabel("Name", { exact: false }).first()), /cannot be the name of a class/);
  assert.equal(await page.locator(".notice.bad").count(), 0);

  await errors(page, "asn-databases", [
    { pointer: "/categories/1", message: "the whole entry" },
    { pointer: "/categories/0/org_contains/2", message: "the third owner" },
    { pointer: "/categories/0/asns/1", message: "the second network" },
    { pointer: "/categories/0/unknown", message: "an unknown field" },
    { pointer: "/categories/9", message: "an entry that is not there" },
    { pointer: "/metadata/x", message: "a hidden field" },
  ]);
  await first.getByLabel("Name", { exact: false }).first().fill("cdn");
  await page.getByText(/6 to correct/).waitFor();
  assert.equal(await description(page, page.locator("fieldset.entry").nth(1)), "the whole entry");
  const owners = first.getByLabel("Org contains", { exact: false });
  assert.match(await description(page, owners), /^\/2 the third owner/);
  assert.equal(await owners.getAttribute("aria-invalid"), "true");
  assert.match(await description(page, first.getByLabel("Asns", { exact: false })), /^\/1 the second network/);
  assert.deepEqual(await page.locator(".notice.bad li").allTextContents(), ["/categories/0/unknown an unknown field", "/categories/9 an entry that is not there", "/metadata/x a hidden field"]);
  await axe(page, "errors of parts");
  await page.done();
});

test("a group that an error has opened stays open while it is mended", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/global-config/global-config");
  const group = page.locator("details.group", { has: page.locator("summary", { hasText: /^Gateway/ }) }).first();
  await group.locator("summary").first().click();
  const port = group.getByLabel("Port", { exact: false });
  await port.fill("");
  await port.pressSequentially("700000");
  await page.getByText(/1 to correct/).waitFor();
  assert.match(await description(page, port), /invalid value/);
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Backspace");
  await page.getByText(/to correct/).waitFor({ state: "detached" });
  await page.waitForTimeout(200);
  assert.ok(await port.evaluate((input) => input === document.activeElement), "the focus has left the field");
  await page.keyboard.type("?g");
  assert.equal(await page.getByRole("dialog").count(), 0, "typing is a shortcut");
  await page.getByText(/Discard changes/).click();
  assert.equal(await group.evaluate((details) => details.open), true);
  await page.done();
});

test("an emptied number is the default, which does not come back into the field", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/_new");
  const weight = page.getByLabel("Waf block weight");
  await weight.fill("99");
  await weight.fill("");
  assert.equal(await weight.inputValue(), "");
  assert.match(await weight.getAttribute("placeholder"), /^\d+$/, "the default is not shown");
  await weight.pressSequentially("5");
  assert.equal(await weight.inputValue(), "5");
  await weight.fill("");
  await weight.pressSequentially("0.");
  assert.match(await page.getByRole("textbox", { name: "JSON" }).inputValue(), /"waf_block_weight": 0/);
  await page.done();
});

test("edits that are not saved are asked for before they are left", async () => {
  await api("POST", "/entities/threat-policies", { id: "kept", name: "Kept" });
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies");
  await page.locator("main").getByRole("link", { name: "Kept" }).or(page.locator(".rows .row", { hasText: "Kept" })).first().click();
  await page.waitForURL("**/threat-policies/kept");
  const text = page.getByLabel("Description", { exact: true });
  await text.fill("half of a");
  const nav = page.getByRole("navigation");
  let asked = nextDialog(page, false);
  await nav.getByRole("link", { name: "Incidents" }).click();
  assert.match(await asked, /not saved/);
  assert.match(page.url(), /threat-policies\/kept$/);
  asked = nextDialog(page, false);
  await page.evaluate(() => history.back());
  await asked;
  await page.waitForURL("**/threat-policies/kept");
  assert.equal(await text.inputValue(), "half of a", "Back has dropped the edits");
  asked = nextDialog(page, false);
  await page.getByRole("button", { name: "Log out" }).click();
  await asked;
  assert.equal(await text.inputValue(), "half of a");

  // The session ends meanwhile.
  await page.context().clearCookies();
  asked = nextDialog(page, false);
  await text.pressSequentially(" sentence");
  assert.match(await asked, /session has ended/);
  assert.equal(await text.inputValue(), "half of a sentence");
  await text.pressSequentially(".");
  await page.waitForTimeout(800);
  asked = nextDialog(page, true);
  await nav.getByRole("link", { name: "Incidents" }).click();
  await asked;
  await page.waitForURL("**/console/login**");
  await page.done();
});

test("a saved or discarded edit is left without a question", async () => {
  const page = await open(browser, server);
  let [dialogs, stays] = [0, true];
  page.on("dialog", (dialog) => { dialogs += 1; void (stays ? dialog.dismiss() : dialog.accept()); });
  await login(page, "/console/policies/threat-policies/_new");
  await page.getByLabel("Id", { exact: true }).fill("quick");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.waitForURL("**/threat-policies/quick");
  await page.getByLabel("Description", { exact: true }).fill("x");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Incidents" }).click();
  await page.waitForURL("**/incidents");
  await page.goto("/console/policies/threat-policies/quick");
  await page.getByLabel("Description", { exact: true }).fill("y");
  await page.getByRole("link", { name: "Replay this change" }).click();
  await page.waitForURL("**/replay?**");
  assert.equal(dialogs, 0);
  assert.match(await page.evaluate(() => sessionStorage.getItem("palisade.replay")), /"quick"/);
  await page.getByText("This is your change, which is not saved.").waitFor();
  stays = false;
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  assert.equal(dialogs, 1);
  assert.equal(await page.evaluate(() => sessionStorage.getItem("palisade.replay")), null, "the draft stays for the next operator");
  await page.done();
});

test("edits of a new entity can be discarded", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/_new");
  const text = page.getByLabel("Description", { exact: true });
  await text.waitFor();
  assert.equal(await page.getByRole("button", { name: "Discard changes" }).count(), 0);
  await text.fill("half of a");
  await page.getByRole("button", { name: "Discard changes" }).click();
  assert.equal(await text.inputValue(), "");
  let dialogs = 0;
  page.on("dialog", (dialog) => { dialogs += 1; void dialog.accept(); });
  await page.getByRole("navigation").getByRole("link", { name: "Incidents" }).click();
  await page.waitForURL("**/incidents");
  assert.equal(dialogs, 0);
  await page.done();
});

test("a change on its way to a replay is asked for before it is lost, and is there after loading the page again", async () => {
  for (const id of ["tried", "untried"]) await api("POST", "/entities/threat-policies", { id, name: id });
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/tried");
  await page.getByLabel("Description", { exact: true }).fill("half of a");
  await page.getByRole("link", { name: "Replay this change" }).click();
  const json = page.getByRole("textbox", { name: "JSON" });
  const shown = async () => JSON.parse(await json.inputValue());
  const kept = (text) => page.waitForFunction((text) => sessionStorage.getItem("palisade.replay")?.includes(text), text);
  await page.getByText("This is your change, which is not saved.").waitFor();
  await json.fill(JSON.stringify({ ...(await shown()), description: "the whole change" }));
  await kept("the whole change");
  let asked = nextDialog(page, false);
  await page.getByRole("navigation").getByRole("link", { name: "Incidents" }).click();
  assert.match(await asked, /not saved/);
  const policy = page.locator("label", { hasText: /^Policy/ }).getByRole("combobox");
  asked = nextDialog(page, false);
  await policy.selectOption("untried");
  assert.match(await asked, /not saved/);
  assert.equal(await policy.inputValue(), "tried");
  await page.reload();
  await page.getByText("This is your change, which is not saved.").waitFor();
  assert.equal((await shown()).description, "the whole change", "the draft is lost");
  asked = nextDialog(page, true);
  await policy.selectOption("untried");
  await asked;
  await page.waitForFunction(() => JSON.parse(document.querySelector("textarea.json")?.value ?? "{}").id === "untried");
  assert.equal(await page.evaluate(() => sessionStorage.getItem("palisade.replay")), null);

  // A change that begins here.
  await json.fill(JSON.stringify({ ...(await shown()), description: "begun here" }));
  await kept("begun here");
  await page.waitForURL("**draft=1**");
  await axe(page, "a change that is not saved");
  await page.goto("/console/replay");
  await page.getByText("This is your change, which is not saved.").waitFor();
  assert.deepEqual([(await shown()).id, (await shown()).description], ["untried", "begun here"]);
  await page.getByRole("button", { name: "Discard changes" }).click();
  await page.waitForFunction(() => sessionStorage.getItem("palisade.replay") === null);
  await page.done();
});

test("Undo and an earlier version ask before newer edits are thrown away", async () => {
  await api("POST", "/entities/threat-policies", { id: "newer", name: "Newer" });
  const description = async () => (await api("GET", "/entities/threat-policies/newer")).description;
  const page = await open(browser, server);
  await login(page, "/console/policies/threat-policies/newer");
  const text = page.getByLabel("Description", { exact: true });
  await text.fill("saved");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText("in force", { exact: true }).waitFor();
  // The page begins anew with what is saved.
  await page.getByRole("button", { name: "Discard changes" }).waitFor({ state: "detached" });
  await text.fill("typed after it");
  const undo = page.locator(".toast").getByRole("button", { name: "Undo" });
  let asked = nextDialog(page, false);
  await undo.click();
  assert.match(await asked, /not saved/);
  await undo.waitFor();
  assert.deepEqual([await text.inputValue(), await description()], ["typed after it", "saved"]);
  assert.equal(await page.getByText("Undone.").count(), 0);

  await page.getByRole("button", { name: /Compare/ }).last().click();
  asked = nextDialog(page, false);
  await page.getByRole("button", { name: "Write this version again" }).click();
  assert.match(await asked, /not saved/);
  await page.keyboard.press("Escape");
  assert.deepEqual([await text.inputValue(), await description()], ["typed after it", "saved"]);

  asked = nextDialog(page, true);
  await undo.click();
  await asked;
  await page.getByText("Undone.").waitFor();
  await page.waitForFunction(() => JSON.parse(document.querySelector("textarea.json")?.value ?? "{}").description === "");
  assert.equal(await description(), "");
  await page.done();
});

test("many warnings are one message, and Undo stays", async () => {
  await api("POST", "/entities/threat-policies", { id: "warned", name: "Warned" });
  const page = await open(browser, server);
  await page.route((url) => url.pathname === `${NS}/entities/threat-policies/warned`, async (route) => {
    if (route.request().method() !== "PUT") return route.continue();
    const answer = await route.fetch();
    await route.fulfill({ response: answer, headers: { ...answer.headers(), "x-palisade-warnings": JSON.stringify(["one", "two", "three", "four", "five"]) } });
  });
  await login(page, "/console/policies/threat-policies/warned");
  await page.getByLabel("Description", { exact: true }).fill("changed");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText("Warned is saved.").waitFor();
  assert.equal(await page.locator(".toast.bad").count(), 1);
  await axe(page, "warnings");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
  assert.equal((await api("GET", "/entities/threat-policies/warned")).description, "");
  await page.getByLabel("Description", { exact: true }).fill("again");
  await page.getByText("Valid and compiles").waitFor();
  await page.getByRole("button", { name: "Discard changes" }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/console/login");
  // Without loading the page again, which would forget them.
  await page.getByLabel("Name").fill("alice");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation").waitFor();
  assert.equal(await page.locator(".toast").count(), 0, "messages of the operator before are shown");
  await page.done();
});

test("a viewer's typing makes no calls that are refused", async () => {
  server.add("vera", "viewer");
  const page = await open(browser, server);
  const calls = [];
  page.on("request", (request) => request.method() !== "GET" && calls.push(request.url()));
  await login(page, "/console/policies/threat-policies/_new", "vera");
  calls.length = 0;
  await page.getByLabel("Description", { exact: true }).fill("tries");
  await page.waitForTimeout(900);
  assert.deepEqual(calls, []);
  await page.done();
});

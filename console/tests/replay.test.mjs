/** Replays: from an upload to the differences, with the real program, and what goes wrong on the way. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, Server, answer, axe, launch, login, open, shot } from "./support.mjs";

let server, browser, api;
before(async () => {
  server = await Server.start();
  browser = await launch();
  api = await server.api();
  await api("POST", "/entities/threat-policies", { id: "shop", name: "Shop policy", dry_run: false, tiers: [{ min_score: 40, action: "deny", status: 403 }] });
  await api("POST", "/entities/waf-configs", config("nothing"));
  await api("POST", "/entities/routes", { id: "shop", name: "Shop", plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "shop", waf_config: "shop" } }] });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const config = (value) => ({
  id: "shop", name: "Shop rules",
  rules: ["SecRuleEngine On", `SecRule ARGS:q "@contains ${value}" "id:942100,phase:2,deny,status:403,log,msg:'Union in the search'"`, `SecRule REQUEST_URI "@beginsWith /admin" "id:930120,phase:1,deny,status:403,log,msg:'Path of administrators'"`],
});
const PATHS = ["/", "/search?q=shoes", "/search?q=1%27%20union%20select%20password%20from%20users--", "/admin/users", `/search?q=${encodeURIComponent(SCRIPT)} union`, "/basket", "/search?q=union%20jack%20shirt", "/login"];
const recording = () => PATHS.map((path, at) => JSON.stringify({ at: 1_795_687_200_000 + at * 1000, peer: `198.51.100.${at + 1}:5000`, request: { method: at === 7 ? "POST" : "GET", path, host: "shop.example", headers: [["user-agent", SCRIPT]] }, status: 200 })).join("\n") + "\nbroken\n";
const file = (name, text = recording()) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });

test("from an upload to the differences", async () => {
  const page = await open(browser, server);
  await login(page, "/console/replay");
  await page.getByText("There is no recording yet.").first().waitFor();
  await page.getByText(/begins with an empty memory/).first().waitFor();
  await axe(page, "replay without a recording");
  // By the button.
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Choose a recording" }).click();
  await (await choosing).setFiles(file("shop-june.jsonl"));
  await page.getByText("shop-june.jsonl is kept: 8 requests.").waitFor();
  await page.getByText("1 could not be read").click();
  await page.getByText(/shop-june.jsonl#9: line 9/).waitFor();
  // By drag and drop; what is no recording is refused and says why.
  await page.locator(".drop").evaluate((box, text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "notes.md"));
    box.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }, "# Notes\n");
  await page.locator(".drop [role=alert]", { hasText: "notes.md" }).getByText(/nothing in the recording can be read/).waitFor();
  await axe(page, "a refused upload");
  // The change, with an error first.
  await page.getByLabel("Collection").selectOption("waf-configs");
  const json = page.getByRole("textbox", { name: "JSON" });
  await page.getByText("As in force").waitFor();
  assert.equal(await page.getByRole("button", { name: "Replay", exact: true }).isDisabled(), true);
  await json.fill(JSON.stringify({ ...config("union"), rules: ["SecRule ARGX \"@rx a\" \"id:1\""] }));
  await page.getByText("/rules/0").first().waitFor();
  await axe(page, "a change with an error");
  await json.fill(JSON.stringify({ ...config("union"), rules: config("union").rules.slice(0, 2) }));
  await page.getByText("/rules/0").first().waitFor({ state: "detached" });
  assert.equal(await page.getByLabel("Route of 8 requests without one").locator("option").first().textContent(), "none: the only route, else the global chain");
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.waitForURL("**/console/replay/replay_*");
  await page.getByText("4 of 8 requests come out differently.").waitFor({ timeout: 120_000 });
  await page.getByText("Changes").or(page.getByText("By rule")).first().waitFor();
  await axe(page, "the differences");
  await shot(page, "replay");
  // Filters are in the address bar, and each request says why.
  await page.getByRole("search").getByRole("combobox", { name: "Change" }).selectOption("unblocked");
  await page.getByText("1 of 4 listed requests").waitFor();
  assert.match(page.url(), /kind=unblocked/);
  await page.locator(".rows .row", { hasText: "/admin/users" }).waitFor();
  await page.goto(page.url().replace("kind=unblocked", "q=jack"));
  await page.getByText("1 of 4 listed requests").waitFor();
  const row = page.locator(".rows .row", { hasText: "union%20jack" });
  await row.waitFor();
  await row.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("198.51.100.7").waitFor();
  await dialog.getByText("942100").first().waitFor();
  await axe(page, "a request");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /Union in the search/ }).first().click();
  await page.waitForURL(/rule=942100/);
  assert.deepEqual((await api("GET", "/entities/waf-configs/shop")).rules, config("nothing").rules);
  await page.done();
});

test("an unsaved change comes from its policy, and nothing is saved", async () => {
  const page = await open(browser, server);
  await login(page, "/console/policies/waf-configs/shop");
  await page.getByLabel("Name", { exact: true }).fill(SCRIPT);
  await page.getByRole("link", { name: "Replay this change" }).click();
  await page.getByText("This is your change, which is not saved.").waitFor();
  assert.equal(JSON.parse(await page.getByRole("textbox", { name: "JSON" }).inputValue()).name, SCRIPT);
  await page.getByText("Changed", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Form" }).click();
  await page.getByLabel("Name", { exact: true }).last().waitFor();
  await axe(page, "a change as a form");
  assert.equal((await api("GET", "/entities/waf-configs/shop")).name, "Shop rules");
  await page.done();
});

/** Presses a button that the page has disabled, as a page of another release or a script could: the control plane refuses. */
const force = async (button) => {
  await button.evaluate((element) => { element.disabled = false; });
  await button.click();
};
const start = { button: (page) => page.getByRole("button", { name: "Replay", exact: true }), json: (page) => page.getByRole("textbox", { name: "JSON" }) };
const change = JSON.stringify({ ...config("union"), rules: config("union").rules.slice(0, 2) });

test("a viewer sees recordings and results, and can start, add and delete nothing", async () => {
  server.add("vera", "viewer");
  const { recordings: [june] } = await api("GET", "/replay/_recordings");
  const page = await open(browser, server);
  const sent = [];
  page.on("request", (request) => request.method() !== "GET" && sent.push(new URL(request.url()).pathname.split("/").at(-1)));
  await login(page, "/console/replay?collection=waf-configs", "vera");
  await page.getByText(june.name, { exact: true }).waitFor();
  // At the recordings and at the start.
  await page.getByText("This needs the role analyst; yours is viewer.").nth(1).waitFor();
  await page.getByText("Make a recording of stored events").click();
  const buttons = [page.getByRole("button", { name: "Choose a recording" }), page.getByRole("button", { name: `Delete the recording ${june.name}` }), page.getByRole("button", { name: "Make the recording" })];
  await start.json(page).fill(change);
  await page.getByText("Changed", { exact: true }).waitFor();
  for (const button of [...buttons, start.button(page)]) assert.equal(await button.isDisabled(), true, await button.textContent());
  await axe(page, "replay for a viewer");
  // What is dropped onto the page is not sent, and the document is not checked.
  await page.locator(".drop").evaluate((box) => {
    const data = new DataTransfer();
    data.items.add(new File(["{}"], "dropped.jsonl"));
    for (const kind of ["dragover", "drop"]) box.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  assert.equal(await page.locator(".drop.over").count(), 0);
  // The control plane refuses in any case, and the page says why.
  await force(buttons[1]);
  await page.getByText(/^Your role may not do this: .*analyst/).first().waitFor();
  assert.deepEqual(sent, ["_login", "_delete"]);
  await force(start.button(page));
  await page.locator("[role=alert]", { hasText: /^Your role may not do this: .*analyst/ }).first().waitFor();
  const call = await server.session("vera");
  for (const path of ["_upload", "_record_events", "_start", "_delete", "_cancel"]) {
    const answer = await call("POST", `/replay/${path}`, {});
    assert.deepEqual([answer.status, (await answer.json()).error], [403, "role"], path);
  }
  assert.deepEqual((await api("GET", "/replay/_recordings")).recordings.map(({ id }) => id), [june.id]);
  // Results are open to every role.
  const { jobs } = await api("GET", "/replay/_jobs");
  await page.goto(`/console/replay/${jobs[0].id}`);
  await page.getByText("4 of 8 requests come out differently.").waitFor();
  // A changed policy leads to no replay.
  await page.goto("/console/policies/waf-configs/shop");
  await page.getByLabel("Name", { exact: true }).fill("Changed");
  await page.getByRole("button", { name: "Discard changes" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Replay this change" }).count(), 0);
  await page.done();
});

test("an analyst adds, replays and deletes the own; what others have added is for admins", async () => {
  server.add("ann", "analyst");
  const [june] = (await api("GET", "/replay/_recordings")).recordings;
  const page = await open(browser, server);
  await login(page, "/console/replay?collection=waf-configs", "ann");
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Choose a recording" }).click();
  await (await choosing).setFiles(file("own.jsonl"));
  await page.getByText("own.jsonl is kept: 8 requests.").waitFor();
  const remove = (name) => page.getByRole("button", { name: `Delete the recording ${name}` });
  assert.deepEqual([await remove("own.jsonl").isDisabled(), await remove(june.name).isDisabled()], [false, true]);
  await page.getByText("Recordings of other operators are deleted by admins.").waitFor();
  await axe(page, "replay for an analyst");
  await start.json(page).fill(change);
  await start.button(page).click();
  await page.waitForURL("**/console/replay/replay_*");
  await page.getByText("4 of 8 requests come out differently.").waitFor({ timeout: 120_000 });
  // A replay that runs is cancelled by who has started it, and by admins.
  const { job } = await api("GET", `/replay/_job?id=${page.url().split("/").at(-1)}`);
  const running = (by) => ({ node: "here", diff: null, job: { ...job, by, state: "running", ended_at: null, progress: { part: 1, parts: 2, requests: 3, bytes_read: 1, bytes: 2 } } });
  for (const [by, isDisabled] of [["ann", false], ["alice", true]]) {
    await page.unrouteAll();
    await answer(page, "/replay/_job", running(by));
    await page.reload();
    assert.equal(await page.getByRole("button", { name: "Cancel the replay" }).isDisabled(), isDisabled, by);
    assert.equal(await page.getByText("This needs the role admin; yours is analyst.").count(), isDisabled ? 1 : 0, by);
  }
  await page.unrouteAll();
  // What others have added stays, also where the button is pressed all the same.
  await page.goto("/console/replay");
  await remove(june.name).waitFor();
  await force(remove(june.name));
  await page.getByText(/^Your role may not do this: .*another operator.*admin/).first().waitFor();
  await remove("own.jsonl").click();
  await page.getByText("The recording own.jsonl is deleted.").waitFor();
  await remove("own.jsonl").waitFor({ state: "detached" });
  assert.equal(await remove(june.name).count(), 1);
  await page.done();
  // Nothing of a replay is saved, and an analyst saves nothing.
  assert.deepEqual((await api("GET", "/entities/waf-configs/shop")).rules, config("nothing").rules);
  // An admin deletes what others have added.
  const call = await server.session("ann");
  const uploaded = await (await call("POST", "/replay/_upload?name=of-ann.jsonl", recording(), { "content-type": "application/octet-stream" })).json();
  assert.equal(uploaded.recording?.by, "ann", JSON.stringify(uploaded));
  const admin = await open(browser, server);
  await login(admin, "/console/replay");
  assert.equal(await admin.getByText("Recordings of other operators are deleted by admins.").count(), 0);
  await admin.getByRole("button", { name: "Delete the recording of-ann.jsonl" }).click();
  await admin.getByText("The recording of-ann.jsonl is deleted.").waitFor();
  await admin.done();
});

test("dark and on a phone, without the program, and what a recording of events lacks", async () => {
  const page = await open(browser, server, { colorScheme: "dark" });
  await answer(page, "/replay/_recordings", {
    node: SCRIPT, unavailable: `the program palisade-replay is missing ${SCRIPT}`, stored_events: true, bytes: 5, recordings: [],
    limits: { upload_bytes: 1 << 20, recordings: 20, total_bytes: 1 << 30, waiting: 4, seconds: 600, memory_mib: 2048 },
  });
  await login(page, "/console/replay");
  await page.setViewportSize({ width: 390, height: 780 });
  await page.getByText(/Replays are not available: the program palisade-replay is missing/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Choose a recording" }).isDisabled(), true);
  await page.getByText("Make a recording of stored events").click();
  await page.getByText(/Queries, headers and bodies are missing/).waitFor();
  await axe(page, "replay on a phone");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the phone");
  await page.unrouteAll();
  const { jobs } = await api("GET", "/replay/_jobs");
  await page.goto(`/console/replay/${jobs[0].id}`);
  await page.getByText("4 of 8 requests come out differently.").waitFor();
  await axe(page, "the differences on a phone");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the result is wider than the phone");
  await page.done();
});

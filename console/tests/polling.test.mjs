/** Answers that come late, and lists that are loaded again. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { NS, answer, login, open, withServer } from "./support.mjs";
import { event, incidents, paged, store } from "./samples.mjs";

let server, browser;
withServer((it) => ({ server, browser } = it));

const at = (path) => (url) => url.pathname === `${NS}${path}`;

test("an answer that takes longer than the period of its page is shown", async () => {
  const page = await open(browser, server);
  const job = { id: "replay_1", state: "running", changes: ["threat-policies/shop"], recording: "r", recording_name: "Monday", by: "alice", added_at: new Date().toISOString(), progress: { part: 1, parts: 2, requests: 10, bytes: 100, bytes_read: 50 }, error: null };
  let calls = 0;
  await page.route(at("/replay/_job"), async (route) => {
    calls += 1;
    await new Promise((resolve) => setTimeout(resolve, 2500));
    await route.fulfill({ json: { node: "n", job, diff: null } }).catch(() => {});
  });
  await login(page, "/console/replay/replay_1");
  await page.getByRole("heading", { name: "threat-policies/shop" }).waitFor({ timeout: 8000 });
  await page.waitForTimeout(2000);
  assert.ok(calls <= 3, `${calls} calls at once`);
  await page.done();
});

test("incidents are awaited too, and stay when loading them again fails", async () => {
  const page = await open(browser, server);
  await page.clock.install();
  const list = paged(incidents(20), "incidents");
  let [calls, fails] = [0, false];
  await page.route(at("/security/_incidents"), async (route) => {
    calls += 1;
    if (fails) return route.fulfill({ status: 500, json: { error: "internal", error_description: "broken" } });
    const { body, headers } = list(new URL(route.request().url()));
    if (calls > 1) await new Promise((resolve) => setTimeout(resolve, 1500));
    await route.fulfill({ json: body, headers }).catch(() => {});
  });
  await login(page, "/console/incidents");
  await page.getByText("20 entries").waitFor();
  await page.clock.runFor(15_500);
  for (let turn = 0; turn < 3; turn += 1) await page.clock.runFor(15_500);
  assert.equal(calls, 2, "a tick ends the call before");
  await page.waitForTimeout(2000);
  fails = true;
  await page.clock.runFor(15_500);
  await page.getByRole("alert").getByText("broken").waitFor();
  assert.ok((await page.locator(".rows .row").count()) > 10, "the list is gone");
  fails = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("alert").waitFor({ state: "detached" });
  await page.done();
});

test("a call that is never answered ends, and the page asks again", async () => {
  const page = await open(browser, server);
  await page.clock.install();
  const job = { id: "replay_1", state: "running", changes: ["threat-policies/shop"], recording: "r", recording_name: "Monday", by: "alice", added_at: new Date().toISOString(), progress: { part: 1, parts: 2, requests: 10, bytes: 100, bytes_read: 50 }, error: null };
  const list = paged(incidents(20), "incidents");
  const calls = { job: 0, list: 0 };
  await page.route(at("/replay/_job"), (route) => ((calls.job += 1) === 2 ? undefined : route.fulfill({ json: { node: "n", job, diff: null } })));
  await page.route(at("/security/_incidents"), (route) => {
    const { body, headers } = list(new URL(route.request().url()));
    return (calls.list += 1) === 2 ? undefined : route.fulfill({ json: body, headers });
  });
  const upTo = async (what, count) => {
    for (let turn = 0; turn < 50 && calls[what] < count; turn += 1) await page.waitForTimeout(100);
    assert.equal(calls[what], count, what);
  };
  const told = page.getByRole("alert").getByText("The control plane does not answer.");
  await login(page, "/console/replay/replay_1");
  await page.getByRole("heading", { name: "threat-policies/shop" }).waitFor();
  await page.clock.runFor(1500);
  await upTo("job", 2);
  await page.clock.runFor(60_000);
  for (let turn = 0; turn < 50 && calls.job < 3; turn += 1) await page.clock.runFor(1100);
  assert.ok(calls.job >= 3, "polling has stopped");

  await page.getByRole("navigation").getByRole("link", { name: "Incidents" }).click();
  await page.getByText("20 entries").waitFor();
  await page.clock.runFor(15_500);
  await upTo("list", 2);
  await page.clock.runFor(61_000);
  await told.waitFor();
  await page.clock.runFor(15_500);
  await told.waitFor({ state: "detached" });
  assert.ok(calls.list >= 3, "polling has stopped");
  await page.done();
});

test("a list below an error loads what is scrolled to", async () => {
  const page = await open(browser, server);
  await page.clock.install();
  const all = incidents(2500);
  const list = paged(all, "incidents");
  let fails = false;
  await page.route(at("/security/_incidents"), (route) => {
    const url = new URL(route.request().url());
    if (fails && url.searchParams.get("page") === "1") return route.fulfill({ status: 500, json: { error: "internal", error_description: "broken" } });
    const { body, headers } = list(url);
    return route.fulfill({ json: body, headers });
  });
  await login(page, "/console/incidents");
  await page.getByText("2,500 entries").waitFor();
  fails = true;
  await page.clock.runFor(15_500);
  await page.getByRole("alert").getByText("broken").waitFor();
  await page.locator(".table").evaluate((table) => { table.scrollTop = table.scrollHeight; });
  await page.locator(`.rows .row[data-id="${all.at(-1).key}"]`).waitFor();
  await page.getByRole("alert").getByText("broken").waitFor();
  await page.done();
});

test("an older page of a search that was left does not come into the next one", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_status", store);
  const found = (from, next) => ({ events: Array.from({ length: 3 }, (_, index) => event(from + index)), next, complete: true, searched_from: null, examined: 3 });
  const cursors = [];
  let late, pages = 0;
  await page.route(at("/events/_search"), async (route) => {
    const url = new URL(route.request().url());
    const [cursor, outcome] = [url.searchParams.get("cursor"), url.searchParams.get("filter.outcome")];
    if (cursor) cursors.push(cursor);
    if (cursor === "all-2") {
      late = () => route.fulfill({ json: found(50, "all-3") }).catch(() => {});
      return;
    }
    // The rows in view ask for pages until they are full: each has events of its own.
    if (outcome) pages += 1;
    await route.fulfill({ json: outcome ? found(100 * pages, `blocked-${pages}`) : found(0, "all-2") });
  });
  await login(page, "/console/events");
  // The rows in view ask for the page after them.
  await page.locator(".rows .row").first().waitFor();
  while (!late) await page.waitForTimeout(50);
  await page.getByLabel("Outcome").selectOption("blocked");
  await page.locator('.rows .row[data-id^="event_"]').first().waitFor();
  await page.locator(`[data-id="${event(100).id}"]`).waitFor();
  await late();
  await page.waitForTimeout(400);
  assert.equal(await page.locator(`[data-id="${event(50).id}"]`).count(), 0, "events of the search before");
  await page.getByRole("button", { name: "Load older events" }).click();
  await page.waitForTimeout(300);
  assert.ok(!cursors.includes("all-3"), `the cursor of the search before: ${cursors}`);
  await page.done();
});

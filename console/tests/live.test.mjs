/** The stream: filters, pause, and a flood of 10,000 events a second. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { answer, axe, login, open, withServer } from "./support.mjs";
import { event } from "./samples.mjs";
import { proxy } from "./proxy.mjs";

let server, browser;
withServer((it) => ({ server, browser } = it));

/** A stream that sends `rate` events a second for as long as it is open, in portions as a gateway's reports come. */
function flood(rate, streams) {
  // A number of them that no portion is a multiple of: the last event shown differs from picture to picture.
  const texts = Array.from({ length: 499 }, (_, index) => `event: event\ndata: ${JSON.stringify(event(index + 2))}\n\n`);
  return (_, response, url) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(`event: hello\ndata: {"heartbeat_seconds":15,"queue":1000}\n\n`);
    const stream = { sent: 0, filters: url.searchParams, open: true };
    streams.push(stream);
    const begun = Date.now();
    const timer = setInterval(() => {
      const due = Math.floor(((Date.now() - begun) / 1000) * rate) - stream.sent;
      if (due <= 0 || response.writableNeedDrain) return;
      response.write(Array.from({ length: Math.min(due, 2000) }, (_, index) => texts[(stream.sent + index) % texts.length]).join(""));
      stream.sent += Math.min(due, 2000);
    }, 50);
    response.on("close", () => {
      stream.open = false;
      clearInterval(timer);
    });
  };
}

test("10,000 events a second: the page answers, pauses, and keeps the last 2,000", async () => {
  const streams = [];
  const before = await proxy(server, { "/events/_live": flood(10_000, streams) });
  try {
    const page = await open(browser, { url: before.url });
    await login(page, "/console/live");
    await page.getByText("connected").waitFor();
    await page.evaluate(() => {
      window.long = [];
      new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.long.push(Math.round(entry.duration)))).observe({ entryTypes: ["longtask"] });
    });
    await page.waitForFunction(() => Number(/([\d,]+) seen/.exec(document.querySelector(".count").textContent)?.[1].replaceAll(",", "")) > 60_000, null, { timeout: 60_000 });
    const { long, seen } = await page.evaluate(() => ({ long: window.long, seen: document.querySelector(".count").textContent }));
    console.log(`10,000 events/s: ${seen.trim()}; long tasks: ${long.length}, of ${long.reduce((sum, time) => sum + time, 0)} ms, the longest ${Math.max(0, ...long)} ms; sent ${streams[0].sent}`);
    await page.getByText(/2,000 kept/).waitFor();
    assert.ok((await page.locator(".rows .row").count()) < 80, "all rows are in the document");

    await page.getByRole("button", { name: "Pause" }).press("Enter");
    await page.getByText(/2,000 are waiting/).waitFor();
    const top = await page.locator(".rows .row").first().getAttribute("data-id");
    const held = await page.locator(".rows").textContent();
    await page.waitForTimeout(600);
    assert.equal(await page.locator(".rows").textContent(), held, "the picture moves although it is paused");
    await axe(page, "a paused stream");
    await page.locator(".rows .row").first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByText("The whole event as JSON").waitFor();
    await axe(page, "an event of the stream");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Resume" }).press("Enter");
    await page.waitForFunction((top) => document.querySelector(".rows .row")?.dataset.id !== top, top);

    await page.getByLabel("Outcome").selectOption("blocked");
    await page.waitForURL("**/console/live?outcome=blocked");
    await page.getByText("connected").waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".rows .row").length > 0);
    assert.equal(streams.at(-1).filters.get("filter.outcome"), "blocked", "the filter is the server's");
    // Without loading the page again, which would end every stream.
    await page.getByRole("navigation").getByRole("link", { name: "Bans and allowlist" }).press("Enter");
    await page.locator("main h1", { hasText: "Bans" }).waitFor();
    for (let turn = 0; turn < 50 && streams.some((stream) => stream.open); turn += 1) await page.waitForTimeout(100);
    assert.deepEqual(streams.map((stream) => stream.open), streams.map(() => false), "a stream stays open behind the page");
    await page.done();
  } finally {
    before.close();
  }
});

test("the real stream: what an operator does is in it, without a reload", async () => {
  const page = await open(browser, server);
  const api = await server.api();
  await login(page, "/console/live?type=audit");
  await page.getByText("connected").waitFor();
  await api("POST", "/security/_ban", { ref: "ip:203.0.113.90", duration_seconds: 3600, reason: "seen live" });
  await page.locator(".rows .row", { hasText: "seen live" }).waitFor();
  await page.getByLabel("Type").selectOption("security");
  await page.waitForURL("**/console/live?type=security");
  await page.getByText("connected").waitFor();
  await api("POST", "/security/_ban", { ref: "ip:203.0.113.91", duration_seconds: 3600, reason: "not of this type" });
  await page.waitForTimeout(1500);
  assert.equal(await page.locator(".rows .row", { hasText: "not of this type" }).count(), 0);
  await page.getByLabel("Type").selectOption("audit");
  await page.getByText("connected").waitFor();
  await api("POST", "/security/_unban", { ref: "ip:203.0.113.91" });
  await page.locator(".rows .row", { hasText: "unban" }).waitFor();
  await page.getByRole("button", { name: "Clear" }).press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".rows .row").length === 0);
  await axe(page, "an empty stream");
  await page.done();
});

test("a stream goes on after a restart of the control plane, and says what was not seen", async () => {
  const page = await open(browser, server);
  await login(page, "/console/live?type=audit");
  await page.getByText("connected", { exact: true }).waitFor();
  await server.restart(async () => page.getByText("not connected, trying again").or(page.getByText("connecting", { exact: true })).first().waitFor());
  await page.getByText("connected", { exact: true }).waitFor({ timeout: 40_000 });
  const gap = page.getByRole("link", { name: /Events from .* to .* were not seen here/ });
  await gap.waitFor();
  await axe(page, "a gap of the stream");
  const query = new URL(await gap.getAttribute("href"), server.url).searchParams;
  assert.equal(query.get("type"), "audit");
  assert.ok(Date.parse(query.get("from")) < Date.parse(query.get("until")) && Date.now() - Date.parse(query.get("from")) < 120_000, String(query));
  const api = await server.api();
  await api("POST", "/security/_ban", { ref: "ip:203.0.113.92", duration_seconds: 3600, reason: "after the restart" });
  await page.locator(".rows .row", { hasText: "after the restart" }).waitFor();
  await gap.click();
  await page.waitForURL("**/console/events?**from=**");
  await page.done();
});

test("a stream that gives no sign for three heartbeats is not connected", async () => {
  let streams = 0;
  const silent = (_, response) => {
    streams += 1;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(`event: hello\ndata: {"heartbeat_seconds":15,"queue":1000}\n\n`);
  };
  const before = await proxy(server, { "/events/_live": silent });
  try {
    const page = await open(browser, { url: before.url });
    await page.clock.install();
    await login(page, "/console/live");
    await page.getByText("connected", { exact: true }).waitFor();
    await page.clock.runFor(20_000);
    assert.equal(streams, 1, "a stream is left too early");
    await page.clock.runFor(30_000);
    for (let turn = 0; turn < 100 && streams < 2; turn += 1) await page.waitForTimeout(100);
    assert.equal(streams, 2, "a dead stream is kept");
    await page.getByRole("link", { name: /Events from .* to .* were not seen here/ }).waitFor();
    await page.done();
  } finally {
    before.close();
  }
});

test("the page connects again by itself, and looks at the session each time", async () => {
  const page = await open(browser, server);
  let [streams, looks] = [0, 0];
  page.on("request", (request) => request.url().includes("/session/_me") && (looks += 1));
  // It ends without a word, after which a browser connects again.
  await answer(page, "/events/_live", () => {
    streams += 1;
    return { type: "text/event-stream", body: `event: hello\ndata: {"heartbeat_seconds":15,"queue":1000}\n\n` };
  });
  await login(page, "/console/live");
  await page.getByText("not connected, trying again").waitFor();
  for (let turn = 0; turn < 300 && streams < 3; turn += 1) await page.waitForTimeout(100);
  assert.ok(streams >= 3, "it does not connect again");
  // One look is that of the start.
  assert.ok(looks >= streams, `${looks} looks at the session, ${streams} streams`);
  await page.done();
});

test("only too many streams are called so, a button connects again, and an ended session leads to the login", async () => {
  const page = await open(browser, server);
  let refused = { status: 500, body: { error: "internal", error_description: "no" } };
  await answer(page, "/events/_live", () => refused);
  await login(page, "/console/live");
  await page.getByText("not connected, trying again").waitFor();
  assert.equal(await page.getByText("too many streams").count(), 0);
  refused = { status: 503, body: { error: "busy", error_description: "no" } };
  await page.getByText("too many streams").waitFor();
  await axe(page, "too many streams");
  refused = { type: "text/event-stream", body: `event: hello\ndata: {"heartbeat_seconds":15,"queue":1000}\n\nevent: end\ndata: {"reason":"session"}\n\n` };
  const asked = page.waitForRequest((request) => request.url().includes("/events/_live"));
  await page.getByRole("button", { name: "Connect again" }).click();
  await asked;
  await page.context().clearCookies();
  await page.waitForURL("**/console/login?**");
  await page.done();
});

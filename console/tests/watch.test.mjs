/** Overview, incidents, events, explanations and the stream. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, Server, answer, axe, launch, login, open, shot } from "./support.mjs";
import { event, explained, incidents, overview, paged, store } from "./samples.mjs";

let server, browser, api;
before(async () => {
  server = await Server.start();
  browser = await launch();
  api = await server.api();
  await api("POST", "/entities/routes", { id: "bare", name: SCRIPT });
  await api("POST", "/entities/threat-policies", { id: "trial", name: "Trial", dry_run: true });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("the overview shows figures and gaps, and survives a release without events", async () => {
  const page = await open(browser, server);
  await login(page);
  await page.getByRole("heading", { name: "What is not protected" }).waitFor();
  await page.getByText(SCRIPT).first().waitFor();
  await page.getByText("Policy in dry run").waitFor();
  await axe(page, "overview, real");
  await answer(page, "/events/_overview", overview);
  await page.reload();
  await page.getByText("threat-response").waitFor();
  await page.locator(".chart svg").waitFor();
  await axe(page, "overview");
  await shot(page, "overview");
  await page.getByRole("button", { name: "1 week" }).click();
  await page.waitForURL("**/console/?span=week");
  await page.getByRole("link", { name: /Mend it.*Trial/ }).click();
  await page.getByRole("heading", { name: "Trial" }).waitFor();
  await page.done();
});

test("the chart names midnights across a change of the clock, and the figures under the pointer", async () => {
  const page = await open(browser, server);
  // In Berlin the night to 29 March has no hour from two to three.
  const steps = Array.from({ length: 168 }, (_, index) => ({ at: new Date(Date.UTC(2026, 2, 27, 10 + index)).toISOString(), requests: 0, refused: 10 * index, observed: 3 }));
  await answer(page, "/events/_overview", (url) => ({ body: { ...overview(url).body, steps } }));
  await login(page, "/console/?span=week");
  const plot = page.locator(".plot");
  await plot.waitFor();
  assert.deepEqual(await plot.locator(".time").allTextContents(), ["Sat 28", "Sun 29", "Mon 30", "Tue 31", "Wed 1", "Thu 2", "Fri 3"]);
  assert.deepEqual(await plot.locator(".value").allTextContents(), ["0", "500", "1,000", "1,500"]);
  // Hours from the start: 13 to Saturday, 24 to Sunday, 23 to Monday.
  const places = await plot.locator(".time").evaluateAll((labels) => labels.map((label) => Math.round((parseFloat(label.style.left) * 167) / 100)));
  assert.deepEqual(places, [13, 37, 60, 84, 108, 132, 156]);
  const { width } = await plot.boundingBox();
  const index = Math.round((Math.round(width / 4) / width) * 167);
  await plot.hover({ position: { x: Math.round(width / 4), y: 40 } });
  const time = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin", dateStyle: "short", timeStyle: "medium" }).format(Date.parse(steps[index].at));
  await page.locator(".chart figcaption", { hasText: `Refused: ${10 * index}` }).filter({ hasText: "Observed: 3" }).filter({ hasText: time }).waitFor();
  await page.getByRole("heading", { name: "Overview" }).hover();
  await page.locator(".chart figcaption", { hasText: time }).waitFor({ state: "detached" });
  // The same in words, by the keyboard.
  assert.equal(await page.locator(".chart table").count(), 0);
  await page.getByText("Figures as a table").focus();
  await page.keyboard.press("Enter");
  const table = page.getByRole("table", { name: "Refused and observed requests, 1 week" });
  await table.waitFor();
  assert.equal(await table.getByRole("row").count(), 169);
  await table.getByRole("row", { name: `${time} ${new Intl.NumberFormat("en-GB").format(10 * index)} 3` }).waitFor();
  await axe(page, "the figures of the chart as a table");
  await page.done();
});

test("the overview in the dark and on a phone", async () => {
  const page = await open(browser, server, { colorScheme: "dark" });
  await answer(page, "/events/_overview", overview);
  await login(page);
  await page.locator(".chart svg").waitFor();
  await axe(page, "overview, dark");
  await shot(page, "overview-dark");
  await page.done();
  const phone = await open(browser, server, { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 });
  await answer(phone, "/events/_overview", overview);
  await phone.goto("/console/");
  await phone.getByLabel("Name").fill("alice");
  await phone.getByLabel("Password").fill("correct horse battery");
  await phone.keyboard.press("Enter");
  await phone.locator(".chart svg").waitFor();
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the phone");
  await axe(phone, "overview, phone");
  await shot(phone, "overview-phone");
  await phone.getByRole("button", { name: "Menu" }).click();
  await phone.getByRole("link", { name: "Incidents" }).click();
  await phone.getByRole("heading", { name: "Incidents" }).waitFor();
  await phone.done();
});

test("50,000 incidents: filters are in the address bar, rows are few, texts are texts", async () => {
  const page = await open(browser, server);
  const list = incidents(50_000);
  await answer(page, "/security/_incidents", paged(list, "incidents"));
  await login(page, "/console/incidents");
  await page.getByText("50,000 entries").waitFor();
  await page.getByText(SCRIPT).first().waitFor();
  await axe(page, "incidents");
  await shot(page, "incidents");
  assert.ok((await page.locator(".rows .row").count()) < 60, "all rows are in the document");
  await page.keyboard.press("/");
  await page.keyboard.type("203.0.77.");
  await page.getByText(/^[\d,]+ entries found$/).waitFor({ timeout: 30_000 });
  assert.match(page.url(), /q=203\.0\.77\./);
  const figures = await page.evaluate(async () => {
    const input = document.querySelector("main input[type=search]");
    const count = document.querySelector(".count");
    const times = [];
    for (const text of ["203.0.78.", "spraying", "198.51.9", "rule 942100", ""]) {
      const before = count.textContent;
      const begun = performance.now();
      input.value = text;
      input.dispatchEvent(new Event("input", { bubbles: true }));
      while ((count.textContent === before || count.textContent.endsWith("…")) && performance.now() - begun < 3000) await new Promise(requestAnimationFrame);
      times.push(Math.round(performance.now() - begun));
    }
    const grid = document.querySelector(".table");
    const begun = performance.now();
    grid.scrollTop = grid.scrollHeight / 2;
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return { filter: times, scroll: Math.round(performance.now() - begun) };
  });
  console.log("50,000 incidents, milliseconds:", JSON.stringify(figures));
  await page.done();
});

test("an incident by keyboard: open, ban with a reason, undo, note", async () => {
  const page = await open(browser, server);
  const list = incidents(40);
  await answer(page, "/security/_incidents", paged(list, "incidents"));
  await answer(page, "/events/_search", { events: Array.from({ length: 12 }, (_, index) => event(index)), next: null, complete: true, searched_from: null, examined: 12 });
  await login(page, "/console/incidents");
  await page.locator(".rows .row").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/incidents/ip**");
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await page.getByText(SCRIPT).first().waitFor();
  await axe(page, "incident");
  await shot(page, "incident");
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByLabel("Reason").fill("scans the shop");
  await axe(page, "ban dialog");
  await page.keyboard.press("Enter");
  await page.getByText(/is banned/).waitFor();
  let banned = (await api("GET", "/security/_bans")).bans;
  assert.deepEqual(banned.map((ban) => [ban.key, ban.reason]), [[list[1].key, "scans the shop"]]);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
  banned = (await api("GET", "/security/_bans")).bans;
  assert.equal(banned.length, 0);
  await page.locator(".events button").nth(1).click();
  await page.getByRole("dialog").getByText("Signals, the heaviest first").waitFor();
  await axe(page, "event");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.done();
});

test("why was it blocked, by the reference", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_reference", (url) => ({ body: url.searchParams.get("reference") === "known" ? explained("known") : { ...explained("x"), found: false, request: null, verdict: null, signals: [], rules: [], events: [] } }));
  await login(page, "/console/why");
  await page.getByRole("searchbox").fill("known");
  await page.keyboard.press("Enter");
  await page.getByText(/Rule 942100 matched/).waitFor();
  await page.locator("mark", { hasText: "UNION SELECT" }).waitFor();
  await axe(page, "why");
  await shot(page, "why");
  await page.getByRole("searchbox").fill("other");
  await page.keyboard.press("Enter");
  await page.getByText(/Nothing is stored about this reference/).waitFor();
  await page.done();
});

test("a burst of 20,000 events does not freeze the stream's page", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_status", store);
  const lines = Array.from({ length: 20_000 }, (_, index) => `event: event\ndata: ${JSON.stringify(event(index))}\n\n`).join("");
  let streams = 0;
  // The stream that ends is asked for again, and refused then.
  await answer(page, "/events/_live", () => (streams++ > 0 ? { status: 503, body: { error: "busy", error_description: "no" } } : { type: "text/event-stream", body: `event: hello\ndata: {"heartbeat_seconds":15,"queue":1000}\n\n${lines}event: dropped\ndata: {"count":123}\n\nevent: end\ndata: {"reason":"shutdown"}\n\n` }));
  await login(page, "/console/live");
  await page.getByText(/20,000 seen, 2,000 kept/).waitFor({ timeout: 30_000 });
  await page.getByText("The server left out 123 events.").waitFor();
  await axe(page, "live");
  await shot(page, "live");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  await page.done();
});

test("pages of endpoints that this release lacks say so", async () => {
  const page = await open(browser, server);
  for (const path of ["/events/_status", "/events/_search", "/events/_overview"]) await answer(page, path, () => ({ status: 404, body: { error: "not_found", error_description: "no" } }));
  await login(page, "/console/live");
  for (const path of ["live", "events", "audit"]) {
    await page.goto(`/console/${path}`);
    await page.getByText("Not available in this release.").waitFor();
    await axe(page, `${path}, unavailable`);
  }
  await page.done();
});

/**
 * Figures of the console: what the first page costs, and how fast long lists are searched and scrolled.
 *
 * `make bench-console` runs it. A control plane serves the page, 10,000 entities and 100,000 bans; 50,000 incidents come from a proxy
 * before it, so that no events have to be sent for them. Everything runs on one machine, so the figures have no network in them.
 */
import { Server, launch, login, open } from "../tests/support.mjs";
import { incidents } from "../tests/samples.mjs";
import { listed, proxy } from "../tests/proxy.mjs";

const LOADS = 15;
const BANS = 100_000;
const INCIDENTS = 50_000;
const ENTITIES = 10_000;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const worst = (values) => Math.max(...values);
const round = (value) => Math.round(value * 10) / 10;

/**
 * Milliseconds of script, layout and style of one load, up to a quiet network, by the browser's counters; `task` is all that the page's thread has
 * done. The page is looked at through the debugger alone: a locator would run its own script in it.
 */
async function cost(context, url, ready) {
  const page = await context.newPage();
  const debug = await context.newCDPSession(page);
  await debug.send("Performance.enable");
  await debug.send("Network.enable");
  let bytes = 0;
  debug.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.goto(url);
  await page.waitForLoadState("networkidle");
  const { metrics } = await debug.send("Performance.getMetrics");
  const { result } = await debug.send("Runtime.evaluate", { expression: `document.querySelector(${JSON.stringify(ready)}) !== null` });
  if (!result.value) throw new Error(`${url} has no ${ready} yet`);
  const of = (name) => 1000 * metrics.find((metric) => metric.name === name).value;
  await page.close();
  return { time: of("ScriptDuration") + of("LayoutDuration") + of("RecalcStyleDuration"), script: of("ScriptDuration"), layout: of("LayoutDuration") + of("RecalcStyleDuration"), task: of("TaskDuration"), bytes };
}

/**
 * The same by a trace, which has the reactions of promises as well: `ScriptDuration` leaves them out, and an application runs much of its
 * script in them. Events of a kind inside each other count once; a layout that a script has asked for is layout.
 */
async function traced(browser, context, url) {
  const page = await context.newPage();
  await browser.startTracing(page, { categories: ["devtools.timeline", "v8.execute"] });
  await page.goto(url);
  await page.waitForLoadState("networkidle");
  const { traceEvents } = JSON.parse(String(await browser.stopTracing()));
  await page.close();
  // Only the page that has just been opened paints for the first time.
  const { pid } = traceEvents.find(({ name }) => name === "firstContentfulPaint");
  const { tid } = traceEvents.find((event) => event.name === "thread_name" && event.pid === pid && event.args.name === "CrRendererMain");
  const kind = ({ name }) => (name === "Layout" || name === "UpdateLayoutTree" ? "layout" : /^(EvaluateScript|v8\.evaluateModule|v8\.callFunction|FunctionCall|RunMicrotasks)$/.test(name) ? "script" : null);
  const events = traceEvents.filter((event) => event.ph === "X" && event.pid === pid && event.tid === tid && kind(event)).sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const spent = { script: 0, layout: 0 };
  const around = [];
  for (const event of events) {
    while (around.length > 0 && around.at(-1).ts + around.at(-1).dur <= event.ts) around.pop();
    const outer = around.at(-1);
    around.push(event);
    if (outer) spent[kind(outer)] -= event.dur / 1000;
    spent[kind(event)] += event.dur / 1000;
  }
  return { time: spent.script + spent.layout, ...spent };
}

/** The login and the overview with an hour of traffic in it, each beside a blank page. */
async function firstPage(browser, server) {
  const steps = Array.from({ length: 60 }, (_, index) => ({ at: new Date(Date.now() - (60 - index) * 60_000).toISOString(), requests: 900 + index, refused: (index * 7) % 40, observed: (index * 5) % 60 }));
  const front = await proxy(server, {
    "/blank": (_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><html lang=en><title>Blank</title><h1>Blank</h1>"),
    "/events/_overview": async (request, response, url) => {
      const answer = await fetch(url, { headers: { cookie: request.headers.cookie } });
      response.setHeader("content-type", "application/json").end(JSON.stringify({ ...(await answer.json()), steps }));
    },
  });
  const page = await open(browser, { url: front.url });
  await login(page);
  const [overview, asked, blank] = [[], [], []];
  const traces = { overview: [], login: [], "a blank page": [] };
  for (let load = 0; load < LOADS; load += 1) {
    const fresh = await browser.newContext({ baseURL: front.url });
    overview.push(await cost(page.context(), `${front.url}/console/`, ".chart svg"));
    asked.push(await cost(fresh, `${front.url}/console/`, "input[name=password]"));
    blank.push(await cost(page.context(), `${front.url}/blank`, "h1"));
    await fresh.close();
    const other = await browser.newContext({ baseURL: front.url });
    traces.overview.push(await traced(browser, page.context(), `${front.url}/console/`));
    traces.login.push(await traced(browser, other, `${front.url}/console/`));
    traces["a blank page"].push(await traced(browser, page.context(), `${front.url}/blank`));
    await other.close();
  }
  const of = (loads) => `${round(median(loads.map(({ time }) => time)))} ms (script ${round(median(loads.map(({ script }) => script)))}, layout and style ${round(median(loads.map(({ layout }) => layout)))}${loads[0].task === undefined ? "" : `; all of the thread ${round(median(loads.map(({ task }) => task)))}`})`;
  console.log(`medians of ${LOADS} loads: overview ${of(overview)}, login ${of(asked)}, a blank page ${of(blank)}`);
  console.log(`with the reactions of promises, by traces of as many loads: ${Object.entries(traces).map(([name, loads]) => `${name} ${of(loads)}`).join(", ")}`);
  console.log(`the login without a cache: ${asked[0].bytes} bytes transferred`);
  await page.context().close();
  front.close();
}

/** Types each text as an operator does, and answers milliseconds from the last key to the painted list. */
async function search(page, texts) {
  const times = [];
  for (const text of texts) {
    const field = page.getByRole("searchbox").first();
    await field.fill(text.slice(0, -1));
    await page.waitForFunction(() => !document.querySelector(".count").textContent.includes("…"), null, { timeout: 120_000 });
    await page.waitForTimeout(400);
    await page.evaluate(() => {
      window.painted = new Promise((resolve) => {
        addEventListener("keydown", (event) => {
          const begun = event.timeStamp;
          const before = document.querySelector(".count").textContent;
          const look = new MutationObserver(() => {
            const text = document.querySelector(".count").textContent;
            if (text === before || text.includes("…")) return;
            look.disconnect();
            requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
          });
          look.observe(document.querySelector(".count"), { characterData: true, childList: true, subtree: true });
        }, { once: true, capture: true });
      });
    });
    await field.press(text.at(-1));
    times.push(await page.evaluate(() => Promise.race([window.painted, new Promise((resolve) => setTimeout(() => resolve(-1), 5000))])));
  }
  return times.filter((time) => time >= 0);
}

/** Scrolls through the list, and answers the milliseconds of each picture in which rows have changed. */
async function scroll(page) {
  await page.getByRole("searchbox").first().fill("");
  await page.waitForTimeout(500);
  return page.evaluate(async () => {
    const grid = document.querySelector(".table");
    const times = [];
    for (let step = 0; step < 60; step += 1) {
      const begun = performance.now();
      grid.scrollTop += 1500;
      await new Promise(requestAnimationFrame);
      await new Promise((resolve) => setTimeout(resolve));
      times.push(performance.now() - begun);
    }
    return times;
  });
}

async function list(browser, url, what, path, total, texts) {
  const page = await open(browser, { url });
  await login(page, path);
  await page.getByText(total).waitFor({ timeout: 120_000 });
  const field = page.getByRole("searchbox").first();
  await page.evaluate(() => {
    window.shown = {};
    addEventListener("keydown", (event) => {
      new MutationObserver(() => {
        const text = document.querySelector(".count").textContent;
        if (!text.includes("…") && /found| of /.test(text)) window.shown.first ??= performance.now() - event.timeStamp;
      }).observe(document.querySelector("main"), { characterData: true, childList: true, subtree: true });
    }, { once: true, capture: true });
  });
  await field.press(texts[0][0]);
  await page.waitForFunction(() => window.shown.first, null, { timeout: 120_000 });
  const { first } = await page.evaluate(() => window.shown);
  const times = await search(page, texts);
  const pictures = await scroll(page);
  console.log(`${what}: key to painted list, median of ${times.length}: ${round(median(times))} ms (longest ${round(worst(times))}); the first search ${round(first)} ms; scrolling by 1500 pixels, median of ${pictures.length}: ${round(median(pictures))} ms (longest ${round(worst(pictures))})`);
  await page.context().close();
}

const server = await Server.start();
const browser = await launch();
try {
  await firstPage(browser, server);
  const call = await server.session();
  const lines = Array.from({ length: ENTITIES }, (_, index) => JSON.stringify({ id: `policy-${index}`, name: `Policy ${index}`, description: `of team ${index % 97}`, tags: [`tag-${index % 13}`], dry_run: index % 2 === 0, tiers: [{ min_score: 40, action: "deny", status: 403 }] }));
  for (let from = 0; from < lines.length; from += 1000) {
    const answer = await call("POST", "/entities/threat-policies/_bulk", `${lines.slice(from, from + 1000).join("\n")}\n`, { "content-type": "application/x-ndjson" });
    if (!answer.ok) throw new Error(`_bulk: ${answer.status} ${await answer.text()}`);
    await answer.text();
  }
  await list(browser, server.url, `${ENTITIES} entities`, "/console/policies/threat-policies", "10,000 entries", ["policy 77", "team 12", "policy-9999", "50", "tag-12", "x1", "team 96", "policy 123"]);
  const reasons = ["probes the login", "spraying", "scrapes prices", "a decoy path"];
  const keys = Array.from({ length: BANS }, (_, index) => `ip:${10 + (index >> 16)}.${(index >> 8) % 256}.${index % 256}.7`);
  const begun = performance.now();
  await Promise.all(Array.from({ length: 32 }, async (_, of) => {
    for (let index = of; index < BANS; index += 32) {
      const answer = await call("POST", "/security/_ban", { ref: keys[index], reason: `${reasons[index % 4]}, ticket ${index % 977}`, duration_seconds: 86_400 });
      if (!(await answer.json()).done) throw new Error(`_ban: ${answer.status}`);
    }
  }));
  console.log(`${BANS} bans by hand: ${Math.round((performance.now() - begun) / 1000)} s`);
  await list(browser, server.url, `${BANS} bans`, "/console/bans", "100,000 entries", ["10.200", "11.13", "ticket 949", "10.77.3", "scrapes", "11.1", "spraying, ticket 12", "10.9"]);
  const front = await proxy(server, { "/security/_incidents": listed(incidents(INCIDENTS), "incidents") });
  await list(browser, front.url, `${INCIDENTS} incidents`, "/console/incidents", "50,000 entries", ["203.0.78", "198.51.9", "rule 942100x", "203.0.1", "password failed for 41", "shopx", "198.51.12", "203.0.19"]);
  front.close();
} finally {
  await browser.close();
  await server.stop();
}

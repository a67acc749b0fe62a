/** Events, incidents, explanations, the overview and the stream, with what a real gateway reports of true requests. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { axe, launch, login, open } from "./support.mjs";
import { Gateway, referenceOf, until } from "./gateway.mjs";

/** A text that would run if a page made HTML of it, in a form that fits into a header. */
const HEADER = `"><img src=x onerror=window.attacked=1><script>window.attacked=1</script>{{7*7}}`;
const encoded = encodeURIComponent(HEADER);
const ATTACKER = "203.0.113.9";
const SCRIPTER = "203.0.113.10";

let gateway, browser, refused;
before(async () => {
  gateway = await Gateway.start(async (api, backend) => {
    await api("POST", "/entities/waf-configs", { id: "shop", name: "Shop <b>rules</b>", rules: ["@import_preset crs"] });
    await api("POST", "/entities/threat-policies", { id: "shop", name: "Deny at 40", dry_run: false, tiers: [{ min_score: 40, action: "deny", status: 403 }] });
    await api("POST", "/entities/routes", { id: "shop", name: "Shop", backend, plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "shop", waf_config: "shop" } }] });
  });
  browser = await launch();
  await gateway.answers(403, "/search?q=1'+UNION+SELECT+password+FROM+users--+-", { from: ATTACKER });
  refused = await gateway.send("/search?q=1'+UNION+SELECT+password+FROM+users--+-", { from: ATTACKER });
  assert.equal(refused.status, 403);
  for (const number of [1, 2, 3]) assert.equal((await gateway.send(`/items/${number}`, { from: "203.0.113.20" })).status, 200);
  // A script in each place that a client writes: path, argument and its name, user agent, referrer, cookie, header name, host.
  const scripts = [
    [`/<script>alert(1)</script>/${encoded}?q=${encoded}`, {}], [`/p?${encoded}=1`, {}], ["/agent", { "user-agent": HEADER }], ["/referrer", { referer: HEADER }],
    ["/cookie", { cookie: `a=${HEADER}` }], ["/name", { "x-'`onerror`'": HEADER }], ["/host", { host: "shop.example" }],
  ];
  for (const [target, headers] of scripts) await gateway.send(target, { from: SCRIPTER, headers });
  await until("the events are stored", async () => (await gateway.api("GET", `/events/_search?filter.ref=ip:${SCRIPTER}`)).events.length >= 4);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

async function assertText(page, what) {
  assert.equal(await page.evaluate(() => document.querySelectorAll("img, main script, [onerror]").length), 0, `${what}: a stored text became an element`);
}

test("the overview counts what the gateway did", async () => {
  const page = await open(browser, gateway.server);
  // Requests are counted on the gateway and reported on a timer, events come at once.
  await until("the figures", async () => {
    const { totals } = await gateway.api("GET", "/events/_overview?span=hour");
    return totals.refused >= 3 && totals.requests >= totals.refused;
  });
  await login(page);
  await page.getByText("1 / 1").waitFor();
  await page.locator(".chart svg").waitFor();
  const { totals, by_route } = await gateway.api("GET", "/events/_overview?span=hour");
  assert.ok(totals.requests >= totals.refused && by_route.some((share) => share.id === "shop"), JSON.stringify({ totals, by_route }));
  await page.getByRole("link", { name: "shop", exact: true }).focus();
  await axe(page, "overview, with a gateway");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/console\/events\?route=shop/);
  await page.locator(".rows .row", { hasText: ATTACKER }).first().waitFor();
  await page.done();
});

test("events: by identity, route, rule and time, in the address bar, and back", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/events");
  await page.locator(".rows .row", { hasText: ATTACKER }).first().waitFor();
  await page.locator(".rows .row", { hasText: SCRIPTER }).first().waitFor();
  await axe(page, "events");
  const identities = async () => [...new Set(await page.locator(".rows .row .cell:nth-child(3)").allTextContents())];
  await page.keyboard.press("/");
  // An address alone is an identity too.
  await page.keyboard.type(ATTACKER);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/console/events?ref=ip%3A${ATTACKER}`);
  await page.waitForFunction(([one, other]) => !document.querySelector(".rows").textContent.includes(other) && document.querySelector(".rows").textContent.includes(one), [ATTACKER, SCRIPTER]);
  assert.deepEqual(await identities(), [ATTACKER]);
  await page.reload();
  await page.locator(".rows .row").first().waitFor();
  assert.deepEqual(await identities(), [ATTACKER], "the filters of the address bar hold after a reload");
  assert.equal(await page.getByLabel("Identity").inputValue(), `ip:${ATTACKER}`);

  await page.getByLabel("Rule").fill("942100");
  await page.keyboard.press("Enter");
  await page.waitForURL(/rule=942100/);
  await page.locator(".rows .row").first().waitFor();
  await page.getByLabel("Rule").fill("941100");
  await page.keyboard.press("Enter");
  await page.getByText("0 events").waitFor();
  await axe(page, "no event");
  // Back: each search is an entry of the history.
  await page.goBack();
  await page.waitForURL(/rule=942100/);
  await page.locator(".rows .row").first().waitFor();
  assert.equal(await page.getByLabel("Rule").inputValue(), "942100");
  await page.goBack();
  await page.waitForURL(`**/console/events?ref=ip%3A${ATTACKER}`);
  assert.equal(await page.getByLabel("Rule").inputValue(), "");

  await page.goto("/console/events?route=nothing");
  await page.getByText("0 events").waitFor();
  await page.goto("/console/events?route=shop");
  await page.locator(".rows .row").first().waitFor();
  await page.getByLabel("Time").selectOption("day");
  await page.waitForURL(/since=day/);
  await page.locator(".rows .row").first().waitFor();
  await page.goto("/console/events?route=shop&from=2099-01-01T00:00:00Z");
  await page.getByText("0 events").waitFor();
  await page.getByRole("button", { name: /from.*2099/ }).click();
  await page.locator(".rows .row").first().waitFor();
  await page.done();
});

test("an event opens by keyboard, shows the rule and the part that matched, and leads to the explanation", async () => {
  const page = await open(browser, gateway.server);
  await login(page, `/console/events?ref=ip%3A${ATTACKER}&outcome=blocked`);
  await page.locator(".rows .row").first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await axe(page, "an event");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  // The focus is where it was, once the dialog has been taken out of the page.
  await page.waitForFunction(() => document.activeElement.dataset.row === "0");
  await page.goto("/console/why");
  await page.getByRole("searchbox").fill(referenceOf(refused));
  await page.keyboard.press("Enter");
  await page.getByText(/points\./).first().waitFor();
  await page.getByText("942100").first().waitFor();
  await page.locator("mark", { hasText: "UNION SELECT" }).or(page.locator("mark", { hasText: "union select" })).first().waitFor();
  await axe(page, "why, with a true reference");
  await page.getByRole("link", { name: ATTACKER }).click();
  await page.waitForURL("**/console/incidents/**");
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await page.done();
});

test("an incident: acknowledged with a note, banned until the gateway refuses everything, and back", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/incidents");
  await page.locator(".rows .row", { hasText: ATTACKER }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await axe(page, "a true incident");
  await page.getByRole("textbox", { name: "Note" }).fill("looks at it");
  await page.getByRole("button", { name: "Acknowledge" }).press("Enter");
  await page.getByText(/acknowledged by alice/).waitFor();
  await page.getByRole("button", { name: "Ban", exact: true }).press("Enter");
  await page.getByLabel("Reason").fill("an attack");
  await page.keyboard.press("Enter");
  await page.getByText(`ip:${ATTACKER} is banned.`).waitFor();
  await gateway.answers(403, "/items/1", { from: ATTACKER });
  await page.getByRole("button", { name: "Undo" }).last().press("Enter");
  await page.getByText("Undone.").waitFor();
  await gateway.answers(200, "/items/1", { from: ATTACKER });
  await page.done();
});

test("scripts in everything that a client writes stay texts on every page", async () => {
  const page = await open(browser, gateway.server);
  await login(page, `/console/events?ref=ip%3A${SCRIPTER}`);
  const rows = page.locator(".rows .row");
  await rows.first().waitFor();
  await assertText(page, "events");
  const count = await rows.count();
  assert.ok(count >= 4, `${count} events`);
  for (let index = 0; index < count; index += 1) {
    await rows.nth(index).click();
    await page.getByRole("dialog").locator("summary").last().click();
    await page.getByRole("dialog").locator("pre").last().waitFor();
    await assertText(page, `event ${index}`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  for (const [path, selector] of [["incidents", ".rows .row"], [`incidents/ip%3A${SCRIPTER}`, ".timeline li"], ["tuning", ".rows .row"], ["live", "main h1"], ["", ".chart svg"]]) {
    await page.goto(`/console/${path}`);
    await page.locator(selector).first().waitFor();
    await page.waitForLoadState("networkidle").catch(() => undefined);
    await assertText(page, path);
  }
  const texts = JSON.stringify((await gateway.api("GET", `/events/_search?filter.ref=ip:${SCRIPTER}`)).events);
  assert.match(texts, /onerror|<script>/, "no event has the script: the test would prove nothing");
  await page.done();
});

test("the stream shows a request as it is refused", async () => {
  const page = await open(browser, gateway.server);
  await login(page, `/console/live?outcome=blocked&ref=ip%3A203.0.113.30`);
  await page.getByText("connected").waitFor();
  assert.equal((await gateway.send("/search?q=1'+UNION+SELECT+password+FROM+users--+-", { from: "203.0.113.30" })).status, 403);
  await page.locator(".rows .row", { hasText: "203.0.113.30" }).first().waitFor();
  assert.equal((await gateway.send("/search?q=1'+UNION+SELECT+password+FROM+users--+-", { from: "203.0.113.31" })).status, 403);
  await page.waitForTimeout(1000);
  assert.equal(await page.locator(".rows .row", { hasText: "203.0.113.31" }).count(), 0, "the filter is the stream's");
  await page.done();
});

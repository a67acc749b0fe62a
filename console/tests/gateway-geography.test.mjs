/** The geography of callers, with requests through a real gateway and databases that the control plane has fetched. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, axe, launch, login, open } from "./support.mjs";
import { Gateway, until } from "./gateway.mjs";
import { database, serveFiles } from "./mmdb.mjs";

const country = (iso_code, en) => ({ country: { iso_code, names: { en } } });
const PLACES = {
  "203.0.113.0/24": { ...country("DE", "Germany"), city: { names: { en: "Bonn" } } }, "198.51.100.0/24": country("US", "United States"), "192.0.2.0/24": country("SG", "Singapore"), "2001:db8:1::/48": country("FR", "France"),
};
const NETWORKS = [["203.0.113.0", "203.0.113.127", 64500, "DE", "Rhine Net"], ["203.0.113.128", "203.0.113.255", 64501, "DE", SCRIPT], ["198.51.100.0", "198.51.100.255", 64502, "US", "Example Cloud"]];
const RULES = [
  `SecRule ARGS "@contains attack" "id:10070,phase:2,deny,status:403,log,msg:'an attack'"`,
  `SecRule ARGS "@contains odd" "id:10071,phase:2,pass,log,msg:'something odd'"`,
];

let gateway, browser, files;
before(async () => {
  files = await serveFiles({ "/places.mmdb": database(PLACES), "/networks.tsv": NETWORKS.map((line) => `${line.join("\t")}\n`).join("") });
  gateway = await Gateway.start(async (api, backend) => {
    // Two refusals lead to a ban, which is an event about no request.
    await api("PATCH", "/entities/global-config/global-config", { security: { ledger: { feed_waf_blocks: true, waf_weight: 50 } } });
    await api("POST", "/entities/geo-databases", { id: "places", name: "Places", url: `${files.url}/places.mmdb`, allow_private: true, attribution: "Places by the test", attribution_url: "https://places.example" });
    await api("POST", "/entities/asn-databases", { id: "networks", name: "Networks", url: `${files.url}/networks.tsv`, allow_private: true, gzip: false, categories: [] });
    await api("POST", "/entities/waf-configs", { id: "shop", name: "Shop", rules: RULES });
    await api("POST", "/entities/honeypot-policies", { id: "traps", name: "Traps", action: "monitor", weight: 10, paths: ["/wp-admin"] });
    await api("POST", "/entities/threat-policies", { id: "shop", name: "Shop", dry_run: false, tiers: [{ min_score: 20, action: "log" }, { min_score: 50, action: "deny", status: 403 }] });
    await api("POST", "/entities/routes", { id: "shop", name: "Shop", backend, plugins: [{ plugin: "SecuritySuitePreset", config: { threat_policy: "shop", waf_config: "shop", honeypot_policy: "traps" } }] });
  });
  browser = await launch();
  await gateway.answers(200, "/", { from: "198.51.100.50" });
  const sent = [
    // One request that two plugins report, another one after which the ledger bans the caller, and a caller whose requests pass.
    ["203.0.113.9", "/wp-admin?q=attack", 403], ["203.0.113.9", "/search?q=attack", 403], ["203.0.113.200", "/search?q=odd", 200], ["203.0.113.200", "/search?q=odd", 200],
    ["198.51.100.1", "/search?q=attack", 403], ["192.0.2.1", "/search?q=odd", 200], ["198.18.0.1", "/search?q=odd", 200],
    // Two addresses of a network of IPv6 are one caller.
    ["2001:db8:1:2::7", "/search?q=odd", 200], ["2001:db8:1:2::8", "/search?q=attack", 403],
  ];
  for (const [from, target, status] of sent) assert.equal((await gateway.send(target, { from })).status, status, `${from} ${target}`);
  const found = async (ref) => (await gateway.api("GET", `/events/_search?filter.ref=ip:${ref}`)).events;
  await until("the events are stored", async () => (await found("2001:db8:1:2::/64")).some(({ event }) => event.source.ip.endsWith("::8")) && (await found("203.0.113.9")).some(({ event }) => event.event?.module === "ledger"));
  await until("the databases are in force", async () => (await gateway.api("POST", "/reputation/_geo", { ips: ["203.0.113.9"] })).sources.length === 2);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
  files?.close();
});

/** The rows of a table: the name, then the figures. */
const rows = (page, caption) => page.getByRole("table", { name: caption, exact: true }).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim().replace(/\s+/g, " ")).join(" | ")));

test("callers are where the databases have them, each request counts once, and a country leads to its events", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/geography");
  await page.getByText("Callers: 6. Countries: 4.").waitFor();
  assert.deepEqual((await rows(page, "By country")).sort(), ["France | 1 | 1 | 1", "Germany | 2 | 2 | 2", "Singapore | 1 | 0 | 1", "United States | 1 | 1 | 0", "not known | 1 | 0 | 1"]);
  assert.deepEqual((await rows(page, "By network")).sort(), ["AS64500 Rhine Net | 1 | 2 | 0", `AS64501 ${SCRIPT} | 1 | 0 | 2`, "AS64502 Example Cloud | 1 | 1 | 0", "not known | 3 | 1 | 3"]);
  await page.locator("path.heat-5[data-country=DE] title", { hasText: "Germany: 4" }).waitFor({ state: "attached" });
  assert.match(await page.locator("path[data-country=FR]").getAttribute("class"), /heat-[1-4] +there/);
  assert.match(await page.locator("path[data-country=BR]").getAttribute("class"), /heat-0/);
  await page.getByText("Too small for the map: Singapore").waitFor();
  await page.getByRole("link", { name: "Places by the test" }).waitFor();
  await axe(page, "geography, with a gateway");

  await page.locator("path[data-country=DE]").dispatchEvent("click");
  await page.waitForURL("**/console/geography?country=DE");
  assert.deepEqual((await rows(page, "Callers")).sort(), ["203.0.113.200 | Bonn · Germany · " + SCRIPT + " | 0 | 2", "203.0.113.9 | Bonn · Germany · Rhine Net | 2 | 0"].sort());
  // The filters and the span of the page go along.
  await page.getByLabel("Outcome").selectOption("blocked");
  await page.getByRole("button", { name: "1 hour" }).click();
  await page.waitForURL(/outcome=blocked.*span=hour|span=hour.*outcome=blocked/);
  await page.getByRole("table", { name: "Callers", exact: true }).getByRole("link", { name: "203.0.113.9" }).click();
  await page.waitForURL(/\/console\/events\?.*ref=ip%3A203\.0\.113\.9/);
  assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), { outcome: "blocked", since: "hour", ref: "ip:203.0.113.9" });
  await page.locator(".rows .row").first().waitFor();
  const lines = await page.locator(".rows .row").allTextContents();
  assert.ok(lines.length >= 2 && lines.every((line) => line.includes("203.0.113.9")), lines.join("\n"));
  await page.done();
});

test("a network of IPv6 is one caller, in events as in incidents", async () => {
  const page = await open(browser, gateway.server);
  await login(page, "/console/geography?country=FR");
  await page.getByRole("table", { name: "Callers", exact: true }).getByRole("link", { name: "2001:db8:1:2::/64" }).click();
  await page.waitForURL(/ref=ip%3A2001%3Adb8%3A1%3A2%3A%3A%2F64/);
  await page.locator(".rows .row", { hasText: "2001:db8:1:2::7" }).first().waitFor();
  await page.locator(".rows .row", { hasText: "2001:db8:1:2::8" }).first().waitFor();
  await page.goto("/console/geography?of=incidents");
  await page.getByText(/^Callers: \d+\. Countries: [34]\./).waitFor();
  assert.ok((await rows(page, "By country")).some((row) => row.startsWith("France | 1 |")));
  await page.done();
});

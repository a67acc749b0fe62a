/** The geography of callers: map, tables, filters in the address bar, and what is said where no database is. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { SCRIPT, answer, axe, login, open, shot, withServer } from "./support.mjs";
import { event, incidents, paged } from "./samples.mjs";
import { source } from "./sources.mjs";

let server, browser;
withServer((it) => ({ server, browser } = it));

const PLACES = [["DE", "Germany", 64496, "Example Hosting"], ["US", "United States", 64497, "Example Cloud"], ["BR", "Brazil", 64498, SCRIPT], ["SG", "Singapore", 64499, "Straits Net"], ["DE", "Germany", 64500, "Another Net"], ["VN", "Vietnam", 64501, "Mekong"], ["NL", "Netherlands", 64502, "Polder"]];

/** `count` events of as many addresses, over three pages; each second one observed. */
function pages(count) {
  return (url) => {
    const start = Number(url.searchParams.get("cursor") ?? 0);
    const size = Number(url.searchParams.get("limit"));
    const outcome = url.searchParams.get("filter.outcome");
    const events = Array.from({ length: Math.max(0, Math.min(size, count - start)) }, (_, at) => {
      const index = start + at;
      const stored = event(index);
      stored.event.source.ip = `198.18.${index >> 8}.${index % 256}`;
      stored.event.event.outcome = index % 2 ? "observed" : "blocked";
      stored.event.block = null;
      return stored;
    }).filter(({ event }) => !outcome || event.event.outcome === outcome);
    return { body: { events, next: start + size < count ? String(start + size) : null, complete: true, searched_from: null, examined: events.length } };
  };
}

/** Places by the last byte of an address; asks of more than 500 are refused, as the server does. */
const batches = [];
function places(_, request) {
  const { ips } = request.postDataJSON();
  batches.push(ips.length);
  if (ips.length > 500) return { body: { done: false, error: "too many" } };
  const results = Object.fromEntries(ips.map((ip) => {
    const at = Number(ip.split(".")[3]);
    if (at % 50 === 49) return [ip, null];
    const [country, country_name, asn, org] = PLACES[Math.min(PLACES.length - 1, Math.floor(Math.sqrt(at % 50)))];
    return [ip, { asn, country, country_name, org, continent_name: null, city: at === 4 ? SCRIPT : null, located: at % 3 !== 0 }];
  }));
  return { body: { done: true, sources: [{ kind: "geo", id: "places", name: "Places" }], attributions: [{ text: `By ${SCRIPT}`, url: "javascript:window.attacked=1" }, { text: "DB-IP", url: "https://db-ip.com" }], results } };
}

test("callers are on the map and in the tables, and a country narrows both", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_search", pages(1100));
  await answer(page, "/reputation/_geo", places);
  await login(page, "/console/geography");
  await page.getByText("Callers: 1,100. Countries: 6.").waitFor();
  assert.deepEqual(batches, [500, 500, 100]);
  await page.locator(".world svg").waitFor();
  const countries = page.getByRole("table", { name: "By country" });
  const figures = async (name) => (await countries.getByRole("row", { name }).locator("td").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
  const [callers, refused, observed] = await figures(/^Germany/);
  assert.equal(refused + observed, callers);
  assert.ok(callers > 100);
  // The shades of the map follow the table: what has most is darkest, what has nothing is not shaded.
  assert.match(await page.locator("path[data-country=FR]").getAttribute("class"), /heat-0/);
  assert.match(await page.locator("path.heat-5").first().getAttribute("data-country"), /^(DE|US|BR|VN|NL)$/);
  await page.getByText("Too small for the map: Singapore").waitFor();
  await axe(page, "geography");
  await shot(page, "geography");
  await countries.getByRole("button", { name: "Brazil" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/geography?country=BR");
  await page.getByRole("heading", { name: "By network, Brazil" }).waitFor();
  const networks = page.getByRole("table", { name: "By network" });
  assert.equal(await networks.locator("tbody tr").count(), 1);
  await networks.getByText(`AS64498 ${SCRIPT}`).waitFor();
  await page.getByText("By \"><img").waitFor();
  assert.equal(await page.locator('a[href^="javascript"]').count(), 0);
  await page.locator("path[data-country=DE]").dispatchEvent("click");
  await page.waitForURL("**/console/geography?country=DE");
  await networks.getByRole("button", { name: /AS64500/ }).click();
  await page.waitForURL(/network=AS64500/);
  await page.getByRole("button", { name: "Remove the filter Network" }).click();
  await page.getByLabel("Outcome").selectOption("blocked");
  await page.waitForURL(/outcome=blocked/);
  await page.getByText(/^Callers: 550\./).waitFor();
  await page.reload();
  await page.getByText(/^Callers: 550\./).waitFor();
  assert.match(await page.getByRole("table", { name: "Callers" }).getByRole("link").first().getAttribute("href"), /\/console\/events\?outcome=blocked&since=day&ref=ip%3A198\.18/);
  await page.done();
});

test("without a database the page says which to add, by the server's own answer", async () => {
  const page = await open(browser, server);
  await answer(page, "/events/_search", pages(3));
  await login(page, "/console/geography");
  await page.getByText(/No database of places or networks is loaded/).waitFor();
  await page.getByRole("table", { name: "By country" }).getByText("not known").waitFor();
  assert.equal(await page.locator(".world").count(), 0);
  await axe(page, "geography, no database");
  await page.getByRole("link", { name: "Add a database of places" }).click();
  await page.waitForURL("**/console/policies/geo-databases/_new");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.done();
});

test("callers of incidents, in the dark and on a phone; nothing at all, by the server's own answers", async () => {
  const page = await open(browser, server, { colorScheme: "dark" });
  await login(page, "/console/geography");
  await page.getByText("No caller was refused or observed in this span.").waitFor();
  await answer(page, "/security/_incidents", paged(incidents(60), "incidents"));
  await answer(page, "/reputation/_geo", places);
  await page.getByRole("button", { name: "Incidents", exact: true }).click();
  await page.waitForURL("**/console/geography?of=incidents");
  await page.getByText(/^Callers: 60\./).waitFor();
  await page.locator(".world svg").waitFor();
  await axe(page, "geography, dark");
  await page.done();
  const phone = await open(browser, server, { viewport: { width: 390, height: 844 } });
  await answer(phone, "/events/_search", pages(1100));
  await answer(phone, "/reputation/_geo", places);
  await phone.goto("/console/geography");
  await phone.getByLabel("Name").fill("alice");
  await phone.getByLabel("Password").fill("correct horse battery");
  await phone.keyboard.press("Enter");
  await phone.locator(".world svg").waitFor();
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the phone");
  await axe(phone, "geography, phone");
  await phone.done();
});

test("the shades of the map", async () => {
  const { shade, isDrawn } = await source("geo/map.tsx");
  assert.deepEqual([0, 1, 2, 10, 100, 1000].map((value) => shade(value, 1000)), [0, 1, 1, 2, 4, 5]);
  assert.equal(shade(1, 1), 5);
  assert.deepEqual(["DE", "RU", "US", "FJ", "SG", "__proto__"].map(isDrawn), [true, true, true, true, false, false]);
});

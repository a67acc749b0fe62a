/** Texts that count, in both languages, and pages on a phone. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { answer, axe, login, open, withServer } from "./support.mjs";
import { bans, incidents, paged } from "./samples.mjs";

let server, browser, api;
withServer((it) => ({ server, browser, api } = it));

test("one is one and two are two, in English and in German", async () => {
  await api("POST", "/security/_ban", { ref: "ip:203.0.113.1", duration_seconds: 3600, reason: "one" });
  const english = await open(browser, server);
  await login(english, "/console/bans");
  await english.getByText("1 entry", { exact: true }).waitFor();
  await english.getByRole("searchbox").fill("one");
  await english.getByText("1 entry found", { exact: true }).waitFor();
  await english.goto("/console/policies");
  await english.getByRole("link", { name: /Global configuration.*1 entry$/ }).waitFor();
  await english.getByRole("link", { name: /Routes.*0 entries$/ }).waitFor();
  await english.done();
  const german = await open(browser, server, { locale: "de-DE" });
  await german.goto("/console/bans");
  await german.getByLabel("Name").fill("alice");
  await german.getByLabel("Passwort").fill("correct horse battery");
  await german.keyboard.press("Enter");
  await german.getByText("1 Eintrag", { exact: true }).waitFor();
  await german.locator(".rows .row", { hasText: "0 Punkte" }).waitFor();
  await api("POST", "/security/_ban", { ref: "ip:203.0.113.2", duration_seconds: 3600, reason: "two" });
  await german.getByRole("button", { name: "Neu laden" }).click();
  await german.getByText("2 Einträge", { exact: true }).waitFor();
  await german.getByRole("searchbox").fill("two");
  await german.getByText("1 Eintrag gefunden", { exact: true }).waitFor();
  await axe(german, "bans in German");
  await german.goto("/console/policies/svc-bouncers/_new");
  await german.getByText("Ein gespeicherter Wert wird nicht gezeigt. Ein neuer Text ersetzt ihn; bleibt das Feld leer, gilt er weiter.").first().waitFor();
  await german.done();
});

test("on a phone no page is wider than the screen, and no list hides a column", async () => {
  const page = await open(browser, server, { viewport: { width: 390, height: 844 } });
  await answer(page, "/security/_incidents", paged(incidents(30), "incidents"));
  await answer(page, "/security/_bans", paged(bans(30), "bans"));
  await page.goto("/console/");
  await page.getByLabel("Name").fill("alice");
  await page.getByLabel("Password").fill("correct horse battery");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  for (const path of ["", "incidents", "bans", "events", "audit", "policies", "policies/global-config", "tuning", "learning", "sources", "api", "bots", "operators", "account", "lookup?ip=203.0.113.1"]) {
    await page.goto(`/console/${path}`);
    await page.locator("main h1").waitFor();
    await page.waitForLoadState("networkidle");
    const wide = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, ...[...document.querySelectorAll(".table")].map((table) => table.scrollWidth - table.clientWidth)]);
    assert.ok(wide.every((pixels) => pixels <= 0), `${path || "overview"}: ${wide} pixels too wide`);
  }
  await axe(page, "the last page on a phone");
  await page.done();
});

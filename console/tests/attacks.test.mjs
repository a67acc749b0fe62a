/** Attacks on the console: stored scripts, forged requests, frames, and roles that are too low. */
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { NS, SCRIPT, Server, axe, launch, login, open } from "./support.mjs";

let server, browser, api;
before(async () => {
  server = await Server.start();
  browser = await launch();
  api = await server.api();
  server.add("vera", "viewer");
  server.add("anna", "analyst");
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** No page may make an element of a stored text, whether its script runs or not. */
async function assertText(page, what) {
  const made = await page.evaluate(() => document.querySelectorAll("img[src=x], main script, [onerror]").length);
  assert.equal(made, 0, `${what}: a stored text became an element`);
}

test("stored scripts are texts on every page: names, reasons, notes, user agents, keys", async () => {
  await server.session("vera", { "user-agent": SCRIPT });
  await server.session("alice", { "user-agent": SCRIPT });
  await api("POST", "/keys/_create", { name: SCRIPT, scopes: ["read"] });
  const added = await (await server.session())("POST", "/operators/_add", { name: "<img src=x onerror=attacked=1>", email: "x@example.com", role: "viewer" });
  assert.equal(added.status, 400, "an operator's name is a script");
  const mail = await (await server.session())("POST", "/operators/_add", { name: "mallory", email: "<img src=x onerror=attacked=1>@example.com", role: "viewer" });
  assert.equal(mail.status, 400, "an operator's address is a script");
  await api("POST", "/entities/threat-policies", { id: "attack", name: SCRIPT, description: SCRIPT, tags: [SCRIPT] });
  await api("POST", "/entities/waf-configs", { id: "attack", name: SCRIPT, rules: [`SecRule ARGS "@contains x" "id:1,phase:2,deny,msg:'${SCRIPT.replace(/['"{}]/g, "")}'"`], block: false });
  await api("POST", "/entities/routes", { id: "attack", name: SCRIPT, description: SCRIPT });
  await api("POST", "/entities/threat-feeds", { id: "attack", name: SCRIPT, url: "https://feed.invalid/list.txt", enabled: false });
  await api("POST", "/entities/svc-bouncers", { id: "attack", name: SCRIPT, lapi_url: "https://lapi.invalid/", api_key: "x", enabled: false });
  await api("PATCH", "/entities/threat-policies/attack", { description: `again ${SCRIPT}` });
  await api("POST", "/security/_ban", { ref: "ip:203.0.113.66", duration_seconds: 3600, reason: SCRIPT });
  await api("POST", "/security/_ban", { ref: "user:<img src=x onerror=attacked=1>", duration_seconds: 3600, reason: SCRIPT });
  await api("POST", "/security/_allow", { ref: "ip:203.0.113.67", reason: SCRIPT });

  const page = await open(browser, server);
  await login(page);
  // Where the text is to be seen: a page that leaves it out would prove nothing.
  const pages = [
    ["", "img"], ["bans", "onerror"], ["bans?view=allowlist", "onerror"], ["policies/threat-policies", "onerror"], ["policies/threat-policies/attack", "onerror"], ["policies/routes/attack", "onerror"], ["policies/waf-configs/attack", "onerror"],
    ["learning", "onerror"], ["sources", "onerror"], ["api", "onerror"], ["account", "onerror"], ["operators", "onerror"], ["audit", "onerror"], ["events", "onerror"],
    ["tuning", ""], ["bots", ""], ["live", ""], ["incidents", ""], [`incidents/${encodeURIComponent(`ip:${SCRIPT}`)}`, "onerror"], [`why?reference=${encodeURIComponent(SCRIPT)}`, ""], [`lookup?ip=${encodeURIComponent(SCRIPT)}`, ""],
    [`events?route=${encodeURIComponent(SCRIPT)}`, ""], [`bans?q=${encodeURIComponent(SCRIPT)}`, ""], [`policies/${encodeURIComponent(SCRIPT)}`, ""], [`policies/routes/${encodeURIComponent(SCRIPT)}`, "onerror"], [`nothing/${encodeURIComponent(SCRIPT)}`, ""],
  ];
  for (const [path, text] of pages) {
    await page.goto(`/console/${path}`);
    await page.locator("main h1").waitFor();
    await page.waitForLoadState("networkidle");
    if (text) await page.waitForFunction((text) => document.querySelector("main").innerHTML.includes(text), text).catch(() => assert.fail(`${path} does not show the text`));
    await assertText(page, path || "overview");
  }
  await page.goto("/console/audit");
  await page.locator(".rows .row", { hasText: "onerror" }).first().click();
  await page.getByRole("dialog").waitFor();
  await assertText(page, "an audit event");
  await page.keyboard.press("Escape");
  await page.goto("/console/bans");
  await page.locator(".rows .row", { hasText: "203.0.113.66" }).click();
  await page.getByRole("dialog").waitFor();
  await assertText(page, "a ban");
  await page.getByRole("button", { name: "Lift the ban" }).click();
  await page.locator(".toast").waitFor();
  await assertText(page, "a message");
  await page.done();
});

test("another site cannot change anything with the operator's session", async () => {
  // Another port of the same host is the same site: the cookie comes along, and the token has to stop the request.
  const evil = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>evil</title><form method=post enctype=text/plain></form>"));
  await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
  try {
    const page = await open(browser, server);
    await login(page);
    const answers = [];
    page.on("response", (response) => response.request().method() === "POST" && response.url().includes("_ban") && answers.push(response.status()));
    await page.goto(`http://127.0.0.1:${evil.address().port}/`);
    const body = JSON.stringify({ ref: "ip:198.51.100.200", duration_seconds: 3600, reason: "forged" });
    const read = await page.evaluate(async ([url, body]) => {
      for (const headers of [{}, { "content-type": "text/plain" }, { "content-type": "application/json", "x-csrf-token": "guessed" }]) await fetch(url, { method: "POST", credentials: "include", mode: headers["x-csrf-token"] ? "cors" : "no-cors", headers, body }).catch(() => undefined);
      return fetch(url.replace("_ban", "_bans"), { credentials: "include" }).then((answer) => answer.text(), () => "refused");
    }, [`${server.url}${NS}/security/_ban`, body]);
    assert.equal(read, "refused", "another site can read the bans");
    await page.evaluate(([url, body]) => {
      const form = document.querySelector("form");
      const field = document.createElement("input");
      [form.action, field.name, field.value] = [url, `${body.slice(0, -1)},"x":"`, `"}`];
      form.append(field);
      form.submit();
    }, [`${server.url}${NS}/security/_ban`, body]);
    await page.waitForURL(`${server.url}${NS}/security/_ban`);
    assert.match(await page.locator("body").textContent(), /csrf/);
    assert.ok(answers.length >= 3 && answers.every((status) => status === 403), `answers to forged requests: ${answers}`);
    assert.deepEqual((await api("GET", "/security/_bans?filter.ref=ip:198.51.100.200")).bans, []);
    await page.context().close();
  } finally {
    evil.close();
  }
});

test("no page of the console can be framed or sniffed, and answers of the API are never kept", async () => {
  for (const path of ["", "bans", "operators", "incidents/ip%3A203.0.113.1", "nothing/at/all", "login"]) {
    const { headers } = await fetch(`${server.url}/console/${path}`);
    assert.match(headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/, path);
    assert.equal(headers.get("x-frame-options"), "DENY", path);
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
  }
  const call = await server.session();
  for (const path of ["/session/_me", "/security/_bans", "/events/_status", "/entities/routes", "/entities/routes/nothing"]) {
    const { headers } = await call("GET", path);
    assert.match(headers.get("cache-control") ?? "", /no-store/, path);
    assert.match(headers.get("content-type") ?? "", /^application\/json/, path);
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
  }
  for (const path of ["/readyz", "/metrics", "/apis/palisade.svc/v1/routes", "/nothing"]) {
    assert.equal((await fetch(`${server.url}${path}`)).headers.get("x-content-type-options"), "nosniff", path);
  }
});

test("every call that a role does not include is refused", async () => {
  const { paths } = await (await fetch(`${server.url}/openapi.json`)).json();
  const order = ["viewer", "analyst", "admin"];
  const before = JSON.stringify([await api("GET", "/security/_bans"), await api("GET", "/entities/threat-policies"), (await api("GET", "/operators/_list")).operators.map((of) => [of.name, of.role])]);
  for (const [name, role] of [["vera", "viewer"], ["anna", "analyst"]]) {
    const call = await server.session(name);
    let refused = 0;
    for (const [path, operations] of Object.entries(paths)) {
      if (!path.startsWith(NS)) continue;
      for (const [method, operation] of Object.entries(operations)) {
        const least = operation["x-palisade-role"];
        if (!least || order.indexOf(least) <= order.indexOf(role)) continue;
        const answer = await call(method.toUpperCase(), path.slice(NS.length).replace(/\{\w+\}/g, "1"), method === "get" ? undefined : {});
        assert.equal(answer.status, 403, `${role}: ${method} ${path}`);
        assert.equal((await answer.json()).error, "role", `${role}: ${method} ${path}`);
        refused += 1;
      }
    }
    assert.ok(refused > 30, `${refused} calls were tried as ${role}`);
  }
  assert.equal(JSON.stringify([await api("GET", "/security/_bans"), await api("GET", "/entities/threat-policies"), (await api("GET", "/operators/_list")).operators.map((of) => [of.name, of.role])]), before);
});

test("a viewer and an analyst see why a button is disabled", async () => {
  await api("POST", "/security/_ban", { ref: "ip:203.0.113.68", duration_seconds: 3600, reason: "for roles" });
  await api("POST", "/entities/threat-policies", { id: "roles", name: "Roles" });
  await api("PATCH", "/entities/threat-policies/roles", { description: "second" });
  const viewer = await open(browser, server);
  await login(viewer, "/console/bans?q=203.0.113.68", "vera");
  const note = (least) => viewer.locator(`main [data-role=${least}], dialog [data-role=${least}]`).first();
  await note("analyst").waitFor();
  assert.equal(await note("analyst").textContent(), "This needs the role analyst; yours is viewer.");
  for (const name of ["Ban", "Allow"]) assert.ok(await viewer.getByRole("button", { name, exact: true }).first().isDisabled(), name);
  await viewer.locator(".rows .row", { hasText: "203.0.113.68" }).click();
  for (const name of ["Lift the ban", "Extend the ban", "Allow"]) assert.ok(await viewer.getByRole("dialog").getByRole("button", { name, exact: true }).isDisabled(), name);
  await axe(viewer, "a ban, for a viewer");
  for (const [path, least] of [["tuning", "analyst"], ["learning", "analyst"], ["sources", "admin"], ["bots", "admin"], ["operators", "admin"]]) {
    await viewer.goto(`/console/${path}`);
    await note(least).waitFor();
    await axe(viewer, `${path}, for a viewer`);
  }
  assert.equal(await viewer.locator("main button").count(), 0, "the page of operators has buttons for a viewer");
  await viewer.goto("/console/policies/threat-policies");
  await viewer.locator(".rows .row", { hasText: "Roles" }).waitFor();
  assert.equal(await viewer.getByRole("link", { name: "New", exact: true }).count(), 0);
  await viewer.goto("/console/policies/threat-policies/roles");
  await viewer.getByRole("button", { name: /Compare/ }).first().click();
  await viewer.getByRole("dialog").locator("[data-role=admin]").waitFor();
  assert.ok(await viewer.getByRole("button", { name: "Write this version again" }).isDisabled());
  await viewer.done();

  const analyst = await open(browser, server);
  await login(analyst, "/console/bans?q=203.0.113.68", "anna");
  await analyst.locator(".rows .row", { hasText: "203.0.113.68" }).click();
  await analyst.getByRole("button", { name: "Lift the ban" }).click();
  await analyst.getByText(/is lifted/).waitFor();
  for (const path of ["bots", "operators", "sources"]) {
    await analyst.goto(`/console/${path}`);
    await analyst.locator("main [data-role=admin]").first().waitFor();
  }
  await analyst.done();
});

/** What every test of the console starts with: a real control plane on a free port, a browser, an operator, and axe. */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
/** The program under test. */
export const BIN = process.env.PALISADE_BIN ?? join(here, "../../target/debug/palisade");
const IMAGES = join(here, "../../docs/images/console");
const AXE = readFileSync(join(here, "../node_modules/axe-core/axe.min.js"), "utf8");

/** The prefix of the console's API. */
export const NS = "/extensions/svc/extensions/waf";
/** The password of the operator `alice`. */
export const PASSWORD = "correct horse battery";
/** A text that would run if a page made HTML of it. */
export const SCRIPT = `"><img src=x onerror="window.attacked=1"><script>window.attacked=1</script>{{7*7}}`;

/** A port of the loopback address that was free a moment ago. */
export async function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** A control plane with the operator `alice`. */
export class Server {
  /** `more`: further arguments of `palisade serve`, or a function that makes them of the port that it takes. `env`: further variables of it. */
  static async start(more = [], env = {}) {
    const server = new Server();
    server.data = mkdtempSync(join(tmpdir(), "palisade-console-test-"));
    const [port, xds] = [await freePort(), await freePort()];
    server.xds = xds;
    server.url = `http://127.0.0.1:${port}`;
    const added = spawnSync(BIN, ["operator", "add", "alice", "--email", "alice@example.com", "--data", server.data], { input: `${PASSWORD}\n` });
    assert.equal(added.status, 0, String(added.stderr));
    server.log = "";
    server.run = () => {
      server.child = spawn(BIN, ["serve", "--data", server.data, "--listen", `127.0.0.1:${port}`, "--xds-listen", `127.0.0.1:${xds}`, ...(typeof more === "function" ? more(port) : more)], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...env } });
      server.child.stderr.on("data", (text) => (server.log += text));
    };
    server.run();
    await server.ready();
    return server;
  }

  /** Waits until it answers. */
  async ready() {
    for (let turn = 0; turn < 300; turn += 1) {
      try {
        if ((await fetch(`${this.url}/readyz`)).ok) return;
      } catch {
        // Not yet.
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`the control plane does not answer:\n${this.log}`);
  }

  /** Stops it, does something meanwhile, and starts it again with its data, at the same address. */
  async restart(meanwhile = async () => {}) {
    await this.end();
    await meanwhile();
    this.run();
    await this.ready();
  }

  /** Adds an operator with the password of all tests. */
  add(name, role) {
    const added = spawnSync(BIN, ["operator", "add", name, "--email", `${name}@example.com`, "--role", role, "--data", this.data], { input: `${PASSWORD}\n` });
    assert.equal(added.status, 0, String(added.stderr));
  }

  /** Logs in beside the browser; answers calls with the response as it is. `headers` are of the login. */
  async session(name = "alice", headers = {}) {
    const answer = await fetch(`${this.url}${NS}/session/_login`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify({ name, password: PASSWORD }) });
    const cookie = answer.headers.get("set-cookie").split(";")[0];
    const { csrf_token } = await answer.json();
    return (method, path, body, headers = {}) => fetch(`${this.url}${NS}${path}`, { method, headers: { cookie, "x-csrf-token": csrf_token, "content-type": "application/json", ...headers }, ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }) });
  }

  /** Logs in beside the browser, to prepare data by the API: answers bodies, and fails on errors. */
  async api(name = "alice") {
    const call = await this.session(name);
    return async (method, path, body) => {
      const answer = await call(method, path, body);
      assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
      return answer.json();
    };
  }

  async end() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill();
    await ended;
  }

  async stop() {
    await this.end();
    rmSync(this.data, { recursive: true, force: true });
  }
}

/** A control plane, a browser and the API beside it for all tests of a file: `given` gets them before the first one. */
export function withServer(given, more = []) {
  let server, browser;
  before(async () => {
    server = await Server.start(more);
    browser = await launch();
    given({ server, browser, api: await server.api() });
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
}

/** A browser; each test has a context of its own. */
export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-prefers-reduced-motion"] });
}

/** A page in a context of its own. Errors of scripts and of the content policy fail the test at the end. */
export async function open(browser, server, options = {}) {
  const context = await browser.newContext({ baseURL: server.url, viewport: { width: 1360, height: 860 }, locale: "en-GB", timezoneId: "Europe/Berlin", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) errors.push(message.text());
  });
  page.done = async () => {
    const attacked = await page.evaluate(() => "attacked" in window);
    await context.close();
    assert.deepEqual(errors, [], "errors in the browser");
    assert.equal(attacked, false, "a stored script has run");
  };
  return page;
}

/** Logs in by the form, as `alice` if no other name is given. */
export async function login(page, path = "/console/", name = "alice") {
  await page.goto(path);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByRole("navigation").waitFor();
}

/** Fails on any violation that axe-core finds. axe is evaluated by the browser's debugger, which no content policy stops. */
export async function axe(page, what) {
  const debug = await page.context().newCDPSession(page);
  await debug.send("Runtime.evaluate", { expression: AXE });
  const run = `axe.run(document, { resultTypes: ["violations"] }).then((found) => JSON.stringify(found.violations))`;
  const { result, exceptionDetails } = await debug.send("Runtime.evaluate", { expression: run, awaitPromise: true, returnByValue: true });
  await debug.detach();
  assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
  const violations = JSON.parse(result.value);
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 4).map((node) => `${node.html.slice(0, 160)} (${node.any.concat(node.all)[0]?.message ?? ""})`).join("\n    ")}`);
  assert.deepEqual(told, [], `axe: ${what}`);
}

/** A screenshot for the docs. */
export async function shot(page, name) {
  mkdirSync(IMAGES, { recursive: true });
  const closes = page.locator(".toast .plain");
  while ((await closes.count()) > 0) await closes.first().click();
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(IMAGES, `${name}.png`) });
}

/** Answers a path of the API with a value, or with what a function makes of the URL. */
export async function answer(page, path, value) {
  await page.route((url) => url.pathname === `${NS}${path}`, async (route) => {
    const made = typeof value === "function" ? value(new URL(route.request().url()), route.request()) : { body: value };
    await route.fulfill({ status: made.status ?? 200, contentType: made.type ?? "application/json", headers: made.headers ?? {}, body: typeof made.body === "string" ? made.body : JSON.stringify(made.body) });
  });
}

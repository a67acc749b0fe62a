// The browser of a recording: one Chromium, and for each person a window with an address of their own.

import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import net from "node:net";
import { pathToFileURL } from "node:url";
import { Content } from "./content.mjs";

// Where the applications have what a page loads besides its document. Lean windows do without it.
const PARTS = [
  ...["wp-includes", "wp-content", "resources", "skins", "images", "lib/tpl", "lib/images", "lib/plugins", "lib/scripts", "js", "themes", "javascripts", "stylesheets", "program", "plugins", "favicon.ico"],
  ...["wp-admin/load-scripts.php", "wp-admin/load-styles.php", "wp-admin/js", "wp-admin/css", "load.php", ...["css", "js", "jquery", "taskrunner", "fetch"].map((name) => `lib/exe/${name}.php`)],
].map((path) => `*.example/${path}*`);

export async function launch(plan) {
  const { chromium } = (await import(pathToFileURL(join(plan.playwright, "index.mjs")))).default;
  const key = new X509Certificate(readFileSync(plan.certificate)).publicKey.export({ type: "spki", format: "der" });
  const browser = await chromium.launch({
    executablePath: plan.chromium,
    args: ["--no-sandbox", "--disable-gpu", `--ignore-certificate-errors-spki-list=${createHash("sha256").update(key).digest("base64")}`,
      "--disable-features=OptimizationHints,AutofillServerCommunication", "--disable-background-networking"],
  });
  return browser;
}

// What a browser with a window says of itself: one without says so in its client hints, and asks in one language only.
function agent({ agent: userAgent, locale }) {
  const [, version] = userAgent.match(/Chrome\/(\d+)/);
  const mobile = userAgent.includes("Mobile");
  const platform = mobile ? "Android" : userAgent.includes("Windows") ? "Windows" : userAgent.includes("Mac") ? "macOS" : "Linux";
  const brands = [{ brand: "Not:A-Brand", version: "8" }, { brand: "Chromium", version }];
  return {
    userAgent, acceptLanguage: [...new Set([locale, locale.slice(0, 2), "en-US", "en"])].join(","),
    userAgentMetadata: { brands, fullVersionList: brands, platform, platformVersion: "10.0", architecture: mobile ? "" : "x86", model: "", mobile },
  };
}

// Takes connections of a browser as a SOCKS server, and tells the gateway whose they are.
function door(address, gateway) {
  const six = address.includes(":");
  const line = (socket) => `PROXY TCP${six ? 6 : 4} ${address} ${six ? "2001:db8::443" : "192.0.2.1"} ${socket.remotePort} 443\r\n`;
  const server = net.createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", () => {
      socket.write(Buffer.from([5, 0]));
      socket.once("data", (asked) => {
        const host = asked[3] === 3 ? asked.subarray(5, 5 + asked[4]).toString() : "";
        if (!host.endsWith(".example")) {
          socket.end(Buffer.from([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]));
          return;
        }
        const behind = net.connect(gateway, "127.0.0.1", () => {
          behind.write(line(socket));
          socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
          socket.pipe(behind).pipe(socket);
        });
        behind.on("error", () => socket.destroy());
        socket.on("close", () => behind.destroy());
      });
    });
  });
  return new Promise((ready) => server.listen(0, "127.0.0.1", () => ready(server)));
}

// A person at one application.
export class Visitor {
  static async open(browser, plan, person, host, { full = false } = {}) {
    const self = new Visitor();
    self.person = person;
    self.host = host;
    self.base = `https://${host}`;
    self.content = new Content(plan.seed * 7919 + person.number * 31 + host.length * 1009 + (full ? 5 : 0), person.language, plan.people);
    self.server = await door(person.address, plan.gateway);
    self.context = await browser.newContext({
      proxy: { server: `socks5://127.0.0.1:${self.server.address().port}` }, userAgent: person.agent, locale: person.locale,
      viewport: person.agent.includes("Mobile") && !full ? { width: 412, height: 915 } : { width: 1366, height: 900 },
    });
    self.page = await self.context.newPage();
    self.page.setDefaultTimeout(30_000);
    self.page.on("dialog", (dialog) => dialog.accept().catch(() => {}));
    const session = await self.context.newCDPSession(self.page);
    await session.send("Emulation.setUserAgentOverride", agent(person));
    if (!full) {
      await session.send("Network.enable");
      await session.send("Network.setBlockedURLs", { urls: PARTS });
    }
    return self;
  }

  async close() {
    await this.context.close().catch(() => {});
    this.server.close();
  }

  // Goes to an address of the application, as by a link on the page before if there is one.
  async go(path, { by = "address" } = {}) {
    const url = this.base + path;
    if (by === "link" && this.page.url().startsWith(this.base) && await this.page.evaluate(() => document.contentType === "text/html")) {
      await Promise.all([
        this.page.waitForNavigation({ waitUntil: "domcontentloaded" }),
        this.page.evaluate((target) => {
          const link = document.createElement("a");
          link.href = target;
          document.body.append(link);
          link.click();
        }, url),
      ]);
      return;
    }
    await this.page.goto(url, { waitUntil: "domcontentloaded" });
  }

  // Fills a form of the page and sends it by its button. A field without an element is an error, since the page is another than meant.
  async submit(form, fields, { button = null } = {}) {
    const asked = { form, fields, button };
    await this.prepare();
    await Promise.all([this.page.waitForNavigation({ waitUntil: "domcontentloaded" }), this.page.evaluate(send, asked)]);
  }

  // What a script of the page would fetch: the browser adds its cookies and headers.
  async fetch(path, { method = "GET", headers = {}, body = null, form = null, file = null } = {}) {
    return this.page.evaluate(async ({ path, method, headers, body, form, file }) => {
      let sent = body ?? undefined;
      if (file) {
        const bytes = Uint8Array.from(atob(file.base64), (letter) => letter.charCodeAt(0));
        const blob = new File([bytes], file.name, { type: file.type });
        if (file.raw) sent = blob;
        else {
          sent = new FormData();
          for (const [name, value] of Object.entries(form ?? {})) sent.append(name, value);
          sent.append(file.field, blob, file.name);
        }
      } else if (form) sent = new URLSearchParams(form);
      const answer = await fetch(path, { method, headers, body: sent, credentials: "same-origin" });
      return { status: answer.status, text: await answer.text() };
    }, { path, method, headers, body, form, file });
  }

  // Reads a page and sends one of its forms as its script would: mostly by fetch, sometimes by going there. Gives the answer's text.
  async form(path, selector, fields, { button = null, navigate = 0.15, extra = {}, headers = {}, action = null } = {}) {
    if (navigate > 0 && !action && !Object.keys(extra).length && this.content.often(navigate)) {
      await this.go(path, { by: "link" });
      await this.submit(selector, fields, { button });
      return this.page.content();
    }
    await this.prepare();
    return this.page.evaluate(sendByFetch, { path, selector, fields, button, extra, headers, action });
  }

  // The page's own functions that fill a form.
  async prepare() {
    await this.page.evaluate((source) => { window.fillForm ??= new Function(`return ${source}`)(); }, fill.toString());
  }

  // The first group of a pattern in the page's source.
  async find(pattern) {
    const found = (await this.page.content()).match(pattern);
    return found ? found[1].replaceAll("&amp;", "&") : null;
  }
}

// These three run in the page.

function send(asked) {
  const { form, pressed } = window.fillForm(document, asked.form, asked.fields, asked.button);
  form.noValidate = true;
  if (pressed) form.requestSubmit(pressed);
  else HTMLFormElement.prototype.submit.call(form);
}

async function sendByFetch({ path, selector, fields, button, extra, headers, action }) {
  const page = await fetch(path, { credentials: "same-origin" });
  const parsed = new DOMParser().parseFromString(await page.text(), "text/html");
  const { form, pressed } = window.fillForm(parsed, selector, fields, button, page.url);
  const data = new FormData(form);
  if (pressed?.name) data.append(pressed.name, pressed.value);
  for (const [name, value] of Object.entries(extra)) data.set(name, value);
  const base = parsed.querySelector("base")?.getAttribute("href") ?? page.url;
  const to = new URL(action ?? form.getAttribute("action") ?? page.url, new URL(base, page.url));
  if (form.method === "get") {
    to.search = new URLSearchParams(data);
    return (await fetch(to)).text();
  }
  const normal = (value) => value.replaceAll(/\r?\n/g, "\r\n");
  // A script that serializes a form never makes a multipart body of it.
  const multipart = form.enctype === "multipart/form-data" && !headers["content-type"];
  const body = multipart ? data : new URLSearchParams([...data].map(([name, value]) => [name, normal(String(value))])).toString();
  const type = multipart ? {} : { "content-type": "application/x-www-form-urlencoded" };
  return (await fetch(to, { method: "POST", body, headers: { ...type, ...headers }, credentials: "same-origin" })).text();
}

function fill(within, selector, fields, button, address = location.href) {
  const form = within.querySelector(selector);
  if (!form) throw new Error(`${address} has no form ${selector}`);
  for (const [name, value] of Object.entries(fields)) {
    const elements = [...form.elements].filter((element) => element.name === name);
    if (!elements.length) throw new Error(`${address}: ${selector} has no field ${name}`);
    for (const element of elements) {
      if (element.type === "file") {
        const list = new DataTransfer();
        for (const file of [value].flat()) {
          list.items.add(new File([Uint8Array.from(atob(file.base64), (letter) => letter.charCodeAt(0))], file.name, { type: file.type }));
        }
        element.files = list.files;
      } else if (element.type === "radio" || (element.type === "checkbox" && typeof value !== "boolean")) {
        element.checked = [value].flat().map(String).includes(element.value);
      } else if (element.type === "checkbox") element.checked = value;
      else if (element.multiple) for (const option of element.options) option.selected = value.includes(option.value);
      else element.value = value;
    }
  }
  let pressed = button && (form.querySelector(button) ?? within.querySelector(button));
  if (pressed && !["submit", "image"].includes(pressed.type)) pressed = pressed.querySelector("button, [type=submit]");
  if (button && !pressed) throw new Error(`${address}: ${selector} has no button ${button}`);
  return { form, pressed };
}

// Lets each of the people run through their steps, a few at a time. A step that fails is told and left out.
export async function everybody(name, people, lanes, one) {
  const waiting = [...people];
  const failed = new Map();
  let steps = 0;
  const attempt = async (label, step) => {
    steps += 1;
    try {
      return await step();
    } catch (error) {
      const why = `${label}: ${String(error.message).split("\n")[0]}`;
      failed.set(why, (failed.get(why) ?? 0) + 1);
      return null;
    }
  };
  await Promise.all(Array.from({ length: lanes }, async () => {
    for (let person = waiting.shift(); person; person = waiting.shift()) {
      await attempt("session", () => one(person, attempt));
      if (waiting.length % 8 === 0) console.log(`${name}: ${people.length - waiting.length} of ${people.length} people`);
    }
  }));
  const top = [...failed].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([why, count]) => `  ${count} times ${why}`);
  console.log([`${name}: ${steps} steps, ${[...failed.values()].reduce((sum, count) => sum + count, 0)} failed`, ...top].join("\n"));
}

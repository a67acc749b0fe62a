/**
 * A real Envoy with the filters behind a control plane, and a backend: what gateways report is what true requests did.
 *
 * Envoy is `PALISADE_ENVOY` or what `make envoy` fetched, the filters are in `PALISADE_FILTERS` or where `make filters` put them.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";
import { Server, freePort } from "./support.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const ENVOY = process.env.PALISADE_ENVOY ?? join(root, ".cache/envoy/envoy");
const FILTERS = process.env.PALISADE_FILTERS ?? join(root, "target/filters");
/** The ports that `envoy/xds.yaml` has for the control plane and for Envoy's own administration. */
const [WRITTEN_XDS_PORT, WRITTEN_ADMIN_PORT] = [18000, 9901];
/** Compiling the filters takes a while where other tests use the processors. */
const PATIENCE = 120_000;

/** Asks again and again until `probe` gives something; its last answer is in the error. */
export async function until(what, probe, patience = PATIENCE) {
  const begun = Date.now();
  for (;;) {
    const found = await probe().catch((error) => ({ error }));
    if (found && !found.error) return found;
    if (Date.now() - begun > patience) throw new Error(`${what}: not within ${patience} ms: ${found?.error ?? found}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Control plane, Envoy and backend. */
export class Gateway {
  /**
   * `configure` gets the console's API and the backend's address, before Envoy starts. With `tls` the gateway's listener speaks TLS. `reply`
   * may set the status and the headers of the backend's response to a request and its body; what it returns is the body, `{"ok":true}` if nothing.
   */
  static async start(configure, { tls = false, reply = () => undefined } = {}) {
    for (const [path, make] of [[ENVOY, "make envoy"], [FILTERS, "make filters"]]) assert.ok(existsSync(path), `${path} is missing; run \`${make}\``);
    const gateway = new Gateway();
    try {
      await gateway.begin(configure, tls, reply);
    } catch (error) {
      await gateway.stop();
      throw error;
    }
    return gateway;
  }

  async begin(configure, tls, reply) {
    this.folder = mkdtempSync(join(tmpdir(), "palisade-console-envoy-"));
    this.backend = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      response.setHeader("content-type", "application/json");
      if (request.url.startsWith("/missing")) response.statusCode = 404;
      response.end(reply(request, body, response) ?? JSON.stringify({ ok: true }));
    });
    await new Promise((resolve) => this.backend.listen(0, "127.0.0.1", resolve));
    this.server = await Server.start(["--filters-dir", FILTERS]);
    this.api = await this.server.api();
    this.port = await freePort();
    this.tls = tls && certificate(this.folder);
    const backend = { address: "127.0.0.1", port: this.backend.address().port };
    // All callers are on this machine: x-forwarded-for stands in for those elsewhere.
    await this.api("PATCH", "/entities/global-config/global-config", { gateway: { address: "127.0.0.1", port: this.port, ...(this.tls ? { tls: this.tls } : {}) }, identity: { trusted_hops: 1 } });
    await configure(this.api, backend);
    let bootstrap = readFileSync(join(root, "envoy/xds.yaml"), "utf8");
    for (const [written, wanted] of [[WRITTEN_XDS_PORT, this.server.xds], [WRITTEN_ADMIN_PORT, 0]]) {
      assert.ok(bootstrap.includes(`port_value: ${written} `), `envoy/xds.yaml has no port ${written}`);
      bootstrap = bootstrap.replace(`port_value: ${written} `, `port_value: ${wanted} `);
    }
    const path = join(this.folder, "envoy.yaml");
    writeFileSync(path, bootstrap);
    this.envoy = spawn(ENVOY, ["-c", path, "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning"], { stdio: ["ignore", "ignore", "pipe"] });
    this.log = "";
    this.envoy.stderr.on("data", (text) => (this.log = (this.log + text).slice(-20_000)));
    await until("the gateway listens", () => this.accepts()).catch((error) => {
      throw new Error(`${error}\n${this.log}\n${this.server.log.slice(-5000)}`);
    });
  }

  accepts() {
    return new Promise((resolve) => {
      const socket = connect(this.port, "127.0.0.1", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
  }

  /** Sends a request of the caller `from`. Names, values and the target go out as they are. Answers the status and the body. */
  send(target, { from = "203.0.113.9", method = "GET", headers = {}, body = "", tls: more = {} } = {}) {
    const all = { host: "shop.example", "x-forwarded-for": from, "user-agent": "test", connection: "close", ...(body ? { "content-length": Buffer.byteLength(body) } : {}), ...headers };
    const text = `${method} ${target} HTTP/1.1\r\n${Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`;
    return new Promise((resolve, reject) => {
      const socket = this.tls ? connectTls({ port: this.port, host: "127.0.0.1", rejectUnauthorized: false, ...more }) : connect(this.port, "127.0.0.1");
      let answer = "";
      socket.setEncoding("utf8");
      socket.setTimeout(20_000, () => socket.destroy(new Error(`no answer to ${target}`)));
      socket.on("data", (part) => (answer += part));
      socket.once("error", reject);
      socket.once("close", () => resolve({ status: Number(answer.slice(9, 12)), body: answer.split("\r\n\r\n").slice(1).join("\r\n\r\n") }));
      socket.write(text);
    });
  }

  /** Sends a request until it is answered with a status: the configuration is on its way. */
  async answers(status, target, options = {}) {
    let last = null;
    await until(`${target} is answered with ${status}`, async () => {
      last = await this.send(target, options);
      return last.status === status;
    }).catch((error) => {
      throw new Error(`${error}; the last answer was ${last?.status} ${last?.body}\n${this.log}`);
    });
    return last;
  }

  async stop() {
    for (const child of [this.envoy].filter(Boolean)) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    await this.server?.stop();
    this.backend?.closeAllConnections();
    this.backend?.close();
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A certificate of the gateway's own, as `gateway.tls` names it. */
function certificate(folder) {
  const [private_key, chain] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=shop.example", "-keyout", private_key, "-out", chain], { stdio: "ignore" });
  return { certificate: chain, private_key };
}

/** The reference that a refused caller sees. */
export function referenceOf(answer) {
  const found = /Reference: (\S+)/.exec(answer.body);
  assert.ok(found, `no reference in ${answer.body}`);
  return found[1];
}

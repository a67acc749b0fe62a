/** An OpenID Connect provider that is not ours: `oidc-provider`, a certified one, with its own pages for the login and the consent. */
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";

const { info, warn } = console;
/** Nothing is said about what a provider for tests may do and others may not, and about Node 20, on which it works. */
const hush = () => Object.assign(console, { info() {}, warn() {} });
const speak = () => Object.assign(console, { info, warn });

hush();
const { default: Certified } = await import("oidc-provider").finally(speak);

const KINDS = { RS256: ["rsa", { modulusLength: 2048 }], ES256: ["ec", { namedCurve: "P-256" }], EdDSA: ["ed25519", {}], Ed25519: ["ed25519", {}] };

/** A private key (JWK) for ID tokens of an algorithm. */
export function signingKey(alg, kid) {
  return { ...generateKeyPairSync(...KINDS[alg]).privateKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

/** The provider on a port of loopback. `people` are its accounts by their id: their claims, which a test may change. */
export class Provider {
  people = {};
  /** What the provider itself has failed at. */
  failures = [];
  /** Requests to its endpoints, each with the code of its answer and the scheme of its `authorization`, if it has one: `POST /token 200 Basic`. */
  seen = [];

  static async start() {
    const provider = new Provider();
    provider.server = createServer((request, response) => {
      const { method, url, headers } = request;
      const scheme = headers.authorization?.split(" ")[0];
      response.once("finish", () => provider.seen.push([method, url.split("?")[0], response.statusCode, scheme].filter(Boolean).join(" ")));
      void provider.handle(request, response);
    });
    await new Promise((resolve) => provider.server.listen(0, "127.0.0.1", resolve));
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  /** Takes a client and the keys, the first of which signs. `config` is the provider's own. */
  serve(client, keys, config = {}) {
    const { people } = this;
    this.client = { grant_types: ["authorization_code"], response_types: ["code"], ...client };
    this.config = config;
    hush();
    const certified = new Certified(this.url, {
      clients: [this.client],
      jwks: { keys },
      cookies: { keys: ["tests"] },
      scopes: ["openid"],
      claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
      ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 3600, IdToken: 600, Interaction: 600, Session: 3600 },
      pkce: { required: () => true },
      findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
      ...config,
    });
    speak();
    certified.on("server_error", (_, error) => this.failures.push(error));
    this.handle = certified.callback();
  }

  /** Begins anew with other keys; sessions, consents and codes are gone. */
  rotate(keys) {
    this.serve(this.client, keys, this.config);
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Confirms, or declines, the logout at the provider's page. */
export async function logoutAt(page, yes = true) {
  await page.getByRole("button", { name: yes ? "Yes, sign me out" : "No, stay signed in" }).click();
}

/** Logs in at the provider's page, and allows the client what it asks for. */
export async function loginAt(page, person) {
  await page.getByPlaceholder("Enter any login").fill(person);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

/** What the address bar brings to a login, and where to go after it. */
import type { ProviderAnswer } from "../api/session";
import { current, href, safeNext } from "../address";

/** Where to go after a login at the provider, kept in this tab meanwhile. */
const NEXT = "palisade.next";

/** The state of a logout at the provider, kept in this tab meanwhile. */
const LOGOUT = "palisade.logout";

/** The token of a one-time link, taken out of the address bar at once. */
export function takeToken(): string | null {
  if (!location.hash) return null;
  const token = /^#login=([\w-]+)$/.exec(location.hash)?.[1] ?? null;
  history.replaceState(null, "", location.pathname + location.search);
  return token;
}

/** What the provider has sent the browser back with, taken out of the address bar at once; `"out"` after the logout that this tab has begun. */
export function takeAnswer(): ProviderAnswer | "out" | null {
  const { path, query } = current();
  const state = query.get("state");
  if (path !== "/login" || !state) return null;
  history.replaceState(null, "", href("/login"));
  // A state alone is the answer to a logout.
  if (!query.has("code") && !query.has("error")) return takeLogout() === state ? "out" : null;
  const answer: ProviderAnswer = { state };
  for (const name of ["code", "iss", "error"] as const) {
    const value = query.get(name);
    if (value !== null) answer[name] = value;
  }
  return answer;
}

/** The address of the login, which leads back to the page that is shown. */
export function loginAddress(): string {
  const { path, query } = current();
  if (path === "/login") return location.pathname + location.search;
  return href("/login", { next: path === "/" && query.size === 0 ? null : location.pathname + location.search });
}

/** Keeps the state of a logout while the browser is at the provider. */
export function keepLogout(url: string): void {
  sessionStorage.setItem(LOGOUT, new URL(url).searchParams.get("state") ?? "");
}

function takeLogout(): string | null {
  const kept = sessionStorage.getItem(LOGOUT);
  sessionStorage.removeItem(LOGOUT);
  return kept;
}

/** Keeps where the operator wants to be while the browser is at the provider. */
export function keepNext(): void {
  sessionStorage.setItem(NEXT, safeNext(current().query.get("next")));
}

/** Where the operator wants to be: said in the address bar, or, after the way to the provider, kept in this tab. */
export function takeNext(): string {
  const kept = sessionStorage.getItem(NEXT);
  sessionStorage.removeItem(NEXT);
  return safeNext(current().query.get("next") ?? kept);
}

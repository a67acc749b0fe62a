/** Paths below `/console` and the address bar. */

/** Where the console is served. */
export const BASE = "/console";

/** The current page and its query. */
export interface Route {
  /** Path below the base, such as `/incidents`. */
  path: string;
  query: URLSearchParams;
}

/** The route that the address bar shows. */
export function current(): Route {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "/";
  return { path: path.replace(/\/+$/, "") || "/", query: new URLSearchParams(location.search) };
}

/** The address of a path below the base, with a query of those parameters that have a value. */
export function href(path: string, query: Record<string, string | null | undefined> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) parameters.set(name, value);
  const text = parameters.toString();
  return BASE + path + (text ? `?${text}` : "");
}

/** The address to go to after a login: only one of the console itself, so that a link cannot lead elsewhere. */
export function safeNext(next: string | null): string {
  if (!next) return href("/");
  let url: URL;
  try {
    url = new URL(next, location.origin);
  } catch {
    return href("/");
  }
  const own = url.origin === location.origin && (url.pathname === BASE || url.pathname.startsWith(`${BASE}/`));
  return own && url.pathname.replace(/\/+$/, "") !== href("/login") ? url.pathname + url.search : href("/");
}

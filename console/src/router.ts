/** Paths below `/console` and the filters in the address bar. */
import { useEffect, useState } from "preact/hooks";

/** Where the console is served. */
export const BASE = "/console";

/** The current page and its query. */
export interface Route {
  /** Path below the base, such as `/incidents`. */
  path: string;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();

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

/** Goes to an address of [`href`]. Filters replace the entry of the history, pages add one. */
export function navigate(to: string, how: "push" | "replace" = "push"): void {
  // The same address again is no further entry: a field reports Enter and its change.
  if (how === "push" && to !== location.pathname + location.search) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  for (const listener of listeners) listener();
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

/** The route, again with every change of it. */
export function useRoute(): Route {
  const [route, set] = useState(current);
  useEffect(() => {
    const changed = () => set(current());
    listeners.add(changed);
    addEventListener("popstate", changed);
    return () => {
      listeners.delete(changed);
      removeEventListener("popstate", changed);
    };
  }, []);
  return route;
}

/** Makes plain links to pages of the console change the page without loading it again. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  const to = link?.getAttribute("href") ?? "";
  if (!link || link.hasAttribute("target") || link.hasAttribute("download") || !to.startsWith(BASE)) return;
  event.preventDefault();
  navigate(to);
}

/** The page that is shown, and the filters in the address bar. */
import { useEffect, useState } from "preact/hooks";
import { BASE, current, type Route } from "./address";

export { current, href, type Route } from "./address";

const listeners = new Set<() => void>();

/** Goes to an address of [`href`]. Filters replace the entry of the history, pages add one. */
export function navigate(to: string, how: "push" | "replace" = "push"): void {
  // The same address again is no further entry: a field reports Enter and its change.
  if (how === "push" && to !== location.pathname + location.search) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  for (const listener of listeners) listener();
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

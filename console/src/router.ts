/** The page that is shown, and the filters in the address bar. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { BASE, current, type Route } from "./address";
import { t } from "./i18n";

export { current, href, type Route } from "./address";

const listeners = new Set<() => void>();

/** The pages' edits that are not saved. */
const edits = new Set<symbol>();
/** The address that is shown: when the browser reports Back, it has another one already. */
let shown = "";

/** Whether a page has edits that are not saved. */
export const hasEdits = () => edits.size > 0;

/** Says whether a page has edits that are not saved: leaving it asks then. */
export function useEdits(has: boolean): void {
  // Before the next click, which may come before an effect.
  useLayoutEffect(() => {
    if (!has) return;
    const one = Symbol("edits");
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    edits.add(one);
    addEventListener("beforeunload", ask);
    return () => {
      edits.delete(one);
      removeEventListener("beforeunload", ask);
    };
  }, [has]);
}

/** Asks before edits are lost; true if there are none. */
export function mayLeave(): boolean {
  return !hasEdits() || confirm(t("edits.leave"));
}

/** Asks before the page that is shown loses its edits to another document; true if there are none. */
export function mayReplace(): boolean {
  return !hasEdits() || confirm(t("edits.replace"));
}

const pathOf = (address: string) => address.split("?")[0];

/** The address has changed, or is about to: false if the operator stays. */
function leaves(to: string): boolean {
  return pathOf(to) === pathOf(shown) || mayLeave();
}

/**
 * Goes to an address of [`href`]. Filters replace the entry of the history, pages add one. `sure`: what the page has is not lost, as after a save.
 */
export function navigate(to: string, how: "push" | "replace" = "push", sure = how === "replace"): void {
  if (!sure && !leaves(to)) return;
  // The same address again is no further entry: a field reports Enter and its change.
  if (how === "push" && to !== location.pathname + location.search) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  shown = to;
  for (const listener of listeners) listener();
}

/** Back and Forward. Where the operator stays, the address of the page is shown again. */
function onMove(): void {
  const to = location.pathname + location.search;
  if (!leaves(to)) return history.pushState(null, "", shown);
  shown = to;
  for (const listener of listeners) listener();
}

/** Follows Back and Forward from now on. */
export function followHistory(): void {
  shown = location.pathname + location.search;
  addEventListener("popstate", onMove);
}

/** The route, again with every change of it. */
export function useRoute(): Route {
  const [route, set] = useState(current);
  useEffect(() => {
    const changed = () => set(current());
    listeners.add(changed);
    return () => {
      listeners.delete(changed);
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
  // A link that takes the edits along says so.
  navigate(to, "push", link.hasAttribute("data-keeps"));
}

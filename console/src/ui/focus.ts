/** Keeps the keyboard's place: an element that is taken out of the page does not leave the focus nowhere. */
import { useEffect } from "preact/hooks";

/** Where the focus goes: into the dialog that is open, else to the heading of the page. */
function place(): HTMLElement | null {
  return document.querySelector<HTMLElement>("dialog[open] button") ?? document.querySelector<HTMLElement>("main h1");
}

/** While this is in use, the focus of an element that goes, such as a button of a message or the one that opened a dialog, goes to the heading of the page. */
export function useFocusKept(): void {
  useEffect(() => {
    let last: Element | null = null;
    const note = (event: FocusEvent) => {
      last = event.target instanceof Element ? event.target : null;
    };
    // The operator has left it for nothing, as by a click beside it. An element that is taken out is left in the same way, and is gone then.
    const left = ({ target }: FocusEvent) => queueMicrotask(() => {
      if (target === last && last?.isConnected && document.activeElement !== last) last = null;
    });
    const look = () => {
      // A list moves the focus of its rows itself.
      if (!last || last.isConnected || last.closest("[data-row]") || (document.activeElement && document.activeElement !== document.body)) return;
      const next = place();
      if (!next) return;
      last = null;
      next.focus({ preventScroll: true });
    };
    const observer = new MutationObserver(look);
    document.addEventListener("focusin", note);
    document.addEventListener("focusout", left);
    observer.observe(document.body, { childList: true, subtree: true });
    return () => {
      document.removeEventListener("focusin", note);
      document.removeEventListener("focusout", left);
      observer.disconnect();
    };
  }, []);
}

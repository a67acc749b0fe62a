/** Shortcuts of the keyboard: `/` searches, `?` lists them, `g` and a letter go to a page. */
import { useEffect } from "preact/hooks";
import { t, type Key } from "./i18n";
import { href, navigate } from "./router";
import { Dialog } from "./ui/dialog";

const GO: Record<string, [string, Key]> = {
  o: ["/", "nav.overview"],
  i: ["/incidents", "nav.incidents"],
  l: ["/live", "nav.live"],
  w: ["/why", "nav.why"],
  b: ["/bans", "nav.bans"],
  p: ["/policies", "nav.policies"],
};

/** How long `g` waits for its letter, in milliseconds. */
const WAIT = 1500;

/** Listens for the shortcuts outside of fields and dialogs. */
export function useShortcuts(onHelp: () => void): void {
  useEffect(() => {
    let since = 0;
    const pressed = (event: KeyboardEvent) => {
      // The rules editor is in a shadow root, whose host is the target that is seen out here.
      const at = event.composedPath()[0];
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (at instanceof HTMLElement && (at.closest("dialog") || at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName))) return;
      const to = GO[event.key];
      if (event.key === "/") document.querySelector<HTMLInputElement>("main input[type=search]")?.focus();
      else if (event.key === "?") onHelp();
      else if (event.key === "g") {
        since = event.timeStamp;
        return;
      } else if (to && event.timeStamp - since < WAIT) navigate(href(to[0]));
      else return;
      since = 0;
      event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

/** The list of shortcuts. */
export function Shortcuts({ onClose }: { onClose: () => void }) {
  const rows: [string, string][] = [
    ["/", t("shortcuts.search")],
    ["?", t("shortcuts.title")],
    ["↑ ↓ PgUp PgDn Home End", t("shortcuts.move")],
    ["Enter", t("shortcuts.open")],
    ["Esc", t("shortcuts.close")],
    ...Object.entries(GO).map(([key, [, label]]): [string, string] => [`g ${key}`, t(label)]),
  ];
  return (
    <Dialog title={t("shortcuts.title")} onClose={onClose}>
      <dl class="facts keys">
        {rows.map(([key, text]) => (
          <div key={key}><dt><kbd>{key}</kbd></dt><dd>{text}</dd></div>
        ))}
      </dl>
    </Dialog>
  );
}

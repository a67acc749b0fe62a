/** A modal dialog: the browser's own, which keeps the focus inside and closes with Escape. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { t } from "../i18n";

/** Shown as long as it is rendered. */
export function Dialog({ title, onClose, children, wide = false }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const gone = useRef(false);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    const element = dialog.current;
    element?.showModal();
    return () => {
      // What is behind an open modal dialog takes no focus.
      gone.current = true;
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} class={wide ? "wide-dialog" : ""} aria-labelledby={heading} onClose={() => gone.current || onClose()} onCancel={onClose}>
      <header class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" class="plain" onClick={onClose} aria-label={t("action.close")}>✕</button>
      </header>
      {children}
    </dialog>
  );
}

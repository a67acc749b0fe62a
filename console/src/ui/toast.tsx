/** Messages about what was done, with a way back. They are read out by screen readers. */
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { problem } from "../problem";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
  undo: (() => Promise<unknown>) | null;
}

/** How long a message stays, in milliseconds. */
const STAYS = 20_000;

let toasts: Toast[] = [];
let next = 1;
let changed: () => void = () => {};

/** Messages at once, apart from those with a way back. */
const MOST = 4;

/** Shows a message; `undo` adds a button that runs it. */
export function tell(text: string, undo: (() => Promise<unknown>) | null = null, bad = false): void {
  const toast = { id: next++, text, bad, undo };
  // A way back stays until its time is over.
  const superfluous = toasts.filter(({ undo }) => !undo).slice(0, Math.max(0, toasts.length + 1 - MOST));
  toasts = [...toasts.filter((shown) => !superfluous.includes(shown)), toast];
  setTimeout(() => drop(toast.id), STAYS);
  changed();
}

/** Shows an error as a message. */
export function tellProblem(error: unknown): void {
  tell(problem(error), null, true);
}

/** Shows the warnings of a write, as one message. */
export function tellWarnings(warnings: readonly string[]): void {
  if (warnings.length > 0) tell(warnings.join("\n"), null, true);
}

/** Forgets all messages with their ways back: they are the operator's who logs out. */
export function clearToasts(): void {
  toasts = [];
  changed();
}

function drop(id: number): void {
  toasts = toasts.filter((toast) => toast.id !== id);
  changed();
}

/** Where the messages are. */
export function Toasts() {
  const [, set] = useState(0);
  useEffect(() => {
    changed = () => set((turn) => turn + 1);
  }, []);
  const undo = async (toast: Toast) => {
    drop(toast.id);
    try {
      await toast.undo?.();
      tell(t("toast.undone"));
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map((toast) => (
        <div key={toast.id} class={`toast ${toast.bad ? "bad" : ""}`}>
          <span>{toast.text}</span>
          {toast.undo && <button type="button" onClick={() => void undo(toast)}>{t("action.undo")}</button>}
          <button type="button" class="plain" aria-label={t("action.close")} onClick={() => drop(toast.id)}>✕</button>
        </div>
      ))}
    </div>
  );
}

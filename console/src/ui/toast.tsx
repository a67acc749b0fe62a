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

/** Shows a message; `undo` adds a button that runs it. */
export function tell(text: string, undo: (() => Promise<unknown>) | null = null, bad = false): void {
  const toast = { id: next++, text, bad, undo };
  toasts = [...toasts.slice(-3), toast];
  setTimeout(() => drop(toast.id), STAYS);
  changed();
}

/** Shows an error as a message. */
export function tellProblem(error: unknown): void {
  tell(problem(error), null, true);
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

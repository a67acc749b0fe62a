/** Messages about what was done, with a way back. They are read out by screen readers. */
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { problem } from "../problem";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
  undo: Undo | null;
}

/** The way back; an answer of false says that the operator keeps what is there. */
type Undo = () => Promise<unknown>;

/** How long a message stays, in milliseconds. */
const STAYS = 20_000;

let toasts: Toast[] = [];
let next = 1;
let changed: () => void = () => {};

/** Messages at once: those without a way back give way from the first number on, all others from the second. */
const [MOST, MOST_AT_ALL] = [4, 10];

/** Shows a message; `undo` adds a button that runs it. */
export function tell(text: string, undo: Undo | null = null, bad = false): void {
  const toast = { id: next++, text, bad, undo };
  const superfluous = toasts.filter(({ undo }) => !undo).slice(0, Math.max(0, toasts.length + 1 - MOST));
  toasts = [...toasts.filter((shown) => !superfluous.includes(shown)), toast].slice(-MOST_AT_ALL);
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
      if ((await toast.undo?.()) === false) {
        toasts = [...toasts, toast];
        changed();
      } else tell(t("toast.undone"));
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

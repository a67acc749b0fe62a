/** An editor for SecLang. A plain text field stands in until the editor is loaded, and where it cannot be. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import type { Handle } from "./codemirror";
import type { RuleProblem } from "./problems";

/** What an editor shows. */
export interface EditorProps {
  label: string;
  value: string;
  problems: RuleProblem[];
  onChange: (value: string) => void;
  /** Lines that are in view at least. */
  rows?: number;
  /** Gets the editor once it is there. */
  onReady?: (handle: Handle) => void;
}

/** The editor, with the note about its keys. */
export function SecLangEditor({ label, value, problems, onChange, rows = 12, onReady }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const handle = useRef<Handle | null>(null);
  const latest = useRef(onChange);
  latest.current = onChange;
  const text = useRef(value);
  text.current = value;
  // What was typed and has not come back as a value yet: such a value is older than the text, and must not replace it.
  const typed = useRef<string[]>([]);
  const [plain, setPlain] = useState(true);
  const note = useId();
  useEffect(() => {
    let here = true;
    import("./codemirror").then(({ create }) => {
      if (!here || !host.current) return;
      const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
      const described = document.createElement("span");
      described.id = "keys";
      described.hidden = true;
      described.textContent = t("rules.keys");
      const parent = document.createElement("div");
      root.replaceChildren(described, parent);
      handle.current = create(root, parent, { text: text.current, label, described: "keys", onChange: (value) => { typed.current.push(value); latest.current(value); } });
      setPlain(false);
      onReady?.(handle.current);
    }, () => {});
    return () => {
      here = false;
      handle.current?.destroy();
      handle.current = null;
    };
  }, []);
  useEffect(() => {
    const at = typed.current.lastIndexOf(value);
    typed.current = at < 0 ? [] : typed.current.slice(at + 1);
    if (at < 0) handle.current?.setText(value);
  }, [value]);
  useEffect(() => handle.current?.setProblems(problems), [problems, plain]);
  return (
    <div class="seclang" style={{ "--editor-height": `${rows * 1.4}rem` }} data-ready={!plain}>
      {plain && <textarea class="mono" rows={rows} spellcheck={false} aria-label={label} aria-describedby={note} aria-invalid={problems.length > 0} value={value} onInput={(event) => onChange(event.currentTarget.value)} />}
      <div ref={host} />
      <p id={note} class="help">{t("rules.keys")}</p>
    </div>
  );
}

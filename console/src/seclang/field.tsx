/** The SecLang texts of an entity: an editor for each, opened one at a time, with the compiler's message at its line. */
import type { FieldError } from "../api/http";
import { t } from "../i18n";
import { useEffect, useMemo, useState } from "preact/hooks";
import { SecLangEditor } from "./editor";
import { locate } from "./problems";

/** What the field shows. `pointer` is that of the list. */
export interface RulesFieldProps {
  title: string;
  help: string;
  error: string | undefined;
  value: string[];
  set: (value: unknown) => void;
  errors: FieldError[];
  pointer: string;
}

/** The list. */
export function RulesField({ title, help, error, value, set, errors, pointer }: RulesFieldProps) {
  return (
    <fieldset class="list-field">
      <legend>{title}</legend>
      {help && <p class="help">{help}</p>}
      {error && <p class="error pre">{error}</p>}
      {value.map((text, index) => (
        <One
          key={index}
          number={index + 1}
          text={text}
          first={value.length === 1}
          errors={errors.filter((error) => error.pointer === `${pointer}/${index}`)}
          onChange={(next) => set(value.map((other, at) => (at === index ? next : other)))}
          onRemove={() => set(value.filter((_, at) => at !== index))}
        />
      ))}
      <div class="actions"><button type="button" onClick={() => set([...value, ""])}>{t("form.add")}</button></div>
    </fieldset>
  );
}

function One({ number, text, first, errors, onChange, onRemove }: { number: number; text: string; first: boolean; errors: FieldError[]; onChange: (text: string) => void; onRemove: () => void }) {
  // Editors that were never opened are not made: a ruleset may have hundreds of texts.
  const [isOpen, open] = useState(first || text === "");
  const [opened, keep] = useState(isOpen);
  const wrong = errors.length > 0;
  useEffect(() => {
    if (wrong) open(true);
  }, [wrong]);
  useEffect(() => {
    if (isOpen) keep(true);
  }, [isOpen]);
  const located = useMemo(() => errors.map((error) => locate({ index: 0, origin: "", message: error.message }, text)), [errors.map((error) => error.message).join("\n"), text]);
  const problems = useMemo(() => located.filter((problem) => problem !== null), [located]);
  const line = text.split("\n").find((line) => line.trim() && !line.trim().startsWith("#")) ?? "";
  return (
    <details class="group" open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
      <summary>{t("form.entry", { number })} <code class="muted">{line.slice(0, 60)}</code></summary>
      <div class="stack">
        {opened && <SecLangEditor label={t("rules.field", { number })} value={text} problems={problems} onChange={onChange} rows={Math.min(24, Math.max(6, text.split("\n").length + 1))} />}
        {errors.filter((_, index) => !located[index]).map((error, index) => <pre key={index} class="error" tabIndex={0}>{error.message}</pre>)}
        <div class="actions"><button type="button" onClick={onRemove}>{t("form.remove", { number })}</button></div>
      </div>
    </details>
  );
}

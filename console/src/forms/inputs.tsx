/** Inputs of a form whose text is not their value. */
import type { TargetedInputEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Schema } from "../api/entities";
import { t } from "../i18n";

/** What a labelled field gives its input. */
type FieldProps = { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean };

/** What the control plane shows in the place of a secret, and takes as the secret that is stored. */
const MASK = "********";

/** A number. `set` gets null where the field is empty: the default then holds, which the empty field shows. */
export function NumberInput({ field, schema, whole, value, disabled, set }: { field: FieldProps; schema: Schema; whole: boolean; value: unknown; disabled: boolean; set: (value: number | null) => void }) {
  const text = value === null || value === undefined ? "" : String(value);
  const [typed, type] = useState(text);
  useEffect(() => {
    // What is typed stays as it is while it is the same number.
    if (typed === "" ? text !== "" : text === "" || Number(typed) !== Number(text)) type(text);
  }, [text]);
  const input = (event: TargetedInputEvent<HTMLInputElement>) => {
    const number = event.currentTarget.valueAsNumber;
    type(event.currentTarget.value);
    set(Number.isNaN(number) ? null : number);
  };
  const placeholder = typeof schema.default === "number" ? String(schema.default) : undefined;
  return <input {...field} type="number" value={typed} placeholder={placeholder} disabled={disabled} step={whole ? 1 : "any"} min={schema.minimum} max={schema.maximum} onInput={input} />;
}

/** A secret: one that is stored is an empty field, so that nothing can be typed behind its mask. */
export function SecretInput({ field, name, value, disabled, set }: { field: FieldProps; name: string; value: unknown; disabled: boolean; set: (value: string | null) => void }) {
  const isStored = value === MASK;
  // A field that is emptied again means the stored secret, where there is one.
  const stored = useRef(isStored);
  if (isStored) stored.current = true;
  const remove = () => {
    stored.current = false;
    set(null);
  };
  return (
    <div class="inline">
      <input {...field} type="password" class="mono" autocomplete="new-password" spellcheck={false} value={isStored || typeof value !== "string" ? "" : value} placeholder={isStored ? MASK : ""} disabled={disabled} onInput={(event) => set(event.currentTarget.value || (stored.current ? MASK : null))} />
      {isStored && <button type="button" class="small" disabled={disabled} onClick={remove}>{t("form.secret.remove")}<span class="sr-only"> {name}</span></button>}
    </div>
  );
}

/** A form made of a JSON Schema, with help texts and the errors of the server at their fields. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { NumberInput, SecretInput } from "./inputs";
import { fieldsOf, pointerOf, textOf } from "./errors";
import type { Schema } from "../api/entities";
import type { FieldError } from "../api/http";
import { t } from "../i18n";
import { RulesField } from "../seclang/field";
import { Field } from "../ui/bits";
import { blank, label, shape, type FieldShape } from "./schema";

interface Props {
  root: Schema;
  schema: Schema;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  errors: FieldError[];
  /** JSON pointer of the value. */
  at?: string;
  hidden?: readonly string[];
  locked?: readonly string[];
}

/** All fields of an object. */
export function Form({ root, schema, value, onChange, errors, at = "", hidden = [], locked = [] }: Props) {
  return (
    <>
      {fieldsOf(schema, hidden).map(([name, field]) => {
        const pointer = pointerOf(at, name);
        const set = (next: unknown) => {
          const { [name]: _, ...rest } = value;
          onChange(next === undefined ? rest : { ...value, [name]: next });
        };
        return <One key={name} name={name} root={root} of={shape(field, root, name)} help={field.description} value={value[name]} set={set} errors={errors} pointer={pointer} required={schema.required?.includes(name) ?? false} locked={locked.includes(name)} />;
      })}
    </>
  );
}

interface OneProps {
  name: string;
  root: Schema;
  of: FieldShape;
  help: string | undefined;
  value: unknown;
  set: (value: unknown) => void;
  errors: FieldError[];
  pointer: string;
  required: boolean;
  locked: boolean;
}

function One(props: OneProps) {
  const { name, of, value, set, errors, pointer, required, locked } = props;
  const error = textOf(errors, pointer, of.control === "words" || of.control === "json");
  const examples = of.schema.examples?.length ? ` ${t("form.example", { value: JSON.stringify(of.schema.examples[0]) })}` : "";
  const help = `${props.help ?? of.schema.description ?? ""}${examples}`;
  const title = `${label(name)}${required ? ` (${t("form.required")})` : ""}`;
  const shown = value === undefined ? of.schema.default : value;
  const text = typeof shown === "string" ? shown : shown === null || shown === undefined ? "" : String(shown);
  // An empty text in the place of a default has to be said, or the default would come back into the field.
  const setText = (text: string) => set(text === "" && (of.nullable || (value === undefined && !of.schema.default)) ? (of.nullable ? null : undefined) : text);
  switch (of.control) {
    case "group":
      return <Group {...props} title={title} help={help} error={error} />;
    case "list":
      return <List {...props} title={title} help={help} error={error} />;
    case "json":
      return <Json title={title} help={help} error={error} value={shown} set={set} />;
    case "switch":
      return (
        <Field label={title} help={help} error={error}>
          {(field) => <input {...field} type="checkbox" class="switch" checked={shown === true} disabled={locked} onChange={(event) => set(event.currentTarget.checked)} />}
        </Field>
      );
    case "choice": {
      const chosen = of.options.find((option) => option.value === text);
      const extra = text && !chosen ? [{ value: text, help: "" }] : [];
      return (
        <Field label={title} help={`${help}${chosen?.help ? ` — ${chosen.value}: ${chosen.help}` : ""}`} error={error}>
          {(field) => (
            <select {...field} value={text} disabled={locked} onChange={(event) => set(event.currentTarget.value === "" ? null : event.currentTarget.value)}>
              {(of.nullable || !text) && <option value="">–</option>}
              {[...of.options, ...extra].map((option) => <option key={option.value} value={option.value}>{option.value}</option>)}
            </select>
          )}
        </Field>
      );
    }
    case "number":
    case "integer":
      return (
        <Field label={title} help={help} error={error}>
          {(field) => <NumberInput field={field} schema={of.schema} whole={of.control === "integer"} value={value} disabled={locked} set={(number) => set(number ?? (of.nullable ? null : undefined))} />}
        </Field>
      );
    case "secret":
      return <Field label={title} help={`${help} ${t("form.secret")}`} error={error}>{(field) => <SecretInput field={field} name={title} value={value} disabled={locked} set={set} />}</Field>;
    case "seclang":
      return <RulesField title={title} help={help} error={error} value={Array.isArray(shown) ? shown.map(String) : []} set={set} errors={errors} pointer={pointer} />;
    case "words":
      return <Words title={title} help={help} error={error} value={Array.isArray(shown) ? shown.map(String) : []} set={set} />;
    case "long":
      return <Field label={title} help={help} error={error}>{(field) => <textarea {...field} class="mono" rows={6} value={text} disabled={locked} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />}</Field>;
    default:
      return <Field label={title} help={help} error={error}>{(field) => <input {...field} value={text} disabled={locked} spellcheck={false} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />}</Field>;
  }
}

interface Part {
  title: string;
  help: string;
  error: string | undefined;
}

function Group({ root, of, value, set, errors, pointer, title, help, error }: OneProps & Part) {
  const id = useId();
  const there = value !== null && value !== undefined;
  const wrong = error !== undefined || errors.some((error) => error.pointer?.startsWith(`${pointer}/`));
  // An error opens the group. Its end does not close it: the field that has the focus may be inside.
  const [isOpen, open] = useState(wrong);
  useEffect(() => {
    if (wrong) open(true);
  }, [wrong]);
  const object = (there ? value : {}) as Record<string, unknown>;
  return (
    <details class="group" open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
      <summary {...(error ? { "aria-describedby": id } : {})}>{title}{there ? "" : ` · ${t("form.unset")}`}</summary>
      <div class="stack">
        {help && <p class="help">{help}</p>}
        {error && <p class="error" id={id}>{error}</p>}
        <Form root={root} schema={of.schema} value={object} onChange={set} errors={errors} at={pointer} />
        {there && of.nullable && <div class="actions"><button type="button" onClick={() => set(null)}>{t("form.unset.do")}</button></div>}
      </div>
    </details>
  );
}

function List({ root, of, value, set, errors, pointer, title, help, error }: OneProps & Part) {
  const entries = Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
  const items = shape(of.schema.items ?? {}, root).schema;
  const id = useId();
  return (
    <fieldset class="list-field" {...(error ? { "aria-describedby": id } : {})}>
      <legend>{title}</legend>
      {help && <p class="help">{help}</p>}
      {error && <p class="error" id={id}>{error}</p>}
      {entries.map((entry, index) => (
        <Entry key={index} number={index + 1} error={textOf(errors, `${pointer}/${index}`)} onRemove={() => set(entries.filter((_, at) => at !== index))}>
          <Form root={root} schema={items} value={entry} errors={errors} at={`${pointer}/${index}`} onChange={(next) => set(entries.map((other, at) => (at === index ? next : other)))} />
        </Entry>
      ))}
      <div class="actions"><button type="button" onClick={() => set([...entries, blank(items, root)])}>{t("form.add")}</button></div>
    </fieldset>
  );
}

function Entry({ number, error, onRemove, children }: { number: number; error: string | undefined; onRemove: () => void; children: ComponentChildren }) {
  const id = useId();
  return (
    <fieldset class="entry" {...(error ? { "aria-describedby": id } : {})}>
      <legend>{t("form.entry", { number })}</legend>
      {error && <p class="error" id={id}>{error}</p>}
      {children}
      <div class="actions"><button type="button" onClick={onRemove}>{t("form.remove", { number })}</button></div>
    </fieldset>
  );
}

function Words({ title, help, error, value, set }: Part & { value: string[]; set: (value: unknown) => void }) {
  const text = value.join("\n");
  const [typed, type] = useState(text);
  useEffect(() => {
    if (lines(typed).join("\n") !== text) type(text);
  }, [text]);
  return (
    <Field label={title} help={`${help} ${t("form.lines")}`} error={error}>
      {(field) => <textarea {...field} class="mono" rows={Math.min(8, Math.max(2, value.length + 1))} value={typed} spellcheck={false} onInput={(event) => { type(event.currentTarget.value); set(lines(event.currentTarget.value)); }} />}
    </Field>
  );
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

function Json({ title, help, error, value, set }: Part & { value: unknown; set: (value: unknown) => void }) {
  const text = value === undefined ? "" : JSON.stringify(value, null, 2);
  const [typed, type] = useState(text);
  const [wrong, setWrong] = useState("");
  const id = useId();
  useEffect(() => {
    if (!wrong) type(text);
  }, [text]);
  const change = (typed: string) => {
    type(typed);
    try {
      set(typed.trim() === "" ? undefined : JSON.parse(typed));
      setWrong("");
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return <Field label={title} help={`${help} ${t("form.json")}`} error={wrong || error}>{(field) => <textarea {...field} key={id} class="mono" rows={Math.min(14, typed.split("\n").length + 1)} value={typed} spellcheck={false} onInput={(event) => change(event.currentTarget.value)} />}</Field>;
}

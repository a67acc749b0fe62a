/** Small parts that many pages use. */
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

/** Tones of badges and figures. */
export type Tone = "" | "bad" | "warn" | "good" | "info";

/** A word with a colour that repeats its meaning. */
export function Badge({ tone = "", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A labelled control. `help` is read out with it. */
export function Field({ label, help, error, children }: { label: string; help?: string | undefined; error?: string | undefined; children: (props: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => JSX.Element }) {
  const id = useId();
  const described = help || error ? `${id}-help` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, ...(described ? { "aria-describedby": described } : {}), ...(error ? { "aria-invalid": true } : {}) })}
      {described && (
        <p id={described} class="help">
          {error && <strong class="error">{error} </strong>}
          {help}
        </p>
      )}
    </div>
  );
}

/** A figure of the overview. */
export function Figure({ label, value, note, tone = "", children }: { label: string; value: string; note?: ComponentChildren; tone?: Tone; children?: ComponentChildren }) {
  return (
    <div class={`figure ${tone}`}>
      <span class="figure-label">{label}</span>
      <span class="figure-value">{value}</span>
      {note && <span class="figure-note">{note}</span>}
      {children}
    </div>
  );
}

/** Names and values. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false).map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}

/** A section of a page. */
export function Panel({ title, actions, children }: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-head"><h2 id={id}>{title}</h2>{actions}</header>
      {children}
    </section>
  );
}

/** One of several, as a row of buttons. */
export function Choice<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: [T, string][]; onChange: (value: T) => void }) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([option, text]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>{text}</button>
      ))}
    </div>
  );
}

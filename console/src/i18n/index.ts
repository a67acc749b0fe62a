/** Texts, numbers and times in the operator's language. */
import { en } from "./en";
import { language } from "./language";
import { fill, startTexts, type Parameters, type StartKey } from "./start";

export * from "./format";
export { language, setLanguage, type Language } from "./language";

type MainKey = keyof typeof en;
/** The names of all texts. */
export type Key = MainKey | StartKey;
/** A text for one and for any other count. */
export interface Forms {
  readonly one: string;
  readonly other: string;
}
/** The names of texts that depend on `{count}`. */
export type Counted = { [K in MainKey]: (typeof en)[K] extends Forms ? K : never }[MainKey];
/** A catalogue: every key has a text, or its forms. The type makes a missing or superfluous key an error of the build. */
export type Catalogue = { readonly [K in MainKey]: K extends Counted ? Forms : string };

let texts: Catalogue = en;

/** Loads the catalogue of the language. English is part of the application. */
export async function loadCatalogue(): Promise<void> {
  if (language() === "de") texts = (await import("./de")).de;
}

function textOf(key: Key): string | Forms | undefined {
  return texts[key as MainKey] ?? startTexts()[key as StartKey];
}

/** A text, with `{name}` replaced by parameters. One with forms takes the form for `count`, which is a number. */
export function t<K extends Key>(key: K, ...[parameters = {} as Parameters]: K extends Counted ? [Parameters & { count: number }] : [Parameters?]): string {
  const text = textOf(key) ?? key;
  return fill(typeof text === "string" ? text : text[form(Number(parameters["count"]))], parameters);
}

/**
 * The form for a number as [`number`] writes it: 1.04 is written as 1. English and German have the same rule; a language with another one
 * needs `Intl.PluralRules` here, which makes the first page slower (see `number`).
 */
function form(count: number): keyof Forms {
  return Math.round(Math.abs(count) * 10) === 10 ? "one" : "other";
}

/** A text whose key is made of data, such as an action; the data itself where there is no such text. */
export function word(prefix: string, value: string): string {
  const text = textOf(`${prefix}.${value}` as Key);
  return typeof text === "string" ? text : value;
}

/** Texts, numbers and times in the operator's language. */
import type { en } from "./en";
import { frameEn } from "./frame-en";
import { language } from "./language";
import { fill, startTexts, type Parameters, type StartKey } from "./start";

export * from "./format";
export { language, setLanguage, type Language } from "./language";

type FrameKey = keyof typeof frameEn;
type MainKey = keyof typeof en;
/** The names of all texts. */
export type Key = MainKey | FrameKey | StartKey;
/** A text for one and for any other count. */
export interface Forms {
  readonly one: string;
  readonly other: string;
}
type CountedOf<T> = { [K in keyof T]: T[K] extends Forms ? K : never }[keyof T];
/** The names of texts that depend on `{count}`. */
export type Counted = CountedOf<typeof en> | CountedOf<typeof frameEn>;
/** A catalogue: every key has a text, or its forms. The type makes a missing or superfluous key an error of the build. */
export type Catalogue = { readonly [K in MainKey]: K extends Counted ? Forms : string };
/** The same of the texts that the frame and the overview need. */
export type FrameCatalogue = { readonly [K in FrameKey]: K extends Counted ? Forms : string };

let frame: FrameCatalogue = frameEn;
let texts: Partial<Catalogue> = {};

/** Loads the texts of the frame and of the overview in the operator's language. English is part of the application. */
export async function loadFrame(): Promise<void> {
  if (language() === "de") frame = (await import("./frame-de")).frameDe;
}

/** Loads all further texts, which every page but the overview needs. */
export async function loadCatalogue(): Promise<void> {
  texts = language() === "de" ? (await import("./de")).de : (await import("./en")).en;
}

function textOf(key: Key): string | Forms | undefined {
  return frame[key as FrameKey] ?? texts[key as MainKey] ?? startTexts()[key as StartKey];
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

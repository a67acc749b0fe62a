/** Texts, numbers and times in the operator's language. */
import { read, write } from "../theme";
import { en } from "./en";

/** The names of all texts. */
export type Key = keyof typeof en;
/** A text for one and for any other count, by the rules of the language (`Intl.PluralRules`). */
export interface Forms {
  readonly one: string;
  readonly other: string;
}
/** The names of texts that depend on `{count}`. */
export type Counted = { [K in Key]: (typeof en)[K] extends Forms ? K : never }[Key];
/** A catalogue: every key has a text, or its forms. The type makes a missing or superfluous key an error of the build. */
export type Catalogue = { readonly [K in Key]: K extends Counted ? Forms : string };
/** What stands in the place of `{name}`. */
type Parameters = Record<string, string | number>;
/** The languages of the console. */
export type Language = "en" | "de";

const KEY = "palisade.language";
let texts: Catalogue = en;

/** The language chosen in this browser, or that of the browser. */
export function language(): Language {
  const stored = read(KEY);
  if (stored === "en" || stored === "de") return stored;
  return navigator.language.toLowerCase().startsWith("de") ? "de" : "en";
}

/** The language with the region of the browser, which has its own clock and order of dates. */
function locale(): string {
  return navigator.language.toLowerCase().startsWith(language()) ? navigator.language : language();
}

/** Keeps a language; the page has to be loaded again. */
export function setLanguage(chosen: Language): void {
  write(KEY, chosen);
}

/** Loads the catalogue of the language. English is part of the first page. */
export async function loadCatalogue(): Promise<void> {
  document.documentElement.lang = language();
  if (language() === "de") texts = (await import("./de")).de;
}

/** A text, with `{name}` replaced by parameters. One with forms takes the form for `count`, which is a number. */
export function t<K extends Key>(key: K, ...[parameters = {} as Parameters]: K extends Counted ? [Parameters & { count: number }] : [Parameters?]): string {
  const text: string | Forms = texts[key];
  const chosen = typeof text === "string" ? text : text[form(Number(parameters["count"]))];
  return chosen.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = parameters[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
}

/** The form for a number as [`number`] writes it: 1.04 is written as 1. */
function form(count: number): keyof Forms {
  return kept("plural", () => new Intl.PluralRules(language(), { maximumFractionDigits: 1 })).select(count) === "one" ? "one" : "other";
}

/** A text whose key is made of data, such as an action; the data itself where there is no such text. */
export function word(prefix: string, value: string): string {
  const key = `${prefix}.${value}`;
  const text: string | Forms | undefined = texts[key as Key];
  return typeof text === "string" ? text : value;
}

const formats = new Map<string, unknown>();

/** Formats are made once: making one takes longer than a hundred uses of it. */
function kept<T>(name: string, make: () => T): T {
  if (!formats.has(name)) formats.set(name, make());
  return formats.get(name) as T;
}

/** A number with the separators of the language and at most one decimal. */
export function number(value: number): string {
  return kept("number", () => new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 })).format(value);
}

/** A size in bytes. */
export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${number(value)} ${units[unit]}`;
}

/** Milliseconds since 1970 of a time as the API writes it; null for none. */
export function millis(time: number | string | null | undefined): number | null {
  if (time === null || time === undefined) return null;
  const value = typeof time === "number" ? time : Date.parse(time);
  return Number.isFinite(value) ? value : null;
}

/** A local date and time, short. */
export function local(time: number): string {
  return kept("local", () => new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "medium" })).format(time);
}

/** A time of the day, for charts and streams. */
export function clock(time: number, seconds = true): string {
  return kept(seconds ? "seconds" : "minutes", () => new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) })).format(time);
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1000]];

/** How long ago, or in how long. */
export function relative(time: number, now = Date.now()): string {
  const away = time - now;
  const format = kept("relative", () => new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" }));
  for (const [unit, size] of STEPS) {
    if (Math.abs(away) >= size || unit === "second") return format.format(Math.round(away / size), unit);
  }
  return "";
}

/** Texts, numbers and times in the operator's language. */
import { read, write } from "../theme";
import { en } from "./en";

/** The names of all texts. */
export type Key = keyof typeof en;
/** A text for one and for any other count. */
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
  if (typeof text === "string" && !text.includes("{")) return text;
  const chosen = typeof text === "string" ? text : text[form(Number(parameters["count"]))];
  return chosen.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = parameters[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
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
  // Digits without a separator are the same in every language of the console; the first use of `Intl` in a page takes about 10 ms.
  if (Number.isInteger(value) && value >= 0 && value < 1000) return String(value);
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

/** A local date and time as logs write it, the same in every language: `2026-11-27 14:05:09`. */
export function local(time: number): string {
  const at = new Date(time);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(time)}`;
}

/** A local time of the day: `14:05:09`, or `14:05`. */
export function clock(time: number, seconds = true): string {
  const at = new Date(time);
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** A day of the week and of the month. */
export function weekday(time: Date): string {
  return kept("weekday", () => new Intl.DateTimeFormat(locale(), { weekday: "short", day: "numeric" })).format(time);
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

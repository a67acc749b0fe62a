/** Texts of what a browser loads first. They are apart from the others, so that the login needs none of the application. */
import { number } from "./format";
import { language } from "./language";
import { startDe } from "./start-de";
import { startEn } from "./start-en";

/** The names of these texts. */
export type StartKey = keyof typeof startEn;
/** These texts in a language. */
export type StartCatalogue = { readonly [K in StartKey]: string };
/** What stands in the place of `{name}`. */
export type Parameters = Record<string, string | number>;

let texts: StartCatalogue | null = null;

/** These texts in the operator's language. */
export function startTexts(): StartCatalogue {
  return (texts ??= language() === "de" ? startDe : startEn);
}

/** One of these texts, with `{name}` replaced by parameters. */
export function startText(key: StartKey, parameters: Parameters = {}): string {
  return fill(startTexts()[key], parameters);
}

/** A text with `{name}` replaced by parameters. */
export function fill(text: string, parameters: Parameters): string {
  if (!text.includes("{")) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = parameters[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
}

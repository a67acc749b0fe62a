/** The operator's language. */
import { read, write } from "../theme";

/** The languages of the console. */
export type Language = "en" | "de";

const KEY = "palisade_language";

/** The language chosen in this browser, or that of the browser. */
export function language(): Language {
  const stored = read(KEY);
  if (stored === "en" || stored === "de") return stored;
  return navigator.language.toLowerCase().startsWith("de") ? "de" : "en";
}

/** The language with the region of the browser, which has its own clock and order of dates. */
export function locale(): string {
  return navigator.language.toLowerCase().startsWith(language()) ? navigator.language : language();
}

/** Keeps a language; the page has to be loaded again. */
export function setLanguage(chosen: Language): void {
  write(KEY, chosen);
}

/** The operator's language. */
import { keep } from "../theme";

/** The languages of the console. */
export type Language = "en" | "de";

/** The language of the page: the control plane writes the one chosen in this browser into it, or that of the browser. */
export function language(): Language {
  return document.documentElement.lang === "de" ? "de" : "en";
}

/** The language with the region of the browser, which has its own clock and order of dates. */
export function locale(): string {
  return navigator.language.toLowerCase().startsWith(language()) ? navigator.language : language();
}

/** Keeps a language; the page has to be loaded again. */
export function setLanguage(chosen: Language): void {
  keep("palisade_language", chosen);
}

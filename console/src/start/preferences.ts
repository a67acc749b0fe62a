/** Theme and language: the two choices that are kept in the browser. */
import { language, setLanguage, type Language } from "../i18n/language";
import { startText as t } from "../i18n/start";
import { setTheme, theme, type Theme } from "../theme";
import { el } from "./dom";

/** Two labelled selections, for an element of the class `preferences`. */
export function preferences(): HTMLElement[] {
  const themes: [Theme, string][] = [["system", t("preferences.theme.system")], ["light", t("preferences.theme.light")], ["dark", t("preferences.theme.dark")]];
  const languages: [Language, string][] = [["en", "English"], ["de", "Deutsch"]];
  return [
    choice(t("preferences.theme"), themes.map(([value, text]) => el("option", { value, selected: value === theme() }, text)), (value) => setTheme(value as Theme)),
    choice(t("preferences.language"), languages.map(([value, text]) => el("option", { value, lang: value, selected: value === language() }, text)), (value) => {
      setLanguage(value as Language);
      location.reload();
    }),
  ];
}

function choice(label: string, options: HTMLOptionElement[], onChange: (value: string) => void): HTMLElement {
  const select = el("select", { onchange: () => onChange(select.value) }, ...options);
  return el("label", {}, el("span", {}, label), select);
}

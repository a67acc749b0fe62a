/** Theme and language. */
import { useState } from "preact/hooks";
import { language, setLanguage, t, type Language } from "./i18n";
import { applyTheme, theme, type Theme } from "./theme";

/** The two choices, kept in the browser. */
export function Preferences() {
  const [chosen, choose] = useState<Theme>(theme());
  return (
    <div class="preferences">
      <label>
        <span>{t("preferences.theme")}</span>
        <select value={chosen} onChange={(event) => { const value = event.currentTarget.value as Theme; applyTheme(value); choose(value); }}>
          <option value="system">{t("preferences.theme.system")}</option>
          <option value="light">{t("preferences.theme.light")}</option>
          <option value="dark">{t("preferences.theme.dark")}</option>
        </select>
      </label>
      <label>
        <span>{t("preferences.language")}</span>
        <select value={language()} onChange={(event) => { setLanguage(event.currentTarget.value as Language); location.reload(); }}>
          <option value="en" lang="en">English</option>
          <option value="de" lang="de">Deutsch</option>
        </select>
      </label>
    </div>
  );
}

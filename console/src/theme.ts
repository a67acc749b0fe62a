/** Light and dark: the system's choice, unless the operator has made one. */
export type Theme = "system" | "light" | "dark";

/** The theme of the page: the control plane writes the one that this browser keeps into it. */
export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** Shows a theme and keeps it in this browser. */
export function setTheme(chosen: Theme): void {
  keep("palisade_theme", chosen === "system" ? null : chosen);
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

/** How long a choice is kept, in seconds: a year, the most that browsers agree on. */
const KEEP_S = 31_536_000;

/**
 * Keeps a choice, which has letters alone, for the pages of the console; null forgets it. A browser that refuses cookies keeps nothing. Only the
 * control plane reads it, also when a link of another site leads here: a script that reads cookies makes the first page wait for another
 * process of the browser.
 */
export function keep(key: string, value: string | null): void {
  document.cookie = `${key}=${value ?? ""}; path=/console; max-age=${value === null ? 0 : KEEP_S}; samesite=lax`;
}

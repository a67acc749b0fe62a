/** Light and dark: the system's choice, unless the operator has made one. */
export type Theme = "system" | "light" | "dark";

const KEY = "palisade.theme";

/** The theme that the operator chose in this browser. */
export function theme(): Theme {
  const stored = read(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** Keeps a theme in this browser. */
export function setTheme(chosen: Theme): void {
  write(KEY, chosen === "system" ? null : chosen);
}

/** Shows the theme that is kept. */
export function applyTheme(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

/** Reads local storage; null where the browser refuses access to it. */
export function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Writes local storage; a browser that refuses access keeps nothing. */
export function write(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // A private window: the choice lasts until the page is closed.
  }
}

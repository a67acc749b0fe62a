/** Light and dark: the system's choice, unless the operator has made one. */
export type Theme = "system" | "light" | "dark";

const KEY = "palisade_theme";

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

/** How long a choice is kept, in seconds: a year, the most that browsers agree on. */
const KEEP_S = 31_536_000;

/** The cookies of this page. They are read once: the first reading waits for another process of the browser. */
let cookies: string[] | null = null;

/** A choice that is kept in this browser; null if there is none. In a cookie, because the first use of local storage makes the first page wait for more than a millisecond. */
export function read(key: string): string | null {
  const start = `${key}=`;
  cookies ??= document.cookie.split("; ");
  const kept = cookies.find((cookie) => cookie.startsWith(start));
  return kept ? kept.slice(start.length) : null;
}

/** Keeps a choice, which has letters alone, for the pages of the console; null forgets it. A browser that refuses cookies keeps nothing. */
export function write(key: string, value: string | null): void {
  document.cookie = `${key}=${value ?? ""}; path=/console; max-age=${value === null ? 0 : KEEP_S}; samesite=strict`;
  cookies = null;
}

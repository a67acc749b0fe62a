/** Numbers and times in the operator's language. */
import { locale } from "./language";

const formats = new Map<string, unknown>();

/** Formats are made once: making one takes longer than a hundred uses of it. */
function kept<T>(name: string, make: () => T): T {
  if (!formats.has(name)) formats.set(name, make());
  return formats.get(name) as T;
}

/** The marks of thousands and of decimals where digits are grouped by three; other languages have them from `Intl`. */
const MARKS: Record<string, [string, string]> = { en: [",", "."], "en-US": [",", "."], "en-GB": [",", "."], de: [".", ","], "de-DE": [".", ","] };
/** Above this a double has no tenths. */
const MOST = 2 ** 49;

/** A number with the separators of the language and at most one decimal. */
export function number(value: number): string {
  // The first use of `Intl` in a page takes about 10 ms, which a number on the first page should not cost.
  if (Number.isInteger(value) && value >= 0 && value < 1000) return String(value);
  const marks = MARKS[locale()];
  const tenths = Math.round(Math.abs(value) * 10);
  if (!marks || !(tenths <= MOST)) return kept("number", () => new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 })).format(value);
  const whole = String(Math.floor(tenths / 10)).replace(/\B(?=(\d{3})+$)/g, marks[0]);
  return `${value < 0 ? "-" : ""}${whole}${tenths % 10 ? marks[1] + (tenths % 10) : ""}`;
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

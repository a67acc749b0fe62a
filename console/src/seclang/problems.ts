/** Messages of the compiler, at their places in the text. */
import type { RuleError } from "../api/plugins";

/** A message at a place: `line` from 1, `from` and `to` in UTF-16 units from the start of the text. */
export interface RuleProblem {
  line: number;
  from: number;
  to: number;
  /** What is wrong, and what to do about it. */
  message: string;
}

/** Reads the caret message of an error; null where it has no place in this text. Columns of the compiler count bytes. */
export function locate(error: RuleError, text: string): RuleProblem | null {
  const place = /\n {2}--> [^\n]*, line (\d+), column (\d+)/.exec(error.message);
  const lines = text.split("\n");
  const number = Number(place?.[1] ?? 0);
  const line = lines[number - 1];
  if (!place || line === undefined) return null;
  const start = lines.slice(0, number - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const column = unitsOf(line, Number(place[2]) - 1);
  const from = start + Math.min(column, Math.max(0, line.length - 1));
  const word = /^[\w@:]+/.exec(line.slice(from - start))?.[0].length ?? 1;
  const message = (error.message.split("\n")[0] ?? "").replace(/^error: /, "");
  const help = /\n {3}= help: (.*)/.exec(error.message)?.[1];
  return { line: number, from, to: Math.min(from + Math.max(word, 1), start + line.length), message: help ? `${message}: ${help}` : message };
}

/** How many UTF-16 units the first `bytes` bytes of a line have. */
function unitsOf(line: string, bytes: number): number {
  let left = bytes;
  let units = 0;
  for (const character of line) {
    const point = character.codePointAt(0) ?? 0;
    left -= point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (left < 0) break;
    units += character.length;
  }
  return units;
}

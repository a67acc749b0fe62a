/** Line by line, what differs between two texts. */

/** A line that stays, goes or comes. */
export interface DiffLine {
  mark: " " | "-" | "+";
  text: string;
}

/** Beyond this many pairs of lines only the ends that are alike are found: the table would take too much memory. */
const MOST = 4_000_000;

/** The shortest edit from `before` to `after` (longest common subsequence). */
export function diff(before: string, after: string): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ mark: " ", text }));
  return [...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))];
}

function between(a: string[], b: string[]): DiffLine[] {
  const all: DiffLine[] = [...a.map((text): DiffLine => ({ mark: "-", text })), ...b.map((text): DiffLine => ({ mark: "+", text }))];
  if (a.length === 0 || b.length === 0 || a.length * b.length > MOST) return all;
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => table[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) table[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ mark: " ", text: a[i] ?? "" });
      i += 1;
      j += 1;
    } else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1))) lines.push({ mark: "-", text: a[i++] ?? "" });
    else lines.push({ mark: "+", text: b[j++] ?? "" });
  }
  return lines;
}

/** Lines in the order of their keys, so that two documents differ only where their values do. */
export function lined(document: unknown): string {
  return JSON.stringify(document, null, 2) ?? "";
}

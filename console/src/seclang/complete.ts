/** What can be written at a place of SecLang. */
import { partOf, read, start, type Place, type Stream } from "./tokens";
import { WORDS, type WordKind } from "./words";

/** A line that is read on its own, without CodeMirror. */
class LineStream implements Stream {
  pos = 0;
  private from = 0;
  constructor(readonly string: string) {}
  sol = () => this.pos === 0;
  eol = () => this.pos >= this.string.length;
  peek = () => this.string[this.pos];
  next = () => this.string[this.pos++];
  skipToEnd = () => void (this.pos = this.string.length);
  current = () => this.string.slice(this.from, this.pos);
  begin = () => void (this.from = this.pos);
  match(pattern: RegExp): unknown {
    const found = pattern.exec(this.string.slice(this.pos));
    if (found?.index !== 0) return null;
    this.pos += found[0].length;
    return found;
  }
}

/** The place behind `text`, which begins where a directive may begin. */
export function placeAt(text: string): Place {
  const place = start();
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    if (line === "" && index < lines.length - 1) Object.assign(place, start());
    // The last line goes on behind the cursor: it does not end there.
    const stream = new LineStream(index === lines.length - 1 ? `${line}\\` : line);
    while (!stream.eol() && !(index === lines.length - 1 && stream.pos >= line.length)) {
      stream.begin();
      read(stream, place);
    }
  });
  return place;
}

/** The words that may stand behind `text`, and the beginning of the word that is there already; null where any text may stand. */
export function wordsAt(text: string): { kind: WordKind; typed: string } | null {
  const typed = /[\w]*$/.exec(text)?.[0] ?? "";
  const place = placeAt(text.slice(0, text.length - typed.length));
  if (!place.directive) return /^\s*$/.test(text.slice(text.lastIndexOf("\n") + 1, text.length - typed.length)) ? { kind: "directives", typed } : null;
  const before = text.slice(0, text.length - typed.length);
  switch (partOf(place)) {
    case "variables":
      return place.member ? null : { kind: "variables", typed };
    case "operator":
      return /@$/.test(before) ? { kind: "operators", typed } : null;
    case "actions":
      if (place.text) return null;
      if (/[,"']\s*(\\\n\s*)?$/.test(before) && !place.action) return { kind: "actions", typed };
      if (place.action === "t" && /:$/.test(before)) return { kind: "transformations", typed };
      if (place.action === "ctl" && /:$/.test(before)) return { kind: "controls", typed };
      return null;
    default:
      return null;
  }
}

/** The words of a kind that begin with what is typed, in any case. */
export function offers(kind: WordKind): [name: string, help: string][] {
  return WORDS[kind];
}

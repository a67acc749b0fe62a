/**
 * Reads SecLang from left to right, for colours and for completion. The compiler on the server judges; this only has to know where in a
 * directive a character is. Its lines are those of filters/lib/seclang/src/syntax: `#` begins a comment where a directive may begin, and a
 * backslash at the end joins lines.
 */
import { isIneffective, isKnown, type WordKind } from "./words";

/** What an argument of a directive is made of. */
export type Part = "variables" | "operator" | "actions" | "text";

/** Where the reader is. */
export interface Place {
  /** The directive, in lower case; empty where one may begin. */
  directive: string;
  /** The number of arguments before this one. */
  argument: number;
  /** The quote that the argument began with. */
  quote: string;
  /** Inside an argument. */
  open: boolean;
  /** The operator's name is read. */
  named: boolean;
  /** The action whose value is read. */
  action: string;
  /** Inside `'...'` of an action's value. */
  text: boolean;
  /** A variable's member is read, behind `:`. */
  member: boolean;
}

/** The part of a text that the reader looks at; CodeMirror's `StringStream` is one. */
export interface Stream {
  pos: number;
  string: string;
  sol(): boolean;
  eol(): boolean;
  peek(): string | null | undefined | void;
  next(): string | null | undefined | void;
  match(pattern: RegExp, consume?: boolean): unknown;
  current(): string;
  skipToEnd(): void;
}

/** At the start of a text. */
export const start = (): Place => ({ directive: "", argument: 0, quote: "", open: false, named: false, action: "", text: false, member: false });

/** What the argument that the reader is in has. */
export function partOf({ directive, argument }: Place): Part {
  if (directive === "secrule") return (["variables", "operator", "actions"] as const)[argument] ?? "text";
  if (directive === "secaction" || directive === "secdefaultaction") return "actions";
  if (directive === "secruleupdateactionbyid") return argument === 1 ? "actions" : "text";
  if (directive.startsWith("secruleupdatetarget")) return argument === 1 ? "variables" : "text";
  return "text";
}

/** A colour for a word: unknown ones are marked, so that a slip shows before the compiler answers. */
const tone = (kind: WordKind, name: string, colour: string) => (isKnown(kind, name) ? colour : "invalid");

function endLine(stream: Stream, place: Place): void {
  if (stream.eol() && !stream.string.endsWith("\\")) Object.assign(place, start());
}

function endArgument(place: Place): void {
  Object.assign(place, { ...start(), directive: place.directive, argument: place.argument + 1 });
}

/** Reads one token and answers its colour, a tag of @lezer/highlight. */
export function read(stream: Stream, place: Place): string | null {
  const colour = one(stream, place);
  endLine(stream, place);
  return colour;
}

function one(stream: Stream, place: Place): string | null {
  if (stream.match(/^\s+/)) {
    if (place.open && !place.quote) endArgument(place);
    return null;
  }
  if (stream.match(/^\\$/)) return "punctuation";
  if (!place.directive) {
    if (stream.peek() === "#") {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/^@import_preset\b.*/)) return "meta";
    if (!stream.match(/^\w+/)) {
      stream.next();
      return "invalid";
    }
    place.directive = stream.current().trim().toLowerCase();
    return isKnown("directives", place.directive) ? "keyword" : isIneffective(place.directive) ? "comment" : "invalid";
  }
  if (!place.open) {
    place.open = true;
    const quote = stream.match(/^["']/) ? stream.current().slice(-1) : "";
    place.quote = quote;
    if (quote) return "punctuation";
  }
  if (place.quote && !place.text && stream.peek() === place.quote) {
    stream.next();
    endArgument(place);
    return "punctuation";
  }
  const part = partOf(place);
  if (part === "variables") return variables(stream, place);
  if (part === "operator") return operator(stream, place);
  if (part === "actions") return actions(stream, place);
  return rest(stream, place, place.quote === "" ? /^[^\s\\]+/ : place.quote === "'" ? /^[^'\\]+/ : /^[^"\\]+/, "string");
}

/** Text up to what `pattern` leaves; a backslash takes the next character along. */
function rest(stream: Stream, place: Place, pattern: RegExp, colour: string): string {
  if (stream.match(/^%\{[^}"']*\}/)) return "variableName";
  if (stream.match(/^\\./) || stream.match(pattern)) return colour;
  stream.next();
  return place.quote ? colour : "string";
}

function variables(stream: Stream, place: Place): string {
  if (stream.match(/^[|,]/)) {
    place.member = false;
    return "operator";
  }
  if (place.member) {
    if (stream.match(/^\/(?:\\.|[^\/\\])*\//)) return "regexp";
    return rest(stream, place, /^[^|,"'\s\\]+/, "propertyName");
  }
  if (stream.match(/^[!&]/)) return "operator";
  if (stream.match(/^:/)) {
    place.member = true;
    return "punctuation";
  }
  if (stream.match(/^\w+/)) return tone("variables", /\w+$/.exec(stream.current())?.[0] ?? "", "variableName");
  stream.next();
  return "invalid";
}

function operator(stream: Stream, place: Place): string {
  if (!place.named) {
    if (stream.match(/^!/)) return "operator";
    const found = stream.match(/^@(\w*)/) as RegExpMatchArray | null;
    place.named = true;
    if (found) return tone("operators", found[1] ?? "", "operatorKeyword");
  }
  return rest(stream, place, place.quote ? /^[^"\\%]+/ : /^[^\s\\%]+/, "regexp");
}

function actions(stream: Stream, place: Place): string {
  if (place.text) {
    if (stream.match(/^'/)) {
      place.text = false;
      return "string";
    }
    return rest(stream, place, /^[^'\\%]+/, "string");
  }
  if (stream.match(/^,/)) {
    place.action = "";
    return "punctuation";
  }
  if (!place.action) {
    const found = stream.match(/^(\w+)(?=(:)?)/) as RegExpMatchArray | null;
    if (!found) {
      stream.next();
      return "invalid";
    }
    const name = (found[1] ?? "").toLowerCase();
    if (found[2] || stream.eol()) place.action = name;
    return tone("actions", name, "attributeName");
  }
  if (stream.match(/^:/)) return "punctuation";
  if (stream.match(/^'/)) {
    place.text = true;
    return "string";
  }
  if (place.action === "t" && stream.match(/^\w+/)) return tone("transformations", /\w+$/.exec(stream.current())?.[0] ?? "", "typeName");
  if (place.action === "ctl" && stream.match(/^\w+(?==)/)) return tone("controls", /\w+$/.exec(stream.current())?.[0] ?? "", "typeName");
  if ((place.action === "id" || place.action === "phase" || place.action === "status") && stream.match(/^\d+/)) return "number";
  return rest(stream, place, /^[^,"'\\%]+/, "string");
}

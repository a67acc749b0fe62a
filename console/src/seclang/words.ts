/** The words of SecLang, as the engine knows them; made by scripts/seclang-words.mjs. */
import words from "./words.json";

/** The kinds of words that can be completed. */
export type WordKind = "directives" | "variables" | "operators" | "transformations" | "actions" | "controls";

/** Each word with a line of help. */
export const WORDS = words as unknown as Record<WordKind, [name: string, help: string][]>;

const known = Object.fromEntries((["directives", "variables", "operators", "transformations", "actions", "controls"] as const).map((kind) => [kind, new Set(WORDS[kind].map(([name]) => name.toLowerCase()))])) as Record<WordKind, Set<string>>;
const ineffective = new Set(words.ineffective.map((name) => name.toLowerCase()));
const collections = new Set(words.collections);

/** Whether the engine has the word; names have any case. */
export const isKnown = (kind: WordKind, name: string) => known[kind].has(name.toLowerCase());
/** Whether the engine takes the directive and ignores it. */
export const isIneffective = (directive: string) => ineffective.has(directive.toLowerCase());
/** Whether a variable has members, such as `ARGS:q`. */
export const isCollection = (variable: string) => collections.has(variable);

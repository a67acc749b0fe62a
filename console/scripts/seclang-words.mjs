/**
 * The words of SecLang for the editor, read from the tables of the engine in filters/lib/seclang/src, each with a line of help.
 *
 * `node scripts/seclang-words.mjs` writes src/seclang/words.json; `npm run check` says if that file is not what the tables give.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { HELP } from "./seclang-help.mjs";

const engine = (path) => readFileSync(new URL(`../../filters/lib/seclang/src/${path}`, import.meta.url), "utf8");
/** Where the words are kept. */
export const KEPT = new URL("../src/seclang/words.json", import.meta.url);

function table(text, name) {
  const body = new RegExp(`const ${name}: [^=]*=\\s*&\\[([\\s\\S]*?)\\];`).exec(text)?.[1];
  if (body === undefined) throw new Error(`the engine has no table ${name} any more`);
  return body;
}

const strings = (body) => [...body.matchAll(/^\s*"(\w+)",/gm)].map((match) => match[1]);
/** The first strings of pairs. */
const first = (body) => [...body.matchAll(/\("(\w+)",/g)].map((match) => match[1]);
/** Names with the doc comment of their variant of an enum. */
function documented(text, names, prefix) {
  const docs = new Map([...text.matchAll(/\/\/\/ (.+)\n\s*(\w+) = \d+/g)].map((match) => [match[2], match[1]]));
  return [...names.matchAll(/\("(\w+)", \w+::(\w+)\)/g)].map(([, name, variant]) => {
    const doc = docs.get(variant) ?? "";
    return { name, variant, help: doc.includes(": ") ? doc.slice(doc.indexOf(": ") + 2).replace(/\.$/, "") : "", refused: / refused\.$/.test(doc), prefix };
  });
}

/** All words that rules may write, by kind: `[name, help]`. */
export function words() {
  const variables = [...engine("vocabulary/variable.rs").matchAll(/\/\/\/ `\w+`: (.+)\n\s*\w+ = \d+, (Scalar|Collection), "(\w+)";/g)].map(([, help, shape, name]) => ({ name, help: help.replace(/\.$/, ""), collection: shape === "Collection" }));
  const kinds = engine("operator/kind.rs");
  const transforms = engine("transform/mod.rs");
  const directives = engine("compile/directives.rs");
  const lists = {
    directives: strings(table(directives, "KNOWN")).map((name) => ({ name, help: "" })),
    variables,
    operators: documented(kinds, table(kinds, "NAMES")).filter(({ refused }) => !refused),
    transformations: documented(transforms, table(transforms, "NAMES")),
    actions: strings(table(engine("compile/actions.rs"), "NAMES")).map((name) => ({ name, help: "" })),
    controls: strings(table(engine("compile/control.rs"), "NAMES")).map((name) => ({ name, help: "" })),
  };
  const made = {};
  for (const [kind, list] of Object.entries(lists)) {
    if (list.length < 10) throw new Error(`the engine's table of ${kind} was not understood: ${list.length} words`);
    for (const name of Object.keys(HELP[kind])) if (!list.some((word) => word.name === name)) throw new Error(`seclang-help.mjs: the engine has no ${name} among its ${kind}`);
    made[kind] = list.map(({ name, help }) => {
      const text = (help || HELP[kind][name])?.replaceAll("`", "");
      if (!text) throw new Error(`seclang-help.mjs lacks ${name} among the ${kind}`);
      return [name, text];
    });
  }
  const ineffective = first(table(directives, "WITHOUT_MEANING"));
  return { ...made, collections: variables.filter(({ collection }) => collection).map(({ name }) => name), ineffective };
}

/** The text of the file: a word a line, so that differences are readable. */
export function text() {
  const line = ([kind, list]) => `  ${JSON.stringify(kind)}: [\n${list.map((word) => `    ${JSON.stringify(word)}`).join(",\n")}\n  ]`;
  return `{\n${Object.entries(words()).map(line).join(",\n")}\n}\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(KEPT, text());

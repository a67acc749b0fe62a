/** Rules for the sources that the compiler does not know: no HTML made of text, short files, catalogues without dead texts. */
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { KEPT as CHAIN, text as chainPlugins } from "./chain-plugins.mjs";
import { KEPT as MAP, text as worldMap } from "./world-map.mjs";
import { KEPT as WORDS, text as seclangWords } from "./seclang-words.mjs";

const MOST_LINES = 400;
const FORBIDDEN = [/\binnerHTML\b/, /\bouterHTML\b/, /dangerouslySetInnerHTML/, /insertAdjacentHTML/, /document\.write/, /\beval\(/, /new Function\(/, /javascript:/];
const problems = [];
const sources = [];

function walk(folder) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) walk(path);
    else if (/\.tsx?$/.test(name)) sources.push([path, readFileSync(path, "utf8")]);
  }
}
walk(new URL("../src", import.meta.url).pathname);

const linesOf = (file) => [...readFileSync(new URL(`../src/i18n/${file}`, import.meta.url), "utf8").matchAll(/^ {2}"([^"]+)": (.*)$/gm)];
// The texts of the login, and those of the frame and the overview, are in files of their own.
const PARTS = ["start-", "frame-", ""];
const [english, german] = ["en.ts", "de.ts"].map((file) => PARTS.flatMap((part) => linesOf(part + file)).map((match) => match[1]));
// A text that counts has a form for one and a form for the others, in both languages: "1 entries" is never shown.
const FORMS = /^\{ one: "[^"]+", other: "[^"]*\{count\}[^"]*" \},$/;
for (const file of PARTS.flatMap((part) => [`${part}en.ts`, `${part}de.ts`])) {
  for (const [, key, text] of linesOf(file)) {
    if (text.includes("{count}") && !FORMS.test(text)) problems.push(`${file}: ${key} counts: write { one: "…", other: "…" }`);
    if (!text.includes("{count}") && text.startsWith("{")) problems.push(`${file}: ${key} has forms and no {count}`);
  }
}
for (const key of english) if (!german.includes(key)) problems.push(`German lacks ${key}`);
for (const [at, key] of english.entries()) if (english.indexOf(key) !== at) problems.push(`English has ${key} twice`);
for (const key of german) if (!english.includes(key)) problems.push(`English lacks ${key}`);

const texts = sources.filter(([path]) => !path.includes("/i18n/"));
const all = texts.map(([, text]) => text).join("\n");
/** Whether a text uses a key: by its name, or by the beginning of keys that are made of data. */
function uses(text) {
  const made = [...text.matchAll(/(?:word\("|t\(`)([a-z_.]+?)(?:"|\.?\$\{)/g)].map((match) => match[1]);
  return (key) => text.includes(`"${key}"`) || made.some((start) => key.startsWith(start));
}
const isUsed = uses(all);
for (const key of english) if (!isUsed(key)) problems.push(`no source uses the text ${key}`);
// Without the further texts, the frame and the overview must not need one of them.
const early = [];
const follow = (path) => {
  const found = [path, `${path}.ts`, `${path}.tsx`, `${path}/index.ts`].map((path) => sources.find(([known]) => known === path)).find(Boolean);
  if (!found || early.includes(found)) return;
  early.push(found);
  for (const [, type, from] of found[1].matchAll(/^(?:import|export)(?: (type))?(?: [^;]*? from)? "(\.[^"]+)"/gm)) if (!type) follow(join(found[0], "..", from));
};
for (const path of ["app.tsx", "pages/overview.tsx"]) follow(new URL(`../src/${path}`, import.meta.url).pathname);
const isEarly = uses(early.filter(([path]) => !path.includes("/i18n/")).map(([, text]) => text).join("\n"));
const frame = linesOf("frame-en.ts").map((match) => match[1]);
for (const [, key] of linesOf("en.ts")) if (isEarly(key)) problems.push(`the frame or the overview uses ${key}, which is not in frame-en.ts`);
for (const key of frame) if (!isEarly(key)) problems.push(`neither the frame nor the overview uses ${key}, which is in frame-en.ts`);
for (const [path, text] of sources) {
  const lines = text.split("\n").length;
  if (lines > MOST_LINES && !path.includes("/i18n/")) problems.push(`${path} has ${lines} lines (at most ${MOST_LINES})`);
  for (const pattern of FORBIDDEN) if (pattern.test(text)) problems.push(`${path} uses ${pattern}`);
}
// Files that are made of the sources of the engine and of the plugins, and of the package with the map.
for (const [kept, text, script] of [[WORDS, seclangWords, "seclang-words"], [CHAIN, chainPlugins, "chain-plugins"], [MAP, worldMap, "world-map"]]) {
  try {
    if (readFileSync(kept, "utf8") !== text()) problems.push(`${kept.pathname} is not what the sources give; run \`node scripts/${script}.mjs\``);
  } catch (error) {
    problems.push(error.message);
  }
}
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`${sources.length} sources, ${english.length} texts in each language`);

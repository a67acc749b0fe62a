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
// The texts of the login are in files of their own.
const [english, german] = ["en.ts", "de.ts"].map((file) => [`start-${file}`, file].flatMap(linesOf).map((match) => match[1]));
// A text that counts has a form for one and a form for the others, in both languages: "1 entries" is never shown.
const FORMS = /^\{ one: "[^"]+", other: "[^"]*\{count\}[^"]*" \},$/;
for (const file of ["en.ts", "de.ts", "start-en.ts", "start-de.ts"]) {
  for (const [, key, text] of linesOf(file)) {
    if (text.includes("{count}") && !FORMS.test(text)) problems.push(`${file}: ${key} counts: write { one: "…", other: "…" }`);
    if (!text.includes("{count}") && text.startsWith("{")) problems.push(`${file}: ${key} has forms and no {count}`);
  }
}
for (const key of english) if (!german.includes(key)) problems.push(`de.ts lacks ${key}`);
for (const [at, key] of english.entries()) if (english.indexOf(key) !== at) problems.push(`en.ts and start-en.ts both have ${key}`);
for (const key of german) if (!english.includes(key)) problems.push(`en.ts lacks ${key}`);

const texts = sources.filter(([path]) => !path.includes("/i18n/"));
const all = texts.map(([, text]) => text).join("\n");
// Keys that are made of data: their beginnings.
const made = [...all.matchAll(/(?:word\("|t\(`)([a-z_.]+?)(?:"|\.?\$\{)/g)].map((match) => match[1]);
for (const key of english) {
  if (!all.includes(`"${key}"`) && !made.some((start) => key.startsWith(start))) problems.push(`no source uses the text ${key}`);
}
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

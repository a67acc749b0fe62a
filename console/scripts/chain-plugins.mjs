/**
 * The plugins and what a preset lays down of them, read from the registry in filters/preset and the `control` module of each plugin: the
 * places from which the compiler takes the order of a chain.
 *
 * `node scripts/chain-plugins.mjs` writes src/chain/plugins.json; `npm run check` says if that file is not what the sources give.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const filters = new URL("../../filters/", import.meta.url);
/** Where the plugins are kept. */
export const KEPT = new URL("../src/chain/plugins.json", import.meta.url);

function source(...paths) {
  const found = paths.map((path) => new URL(path, filters)).find(existsSync);
  if (!found) throw new Error(`chain-plugins.mjs: there is no ${paths.join(" or ")}`);
  return readFileSync(found, "utf8");
}

/** What `pattern` finds in the sources of a plugin; an error where nothing is found and something must be. */
function find(text, pattern, what) {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`chain-plugins.mjs does not find ${what}`);
  return found;
}

const strings = (text) => [...(text ?? "").matchAll(/"([^"]+)"/g)].map((match) => match[1]);
const pairs = (text) => Object.fromEntries([...(text ?? "").matchAll(/\("([^"]+)", "([^"]+)"\)/g)].map((match) => [match[1], match[2]]));

function plugin(crate) {
  const folder = crate.replaceAll("_", "-");
  const lib = source(`${folder}/src/lib.rs`);
  const control = source(`${folder}/src/control.rs`, `${folder}/src/control/mod.rs`);
  const definition = find(control, /(pub const PLUGIN: Plugin = Plugin \{[\s\S]*?\n\};)/, `the definition of ${folder}`);
  const section = /preset: (?:Section \{([\s\S]*?)\n {4}\}|Section::NONE),/.exec(definition)?.[1] ?? "";
  const switched = /switch: Some\("(\w+)"\)/.exec(section)?.[1] ?? null;
  const references = pairs(/references: &\[(.*?)\],/s.exec(section)?.[1]);
  // A plugin without a switch is laid down where its policy is named; the WAF needs its config beside its switch.
  const needs = switched === null ? Object.keys(references)[0] ?? null : /Fields \{ (\w+): None, \.\. \} => \(None/.exec(section)?.[1] ?? null;
  return {
    name: find(lib, /PluginDefinition::new\("([\w-]+)"/, `the name of ${folder}`),
    title: find(definition, /title: "([^"]+)"/, `the title of ${folder}`),
    classes: strings(find(definition, /classes: &\[([^\]]*)\]/, `the classes of ${folder}`)),
    order: Number(find(definition, /\border: (\d+)/, `the order of ${folder}`)),
    role: find(lib, /\.role\(Role::(\w+)\)/, `the role of ${folder}`).toLowerCase(),
    references: pairs(/\n {4}references: &\[(.*?)\],/s.exec(definition)?.[1]),
    preset: /lay_down: Some/.test(section)
      ? { index: Number(find(section, /index: ([\d.]+)/, `the plugin_index of ${folder}`)), switch: switched, on: switched !== null && new RegExp(`impl Default for Fields[\\s\\S]*?\\b${switched}: true`).test(control), needs, fields: strings(/fields: &\[([^\]]*)\]/.exec(section)?.[1]), references }
      : null,
  };
}

/** All plugins of a release in the order of a full preset, and the names of presets. */
export function chain() {
  const registry = source("preset/src/lib.rs");
  const body = find(registry, /plugins! \{\n([\s\S]*?)\n\}/, "the registry");
  const crates = body.replaceAll(/#\[cfg\(feature = "examples"\)\]\s*\w+,/g, "").match(/\w+(?=,)/g) ?? [];
  if (crates.length < 10) throw new Error("chain-plugins.mjs does not understand the registry");
  const entities = readFileSync(new URL("../../control-plane/entities/src/plugins.rs", import.meta.url), "utf8");
  return {
    presets: strings(find(entities, /PRESET_CLASSES: \[&str; \d+\] = \[([^\]]*)\]/, "the names of presets")),
    plugins: crates.map(plugin).sort((a, b) => a.order - b.order),
  };
}

/** The text of the file. */
export function text() {
  const { presets, plugins } = chain();
  return `{\n  "presets": ${JSON.stringify(presets)},\n  "plugins": [\n${plugins.map((plugin) => `    ${JSON.stringify(plugin)}`).join(",\n")}\n  ]\n}\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(KEPT, text());

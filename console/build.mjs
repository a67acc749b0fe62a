/**
 * Bundles the console into ../control-plane/console-files/dist, with the compressed form of each file beside it.
 *
 * `--verify` builds elsewhere and says whether the files that are checked in are what the sources give. Compressed files are compared by
 * what they contain: releases of Node differ in how they compress.
 */
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const kept = join(here, "../control-plane/console-files/dist");
const verify = process.argv.includes("--verify");
const out = verify ? mkdtempSync(join(tmpdir(), "palisade-console-")) : kept;
/** Bytes that the first page may have, compressed: the page itself, its style, its script and what they import. */
const LIMIT = 150 * 1024;

const options = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: ["es2022", "chrome123", "firefox121", "safari17.5"],
  minify: true,
  metafile: true,
  write: false,
  outdir: "out",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  legalComments: "none",
  logLevel: "warning",
};
// All that the application loads later imports it, which is there before: what both import is in one file then, not in one for each set of them.
const later = { name: "later", setup: ({ onLoad }) => onLoad({ filter: /\/src\/(pages\/[^/]+|geo\/map|seclang\/codemirror)\.tsx?$/ }, ({ path }) => ({ contents: `${readFileSync(path, "utf8")}\nimport "../app";`, loader: path.endsWith("x") ? "tsx" : "ts" })) };
// The application, with a file for each page and for what pages share; then the entry, as one file that loads the application by its name.
const application = await build({ ...options, entryPoints: ["src/app.tsx"], splitting: true, plugins: [later] });
const entry = await build({ ...options, entryPoints: ["src/main.ts"], plugins: [{ name: "application", setup: ({ onResolve }) => onResolve({ filter: /^\.\/app$/ }, () => ({ path: `/console/${nameOf(application, "app-", ".js")}`, external: true })) }] });
const outputs = { ...application.metafile.outputs, ...entry.metafile.outputs };

const files = new Map();
for (const file of [...application.outputFiles, ...entry.outputFiles]) files.set(file.path.split("/").at(-1), Buffer.from(file.contents));
const icon = readFileSync(join(here, "src/icon.png"));
const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8).toUpperCase()}.png`;
files.set(iconName, icon);
const page = readFileSync(join(here, "src/index.html"), "utf8")
  .replace("@ICON@", iconName).replace("@STYLE@", nameOf(entry, "main-", ".css")).replace("@SCRIPT@", nameOf(entry, "main-", ".js"));
files.set("index.html", Buffer.from(page));
files.set("licenses.txt", Buffer.from(licensed().map((name) => `${name}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8")}`).join("\n")));

const brotli = (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
const first = firstPage();
// Nearly every function of these files runs before the first drawing: Chromium compiles them beside the page then, not one by one within it.
for (const name of first) if (name.endsWith(".js")) files.set(name, Buffer.from(`//# allFunctionsCalledOnLoad\n${files.get(name)}`));
const sizes = [...first].map((name) => [name, brotli(files.get(name)).length]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(`first page: ${total} bytes compressed in ${sizes.length} files (at most ${LIMIT}); all: ${[...files.values()].reduce((sum, bytes) => sum + brotli(bytes).length, 0)}`);
if (total > LIMIT) throw new Error("the first page is too large");

if (verify) {
  const problems = compare();
  rmSync(out, { recursive: true });
  if (problems.length > 0) {
    console.error(`the checked-in files of the console are not what its sources give; run \`make console\`:\n${problems.join("\n")}`);
    process.exit(1);
  }
  console.log("the checked-in files are what the sources give");
} else {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const [name, bytes] of files) {
    writeFileSync(join(out, name), bytes);
    writeFileSync(join(out, `${name}.br`), brotli(bytes));
    writeFileSync(join(out, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  }
}

/** The name of a file that a build gives. */
function nameOf(built, start, end) {
  return built.outputFiles.map((file) => file.path.split("/").at(-1)).find((name) => name.startsWith(start) && name.endsWith(end));
}

/** The packages whose sources are in the files, each with its licence in licenses.txt. */
function licensed() {
  const packages = Object.keys({ ...application.metafile.inputs, ...entry.metafile.inputs }).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  // The map is made of world-atlas, by scripts/world-map.mjs.
  return [...new Set([...packages, "world-atlas"])].filter(Boolean).sort();
}

/** The files that the overview needs: everything that the entry, the application and that page import. */
function firstPage() {
  const found = new Set(["index.html", iconName]);
  const follow = (path) => {
    const name = path.split("/").at(-1);
    if (found.has(name)) return;
    found.add(name);
    const output = outputs[path];
    if (output?.cssBundle) follow(output.cssBundle);
    for (const { path: next, kind } of output?.imports ?? []) if (kind === "import-statement") follow(next);
  };
  for (const [path, output] of Object.entries(outputs)) if (["src/main.ts", "src/app.tsx", "src/pages/overview.tsx"].includes(output.entryPoint)) follow(path);
  return found;
}

function compare() {
  const problems = [];
  let there = [];
  try {
    there = readdirSync(kept);
  } catch {
    return ["there are none"];
  }
  for (const name of there) if (!files.has(name.replace(/\.(br|gz)$/, ""))) problems.push(`${name} is too many`);
  for (const [name, bytes] of files) {
    const ways = [[name, (found) => found], [`${name}.br`, brotliDecompressSync], [`${name}.gz`, gunzipSync]];
    for (const [path, read] of ways) {
      if (!there.includes(path)) problems.push(`${path} is missing`);
      else if (!read(readFileSync(join(kept, path))).equals(bytes)) problems.push(`${path} differs`);
    }
  }
  return problems;
}

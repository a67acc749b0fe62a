/** Modules of the console on their own, without a browser. */
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

/** What a module below `src` exports. */
export async function source(path) {
  const made = await build({ entryPoints: [fileURLToPath(new URL(`../src/${path}`, import.meta.url))], bundle: true, format: "esm", platform: "node", write: false, logLevel: "silent" });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].contents).toString("base64")}`);
}

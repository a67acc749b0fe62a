// Runs a program for wasm32-wasip1, such as unit tests, in Node.js: node run_wasi.mjs PROGRAM.wasm [ARGUMENT...]
// It sees no folder and no network; its exit code is that of this process.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [program, ...args], env: process.env, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);

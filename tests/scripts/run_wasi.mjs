// Runs unit tests for wasm32-wasip1 in Node.js: node run_wasi.mjs PROGRAM.wasm [ARGUMENT...]
// They see no folder and no network. The exit code is theirs.
//
// Node.js 20 can crash (SIGSEGV) when a large program ends, after its tests have passed and their result is printed. So they run in a
// child, and a crash behind the line of a result without failures is no failure. A crash before that line is one.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";

const [first, ...rest] = process.argv.slice(2);
if (first === "--child") {
  const wasi = new WASI({ version: "preview1", args: rest, env: process.env, returnOnExit: true });
  const module = await WebAssembly.compile(await readFile(rest[0]));
  const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
  process.exitCode = wasi.start(instance);
} else {
  const script = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, ["--no-warnings", script, "--child", first, ...rest], { stdio: ["ignore", "pipe", "inherit"] });
  let tail = "";
  child.stdout.on("data", (bytes) => {
    process.stdout.write(bytes);
    tail = (tail + bytes).slice(-4096);
  });
  child.on("close", (code, signal) => {
    const passed = /\ntest result: ok\. \d+ passed; 0 failed;[^\n]*\n\s*$/.test(tail);
    if (signal === "SIGSEGV" && passed) {
      console.error("Node.js crashed when the program ended, after all of its tests had passed");
      process.exitCode = 0;
    } else {
      process.exitCode = code ?? 1;
    }
  });
}

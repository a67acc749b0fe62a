// Checks resources of Istio, Envoy Gateway, cert-manager and the Prometheus operator: what comes on standard input as a JSON array of documents. Prints one line for each problem.
//
// The validators know types, ranges and what has to be there; they let unknown fields pass, as Kubernetes does. Those are
// found by TypeScript, which a literal of a known type may not have more fields than that type. Run where `npm ci` put the
// packages.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const root = process.cwd();
const ts = (await import(pathToFileURL(join(root, "node_modules/typescript/lib/typescript.js")))).default;
const documents = JSON.parse(readFileSync(0, "utf8"));
const sources = new Map();
const MODELS = {
  "cert-manager.io": "cert-manager", "gateway.envoyproxy.io": "envoy-gateway", "monitoring.coreos.com": "prometheus-operator",
};

for (const [at, document] of documents.entries()) {
  const module = `${document.apiVersion}/${document.kind}`;
  const models = `@kubernetes-models/${MODELS[document.apiVersion?.split("/")[0]] ?? "istio"}`;
  const file = join(root, "node_modules", models, `${module}.js`);
  let Model;
  try {
    const found = await import(pathToFileURL(file));
    // Some packages are CommonJS.
    Model = found[document.kind] ?? found.default[document.kind];
  } catch (error) {
    console.log(`document ${at}: ${module} is unknown: ${error.message}`);
    continue;
  }
  try {
    new Model(document).validate();
  } catch (error) {
    console.log(`document ${at}: ${error.message}`);
  }
  sources.set(
    join(root, `document-${at}.ts`),
    `import type { I${document.kind} } from "${models}/${module}";\n` +
      `export const document: I${document.kind} = ${JSON.stringify(document, null, 1)};\n`,
  );
}

const options = {
  noEmit: true, strict: true, skipLibCheck: true, types: [],
  module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext,
};
const host = ts.createCompilerHost(options);
const { fileExists, readFile, getSourceFile } = host;
host.fileExists = (name) => sources.has(name) || fileExists(name);
host.readFile = (name) => sources.get(name) ?? readFile(name);
host.getSourceFile = (name, language, ...rest) =>
  sources.has(name)
    ? ts.createSourceFile(name, sources.get(name), language)
    : getSourceFile.call(host, name, language, ...rest);
const program = ts.createProgram([...sources.keys()], options, host);
for (const diagnostic of ts.getPreEmitDiagnostics(program)) {
  const line = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start).line;
  const text = diagnostic.file?.text.split("\n")[line]?.trim() ?? "";
  console.log(`${diagnostic.file?.fileName ?? ""}: ${text}: ${ts.flattenDiagnosticMessageText(diagnostic.messageText, " ")}`);
}

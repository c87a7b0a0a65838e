#!/usr/bin/env node
// formats.mjs DIR FILE...: parses Mermaid diagrams with Mermaid's own parser. DIR has its node_modules.
// One line of JSON for each file: {"file", "fault"}, where the fault is null for a valid file.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
// Mermaid is made for browsers: it requires a document, though parsing draws nothing.
const { JSDOM } = createRequire(join(folder, "/"))("jsdom");
Object.assign(globalThis, { window: new JSDOM("").window });
globalThis.document = globalThis.window.document;
const mermaid = (await import(pathToFileURL(join(folder, "node_modules/mermaid/dist/mermaid.core.mjs")))).default;

async function fault(text) {
  try {
    return (await mermaid.parse(text)).diagramType === "sequence" ? null : "not a sequence diagram";
  } catch (error) {
    return error.message.slice(0, 500);
  }
}

for (const file of files) console.log(JSON.stringify({ file, fault: await fault(readFileSync(file, "utf8")) }));

#!/usr/bin/env node
// formats.mjs DIR FILE...: validates HAR files against the published schema of HAR 1.2
// (har-validator), and parses Mermaid diagrams with Mermaid's own parser. DIR has their node_modules.
// One line of JSON for each file: {"file", "fault"}, where the fault is null for a valid file.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(join(folder, "/"));
const { har } = require("har-validator");
// Mermaid is made for browsers: it requires a document, though parsing draws nothing.
const { JSDOM } = require("jsdom");
Object.assign(globalThis, { window: new JSDOM("").window });
globalThis.document = globalThis.window.document;
const mermaid = (await import(pathToFileURL(join(folder, "node_modules/mermaid/dist/mermaid.core.mjs")))).default;

async function fault(file, text) {
  try {
    if (file.endsWith(".har")) await har(JSON.parse(text));
    else if ((await mermaid.parse(text)).diagramType !== "sequence") return "not a sequence diagram";
    return null;
  } catch (error) {
    return JSON.stringify(error.errors ?? error.message).slice(0, 500);
  }
}

for (const file of files) console.log(JSON.stringify({ file, fault: await fault(file, readFileSync(file, "utf8")) }));

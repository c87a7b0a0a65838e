#!/usr/bin/env node
// Starts the program of the package for this platform, and ends as it ends.
"use strict";
const { spawn } = require("node:child_process");

const name = `@acp-relay/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/acp-relay`);
} catch {
  console.error(
    `acp-relay: there is no package ${name}: either this platform is not supported, ` +
      "or npm was told to leave out optional dependencies",
  );
  process.exit(69);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends these to the program as well.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`acp-relay: ${program} cannot be started: ${error.message}`);
  process.exit(69);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

#!/usr/bin/env node
// An ACP client: the official TypeScript SDK, running one whole conversation.
//
//   client.mjs --sdk DIR --cwd DIR --prompt TEXT --cancel-prompt TEXT [options] -- COMMAND...
//   client.mjs ... --url ws://HOST:PORT/acp
//   client.mjs ... --hold DIR
//
// COMMAND is started as the agent, over stdio; with --url the client connects to the agent over the
// SDK's own WebSocket instead. The conversation: initialize, authenticate (with --auth), session/new,
// one prompt to its end (permissions are allowed, fs/* is served from --cwd, terminal/* runs real
// processes), one prompt that is cancelled, then stdin is closed and the exit awaited (or the
// WebSocket closed). With --hold a permission is allowed only once the file DIR/allowed exists; DIR/asked
// shows that it was requested. With --overlap follow: a prompt that is cancelled while its permission is open,
// two prompts, the second while the first runs, session/load of that session, one more prompt, and
// session/close during another one. A JSON summary goes to stdout. Exit 1 when something of --expect is missing or
// anything failed; the summary reports it under `missing` and `error`.
//
// Only the SDK implements the protocol here; this file is the script of the conversation.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const cut = process.argv.indexOf("--");
const { values: options } = parseArgs({
  args: process.argv.slice(2, cut < 0 ? undefined : cut),
  options: {
    sdk: { type: "string" }, // the directory of @agentclientprotocol/sdk
    cwd: { type: "string" },
    url: { type: "string" },
    auth: { type: "string" }, // a methodId; without it `authenticate` is not sent
    prompt: { type: "string" },
    "cancel-prompt": { type: "string" },
    "cancel-after": { type: "string", default: "1" }, // message chunks of that prompt; 0: at once
    file: { type: "string" }, // its final content goes into the summary
    expect: { type: "string", default: "" }, // comma separated, see `proofs`
    hold: { type: "string" },
    overlap: { type: "string" }, // the prompt during which another one is sent
    timeout: { type: "string", default: "60" }, // seconds, for the whole conversation
  },
});
const acp = await import(pathToFileURL(join(options.sdk, "dist/acp.js")));
const cwd = resolve(options.cwd);

const summary = { agent: null, updates: {}, overlap: [], text: "", replayed: null, withdrawn: null, closed: null, permissions: [], fs: [], terminals: 0, stops: [], file: null, exit: null };

/** The names --expect accepts, and the check of the summary for each. */
const proofs = {
  text: () => summary.updates.agent_message_chunk > 0,
  tool_call: () => summary.updates.tool_call > 0 || summary.updates.tool_call_update > 0,
  permission: () => summary.permissions.length > 0,
  read: () => summary.fs.some((call) => call.startsWith("read ")),
  write: () => summary.fs.some((call) => call.startsWith("write ")),
  end_turn: () => summary.stops[0] === "end_turn",
  cancelled: () => summary.stops[1] === "cancelled",
  answered: () => summary.stops.length > 1, // for agents that do not support cancelling
  overlap: () => summary.overlap.every((stop) => stop === "end_turn"),
  // The second one, unless the first had ended.
  refused: () => summary.overlap[0] === "end_turn" && (summary.overlap[1] === "end_turn" || typeof summary.overlap[1] === "number"),
  replayed: () => summary.text !== "" && summary.replayed?.includes(summary.text),
  again: () => summary.stops[2] === "end_turn",
  withdrawn: () => summary.withdrawn === "cancelled",
  closed: () => summary.closed === "cancelled",
  once: () => !summary.echoes, // the client has shown the user's messages itself
};

const peer = options.url ? await reach(options.url) : start(process.argv.slice(cut + 1));
const deadline = setTimeout(() => finish(new Error("timed out")), Number(options.timeout) * 1000);

/** The agent as a child process: its stream, and `leave`, which ends it and returns its exit. */
function start(command) {
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"], cwd });
  const exited = new Promise((done) => {
    child.on("error", (error) => done({ error: error.message }));
    child.on("exit", (code, signal) => done({ code, signal }));
  });
  async function leave() {
    child.stdin.end();
    // An agent that ignores the end of its input is stopped by a signal.
    const stop = setTimeout(() => child.kill("SIGTERM"), 15_000);
    const kill = setTimeout(() => child.kill("SIGKILL"), 20_000);
    const exit = await exited;
    clearTimeout(stop);
    clearTimeout(kill);
    return exit;
  }
  return { stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), leave };
}

/** The agent behind a WebSocket. Its exit cannot be observed. */
async function reach(url) {
  const module = (name) => import(pathToFileURL(join(options.sdk, name)));
  const { createWebSocketStream } = await module("dist/ws-stream.js");
  const { WebSocket } = await module("../../ws/wrapper.mjs");
  const stream = createWebSocketStream(url, { WebSocket });
  return { stream, leave: async () => (connection.close(), null) };
}

/** Rejects files outside the directory, as an editor does. */
function inside(path) {
  const full = resolve(path);
  if (full !== cwd && !full.startsWith(cwd + sep)) throw acp.RequestError.invalidParams({ path });
  return full;
}

async function read({ path, line, limit }) {
  summary.fs.push(`read ${path}`);
  const lines = (await readFile(inside(path), "utf8")).split("\n");
  const from = (line ?? 1) - 1;
  return { content: lines.slice(from, limit == null ? undefined : from + limit).join("\n") };
}

async function write({ path, content }) {
  summary.fs.push(`write ${path}`);
  await writeFile(inside(path), content);
  return {};
}

// Called instead of allowing.
let withdraw = null;
async function permit({ toolCall, options: choices }) {
  if (options.hold) {
    await writeFile(join(options.hold, "asked"), "");
    while (!existsSync(join(options.hold, "allowed"))) await pause(20);
  }
  if (withdraw) {
    await withdraw();
    return { outcome: { outcome: "cancelled" } };
  }
  const allow = choices.find((choice) => choice.kind === "allow_once") ?? choices[0];
  summary.permissions.push(`${toolCall.kind ?? "?"}: ${allow.optionId}`);
  return { outcome: { outcome: "selected", optionId: allow.optionId } };
}

const terminals = new Map();
function terminal(id) {
  const found = terminals.get(id);
  if (!found) throw acp.RequestError.resourceNotFound(id);
  return found;
}

function createTerminal({ command: program, args = [], env = [], cwd: where }) {
  const terminalId = `term-${++summary.terminals}`;
  const environment = { ...process.env, ...Object.fromEntries(env.map((one) => [one.name, one.value])) };
  const run = spawn(program, args, { cwd: where ?? cwd, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  const state = { run, output: "", exit: undefined };
  for (const pipe of [run.stdout, run.stderr]) pipe.on("data", (data) => (state.output += data));
  state.ended = new Promise((done) => {
    run.on("error", () => done((state.exit = { exitCode: 127 })));
    run.on("close", (exitCode, signal) => done((state.exit = { exitCode, signal })));
  });
  terminals.set(terminalId, state);
  return { terminalId };
}

// Counts chunks, so that the cancel is sent at the same place in every run.
let chunks = 0;
let waiting = null;
function update({ update }) {
  summary.updates[update.sessionUpdate] = (summary.updates[update.sessionUpdate] ?? 0) + 1;
  if (update.sessionUpdate === "user_message_chunk" && summary.replayed === null)
    summary.echoes = (summary.echoes ?? 0) + 1;
  if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
    if (summary.replayed !== null) summary.replayed += update.content.text;
    else if (!summary.stops.length) summary.text += update.content.text; // of the first turn
  }
  if (update.sessionUpdate === "agent_message_chunk" && waiting && ++chunks === waiting.count) waiting.reached();
}

const call = acp.methods.client;
const connection = acp
  .client({ name: "acp-relay-peers" })
  .onNotification(call.session.update, ({ params }) => update(params))
  .onRequest(call.session.requestPermission, ({ params }) => permit(params))
  .onRequest(call.fs.readTextFile, ({ params }) => read(params))
  .onRequest(call.fs.writeTextFile, ({ params }) => write(params))
  .onRequest(call.terminal.create, ({ params }) => createTerminal(params))
  .onRequest(call.terminal.output, ({ params }) => {
    const { output, exit } = terminal(params.terminalId);
    return { output, truncated: false, ...(exit && { exitStatus: exit }) };
  })
  .onRequest(call.terminal.waitForExit, ({ params }) => terminal(params.terminalId).ended)
  .onRequest(call.terminal.kill, ({ params }) => (terminal(params.terminalId).run.kill(), {}))
  .onRequest(call.terminal.release, ({ params }) => {
    terminal(params.terminalId).run.kill();
    terminals.delete(params.terminalId);
    return {};
  })
  .connect(peer.stream);
const agent = connection.agent;

async function converse() {
  const hello = await agent.request("initialize", {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: { name: "acp-relay-peers", version: "1" },
  });
  summary.agent = hello.agentInfo?.name ?? "(unnamed)";
  if (options.auth) await agent.request("authenticate", { methodId: options.auth });
  const { sessionId } = await agent.request("session/new", { cwd, mcpServers: [] });

  const prompt = (text) => agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  summary.stops.push((await prompt(options.prompt)).stopReason);

  /** Sends the prompt that is cancelled; its answer, when its text has begun. */
  async function begin() {
    const count = Number(options["cancel-after"]);
    const enough = count && new Promise((reached) => ((chunks = 0), (waiting = { count, reached })));
    const turn = prompt(options["cancel-prompt"]);
    await Promise.race([enough, turn]);
    return { turn };
  }
  const { turn } = await begin();
  await agent.notify("session/cancel", { sessionId });
  summary.stops.push((await turn).stopReason);
  if (!options.overlap) return;

  if (summary.permissions.length) {
    if (options.file) await writeFile(join(cwd, options.file), "hello seed\n");
    withdraw = () => agent.notify("session/cancel", { sessionId }).then(() => pause(200));
    summary.withdrawn = (await prompt(options.prompt)).stopReason;
    withdraw = null;
  }
  const both = [prompt(options.overlap)];
  await pause(100);
  both.push(prompt("and this"));
  for (const { value, reason } of await Promise.allSettled(both)) summary.overlap.push(value?.stopReason ?? reason.code);
  if (hello.agentCapabilities?.loadSession) {
    summary.replayed = "";
    await agent.request("session/load", { sessionId, cwd, mcpServers: [] });
  }
  summary.stops.push((await prompt(options.prompt)).stopReason);
  if (!hello.agentCapabilities?.sessionCapabilities?.close) return;
  const last = await begin();
  await agent.request("session/close", { sessionId });
  summary.closed = (await last.turn).stopReason;
}

let finished = false;
async function finish(error) {
  if (finished) return;
  finished = true;
  clearTimeout(deadline);
  summary.exit = await peer.leave();
  if (options.file) summary.file = await readFile(join(cwd, options.file), "utf8").catch(() => null);
  summary.missing = options.expect.split(",").filter((name) => name && !proofs[name]?.());
  if (error) summary.error = String(error.message ?? error) + (error.data ? ` ${JSON.stringify(error.data)}` : "");
  process.stdout.write(JSON.stringify(summary) + "\n", () =>
    process.exit(error || summary.missing.length ? 1 : 0));
}

converse().then(() => finish(), finish);

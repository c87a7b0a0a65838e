#!/usr/bin/env node
// An ACP v2 client: the v2 side of the official TypeScript SDK 2.x, running one whole conversation.
//
//   client2.mjs --sdk DIR --cwd DIR --prompt TEXT --cancel-prompt TEXT --overlap TEXT [options] -- COMMAND...
//   client2.mjs ... --url http://HOST:PORT/acp|ws://…
//
// COMMAND is started as the agent, over stdio; with --url it is reached by the SDK's own transport. The conversation: initialize, auth/login (with --auth),
// session/new, one prompt to its end (permissions are allowed), one that is cancelled, one that is cancelled
// while its permission is open, two of which the second is sent while the first runs, session/resume with
// the whole history, one more prompt, and session/close during another one; then stdin is closed and the exit awaited. A JSON summary goes to stdout, as in
// client.mjs. A turn ends with the idle that follows the user's message in the updates of its session.
//
// Only the SDK implements the protocol here; this file is the script of the conversation.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const cut = process.argv.indexOf("--");
const { values: options } = parseArgs({
  args: process.argv.slice(2, cut < 0 ? undefined : cut),
  options: {
    sdk: { type: "string" },
    cwd: { type: "string" },
    url: { type: "string" },
    auth: { type: "string" },
    prompt: { type: "string" },
    "cancel-prompt": { type: "string" },
    "cancel-after": { type: "string", default: "1" }, // updates of the agent's message in that turn
    overlap: { type: "string" },
    file: { type: "string" },
    expect: { type: "string", default: "" },
    timeout: { type: "string", default: "60" },
  },
});
const acp = await import(pathToFileURL(join(options.sdk, "dist/v2/stable/acp.js")));
const cwd = resolve(options.cwd);

const summary = { agent: null, updates: {}, permissions: [], stops: [], overlap: [], text: "", replayed: null, accepted: 0, echoes: null, withdrawn: null, closed: null, file: null, exit: null };
const proofs = {
  text: () => summary.updates.agent_message_chunk > 0 || summary.updates.agent_message > 0,
  tool_call: () => summary.updates.tool_call_update > 0,
  permission: () => summary.permissions.length > 0,
  end_turn: () => summary.stops[0] === "end_turn",
  cancelled: () => summary.stops[1] === "cancelled",
  answered: () => summary.stops.length === 3,
  overlap: () => summary.overlap.every((stop) => stop === "end_turn"),
  replayed: () => summary.text !== "" && summary.replayed?.includes(summary.text),
  again: () => summary.stops[2] === "end_turn",
  withdrawn: () => summary.withdrawn === "cancelled",
  closed: () => summary.closed === "cancelled",
  once: () => summary.echoes === summary.accepted,
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
    const stop = setTimeout(() => child.kill("SIGTERM"), 15_000);
    const exit = await exited;
    clearTimeout(stop);
    return exit;
  }
  return { stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), leave };
}

/** The agent behind HTTP or WebSocket. Its exit cannot be observed. */
async function reach(url) {
  const module = (name) => import(pathToFileURL(join(options.sdk, name)));
  const leave = async () => (connection.close(), null);
  if (url.startsWith("http")) return { stream: (await module("dist/transports/http-stream.js")).createHttpStream(url), leave };
  const { createWebSocketStream } = await module("dist/transports/ws-stream.js");
  const { WebSocket } = await module("../../ws/wrapper.mjs");
  return { stream: createWebSocketStream(url, { WebSocket }), leave };
}

/** All updates of the session; `grown` is called when there is one more. */
const log = [];
const grown = new Set();
function update({ update }) {
  summary.updates[update.sessionUpdate] = (summary.updates[update.sessionUpdate] ?? 0) + 1;
  const blocks = { agent_message_chunk: [update.content], agent_message: update.content }[update.sessionUpdate] ?? [];
  for (const { text = "" } of blocks) {
    if (summary.replayed !== null) summary.replayed += text;
    else if (!summary.stops.length) summary.text += text; // of the first turn
  }
  log.push(update);
  for (const call of [...grown]) call();
}

/** The first update of the log that `check` accepts, at `from` or after it. */
function seen(check, from = 0) {
  return new Promise((found) => {
    function look() {
      const at = log.findIndex((update, i) => i >= from && check(update));
      if (at >= 0) found(at), grown.delete(look);
    }
    grown.add(look), look();
  });
}

// Called instead of allowing.
let withdraw = null;
async function permit({ toolCall, options: choices, subject }) {
  if (withdraw) {
    await withdraw();
    return { outcome: { outcome: "cancelled" } };
  }
  const allow = choices.find((choice) => choice.kind === "allow_once") ?? choices[0];
  summary.permissions.push(`${subject?.type ?? toolCall?.kind ?? "?"}: ${allow.optionId}`);
  return { outcome: { outcome: "selected", optionId: allow.optionId } };
}

const connection = acp
  .client({ name: "acp-relay-peers" })
  .onNotification("session/update", ({ params }) => update(params))
  .onRequest("session/request_permission", ({ params }) => permit(params))
  .connect(peer.stream);
const agent = connection.agent;

async function converse() {
  const hello = await agent.request("initialize", {
    protocolVersion: acp.PROTOCOL_VERSION,
    capabilities: {},
    info: { name: "acp-relay-peers", version: "1" },
  });
  summary.agent = hello.info.name;
  if (options.auth) await agent.request("auth/login", { methodId: options.auth });
  const { sessionId } = await agent.request("session/new", { cwd, mcpServers: [] });

  /** Sends the prompt; the place of its message in the log, when it was accepted. */
  async function begin(text) {
    const { messageId } = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    if (summary.echoes === null) summary.accepted++;
    return seen((update) => update.messageId === messageId && update.sessionUpdate.startsWith("user_message"));
  }
  async function end(from) {
    return log[await seen(({ state }) => state === "idle", await from)].stopReason;
  }
  summary.stops.push(await end(begin(options.prompt)));

  /** Begins the turn that is cancelled, to the text of the agent. */
  async function start() {
    const turn = await begin(options["cancel-prompt"]);
    const text = ({ sessionUpdate, state }) => sessionUpdate.startsWith("agent_message") || state === "idle";
    for (let i = 0, from = turn; i < Number(options["cancel-after"]); i++) from = 1 + (await seen(text, from));
    return turn;
  }
  const turn = await start();
  await agent.notify("session/cancel", { sessionId });
  summary.stops.push(await end(turn));

  if (summary.permissions.length) {
    if (options.file) await writeFile(join(cwd, options.file), "hello seed\n");
    withdraw = () => agent.notify("session/cancel", { sessionId }).then(() => pause(200));
    summary.withdrawn = await end(begin(options.prompt));
    withdraw = null;
  }
  const both = [begin(options.overlap)];
  await pause(100);
  both.push(begin("and this"));
  summary.overlap.push(...(await Promise.all(both.map(end))));

  summary.echoes = log.filter(({ sessionUpdate }) => sessionUpdate.startsWith("user_message")).length;
  summary.replayed = "";
  await agent.request("session/resume", { sessionId, cwd, mcpServers: [], replayFrom: { type: "start" } }).catch((error) => {
    summary.replayed = null;
    summary.resume = error.code;
  });
  summary.stops.push(await end(begin(options.prompt)));
  const last = await start();
  await agent.request("session/close", { sessionId });
  summary.closed = await end(last);
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

#!/usr/bin/env node
// The official TypeScript SDK as a remote client: one conversation with two sessions at once.
//
//   http_client.mjs --sdk DIR --url http://HOST:PORT/acp|ws://… --cwd DIR --prompt TEXT
//                   --cancel-prompt TEXT [--auth METHOD] [--expect LIST] [--token TOKEN]
//
// initialize, two times session/new, a prompt in both at once (permissions are allowed, fs/* is
// served from --cwd), a prompt that is cancelled, session/load where the agent supports it, and the
// SDK's close, which is a DELETE over HTTP. A JSON summary goes to stdout, as in client.mjs.
// Works with the layouts of 1.9 and 2.x. Only the SDK implements the protocol here.
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    sdk: { type: "string" },
    url: { type: "string" },
    cwd: { type: "string" },
    auth: { type: "string" },
    prompt: { type: "string" },
    "cancel-prompt": { type: "string" },
    "cancel-after": { type: "string", default: "1" },
    expect: { type: "string", default: "" },
    file: { type: "string" },
    token: { type: "string" },
    timeout: { type: "string", default: "90" },
  },
});
const cwd = resolve(options.cwd);
const found = (names) => join(options.sdk, names.find((name) => existsSync(join(options.sdk, name))));
const module = (...names) => import(pathToFileURL(found(names)));
const acp = await module("dist/acp.js", "dist/v1/stable/acp.js");
const summary = { updates: {}, sessions: {}, permissions: 0, fs: [], stops: [], loaded: null, file: null };

const proofs = {
  text: () => summary.updates.agent_message_chunk > 1,
  tool_call: () => summary.updates.tool_call > 0 || summary.updates.tool_call_update > 0,
  permission: () => summary.permissions > 0,
  read: () => summary.fs.some((call) => call.startsWith("read ")),
  write: () => summary.fs.some((call) => call.startsWith("write ")),
  end_turn: () => summary.stops.slice(0, 2).every((stop) => stop === "end_turn"),
  cancelled: () => summary.stops[2] === "cancelled",
  load: () => summary.loaded > 0,
  answered: () => summary.stops.length === 3,
};

async function reach(url) {
  const headers = options.token ? { Authorization: `Bearer ${options.token}` } : {};
  if (url.startsWith("http")) {
    const { createHttpStream } = await module("dist/http-stream.js", "dist/transports/http-stream.js");
    return createHttpStream(url, { headers });
  }
  const { createWebSocketStream } = await module("dist/ws-stream.js", "dist/transports/ws-stream.js");
  const ws = await import(pathToFileURL(join(options.sdk, "../../ws/wrapper.mjs")));
  return createWebSocketStream(url, { WebSocket: ws.WebSocket, headers });
}

function inside(path) {
  const full = resolve(path);
  if (full !== cwd && !full.startsWith(cwd + sep)) throw acp.RequestError.invalidParams({ path });
  return full;
}

let waiting = null;
function update({ sessionId, update }) {
  summary.updates[update.sessionUpdate] = (summary.updates[update.sessionUpdate] ?? 0) + 1;
  summary.sessions[sessionId] = (summary.sessions[sessionId] ?? 0) + 1;
  if (update.sessionUpdate === "agent_message_chunk" && waiting?.sessionId === sessionId && --waiting.count === 0)
    waiting.reached();
}

const stream = await reach(options.url);
const call = acp.methods.client;
const connection = acp
  .client({ name: "acp-relay-peers" })
  .onNotification(call.session.update, ({ params }) => update(params))
  .onRequest(call.session.requestPermission, ({ params }) => {
    summary.permissions++;
    const allow = params.options.find((choice) => choice.kind === "allow_once") ?? params.options[0];
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  })
  .onRequest(call.fs.readTextFile, async ({ params }) => {
    summary.fs.push(`read ${params.path}`);
    return { content: await readFile(inside(params.path), "utf8") };
  })
  .onRequest(call.fs.writeTextFile, async ({ params }) => {
    summary.fs.push(`write ${params.path}`);
    await writeFile(inside(params.path), params.content);
    return {};
  })
  .connect(stream);
const agent = connection.agent;

async function converse() {
  const hello = await agent.request("initialize", {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
    clientInfo: { name: "acp-relay-peers", version: "1" },
  });
  if (options.auth) await agent.request("authenticate", { methodId: options.auth });
  const open = async () => (await agent.request("session/new", { cwd, mcpServers: [] })).sessionId;
  const [one, two] = [await open(), await open()];
  const prompt = (sessionId, text) =>
    agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  const both = await Promise.all([prompt(one, options.prompt), prompt(two, options.prompt)]);
  summary.stops.push(...both.map((answer) => answer.stopReason));
  const enough = new Promise((reached) => (waiting = { sessionId: one, count: Number(options["cancel-after"]), reached }));
  const turn = prompt(one, options["cancel-prompt"]);
  await Promise.race([enough, turn]);
  await agent.notify("session/cancel", { sessionId: one });
  summary.stops.push((await turn).stopReason);
  if (hello.agentCapabilities?.loadSession) summary.loaded = await load(two);
  if (Object.keys(summary.sessions).length < 2) throw new Error("a session sent no update");
}

/** The number of updates that session/load replayed, or the agent's error. */
async function load(sessionId) {
  const before = summary.sessions[sessionId] ?? 0;
  try {
    await agent.request("session/load", { sessionId, cwd, mcpServers: [] });
  } catch (error) {
    return String(error.message);
  }
  // The history may arrive after the answer, because it is on another stream.
  for (let tries = 0; tries < 100 && (summary.sessions[sessionId] ?? 0) === before; tries++)
    await new Promise((done) => setTimeout(done, 50));
  return (summary.sessions[sessionId] ?? 0) - before;
}

let finished = false;
async function finish(error) {
  if (finished) return;
  finished = true;
  clearTimeout(deadline);
  connection.close();
  await connection.closed;
  if (options.file) summary.file = await readFile(join(cwd, options.file), "utf8").catch(() => null);
  summary.missing = options.expect.split(",").filter((name) => name && !proofs[name]?.());
  if (error) summary.error = String(error.stack ?? error);
  process.stdout.write(JSON.stringify(summary) + "\n");
  process.exitCode = error || summary.missing.length ? 1 : 0;
  // The DELETE is still being sent; the parent process ends a client that hangs.
}
const deadline = setTimeout(() => finish(new Error("timed out")), Number(options.timeout) * 1000);

converse().then(() => finish(), finish);

#!/usr/bin/env node
// A current peer: the official TypeScript SDK, which sends and expects the messages of a play.
//
//   sdk.mjs SDK PART VERDICT [-- COMMAND...]
//
// As the agent it uses its own stdio; as the client it starts COMMAND. PART has its lines, as written
// by play.py; VERDICT gets `{"fault": null}` or the fault; the exit code is 0 or 1.
//
// Two things are compared with the play: the raw messages in the order in which they arrive, and the
// messages that the SDK delivers once its own schema has accepted them. An error of the SDK on stderr
// (a message that it cannot assign or parse) is a fault, and so is a message after the last line.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const [sdk, partFile, verdict] = process.argv.slice(2);
const command = process.argv.slice(6);
const acp = await import(pathToFileURL(join(sdk, "dist/acp.js")));
const { role, lines, known: given } = JSON.parse(readFileSync(partFile, "utf8"));

const sdkErrors = [];
console.error = (...words) => sdkErrors.push(words.map((word) => JSON.stringify(word) ?? String(word)).join(" "));

let wake = () => {};

/** All received messages, before the SDK parses them. */
const raw = [];
function tapped({ readable, writable }) {
  const tap = new TransformStream({
    transform(message, on) {
      raw.push(message);
      on.enqueue(message);
      wake();
    },
  });
  return { readable: readable.pipeThrough(tap), writable };
}

/** The values of the play's $words. */
const known = new Map(Object.entries(given));
function filled(value) {
  if (Array.isArray(value)) return value.map(filled);
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, filled(own)]));
  return known.has(value) ? known.get(value) : value;
}

/** The place where `received` differs from `expected`; with `more` the SDK may have added members. */
function differs(expected, received, more, place = "") {
  if (typeof expected === "string" && expected.startsWith("$") && !expected.startsWith("$/")) {
    if (!known.has(expected)) known.set(expected, received);
    expected = known.get(expected);
  }
  const deep = (value) => value !== null && typeof value === "object";
  if (!deep(expected) || !deep(received)) return isDeepStrictEqual(expected, received) ? null : place || "/";
  if (Array.isArray(expected) !== Array.isArray(received)) return place || "/";
  if (Array.isArray(expected) && expected.length !== received.length) return place || "/";
  for (const name of new Set([...Object.keys(expected), ...Object.keys(received)])) {
    if (!(name in expected) && more) continue;
    if (!(name in expected) || !(name in received)) return `${place}/${name}`;
    const found = differs(expected[name], received[name], more, `${place}/${name}`);
    if (found) return found;
  }
  return null;
}

function hold(line, expected, received, more) {
  const place = differs(expected, received, more);
  if (place)
    throw new Error(`${line.at}: received ${JSON.stringify(received)}, expected ${JSON.stringify(expected)}; they differ at ${place}`);
}

/** Waits until `look` finds something. */
async function until(look) {
  for (;;) {
    const found = look();
    if (found) return found;
    await new Promise((done) => (wake = done));
  }
}

// The messages that the SDK has delivered. Their order may differ from the order of arrival.
const delivered = [];
function deliver(item) {
  delivered.push(item);
  wake();
}
async function takeDelivered(method) {
  const at = await until(() => 1 + delivered.findIndex((item) => item.method === method));
  return delivered.splice(at - 1, 1)[0];
}

const app = role === "client" ? acp.client({ name: "plays" }) : acp.agent({ name: "plays" });
const notifications = ["session/update", "session/cancel", "elicitation/complete"];
const methods = (tree) => Object.values(tree).flatMap((one) => (typeof one === "string" ? [one] : methods(one)));
for (const method of methods(acp.methods[role])) {
  if (notifications.includes(method)) app.onNotification(method, ({ params }) => deliver({ method, params }));
  else app.onRequest(method, ({ params }) => new Promise((answer, fail) => deliver({ method, params, answer, fail })));
}

let child = null;
let stream;
if (role === "client") {
  child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
} else {
  stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
}
const connection = app.connect(tapped(stream));
const peer = role === "client" ? connection.agent : connection.client;

const mine = new Map(); // our requests, by the play's id
const theirs = new Map(); // their requests, by the play's id

async function send(message) {
  if (!("method" in message)) {
    const asked = theirs.get(JSON.stringify(message.id));
    if (message.error) asked.fail(new acp.RequestError(message.error.code, message.error.message, message.error.data));
    else asked.answer(message.result);
  } else if ("id" in message) {
    const answered = peer.request(message.method, message.params).then(
      (result) => ({ result }),
      ({ code, message, data }) => ({ error: { code, message, ...(data !== undefined && { data }) } }),
    );
    mine.set(JSON.stringify(message.id), answered);
  } else {
    await peer.notify(message.method, message.params);
  }
}

let receivedCount = 0;
async function receive(line) {
  const expected = line.message;
  const at = receivedCount++;
  const { id, ...body } = await until(() => raw[at]);
  const { id: play, ...text } = expected;
  if ((play === undefined) !== (id === undefined)) throw new Error(`${line.at}: received ${JSON.stringify(raw[at])}`);
  hold(line, { jsonrpc: "2.0", ...text }, body, false);
  if (!("method" in expected)) {
    const { id, ...body } = expected;
    hold(line, body, await mine.get(JSON.stringify(id)), true);
    return;
  }
  const received = await takeDelivered(expected.method);
  hold(line, { method: expected.method, params: expected.params }, { method: received.method, params: received.params }, true);
  if ("id" in expected) theirs.set(JSON.stringify(expected.id), received);
}

async function play() {
  let late;
  const timeout = new Promise((_, fail) => (late = setTimeout(() => fail(new Error("timed out")), 25_000)));
  let at = "";
  try {
    for (const line of lines) {
      at = line.at;
      await Promise.race([line.mine ? send(filled(line.message)) : receive(line), timeout]);
    }
    at = "the end";
    if (child) {
      child.stdin.end();
      const code = await Promise.race([new Promise((done) => child.on("close", done)), timeout]);
      if (code !== 0) throw new Error(`the relay exited with ${code}`);
    } else {
      await Promise.race([connection.closed, timeout]);
    }
    if (raw.length > receivedCount) throw new Error(`received after the last line: ${JSON.stringify(raw[receivedCount])}`);
    if (sdkErrors.length) throw new Error(`errors of the SDK: ${sdkErrors.join("; ")}`);
    return null;
  } catch (error) {
    const suffix = sdkErrors.length ? `; the SDK: ${sdkErrors.join("; ")}` : "";
    return `${at}: ${error.message}${suffix}; last message received: ${JSON.stringify(raw.at(-1))}`;
  } finally {
    clearTimeout(late);
  }
}

const fault = await play();
if (fault && child) child.kill("SIGKILL");
writeFileSync(verdict, JSON.stringify({ fault }));
process.exit(fault ? 1 : 0);

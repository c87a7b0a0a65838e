#!/usr/bin/env node
// A modern peer: the official TypeScript SDK, saying and hearing what a play has for it.
//
//   sdk.mjs SDK PART VERDICT [-- COMMAND...]
//
// As the agent it speaks over its own stdio; as the client it starts COMMAND. PART is what play.py
// cut out for it, VERDICT gets `{"fault": null}` or what was wrong; the exit code is 0 or 1.
//
// Two things are held against the play: the raw messages in the order in which they arrive, and
// what the SDK hands over once its own schema has accepted it. A word of the SDK on stderr (a
// message that it could not place or read) is a fault, and so is anything beyond the last line.
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

const complaints = [];
console.error = (...words) => complaints.push(words.map((word) => JSON.stringify(word) ?? String(word)).join(" "));

let wake = () => {};

/** Everything that arrived, before the SDK looked at it. */
const raw = [];
function listened({ readable, writable }) {
  const ear = new TransformStream({
    transform(message, on) {
      raw.push(message);
      on.enqueue(message);
      wake();
    },
  });
  return { readable: readable.pipeThrough(ear), writable };
}

/** What stands behind the play's $words. */
const known = new Map(Object.entries(given));
function filled(value) {
  if (Array.isArray(value)) return value.map(filled);
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, filled(own)]));
  return known.has(value) ? known.get(value) : value;
}

/** Where `heard` is not what is wanted; the SDK may have added members when `more` says so. */
function differs(wanted, heard, more, place = "") {
  if (typeof wanted === "string" && wanted.startsWith("$") && !wanted.startsWith("$/")) {
    if (!known.has(wanted)) known.set(wanted, heard);
    wanted = known.get(wanted);
  }
  const deep = (value) => value !== null && typeof value === "object";
  if (!deep(wanted) || !deep(heard)) return isDeepStrictEqual(wanted, heard) ? null : place || "/";
  if (Array.isArray(wanted) !== Array.isArray(heard)) return place || "/";
  if (Array.isArray(wanted) && wanted.length !== heard.length) return place || "/";
  for (const name of new Set([...Object.keys(wanted), ...Object.keys(heard)])) {
    if (!(name in wanted) && more) continue;
    if (!(name in wanted) || !(name in heard)) return `${place}/${name}`;
    const found = differs(wanted[name], heard[name], more, `${place}/${name}`);
    if (found) return found;
  }
  return null;
}

function hold(line, wanted, heard, more) {
  const place = differs(wanted, heard, more);
  if (place)
    throw new Error(`${line.at}: heard ${JSON.stringify(heard)}, wanted ${JSON.stringify(wanted)}; they differ at ${place}`);
}

/** Waits until `look` finds something. */
async function until(look) {
  for (;;) {
    const found = look();
    if (found) return found;
    await new Promise((done) => (wake = done));
  }
}

// What the SDK has handed over. It may take two messages in another order than they arrived in.
const handed = [];
function hand(item) {
  handed.push(item);
  wake();
}
async function handedOver(method) {
  const at = await until(() => 1 + handed.findIndex((item) => item.method === method));
  return handed.splice(at - 1, 1)[0];
}

const app = role === "client" ? acp.client({ name: "plays" }) : acp.agent({ name: "plays" });
const notifications = ["session/update", "session/cancel", "elicitation/complete"];
const methods = (tree) => Object.values(tree).flatMap((one) => (typeof one === "string" ? [one] : methods(one)));
for (const method of methods(acp.methods[role])) {
  if (notifications.includes(method)) app.onNotification(method, ({ params }) => hand({ method, params }));
  else app.onRequest(method, ({ params }) => new Promise((answer, fail) => hand({ method, params, answer, fail })));
}

let child = null;
let stream;
if (role === "client") {
  child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
} else {
  stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
}
const connection = app.connect(listened(stream));
const peer = role === "client" ? connection.agent : connection.client;

const mine = new Map(); // our requests, by the play's id
const theirs = new Map(); // their requests, by the play's id

async function say(message) {
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

let heardSoFar = 0;
async function hear(line) {
  const wanted = line.message;
  const at = heardSoFar++;
  const { id, ...body } = await until(() => raw[at]);
  const { id: play, ...text } = wanted;
  if ((play === undefined) !== (id === undefined)) throw new Error(`${line.at}: heard ${JSON.stringify(raw[at])}`);
  hold(line, { jsonrpc: "2.0", ...text }, body, false);
  if (!("method" in wanted)) {
    const { id, ...body } = wanted;
    hold(line, body, await mine.get(JSON.stringify(id)), true);
    return;
  }
  const heard = await handedOver(wanted.method);
  hold(line, { method: wanted.method, params: wanted.params }, { method: heard.method, params: heard.params }, true);
  if ("id" in wanted) theirs.set(JSON.stringify(wanted.id), heard);
}

async function play() {
  let late;
  const patience = new Promise((_, fail) => (late = setTimeout(() => fail(new Error("timed out")), 25_000)));
  let at = "";
  try {
    for (const line of lines) {
      at = line.at;
      await Promise.race([line.mine ? say(filled(line.message)) : hear(line), patience]);
    }
    at = "the end";
    if (child) {
      child.stdin.end();
      const code = await Promise.race([new Promise((done) => child.on("close", done)), patience]);
      if (code !== 0) throw new Error(`the relay ended with ${code}`);
    } else {
      await Promise.race([connection.closed, patience]);
    }
    if (raw.length > heardSoFar) throw new Error(`heard beyond the play: ${JSON.stringify(raw[heardSoFar])}`);
    if (complaints.length) throw new Error(`the SDK complains: ${complaints.join("; ")}`);
    return null;
  } catch (error) {
    const said = complaints.length ? `; the SDK: ${complaints.join("; ")}` : "";
    return `${at}: ${error.message}${said}; arrived last: ${JSON.stringify(raw.at(-1))}`;
  } finally {
    clearTimeout(late);
  }
}

const fault = await play();
if (fault && child) child.kill("SIGKILL");
writeFileSync(verdict, JSON.stringify({ fault }));
process.exit(fault ? 1 : 0);

#!/usr/bin/env node
// returns.mjs --sdk DIR --url URL [SESSION]: the official TypeScript SDK as a client that is disconnected.
//
// Without SESSION it prompts, prints the received texts once it gets a permission request, and waits
// to be killed, or for the end of stdin, when it closes its connection. With SESSION it resumes that
// session: session/load, an answer to the permission request, another prompt. It prints what it
// received as one line of JSON, which returns.py checks.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: options, positionals } = parseArgs({
  options: { sdk: { type: "string" }, url: { type: "string" } },
  allowPositionals: true,
});
const module = (...names) =>
  import(pathToFileURL(join(options.sdk, names.find((name) => existsSync(join(options.sdk, name))))));
const acp = await module("dist/acp.js", "dist/v1/stable/acp.js");

async function reach(url) {
  if (url.startsWith("http")) {
    const { createHttpStream } = await module("dist/http-stream.js", "dist/transports/http-stream.js");
    return createHttpStream(url, { headers: {} });
  }
  const { createWebSocketStream } = await module("dist/ws-stream.js", "dist/transports/ws-stream.js");
  const ws = await import(pathToFileURL(join(options.sdk, "../../ws/wrapper.mjs")));
  return createWebSocketStream(url, { WebSocket: ws.WebSocket });
}

const [session] = positionals;
const texts = [];
const asked = [];
const errors = [];
let answer;
const mayAnswer = new Promise((resolve) => (answer = resolve));
let changed = () => {};
const call = acp.methods.client;
const connection = acp
  .client({ name: "acp-relay-peers" })
  .onNotification(call.session.update, ({ params }) => {
    texts.push(params.update.content.text);
    changed();
  })
  .onRequest(call.session.requestPermission, async ({ params }) => {
    asked.push(params.toolCall.title);
    changed();
    await mayAnswer;
    return { outcome: { outcome: "selected", optionId: "yes" } };
  })
  .connect(await reach(options.url));
const agent = connection.agent;

/** Waits until `enough` holds. */
async function until(enough) {
  while (!enough()) await new Promise((resolve) => (changed = resolve));
}

const deadline = setTimeout(() => {
  console.log(JSON.stringify({ texts, asked, errors: ["no further message arrived"] }));
  process.exit(1);
}, 15_000);
const print = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const prompt = () => agent.request("session/prompt", { sessionId: "s", prompt: [{ type: "text", text: "go" }] });
const failed = (error) => errors.push(error.message);

await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
if (session) {
  await agent.request("session/load", { sessionId: session, cwd: "/", mcpServers: [] }).catch(failed);
  // The answer, the history and the permission request may arrive on different streams.
  await until(() => asked.length > 0 && texts.includes("two"));
  const loaded = [...texts];
  answer();
  await until(() => texts.includes("answered yes"));
  const { stopReason: stop } = await prompt();
  await until(() => texts.length > 4);
  print({ loaded, asked, texts, stop, errors });
  clearTimeout(deadline);
  connection.close();
  await connection.closed;
} else {
  await agent.request("session/new", { cwd: "/", mcpServers: [] });
  prompt().catch(() => {});
  await until(() => asked.length > 0 && texts.length > 0);
  print({ texts });
  clearTimeout(deadline);
  process.stdin.resume().on("end", async () => {
    connection.close();
    await connection.closed;
    // Over HTTP its DELETE is still being sent.
    setTimeout(() => process.exit(0), 500);
  });
}

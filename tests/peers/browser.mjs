#!/usr/bin/env node
// browser.mjs: a real browser, headless Chromium, as a remote client of `acp-relay serve`.
//
//   browser.mjs [--relay BINARY]
//
// A page of the origin that `--allow-origin` names runs one conversation over WebSocket, and one over
// fetch that reads the streams from the response bodies: one session, a whole turn (updates, a file
// read and written, a permission), and the close. A page of another origin is rejected in both. The
// same again over TLS with a token, sent as a subprotocol of the WebSocket or in a header; without the
// token it is rejected. One line for each, exit 1 when one failed. Chromium is Debian's, driven by
// playwright-core, both installed by install.sh; without them this is skipped. The agent is turner.py.
// Not here: the response to each origin and each preflight (tests/it).
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";

const here = import.meta.dirname;
const target = process.env.CARGO_TARGET_DIR ?? path.join(here, "../../target");
const peers = process.env.ACP_RELAY_PEERS ?? path.join(here, "../../target/peers");
const { values: options } = parseArgs({
  options: { relay: { type: "string", default: process.env.ACP_RELAY_BIN ?? path.join(target, "debug/acp-relay") } },
});
const library = path.join(peers, "browser/package.json");
const chromium = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).stdout.trim();
if (!existsSync(library) || !chromium) {
  console.log("skip  the browser is not installed, see install.sh");
  process.exit(0);
}
const { chromium: driver } = createRequire(library)("playwright-core");

/** Runs in the page: a whole turn over `way`; returns the names of its events. */
async function conversation({ url, way, token }) {
  const seen = [];
  const waiting = new Map();
  let next = 0;
  let send;
  const ask = (method, params) => {
    const id = next++;
    const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    return Promise.resolve(send({ jsonrpc: "2.0", id, method, params })).then(() => answer);
  };
  const receive = (message) => {
    if (message.method === undefined) {
      const { resolve, reject } = waiting.get(message.id);
      return message.error ? reject(new Error(JSON.stringify(message.error))) : resolve(message.result);
    }
    seen.push(message.method);
    if (message.id === undefined) return;
    const results = {
      "fs/read_text_file": { content: "hello\n" },
      "session/request_permission": { outcome: { outcome: "selected", optionId: "yes" } },
    };
    send({ jsonrpc: "2.0", id: message.id, result: results[message.method] ?? {} }, message.params.sessionId);
  };
  let close;
  // Over HTTP each stream is opened as soon as its id is known.
  let open = () => {};
  if (way === "websocket") {
    const encoded = token && btoa(token).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const protocols = token ? ["acp", `acp.bearer.${encoded}`] : [];
    const socket = new WebSocket(url.replace("http", "ws"), protocols);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error("the WebSocket does not open"));
    });
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    send = (message) => socket.send(JSON.stringify(message));
    close = () =>
      new Promise((resolve) => {
        socket.onclose = (event) => resolve(`closed ${event.code}`);
        socket.close(1000);
      });
  } else {
    const named = token ? { Authorization: `Bearer ${token}` } : {};
    const streams = [];
    const post = (message, session) =>
      fetch(url, {
        method: "POST",
        headers: { ...named, "Content-Type": "application/json", ...(session && { "Acp-Session-Id": session }) },
        body: JSON.stringify(message),
      });
    const listen = async (session) => {
      const headers = { ...named, Accept: "text/event-stream", ...(session && { "Acp-Session-Id": session }) };
      const answer = await fetch(url, { headers });
      if (answer.status !== 200) throw new Error(`the response to a GET is ${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const read = async () => {
        let rest = "";
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return;
          const events = (rest + value).split("\n\n");
          rest = events.pop();
          for (const event of events)
            for (const line of event.split("\n")) if (line.startsWith("data: ")) receive(JSON.parse(line.slice(6)));
        }
      };
      streams.push(read());
    };
    send = async (message, session = message.params?.sessionId) => {
      const answer = await post(message, session);
      if (message.method === "initialize") {
        named["Acp-Connection-Id"] = answer.headers.get("Acp-Connection-Id");
        const body = await answer.json();
        setTimeout(() => receive(body));
      } else if (answer.status !== 202) throw new Error(`the response to ${message.method} is ${answer.status}`);
    };
    close = async () => {
      const { status } = await fetch(url, { method: "DELETE", headers: named });
      await Promise.all(streams);
      return `closed ${status}`;
    };
    open = listen;
  }
  await ask("initialize", { protocolVersion: 1, clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } } });
  await open();
  const { sessionId } = await ask("session/new", { cwd: "/", mcpServers: [] });
  await open(sessionId);
  const prompt = [{ type: "text", text: "turn" }];
  const { stopReason } = await ask("session/prompt", { sessionId, prompt });
  // The last updates may arrive on another stream than the answer.
  for (let tries = 0; tries < 200 && seen.filter((one) => one === "session/update").length < 2; tries++)
    await new Promise((done) => setTimeout(done, 10));
  return [...seen, stopReason, await close()];
}

/** Serves an empty page; returns the server and its origin. */
async function origin() {
  const server = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<p>page</p>"));
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { server, at: `http://127.0.0.1:${server.address().port}` };
}

const folder = mkdtempSync(path.join(tmpdir(), "acp-relay-browser-"));
const [own, other] = [await origin(), await origin()];
const agent = ["python3", path.join(here, "turner.py"), folder];
const env = { ...process.env, ACP_RELAY_STATE_DIR: path.join(folder, "state") };
const relays = [];
/** Starts a relay; returns its endpoint. */
async function serve(...words) {
  const relay = spawn(options.relay, ["serve", ...words, "--allow-origin", own.at, "--", ...agent], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  relays.push(relay);
  return new Promise((resolve, reject) => {
    let output = "";
    relay.stderr.on("data", (data) => {
      output += data;
      const found = /listening on (\S+)/.exec(output);
      if (found) resolve(found[1]);
    });
    relay.on("exit", () => reject(new Error(output)));
  });
}
const run = (program, words) => {
  const { status, stdout, stderr } = spawnSync(program, words, { env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
  return stdout.trim();
};
const [cert, key] = ["cert.pem", "key.pem"].map((name) => path.join(folder, name));
run("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
  "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert]);
const token = run(options.relay, ["token", "new", "page"]);
const url = await serve("--listen", "http://127.0.0.1:0");
const tls = await serve("--listen", "https://127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--require-token");
let failed = 0;
const report = (good, what) => {
  failed += good ? 0 : 1;
  console.log(`${good ? "ok  " : "FAIL"}  ${what}`);
};
const root = process.getuid() === 0 ? ["--no-sandbox"] : [];
const browser = await driver.launch({ executablePath: chromium, args: ["--disable-dev-shm-usage", "--ignore-certificate-errors", ...root] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000);
  const turn = "session/update fs/read_text_file session/request_permission fs/write_text_file session/update end_turn";
  for (const [way, end] of [["websocket", "closed 1000"], ["fetch", "closed 202"]]) {
    await page.goto(own.at);
    const timeout = new Promise((_, reject) => setTimeout(() => reject(new Error("no result for 20 s")), 20_000).unref());
    const events = await Promise.race([page.evaluate(conversation, { url, way }), timeout]).catch((error) => [error.message]);
    report(events.join(" ") === `${turn} ${end}`, `${way} from an allowed origin: ${events.join(" ")}`);
    await page.goto(other.at);
    const refused = await page.evaluate(conversation, { url, way }).catch((error) => error.message.split("\n")[0]);
    report(typeof refused === "string", `${way} from another origin: ${refused}`);
    await page.goto(own.at);
    const secret = await page.evaluate(conversation, { url: tls, way, token }).catch((error) => [error.message]);
    report(secret.join(" ") === `${turn} ${end}`, `${way} over TLS with a token: ${secret.join(" ")}`);
    const without = await page.evaluate(conversation, { url: tls, way }).catch((error) => error.message.split("\n")[0]);
    report(typeof without === "string", `${way} over TLS without a token: ${without}`);
  }
  console.log(`      ${path.basename(chromium)} ${browser.version()}, playwright-core ${JSON.parse(readFileSync(library)).dependencies["playwright-core"]}`);
} finally {
  await browser.close();
  own.server.close();
  other.server.close();
  for (const relay of relays) {
    relay.kill();
    await new Promise((gone) => relay.on("exit", gone));
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

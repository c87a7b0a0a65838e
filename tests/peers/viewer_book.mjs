// Recordings for viewer.mjs, by a writer that is independent of the relay's.
import { appendFileSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The directory of the recordings. */
export const root = mkdtempSync(join(tmpdir(), "viewer-"));

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0x82f63b78 : byte >>> 1;
  return byte;
});

/** A line of a recording: the members and their checksum. */
function withChecksum(content) {
  const bytes = Buffer.from(content.slice(0, -1));
  let sum = 0xffffffff;
  for (const byte of bytes) sum = CRC[(sum ^ byte) & 255] ^ (sum >>> 8);
  const crc = ((sum ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
  return Buffer.concat([bytes, Buffer.from(`,"crc":"${crc}"}\n`)]);
}

/** Writes the header of a recording, with these members; the returned functions append events to it. */
export function newRecording(name, members = {}) {
  const path = join(root, name);
  const peer = (name) => ({ name, dialect: "canonical" });
  const header = {
    acpr: 1, id: "ab".repeat(16), seg: 0, first: 1, began: 1795190340.0, by: "test", client: peer("stdio:"),
    agent: peer("process 1 (agent)"), policy: "lossless", redact: { mode: "default", rules: "default@1", key: "00" }, prev: null, ...members,
  };
  writeFileSync(path, withChecksum(JSON.stringify(header)));
  let n = 0;
  const line = (event) => {
    n += 1;
    const { t = n / 100, ...rest } = event;
    return withChecksum(JSON.stringify({ n, t: Number(t.toFixed(6)), w: Number((1795190340 + t).toFixed(6)), ...rest }));
  };
  const add = (event) => {
    appendFileSync(path, line(event));
    return n;
  };
  const frame = (h, d, is, me, m, more = {}) => add({ k: "msg", h, d, is, ...(m.id === undefined ? {} : { id: m.id }), me, s: "s1", ...more, m });
  return { path, add, line, frame };
}

export const chunk = (text) => ({ method: "session/update", params: { sessionId: "s1", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } } });

/** A turn with chunks, a tool call and an answer; `words` is the text of the agent. Returns the number of its last event. */
export function turn(recording, id, words, stop = "end_turn") {
  const asked = recording.frame("client", ">", "request", "session/prompt", { id, params: { sessionId: "s1", prompt: [{ type: "text", text: `question ${id}` }] } });
  recording.add({ k: "passed", h: "agent", from: asked, to: asked, count: 1 });
  const first = recording.frame("agent", "<", "notification", "session/update", chunk(words));
  recording.frame("agent", "<", "notification", "session/update", chunk(" and more"));
  const update = { sessionUpdate: "tool_call", toolCallId: "c" + id, title: `tool of ${id}`, status: "pending" };
  recording.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update } });
  const done = { sessionUpdate: "tool_call_update", toolCallId: "c" + id, status: "completed", content: [{ type: "content", content: { type: "text", text: "tool output" } }] };
  const last = recording.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: done } });
  recording.add({ k: "passed", h: "client", from: first, to: last, count: 4 });
  return recording.frame("agent", "<", "result", "session/prompt", { id, result: { stopReason: stop } }, { re: asked });
}

/** A conversation of `turns` turns, with a translated message, stderr and links. */
export function conversation(name, turns, words = "Hello", members = {}) {
  const recording = newRecording(name, members);
  recording.add({ k: "link", h: "client", ev: "open", what: "stdio:" });
  recording.add({ k: "proc", ev: "start", what: "process 1 (agent)" });
  recording.add({ k: "stderr", b: "agent: ready\n" });
  for (let id = 1; id <= turns; id++) turn(recording, id, words);
  const body = { sessionUpdate: "current_mode_update", modeId: "ask" };
  const received = recording.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: body } });
  const now = { sessionUpdate: "current_mode_update", currentModeId: "ask" };
  recording.frame("client", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: now } }, {
    of: received, rules: ["loose-v1/mode-update"],
    p: [{ op: "remove", path: "/params/update/modeId" }, { op: "add", path: "/params/update/currentModeId", value: "ask" }],
  });
  return recording;
}

/** A turn whose prompt was renamed for the agent, and whose updates were renamed for the client in one batch. */
export function translated(name) {
  const recording = newRecording(name);
  const rules = ["acme/names"];
  const made = (of) => ({ of, rules, p: [] });
  const asked = recording.frame("client", ">", "request", "session/prompt", { id: 1, params: { sessionId: "s1", prompt: [{ type: "text", text: "hi" }] } });
  const again = recording.frame("agent", ">", "request", "session/prompt", { id: 1, params: { sessionId: "s1", prompt: [{ type: "text", text: "hi" }] } }, made(asked));
  const update = (text, kind) => ({ method: "session/update", params: { sessionId: "s1", update: { sessionUpdate: kind, content: { type: "text", text } } } });
  const texts = ["Hello ", "from ", "acme."];
  const originals = texts.map((text) => recording.frame("agent", "<", "notification", "session/update", update(text, "reply")));
  const odd = recording.frame("agent", "<", "notification", "news", { method: "news" });
  const last = recording.frame("agent", "<", "result", "session/prompt", { id: 1, result: { stopReason: "end_turn" } }, { re: again });
  originals.forEach((of, at) => recording.frame("client", "<", "notification", "session/update", update(texts[at], "agent_message_chunk"), made(of)));
  recording.frame("client", "<", "notification", "_acme/news", { method: "_acme/news" }, made(odd));
  recording.add({ k: "passed", h: "client", from: last, to: last, count: 1 });
  recording.add({ k: "end", why: "over", b3: "" });
  return recording.path;
}

/** Text that has an effect if it is interpreted as more than text. */
export const HOSTILE = [
  "<img src=x onerror=\"document.title='owned';alert(1)\">", "<script>alert(2)</script>", "</script><script>alert(3)</script>",
  "javascript:alert(4)", "\u202egnp.exe\u202c", "\u200b\u2066\ufeff", "\u001b]0;owned\u0007\u001b[31mred", "<a href=https://evil.example>x</a>",
  "<link rel=stylesheet href=https://evil.example/x.css>", "{{7*7}}", "__proto__", "a\u0000b",
  "[x](javascript:alert(5)) [y](data:text/html,<script>alert(6)</script>) ![z](https://evil.example/z.png) <https://evil.example>",
].join(" ");

export function hostile(name = "hostile.acpr", members = {}) {
  const recording = newRecording(name, members);
  recording.add({ k: "link", h: "client", ev: HOSTILE, what: HOSTILE });
  recording.add({ k: "proc", ev: "start", what: HOSTILE });
  recording.add({ k: "stderr", b: HOSTILE });
  recording.add({ k: "note", name: HOSTILE, text: HOSTILE });
  recording.add({ k: HOSTILE, x: HOSTILE });
  const asked = recording.frame("client", ">", "request", "session/prompt", { id: HOSTILE, params: { prompt: [{ type: "text", text: HOSTILE }] } });
  recording.frame("agent", "<", "notification", "session/update", chunk(HOSTILE));
  for (const update of [
    { sessionUpdate: HOSTILE, title: HOSTILE }, { sessionUpdate: "tool_call", toolCallId: "__proto__", title: HOSTILE, status: HOSTILE },
    { sessionUpdate: "tool_call_update", toolCallId: "__proto__", content: [{ type: "diff", path: HOSTILE, oldText: HOSTILE, newText: HOSTILE }, null, 7] },
    { sessionUpdate: "plan", entries: [{ content: HOSTILE, status: HOSTILE }, null] }, { sessionUpdate: ["x"], content: 7 }, null,
  ]) recording.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { update } });
  recording.frame("agent", "<", "error", HOSTILE, { id: 1, error: { code: HOSTILE, message: HOSTILE } });
  recording.frame("agent", "<", "result", "session/prompt", { id: HOSTILE, result: { stopReason: HOSTILE, ["x\"><b>"]: HOSTILE } }, { re: asked, rules: [HOSTILE], of: asked, p: [{ op: HOSTILE, path: HOSTILE, value: HOSTILE }, null] });
  recording.add({ k: "msg", h: "agent", d: "<", b: HOSTILE });
  recording.add({ k: "msg", h: "agent", d: "<", is: 7, me: {}, s: [], rules: 7, p: 7, m: [1, [2], { a: "\ud800" }] });
  appendFileSync(recording.path, HOSTILE + "\n" + "[".repeat(5000) + "\n");
  recording.add({ k: "end", why: HOSTILE, b3: "" });
  return recording.path;
}

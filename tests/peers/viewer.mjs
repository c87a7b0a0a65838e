#!/usr/bin/env node
// The viewer's page in a real browser.
//
//   viewer.mjs --relay BINARY --playwright DIR --chromium PATH [--shots DIR] [--big MIB]
//
// DIR is that of the package playwright-core. Recordings are written here, by a writer that shares
// nothing with the relay's, and opened with `acp-relay inspect open`. One line for each check,
// exit 1 when one failed. --big writes a recording of that size and says when its first rows were
// to be seen, which is a figure and no check: machines differ. --shots keeps pictures.
//
// In every check: no request leaves for anywhere but the viewer, no dialog opens, no error is
// logged on the page.
import { spawn } from "node:child_process";
import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { createRequire } from "node:module";

const { values: options } = parseArgs({
  options: {
    relay: { type: "string" }, playwright: { type: "string" }, chromium: { type: "string" },
    shots: { type: "string" }, big: { type: "string" },
  },
});
const { chromium } = createRequire(import.meta.url)(options.playwright);
const PATIENCE = 15000;
const root = mkdtempSync(join(tmpdir(), "viewer-"));
const children = new Set();

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0x82f63b78 : byte >>> 1;
  return byte;
});

/** A line of a recording: the members and their checksum. */
function sealed(content) {
  const bytes = Buffer.from(content.slice(0, -1));
  let sum = 0xffffffff;
  for (const byte of bytes) sum = CRC[(sum ^ byte) & 255] ^ (sum >>> 8);
  const crc = ((sum ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
  return Buffer.concat([bytes, Buffer.from(`,"crc":"${crc}"}\n`)]);
}

/** Writes a recording; what it returns appends events to it. */
function paper(name) {
  const path = join(root, name);
  const peer = (name) => ({ name, dialect: "canonical" });
  const header = {
    acpr: 1, id: "ab".repeat(16), seg: 0, first: 1, began: 1795190340.0, by: "test", client: peer("stdio:"),
    agent: peer("process 1 (agent)"), policy: "lossless", redact: { mode: "default", rules: "default@1", key: "00" }, prev: null,
  };
  writeFileSync(path, sealed(JSON.stringify(header)));
  let n = 0;
  const line = (event) => {
    n += 1;
    const { t = n / 100, ...rest } = event;
    return sealed(JSON.stringify({ n, t: Number(t.toFixed(6)), w: Number((1795190340 + t).toFixed(6)), ...rest }));
  };
  const add = (event) => {
    appendFileSync(path, line(event));
    return n;
  };
  const frame = (h, d, is, me, m, more = {}) => add({ k: "msg", h, d, is, ...(m.id === undefined ? {} : { id: m.id }), me, s: "s1", ...more, m });
  return { path, add, line, frame };
}

const chunk = (text) => ({ method: "session/update", params: { sessionId: "s1", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } } });

/** A turn with chunks, a tool call and an answer; `say` is what the agent says. */
function turn(book, id, say, stop = "end_turn") {
  const asked = book.frame("client", ">", "request", "session/prompt", { id, params: { sessionId: "s1", prompt: [{ type: "text", text: `question ${id}` }] } });
  book.add({ k: "passed", h: "agent", from: asked, to: asked, count: 1 });
  const first = book.frame("agent", "<", "notification", "session/update", chunk(say));
  book.frame("agent", "<", "notification", "session/update", chunk(" and more"));
  const update = { sessionUpdate: "tool_call", toolCallId: "c" + id, title: `tool of ${id}`, status: "pending" };
  book.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update } });
  const done = { sessionUpdate: "tool_call_update", toolCallId: "c" + id, status: "completed", content: [{ type: "content", content: { type: "text", text: "tool output" } }] };
  const last = book.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: done } });
  book.add({ k: "passed", h: "client", from: first, to: last, count: 4 });
  book.frame("agent", "<", "result", "session/prompt", { id, result: { stopReason: stop } }, { re: asked });
}

/** A conversation of `turns` turns, with a translated message, stderr and links. */
function conversation(name, turns, say = "Hello") {
  const book = paper(name);
  book.add({ k: "link", h: "client", ev: "open", what: "stdio:" });
  book.add({ k: "proc", ev: "start", what: "process 1 (agent)" });
  book.add({ k: "stderr", b: "agent: ready\n" });
  for (let id = 1; id <= turns; id++) turn(book, id, say);
  const body = { sessionUpdate: "current_mode_update", modeId: "ask" };
  const heard = book.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: body } });
  const now = { sessionUpdate: "current_mode_update", currentModeId: "ask" };
  book.frame("client", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: now } }, {
    of: heard, rules: ["loose-v1/mode-update"],
    p: [{ op: "remove", path: "/params/update/modeId" }, { op: "add", path: "/params/update/currentModeId", value: "ask" }],
  });
  return book;
}

/** Text that would do something if it were more than text. */
const HOSTILE = [
  "<img src=x onerror=\"document.title='owned';alert(1)\">", "<script>alert(2)</script>", "</script><script>alert(3)</script>",
  "javascript:alert(4)", "\u202egnp.exe\u202c", "\u200b\u2066\ufeff", "\u001b]0;owned\u0007\u001b[31mred", "<a href=https://evil.example>x</a>",
  "<link rel=stylesheet href=https://evil.example/x.css>", "{{7*7}}", "__proto__", "a\u0000b",
].join(" ");

function hostile() {
  const book = paper("hostile.acpr");
  book.add({ k: "link", h: "client", ev: HOSTILE, what: HOSTILE });
  book.add({ k: "proc", ev: "start", what: HOSTILE });
  book.add({ k: "stderr", b: HOSTILE });
  book.add({ k: "note", name: HOSTILE, text: HOSTILE });
  book.add({ k: HOSTILE, x: HOSTILE });
  const asked = book.frame("client", ">", "request", "session/prompt", { id: HOSTILE, params: { prompt: [{ type: "text", text: HOSTILE }] } });
  book.frame("agent", "<", "notification", "session/update", chunk(HOSTILE));
  for (const update of [
    { sessionUpdate: HOSTILE, title: HOSTILE }, { sessionUpdate: "tool_call", toolCallId: "__proto__", title: HOSTILE, status: HOSTILE },
    { sessionUpdate: "tool_call_update", toolCallId: "__proto__", content: [{ type: "diff", path: HOSTILE, oldText: HOSTILE, newText: HOSTILE }, null, 7] },
    { sessionUpdate: "plan", entries: [{ content: HOSTILE, status: HOSTILE }, null] }, { sessionUpdate: ["x"], content: 7 }, null,
  ]) book.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { update } });
  book.frame("agent", "<", "error", HOSTILE, { id: 1, error: { code: HOSTILE, message: HOSTILE } });
  book.frame("agent", "<", "result", "session/prompt", { id: HOSTILE, result: { stopReason: HOSTILE, ["x\"><b>"]: HOSTILE } }, { re: asked, rules: [HOSTILE], of: asked, p: [{ op: HOSTILE, path: HOSTILE, value: HOSTILE }, null] });
  book.add({ k: "msg", h: "agent", d: "<", b: HOSTILE });
  book.add({ k: "msg", h: "agent", d: "<", is: 7, me: {}, s: [], rules: 7, p: 7, m: [1, [2], { a: "\ud800" }] });
  appendFileSync(book.path, HOSTILE + "\n" + "[".repeat(5000) + "\n");
  book.add({ k: "end", why: HOSTILE, b3: "" });
  return book.path;
}

/** Starts a viewer; its address. */
async function open(path) {
  const child = spawn(options.relay, ["inspect", "open", path], { stdio: ["ignore", "pipe", "ignore"] });
  children.add(child);
  return await new Promise((done, failed) => {
    child.stdout.once("data", (text) => done(String(text).trim()));
    child.once("exit", () => failed(new Error("inspect open ended")));
  });
}

const browser = await chromium.launch({ executablePath: options.chromium, args: ["--no-sandbox", "--disable-gpu"] });
let failures = 0;

/** One check, with a page that must stay within the viewer. */
async function check(name, path, body, how = {}) {
  const wrong = [];
  const context = await browser.newContext({ viewport: { width: how.width ?? 1280, height: 800 }, colorScheme: how.scheme ?? "dark" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const address = typeof path === "string" ? await open(path) : path.href;
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) wrong.push(`it asked for ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    wrong.push(`a dialog opened: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("pageerror", (error) => wrong.push(`it failed: ${error.stack}`));
  page.on("console", (message) => message.type() === "error" && wrong.push(`it logged: ${message.text()}`));
  page.on("popup", () => wrong.push("a window opened"));
  try {
    await page.goto(address);
    await body(page);
  } catch (error) {
    wrong.push(String(error.stack));
  }
  if (options.shots) await page.screenshot({ path: join(options.shots, name.replaceAll(/\W+/g, "-") + ".png") });
  await context.close();
  failures += wrong.length ? 1 : 0;
  console.log(wrong.length ? `viewer: FAILED: ${name}\n  ${wrong.join("\n  ")}` : `viewer: ok: ${name}`);
}

function demand(holds, what) {
  if (!holds) throw new Error(`not so: ${what}`);
}
const counted = (page, words) => page.waitForFunction((words) => document.getElementById("count").textContent.replaceAll("\u202f", "") === words, words);
const row = (page, words) => page.locator(".row", { hasText: words }).first();

const plain = conversation("plain.acpr", 3).path;

await check("the sequence shows who said what, and how long it took", plain, async (page) => {
  await row(page, "question 1").waitFor();
  demand((await page.locator(".row").count()) === 20, "20 rows");
  demand((await row(page, "question 1").locator(".lane.request.to-agent.through").count()) === 1, "a prompt goes through to the agent");
  demand((await row(page, "×2").locator(".say").textContent()) === "Hello and more", "chunks are folded");
  demand((await row(page, "end_turn").locator(".tail").textContent()) === "70 ms", "the answer says what it took");
  demand((await row(page, "agent: ready").locator(".remark.stderr").count()) === 1, "stderr stands in line");
  demand((await row(page, "client open").locator(".remark.link").count()) === 1, "links stand in line");
});

await check("a filter narrows the list, and Esc widens it", plain, async (page) => {
  await row(page, "question 1").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("method:session/prompt question");
  await counted(page, "3 of 29 events");
  demand((await page.locator(".row").count()) === 3, "3 rows");
  await page.locator("#filter").fill("no such words");
  await page.locator("#empty").waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await counted(page, "29 events");
});

await check("what is no filter is said while it is typed, and the list stays", plain, async (page) => {
  await row(page, "question 1").waitFor();
  await page.locator("#filter").fill("metod:x");
  await page.locator("#fault mark", { hasText: "metod" }).waitFor();
  await page.locator("#fault", { hasText: "no such field" }).waitFor();
  demand((await page.locator(".row").count()) === 20, "the list stays");
  await page.locator("#filter").fill("dur>50ms");
  await counted(page, "6 of 29 events");
  await page.locator("#fault").waitFor({ state: "hidden" });
});

await check("findings stand at their rows, in a view by rule, and in the filter", plain, async (page) => {
  await page.locator(".row .badge.error").first().waitFor();
  await page.locator("#found").waitFor();
  await page.keyboard.press("t");
  await page.keyboard.press("t");
  const group = page.locator(".group", { hasText: "not-initialized" });
  await group.locator(".place").nth(2).waitFor();
  demand((await group.locator(".place").count()) === 3, "three prompts came too early");
  await group.locator(".place").nth(1).click();
  await page.locator(".row.selected", { hasText: "question 2" }).waitFor();
  await page.locator("#detail .finding.error", { hasText: "not-initialized" }).waitFor();
  await page.locator("#detail .finding .id", { hasText: "not-initialized" }).click();
  await counted(page, "3 of 29 events");
  demand((await page.locator("#filter").inputValue()) === "lint:not-initialized", "the filter says it");
  await page.keyboard.press("n");
  await page.locator(".row.selected", { hasText: "question 2" }).waitFor({ state: "detached" });
});

await check("the keys walk, open, go to the pair and close", plain, async (page) => {
  await row(page, "question 1").waitFor();
  for (let presses = 0; presses < 4; presses++) await page.keyboard.press("j");
  await page.locator(".row.selected", { hasText: "question 1" }).waitFor();
  await page.locator(".row.pair", { hasText: "end_turn" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("#detail .j-string", { hasText: "question 1" }).waitFor();
  await page.keyboard.press("p");
  await page.locator(".row.selected", { hasText: "end_turn" }).waitFor();
  await page.locator("#detail .j-string", { hasText: "end_turn" }).waitFor();
  await page.keyboard.press("k");
  await page.locator("#detail .j-string", { hasText: "completed" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#detail").waitFor({ state: "hidden" });
  await page.keyboard.press("G");
  await page.locator(".row.selected", { hasText: "mode-update" }).waitFor();
  await page.keyboard.press("?");
  await page.locator("#help dt", { hasText: "Enter" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  demand((await page.evaluate(() => document.documentElement.dataset.theme)) === "light", "d makes it light");
});

await check("what was changed stands side by side with the rule", plain, async (page) => {
  await row(page, "mode-update").click();
  await page.locator(".before .differs", { hasText: "modeId" }).waitFor();
  await page.locator(".after .differs", { hasText: "currentModeId" }).waitFor();
  await page.locator(".reason", { hasText: "official prose page" }).waitFor();
  demand((await page.locator(".patch li").count()) === 2, "the patch has two steps");
  // From the heard one, too.
  await page.locator("#detail .go").first().click();
  await page.locator(".row.selected", { hasText: "current_mode_update" }).waitFor();
  await page.locator(".after .differs", { hasText: "currentModeId" }).waitFor();
});

await check("a turn is one text with its tools and its end", plain, async (page) => {
  await row(page, "question 1").waitFor();
  await page.keyboard.press("t");
  const card = page.locator(".turn").first();
  await card.locator(".words", { hasText: "Hello and more" }).waitFor();
  await card.locator(".tool .title", { hasText: "tool of 1" }).waitFor();
  await card.locator(".tool pre", { hasText: "tool output" }).waitFor();
  await card.locator(".stop", { hasText: "end_turn" }).waitFor();
  demand((await page.locator(".turn").count()) === 3, "three turns");
  await card.locator(".prompt").click();
  await page.locator("#detail .j-string", { hasText: "question 1" }).waitFor();
});

await check("a range of time can be pulled", plain, async (page) => {
  await row(page, "question 1").waitFor();
  await page.locator("#state", { hasText: "3 turns" }).waitFor();
  const box = await page.locator("#bars").boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(() => / of 29 events/.test(document.getElementById("count").textContent));
  await row(page, "question 2").waitFor();
  demand((await row(page, "question 1").count()) === 0 && (await row(page, "question 2").count()) === 1, "the second turn alone is seen");
  await page.keyboard.press("Escape");
  await counted(page, "29 events");
});

await check("hostile text stays text", hostile(), async (page) => {
  await row(page, "prompt").first().waitFor();
  const events = await page.locator(".row").count();
  for (let at = 0; at < events; at++) {
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator("#detail .body > :not(.soft)").first().waitFor();
  }
  demand((await page.locator(".unseen", { hasText: "U+202E" }).count()) > 0, "a change of direction is shown as a mark");
  demand((await page.locator(".unseen", { hasText: "ESC" }).count()) > 0, "an escape is shown as a mark");
  demand((await page.locator(".remark.damaged").count()) === 2, "two damaged lines");
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await page.locator(".turn .stop").first().waitFor();
  demand((await page.locator("img, iframe, a, svg, #main script, #main link").count()) === 0, "nothing became an element");
  demand(!(await page.evaluate(() => document.body.innerText)).includes("\u202e"), "no text changes the direction");
  demand((await page.title()) === "hostile.acpr · acp-relay" || (await page.title()) === "hostile · acp-relay", `the title is ours: ${await page.title()}`);
});

const live = conversation("live.acpr", 1);
await check("a recording that grows is followed", live.path, async (page) => {
  await row(page, "question 1").waitFor();
  await page.keyboard.press("f");
  for (let id = 2; id <= 30; id++) turn(live, id, "Hello");
  await row(page, "question 30").waitFor();
  demand(await page.locator("#top.live").count(), "it says that it is live");
  await page.keyboard.press("t");
  await page.locator(".turn").nth(29).waitFor({ state: "attached" });
  live.add({ k: "end", why: "over", b3: "" });
  // What was over before anybody looked is not live.
  await page.locator("#top:not(.live)").waitFor();
});

await check("many rows: the end, the middle, and a jump far away", conversation("many.acpr", 4000).path, async (page) => {
  await counted(page, "32005 events");
  await page.keyboard.press("G");
  await page.locator(".row.selected", { hasText: "mode-update" }).waitFor();
  await page.locator("#filter").fill('"question 2000"');
  await page.waitForFunction(() => /^1 of/.test(document.getElementById("count").textContent));
  await row(page, "question 2000").click();
  await page.keyboard.press("p");
  await page.locator(".row.selected", { hasText: "end_turn" }).waitFor();
  await row(page, "question 2000").waitFor();
});

for (const [width, scheme] of [[1280, "light"], [400, "dark"], [400, "light"]]) {
  await check(`nothing sticks out at ${width} pixels, ${scheme}`, plain, async (page) => {
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll("#top *, .turn, .row, #detail")].every((one) => one.getBoundingClientRect().right <= innerWidth + 1));
    await row(page, "question 1").waitFor();
    demand(await fits(), "the sequence fits");
    await page.keyboard.press("G");
    await row(page, "mode-update").click();
    await page.locator(".after .differs").first().waitFor();
    demand(await fits(), "an event fits");
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
    await page.locator(".turn .stop").first().waitFor();
    demand(await fits(), "the turns fit");
  }, { width, scheme });
}

// The page in one file, without a server, and a recording that is given to it.
const alone = join(root, "alone.html");
await new Promise((done) => spawn(options.relay, ["inspect", "open", "--page", alone]).once("exit", done));
await check("a file is shown by the page alone", pathToFileURL(alone), async (page) => {
  await page.locator("#welcome").waitFor();
  await page.locator("#pick").setInputFiles(plain);
  await row(page, "question 1").waitFor();
  await counted(page, "29 events");
  demand((await row(page, "×2").count()) === 1, "chunks are folded");
  await page.locator("#filter").fill("method:session/prompt question");
  await counted(page, "3 of 29 events");
  await page.locator("#filter").fill("");
  await row(page, "mode-update").click();
  await page.locator(".after .differs", { hasText: "currentModeId" }).waitFor();
  await page.keyboard.press("t");
  await page.locator(".turn .words", { hasText: "Hello and more" }).first().waitFor();
});
// The page's filter against the cases of the program's.
const vectors = JSON.parse(readFileSync(new URL("../vectors/inspect/filter.json", import.meta.url)));
await check("the page and the program mean the same with a filter", pathToFileURL(alone), async (page) => {
  await page.locator("#welcome").waitFor();
  const wrong = await page.evaluate((vectors) => {
    const wrong = [];
    const facts = (n) => vectors.facts[n] ?? { took: null, lint: [] };
    for (const { filter: text, n } of vectors.matches) {
      const filter = new Filter(text);
      const found = vectors.events.filter((line) => filter.matches(line, JSON.stringify(line), facts(line.n))).map((line) => line.n);
      if (JSON.stringify(found) !== JSON.stringify(n)) wrong.push(`${text}: ${found} and not ${n}`);
    }
    for (const { filter: text, at, why } of vectors.faults) {
      try {
        new Filter(text);
        wrong.push(`${text} is taken`);
      } catch (fault) {
        if (fault.from !== at[0] || fault.to !== at[1] || !fault.message.includes(why)) wrong.push(`${text}: ${fault.from}..${fault.to} ${fault.message}`);
      }
    }
    return wrong;
  }, vectors);
  demand(vectors.matches.length > 50 && wrong.length === 0, wrong.join("\n"));
});
await check("hostile text stays text in the page alone", pathToFileURL(alone), async (page) => {
  await page.locator("#pick").setInputFiles(join(root, "hostile.acpr"));
  await row(page, "prompt").waitFor();
  demand((await page.locator(".remark.damaged").count()) === 2, "two damaged lines");
  demand((await page.locator("img, iframe, a, svg").count()) === 0, "nothing became an element");
});

if (options.big) {
  const book = paper("big.acpr");
  const file = openSync(book.path, "a");
  const words = "x".repeat(600);
  let written = 0;
  for (let id = 0; written < Number(options.big) * 2 ** 20; id++) {
    const m = chunk(`${id} ${words}`);
    if (id % 4 === 0) Object.assign(m.params.update, { sessionUpdate: "tool_call_update", title: `tool ${id}` });
    written += writeSync(file, book.line({ k: "msg", h: "agent", d: "<", is: "notification", me: "session/update", s: "s1", t: id / 1e4, m }));
  }
  closeSync(file);
  await check(`a recording of ${options.big} MiB opens`, book.path, async (page) => {
    await row(page, "tool_call_update").waitFor();
    const first = await page.evaluate(() => performance.now());
    console.log(`viewer: figure: first rows of ${options.big} MiB after ${Math.round(first)} ms`);
    await page.waitForFunction(() => !/reading/.test(document.getElementById("state").textContent), null, { timeout: 120000 });
    const whole = await page.evaluate(() => performance.now());
    console.log(`viewer: figure: all of it read after ${Math.round(whole)} ms, ${await page.locator("#count").textContent()}`);
  });
}

await browser.close();
for (const child of children) child.kill();
rmSync(root, { recursive: true, force: true });
console.log(`viewer: ${failures} failed`);
process.exit(failures ? 1 : 0);

#!/usr/bin/env node
// The viewer's page in a browser.
//
//   viewer.mjs --relay BINARY --playwright DIR --chromium PATH [--sdk DIR] [--only WORDS]
//              [--shots DIR] [--big MIB]
//
// DIR is the directory of the package playwright-core, and of the official SDK, whose example agent
// and client communicate through a relay while the page shows it. Other recordings are written here
// (viewer_book.mjs) and opened with `acp-relay inspect open`. One line for each check, exit 1 when one
// failed. --big writes a recording of that size and prints when its first rows were visible: a
// measurement, not a check. --shots keeps screenshots.
//
// In every check: the page sends requests to the viewer only, opens no dialog and logs no error. Two
// checks run at a time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { createRequire } from "node:module";
import { chunk, conversation, hostile, newRecording, root, translated, turn } from "./viewer_book.mjs";
import { lowContrast, unnamed } from "./viewer_eyes.mjs";
import { overviews } from "./viewer_overview.mjs";
import { reading } from "./viewer_reading.mjs";
import { folder, usability } from "./viewer_use.mjs";

const { values: options } = parseArgs({
  options: {
    relay: { type: "string" }, playwright: { type: "string" }, chromium: { type: "string" },
    sdk: { type: "string" }, only: { type: "string" }, shots: { type: "string" }, big: { type: "string" },
  },
});
const { chromium } = createRequire(import.meta.url)(options.playwright);
// A busy machine needs many times the usual second.
const PATIENCE = 180_000;
/** Milliseconds until a click without an effect is repeated. */
const CLICK_PATIENCE = 3000;
const children = new Set();

/** Starts a program; returns the child, and the first match of `pattern` in its output. */
async function begin(command, args, pattern) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  let output = "";
  return await new Promise((done, failed) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (text) => {
        const found = pattern.exec((output += text));
        if (found) done({ child, found });
      });
    }
    child.once("exit", () => failed(new Error(`${command} ${args.join(" ")} ended: ${output}`)));
  });
}

/** Starts a viewer; returns its address. */
const open = async (path) => (await begin(options.relay, ["inspect", "open", path], /http:\S+/)).found[0];

const browser = await chromium.launch({ executablePath: options.chromium, args: ["--no-sandbox", "--disable-gpu"] });
const checks = [];
let failures = 0;

/** Adds a check of a page that may only use the viewer: of the recording at `path`, or at the address that `path()` returns. */
function check(name, path, body, how = {}) {
  if (options.only && !name.includes(options.only)) return;
  // A long check starts first, beside the others.
  if (how.long) checks.unshift({ name, path, body, how });
  else checks.push({ name, path, body, how });
}

async function run({ name, path, body, how }) {
  const wrong = [];
  const context = await browser.newContext({ viewport: { width: how.width ?? 1280, height: how.height ?? 800 }, colorScheme: how.scheme ?? "dark", timezoneId: how.zone });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("dialog", (dialog) => {
    wrong.push(`a dialog opened: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("pageerror", (error) => wrong.push(`the page failed: ${error.stack}`));
  page.on("console", (message) => message.type() === "error" && !how.fails?.test(message.text()) && wrong.push(`the page logged: ${message.text()}`));
  page.on("popup", () => wrong.push("a window opened"));
  try {
    const address = typeof path === "function" ? await path() : typeof path === "string" ? await open(path) : path.href;
    page.on("request", (request) => {
      if (!request.url().startsWith(address)) wrong.push(`the page requested ${request.url()}`);
    });
    await page.goto(address);
    await body(page, address);
  } catch (error) {
    wrong.push(String(error.stack));
  }
  if (options.shots) await page.screenshot({ path: join(options.shots, name.replaceAll(/\W+/g, "-") + ".png") });
  await context.close();
  failures += wrong.length ? 1 : 0;
  console.log(wrong.length ? `viewer: FAILED: ${name}\n  ${wrong.join("\n  ")}` : `viewer: ok: ${name}`);
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
function expect(holds, what) {
  if (!holds) throw new Error(`expected: ${what}`);
}
/** Waits until `holds()` is true: what was just done may not be shown yet. */
async function until(holds, what) {
  for (const end = Date.now() + PATIENCE; !(await holds()); await pause(20)) expect(Date.now() < end, what);
}
/** Clicks until `shown` is visible: the page may replace the element while the button is down. */
const click = (element, shown) => until(async () => {
  await element.click({ timeout: CLICK_PATIENCE }).catch(() => {});
  return await shown.waitFor({ timeout: CLICK_PATIENCE }).then(() => true, () => false);
}, `${element} has an effect`);
/** Waits until the page shows the whole recording and its findings. */
const whole = (page) => page.waitForFunction(() => {
  const { bytes, total, events, lint } = view.state ?? {};
  // "29 events", or "3 of 29 events".
  const counted = Number(document.getElementById("count").textContent.replace(/.* of /, "").replaceAll(/\D/g, ""));
  return events && bytes >= total && !(lint?.checked < events) && counted === events && !document.querySelector(".row.waiting");
});
const counted = (page, words) => page.waitForFunction((words) => document.getElementById("count").textContent.replaceAll("\u202f", "") === words, words);
const row = (page, words) => page.locator(".row", { hasText: words }).first();

const plain = conversation("plain.acpr", 3).path;

check("the sequence shows senders, messages and durations", plain, async (page) => {
  await whole(page);
  await until(async () => (await page.locator(".row").count()) === 20, "20 rows");
  expect((await row(page, "question 1").locator(".lane.request.to-agent.through").count()) === 1, "a prompt passes through to the agent");
  expect((await row(page, "×2").locator(".summary").textContent()) === "Hello and more", "chunks are folded");
  expect((await row(page, "end_turn").locator(".tail").textContent()) === "70 ms", "the answer shows its duration");
  expect((await row(page, "agent: ready").locator(".remark.stderr").count()) === 1, "stderr has a row in the sequence");
  expect((await row(page, "client open").locator(".remark.link").count()) === 1, "links have a row in the sequence");
});

check("a filter narrows the list, and Esc clears it", plain, async (page) => {
  await whole(page);
  await page.keyboard.press("/");
  await page.keyboard.type("method:session/prompt question");
  await counted(page, "3 of 29 events");
  await until(async () => (await page.locator(".row").count()) === 3, "3 rows");
  await page.locator("#filter").fill("no such words");
  await page.locator("#empty").waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await counted(page, "29 events");
});

check("an error in the filter is shown while typing, and the list stays", plain, async (page) => {
  await whole(page);
  await page.locator("#filter").fill("metod:x");
  await page.locator("#fault mark", { hasText: "metod" }).waitFor();
  await page.locator("#fault", { hasText: "no such field" }).waitFor();
  expect((await page.locator(".row").count()) === 20, "the list stays");
  await page.locator("#filter").fill("dur>50ms");
  await counted(page, "6 of 29 events");
  await page.locator("#fault").waitFor({ state: "hidden" });
});

check("findings are shown at their rows, in a view by rule, and in the filter", plain, async (page) => {
  await whole(page);
  await page.locator(".row .badge.error").first().waitFor();
  await page.locator("#found").waitFor();
  await page.keyboard.press("t");
  await page.keyboard.press("t");
  const group = page.locator(".group", { hasText: "not-initialized" });
  await group.locator(".place").nth(2).waitFor();
  expect((await group.locator(".place").count()) === 3, "three prompts came too early");
  await click(group.locator(".place").nth(1), page.locator(".row.selected", { hasText: "question 2" }));
  await page.locator("#detail .finding.error", { hasText: "not-initialized" }).waitFor();
  await page.locator("#detail .finding .id", { hasText: "not-initialized" }).click();
  await counted(page, "3 of 29 events");
  expect((await page.locator("#filter").inputValue()) === "lint:not-initialized", "the filter shows it");
  await page.locator(".row.selected", { hasText: "question 2" }).waitFor();
  await page.keyboard.press("n");
  await page.locator(".row.selected", { hasText: "question 2" }).waitFor({ state: "detached" });
  await page.locator(".row.selected").waitFor();
});

check("the keys select, open, go to the pair and close", plain, async (page) => {
  await whole(page);
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
  await page.locator("#dialog dt", { hasText: "Enter" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("d");
  await until(async () => (await page.evaluate(() => document.documentElement.dataset.theme)) === "light", "d switches to the light theme");
});

check("a changed message is shown side by side, with the rule", plain, async (page) => {
  await whole(page);
  await click(row(page, "mode-update"), page.locator(".before .differs", { hasText: "modeId" }));
  await page.locator(".after .differs", { hasText: "currentModeId" }).waitFor();
  await page.locator(".reason", { hasText: "official prose page" }).waitFor();
  expect((await page.locator(".patch li").count()) === 2, "the patch has two steps");
  // From the received message as well.
  await click(page.locator("#detail .go").first(), page.locator(".row.selected", { hasText: "current_mode_update" }));
  await page.locator(".after .differs", { hasText: "currentModeId" }).waitFor();
});

check("a turn is one text with its tool calls and its stop reason", plain, async (page) => {
  await whole(page);
  await page.keyboard.press("t");
  const card = page.locator(".turn").first();
  await card.locator(".words", { hasText: "Hello and more" }).waitFor();
  await card.locator(".tool .title", { hasText: "tool of 1" }).waitFor();
  await card.locator(".tool pre", { hasText: "tool output" }).waitFor();
  await card.locator(".stop", { hasText: "end_turn" }).waitFor();
  expect((await page.locator(".turn").count()) === 3, "three turns");
  await click(card.locator(".prompt"), page.locator("#detail .j-string", { hasText: "question 1" }));
});

/** Checks what the page shows of a translated conversation. */
const old = translated("translated.acpr");
async function checkTranslated(page) {
  await whole(page);
  await row(page, "stopReason").or(row(page, "end_turn")).waitFor();
  const order = await page.locator(".row .title").allTextContents();
  expect(order.join() === "session/prompt,session/prompt,reply,agent_message_chunk,reply,reply,news,_acme/news,session/prompt", `the order is ${order}`);
  await page.locator("#tab-turns").click();
  const card = page.locator(".turn").first();
  await card.locator(".words", { hasText: "Hello from acme." }).waitFor();
  expect((await card.locator(".part.prompt").count()) === 1, "one prompt");
  expect((await card.locator(".part.stop").textContent()) === "end_turn", "one stop reason");
  expect((await card.textContent()).includes("no end") === false, "the turn has an end");
}
check("a translated turn is shown as the client received it, in its order, and its repairs as hints", old, async (page) => {
  await checkTranslated(page);
  await page.locator("#tab-findings").click();
  const group = page.locator(".group", { hasText: "schema-repaired" });
  await group.locator(".place", { hasText: "repaired by acme/names: " }).first().waitFor();
  expect((await page.locator(".group", { hasText: "unknown-method" }).count()) === 0, "a repaired message is no warning");
});

check("a time range can be selected with the mouse", plain, async (page) => {
  await whole(page);
  const box = await page.locator("#bars").boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(() => / of 29 events/.test(document.getElementById("count").textContent));
  await row(page, "question 2").waitFor();
  await until(async () => (await row(page, "question 1").count()) === 0 && (await row(page, "question 2").count()) === 1, "only the second turn is shown");
  await page.keyboard.press("Escape");
  await counted(page, "29 events");
});

const lossy = conversation("lossy.acpr", 1);
for (const [t, ev] of [[10, "lost"], [30, "resumed"], [40, "end"]]) lossy.add({ k: "link", h: "client", ev, what: "", t });
async function checkOutage(page) {
  await whole(page);
  let pixel = 0;
  const says = (share, fits, what) => until(async () => {
    const { x, y, width } = await page.locator("#bars").boundingBox();
    // Another position each time, because the page says nothing new otherwise.
    await page.mouse.move(x + width * share + (pixel ^= 1), y + 20);
    return fits(await page.locator("#hour").textContent());
  }, what);
  await says(0.5, (words) => words.includes("client lost for 20.00 s"), "the timeline shows the outage");
  await says(0.9, (words) => words && !words.includes("lost"), "the timeline shows its end");
}
check("the timeline shows an outage with its duration", lossy.path, checkOutage);

check("hostile text is shown as text", hostile(), async (page) => {
  await whole(page);
  await row(page, "prompt").first().waitFor();
  const events = await page.locator(".row").count();
  for (let at = 0; at < events; at++) {
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator("#detail .body > :not(.soft)").first().waitFor();
  }
  expect((await page.locator(".unseen", { hasText: "U+202E" }).count()) > 0, "a direction control character is shown as a mark");
  expect((await page.locator(".unseen", { hasText: "ESC" }).count()) > 0, "an escape character is shown as a mark");
  expect((await page.locator(".remark.damaged").count()) === 2, "two damaged lines");
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await page.locator(".turn .stop").first().waitFor();
  expect((await page.locator("img, iframe, a, svg, #main script, #main link").count()) === 0, "no text became an element");
  expect(!(await page.evaluate(() => document.body.innerText)).includes("\u202e"), "no text changes the direction");
  expect((await page.title()) === "hostile.acpr · acp-relay" || (await page.title()) === "hostile · acp-relay", `the title is the viewer's: ${await page.title()}`);
});

const live = conversation("live.acpr", 1);
check("a live recording is followed, and its open requests are shown as waiting", live.path, async (page) => {
  await row(page, "question 1").waitFor();
  // A recording without a writer is not live and cannot be followed.
  await page.locator("#top:not(.live)").waitFor();
  await page.locator("#follow").waitFor({ state: "hidden" });
  // A writer locks its recording.
  const writer = spawn("flock", ["-x", live.path, "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
  children.add(writer);
  await once(writer.stdout, "data");
  // The lock is seen once the recording has grown.
  turn(live, 2, "Hello");
  await page.locator("#top.live").waitFor();
  await page.keyboard.press("f");
  await page.locator("#follow[aria-pressed=true]").waitFor();
  for (let id = 3; id <= 30; id++) turn(live, id, "Hello");
  live.frame("client", ">", "request", "session/prompt", { id: 31, params: { sessionId: "s1", prompt: [{ type: "text", text: "no answer to this" }] } });
  await row(page, "question 30").waitFor();
  await row(page, "no answer to this").locator(".tail.waiting", { hasText: /\d/ }).waitFor();
  expect((await page.locator(".group", { hasText: "unanswered" }).count()) === 0, "the answer may come");
  await page.keyboard.press("t");
  await page.locator(".turn").nth(30).waitFor({ state: "attached" });
  await page.waitForFunction(() => document.querySelector(".turn .goes-on")?.getBoundingClientRect().bottom < innerHeight);
  writer.stdin.end();
  // A recording without an end has findings too.
  await page.locator("#top:not(.live)").waitFor();
  await page.locator("#state", { hasText: "not ended" }).waitFor();
  await page.keyboard.press("t");
  const finding = page.locator("#detail .finding", { hasText: "unanswered" });
  await click(page.locator(".group", { hasText: "unanswered" }).locator(".place"), finding);
  await row(page, "no answer to this").locator(".tail", { hasText: "no answer" }).waitFor();
  live.frame("agent", "<", "result", "session/prompt", { id: 31, result: { stopReason: "end_turn" } });
  await finding.waitFor({ state: "detached" });
  await page.locator("#detail .go", { hasText: "after" }).waitFor();
  await row(page, "no answer to this").locator(".tail", { hasText: "no answer" }).waitFor({ state: "detached" });
});

const cut = conversation("cut.000.acpr", 1);
cut.add({ k: "rotate", why: "it is long or old enough", b3: "" });
check("a missing next file of a recording is reported", cut.path, async (page) => {
  await row(page, "question 1").waitFor();
  await page.locator("#state .bad", { hasText: "its next file is missing" }).waitFor();
  await page.locator("#top:not(.live)").waitFor();
});

check("an address restores the view", plain, async (page) => {
  await page.locator("#filter").fill("question");
  await counted(page, "3 of 29 events");
  await click(row(page, "question 2"), page.locator("#detail .j-string", { hasText: "question 2" }));
  await page.reload();
  await page.locator("#detail .j-string", { hasText: "question 2" }).waitFor();
  await counted(page, "3 of 29 events");
});

usability({ check, row, expect, until, click, whole, plain });
overviews({ check, row, expect, until, options: { ...options, open } });

// The official SDK's client and agent, recorded by a relay.
if (options.sdk) check("a conversation of the SDK is shown while it runs, and the end of the relay is reported", () => serve(0), async (page, address) => {
  await page.locator("#welcome", { hasText: "as soon as it begins" }).waitFor();
  const prompt = ["--prompt", "Hello", "--cancel-prompt", "Stop", "--expect", "end_turn,cancelled"];
  const here = new URL("client.mjs", import.meta.url).pathname;
  const running = begin("node", [here, "--sdk", options.sdk, "--cwd", root, "--url", serving.url, ...prompt], /"stops":\s*\[[^\]]+\]/);
  // When the check fails before, that is reported.
  running.catch(() => {});
  await page.locator("#overview tr[data-id]").click();
  await row(page, "session/prompt").locator(".tail.waiting").waitFor();
  await page.locator("#top.live").waitFor();
  await page.keyboard.press("f");
  await row(page, "session/request_permission").waitFor();
  await row(page, "end_turn").waitFor();
  await page.keyboard.press("t");
  await page.locator(".turn .stop", { hasText: "cancelled" }).waitFor();
  await running;
  await page.locator("#top:not(.live)").waitFor();
  // The next conversation is offered.
  const { child } = await begin("node", [here, "--sdk", options.sdk, "--cwd", root, "--url", serving.url, ...prompt], /^/);
  await page.locator("#newer", { hasText: "1 new" }).click();
  await page.locator("#newer").waitFor({ state: "hidden" });
  await page.locator(".turn .prompt").first().waitFor();
  const { port } = new URL(address);
  serving.child.removeAllListeners("exit");
  serving.child.kill("SIGKILL");
  await page.locator("#gone", { hasText: "tries again" }).waitFor();
  child.kill();
  await serve(port);
  await page.locator("#gone", { hasText: "prints a new address" }).waitFor();
}, { long: true, fails: /ERR_CONNECTION_REFUSED|ERR_EMPTY|ERR_CONNECTION_RESET|404/ });

let serving;
/** Starts a relay that records; returns the address of its viewer. */
async function serve(port) {
  const folder = join(root, "served");
  const args = ["serve", "--listen", "ws://127.0.0.1:0/acp", "--no-auth-loopback", "--admin", `127.0.0.1:${port}`, "--record", folder];
  const agent = ["--", "node", join(options.sdk, "dist/examples/agent.js")];
  const { child, found } = await begin(options.relay, [...args, ...agent], /recordings at (\S+)[^]*listening on (\S+)\n|listening on (\S+)[^]*recordings at (\S+)\n/);
  serving = { child, url: found[2] ?? found[3] };
  return found[1] ?? found[4];
}

check("many rows: go to the end, to the middle, and to a distant row", conversation("many.acpr", 4000).path, async (page) => {
  await counted(page, "32005 events");
  await page.keyboard.press("G");
  await page.locator(".row.selected", { hasText: "mode-update" }).waitFor();
  await page.locator("#filter").fill('"question 2000"');
  await page.waitForFunction(() => /^1 of/.test(document.getElementById("count").textContent));
  await click(row(page, "question 2000"), page.locator(".row.selected", { hasText: "question 2000" }));
  await page.keyboard.press("p");
  await page.locator(".row.selected", { hasText: "end_turn" }).waitFor();
  await row(page, "question 2000").waitFor();
});

check("an answer that arrives after the filter was removed changes nothing", conversation("late.acpr", 40).path, async (page) => {
  await counted(page, "325 events");
  // The first answer about the filtered list is held back.
  let release;
  const held = new Promise((done) => (release = done));
  await page.route(/rows\?q=/, async (route) => {
    const answer = await route.fetch();
    await held;
    await route.fulfill({ response: answer });
  }, { times: 1 });
  const asked = page.waitForRequest(/rows\?q=/);
  await page.locator("#filter").fill('"question 20"');
  const late = await asked;
  await page.locator("#filter").fill("");
  await page.waitForFunction(() => view.q === "");
  // A later answer would correct the number of rows.
  await page.evaluate(`globalThis.totals = []; rows.grow = (total) => { totals.push(total); List.prototype.grow.call(rows, total); }`);
  release();
  await (await late.response()).finished();
  // The page has handled it once it has handled a later answer.
  await page.evaluate(() => fetch("api/recordings").then((answer) => answer.text()));
  const totals = await page.evaluate("totals");
  expect(!totals.includes(1), `the one row of the filter is not the list: ${totals}`);
  // The list is empty until the first answer without the filter.
  await page.waitForFunction(() => rows.total > 1);
  await page.locator("#list").focus();
  await page.keyboard.press("G");
  await page.locator(".row.selected", { hasText: "mode-update" }).waitFor();
});

// 640 x 400 is a window of 1280 x 800 at 200 %.
for (const [width, height, scheme] of [[1280, 800, "light"], [1280, 800, "dark"], [640, 400, "dark"], [400, 800, "dark"], [400, 800, "light"]]) {
  check(`layout, contrast and names at ${width} pixels, ${scheme}`, plain, async (page) => {
    const verify = async (what) => {
      const wide = await page.evaluate(() => [...document.querySelectorAll("#top *, #hints, dialog, .turn, .row, .group, #detail")].filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80)));
      const over = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      expect(!over && wide.length === 0, `${what} fits: ${wide.join("\n")}`);
      const cut = await page.evaluate(() => [...document.querySelectorAll("[role=tab], .tool, .place, .row time")].filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML.slice(0, 80)));
      expect(cut.length === 0, `${what} is not cut off: ${cut.join("\n")}`);
      const faults = [...await page.evaluate(lowContrast), ...await page.evaluate(unnamed)];
      expect(faults.length === 0, `${what} has contrast and names:\n${faults.join("\n")}`);
    };
    await whole(page);
    await page.locator(".row .badge").first().waitFor();
    await verify("the sequence");
    await page.keyboard.press("w");
    await verify("the time of the day");
    await page.keyboard.press("G");
    await click(row(page, "mode-update"), page.locator(".after .differs").first());
    await verify("an event");
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
    await page.locator(".turn .stop").first().waitFor();
    await verify("the turns");
    await page.keyboard.press("t");
    await page.locator(".group .place").first().waitFor();
    await verify("the findings");
    await page.keyboard.press("/");
    await page.keyboard.type("lint:");
    await page.locator("#hints li").first().waitFor();
    await verify("the suggestions");
    await page.keyboard.press("Enter");
    await page.locator("#fault").waitFor();
    await verify("a fault");
    await page.keyboard.press("Escape");
    await page.keyboard.press("l");
    await page.locator(".row .fall").first().waitFor();
    await page.locator("#figures summary").click();
    await page.locator("#figures td").first().waitFor();
    await verify("the compact list and its figures");
    for (const key of ["?", "x"]) {
      await page.locator("#ask").focus();
      await page.keyboard.press(key);
      await page.locator("dialog[open] .tool").first().waitFor();
      await verify(`the dialog of ${key}`);
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "hidden" });
    }
  }, { width, height, scheme });
}

check("controls are large enough for touch", plain, async (page) => {
  await click(row(page, "question 1"), page.locator("#detail .json"));
  const small = (selector, least) => page.evaluate(([selector, least]) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()).map((one) => [one, one.getBoundingClientRect()]).filter(([, { width, height }]) => Math.min(width, height) < least).map(([one]) => one.outerHTML.slice(0, 80)), [selector, least]);
  const found = [...await small("#top button, #top input, .walk, .close", 36), ...await small("#detail .tool, .row", 30)];
  expect(found.length === 0, `too small: ${found.join("\n")}`);
  expect(await page.locator("#split").isHidden(), "an event has the full width");
}, { width: 400 });

check("the keys replace the mouse", plain, async (page) => {
  await whole(page);
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className);
  await page.locator("#tab-sequence").focus();
  await page.keyboard.press("ArrowRight");
  expect((await focused()) === "tab-turns", "arrows switch views");
  await page.locator(".turn .prompt").first().waitFor();
  await page.keyboard.press("t");
  await page.keyboard.press("t");
  await page.keyboard.press("t");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  expect((await focused()).includes("words-of"), `j selects the next part: ${await focused()}`);
  await page.keyboard.press("Enter");
  await page.locator("#detail .j-string", { hasText: "agent_message_chunk" }).waitFor();
  await page.keyboard.press("Escape");
  // A time range.
  await page.locator("#bars").focus();
  for (let times = 0; times < 5; times++) await page.keyboard.press("PageDown");
  for (let times = 0; times < 3; times++) await page.keyboard.press("Shift+PageDown");
  await page.waitForFunction(() => / of 29 events/.test(document.getElementById("count").textContent));
  expect(/selected/.test(await page.locator("#bars").getAttribute("aria-valuetext")), "the selection is announced");
  await page.keyboard.press("Escape");
  await counted(page, "29 events");
  // A filter from suggestions only.
  await page.keyboard.press("/");
  await page.keyboard.type("ki");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.type("res");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  expect((await page.locator("#filter").inputValue()) === "kind:result ", `the filter from suggestions: ${await page.locator("#filter").inputValue()}`);
  await counted(page, "3 of 29 events");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  await page.keyboard.press("j");
  await page.locator(".row.selected").waitFor();
  const selected = await page.evaluate(() => document.getElementById(document.getElementById("list").getAttribute("aria-activedescendant"))?.ariaLabel);
  expect(/agent result, session\/prompt, end_turn, after 70 ms/.test(selected), `a row has a label for screen readers: ${selected}`);
  // Commands for the terminal.
  await page.keyboard.press("x");
  await page.locator("dialog code", { hasText: `acp-relay replay agent ${plain}` }).waitFor();
  await page.locator("dialog code", { hasText: `acp-relay inspect show ${plain} kind:result` }).waitFor();
});

// The page in one file, without a server, which opens a given recording.
const standalone = join(root, "standalone.html");
const packed = new URL("../vectors/recordings/v1-packed.000.acpr.zst", import.meta.url).pathname;
await new Promise((done) => spawn(options.relay, ["inspect", "open", "--page", standalone]).once("exit", done));
reading({ check, row, expect, until, click, whole, plain, standalone: pathToFileURL(standalone) });
check("the page without a server shows a file", pathToFileURL(standalone), async (page) => {
  await page.locator("#welcome").waitFor();
  await page.locator("#pick").setInputFiles(plain);
  await row(page, "question 1").waitFor();
  await counted(page, "29 events");
  expect((await row(page, "×2").locator(".summary").textContent()) === "Hello and more", "chunks are folded");
  await page.locator("#filter").fill("method:session/prompt question");
  await counted(page, "3 of 29 events");
  await page.locator("#filter").fill("lint:not-initialized");
  await page.locator("#fault", { hasText: "this page has no findings" }).waitFor();
  await page.locator("#filter").fill("");
  await click(row(page, "mode-update"), page.locator(".after .differs", { hasText: "currentModeId" }));
  await page.keyboard.press("t");
  await page.locator(".turn .words", { hasText: "Hello and more" }).first().waitFor();
  await page.locator("#pick").setInputFiles(cut.path);
  await page.locator("#state .bad", { hasText: "its next file is missing" }).waitFor();
});

check("the page without a server shows a translated turn as the client received it", pathToFileURL(standalone), async (page) => {
  await page.locator("#pick").setInputFiles(old);
  await checkTranslated(page);
});

check("the page without a server shows an outage", pathToFileURL(standalone), async (page) => {
  await page.locator("#pick").setInputFiles(lossy.path);
  await checkOutage(page);
});

check("the page without a server stays responsive while it reads and searches", pathToFileURL(standalone), async (page) => {
  await page.locator("#welcome").waitFor();
  // The number of lines it processes between two events.
  await page.evaluate(() => {
    const { port1, port2 } = new MessageChannel();
    const count = (window.busy = { most: 0, now: 0 });
    port1.onmessage = () => Object.assign(count, { most: Math.max(count.most, count.now), now: 0 });
    for (const name of ["addLine", "accepts"]) {
      const does = Dropped.prototype[name];
      Dropped.prototype[name] = function (...given) {
        if (count.now++ === 0) port2.postMessage(0);
        return does.apply(this, given);
      };
    }
  });
  await page.locator("#pick").setInputFiles(join(root, "many.acpr"));
  await counted(page, "32005 events");
  await page.locator("#filter").fill("question");
  await page.waitForFunction(() => /^4\D?000 of 32\D?005 events$/.test(document.getElementById("count").textContent));
  const { most } = await page.evaluate(() => window.busy);
  expect(most > 0 && most < 12000, `${most} lines without a pause`);
});

check("the page without a server reports what it does not show, and names the commands that help", pathToFileURL(standalone), async (page) => {
  await page.locator("#welcome code", { hasText: "acp-relay inspect open FILE" }).waitFor();
  expect((await page.locator("[role=tab]:visible, #filter:visible").count()) === 0, "no view before a file is opened");
  const capture = { name: "my capture.jsonl", mimeType: "", buffer: Buffer.from('{"dir":"c2a","ts":1,"msg":{}}\n'.repeat(9)) };
  const convert = "acp-relay inspect import 'my capture.jsonl' 'my capture'.acpr";
  for (const [file, command] of [[capture, convert], [{ ...capture, buffer: Buffer.from("no line") }, convert], [packed, "acp-relay inspect open v1-packed.000.acpr.zst"]]) {
    await page.locator("#pick").setInputFiles(plain);
    await row(page, "question 1").waitFor();
    await page.locator("#pick").setInputFiles(file);
    await page.locator("#welcome code", { hasText: command }).waitFor();
    await until(async () => (await page.locator("#about").textContent()) === "", "the previous recording is cleared");
  }
  await page.locator("#pick").setInputFiles([packed.replace("-packed", "").replace(".zst", ""), plain]);
  await row(page, "question 1").waitFor();
  expect((await page.locator("#welcome").count()) === 0, "a recording is shown again");
  expect((await page.locator("#recordings option").count()) === 2, "both are listed");
  await page.locator("#recordings").selectOption({ index: 0 });
  await page.waitForFunction(() => document.title.startsWith("v1 "));
  await counted(page, "16 events");
  await page.locator("#tab-findings").click();
  await page.locator("#empty", { hasText: "This page has no findings." }).waitFor();
  await page.locator("#empty code", { hasText: "acp-relay inspect open v1.000.acpr" }).waitFor();
});

check("files that are dropped onto a served page are unpacked and linted by its viewer", folder(), async (page) => {
  await page.locator("#overview tr.selected").waitFor();
  await page.locator("#pick").setInputFiles([packed, plain]);
  await page.waitForFunction(() => document.title.startsWith("plain "));
  await page.locator(".row .badge.error").first().waitFor();
  await page.locator("#filter").fill("lint:not-initialized");
  await counted(page, "3 of 29 events");
  await page.locator("#filter").fill("");
  await page.locator("#list").focus();
  await page.keyboard.press("o");
  await until(async () => (await page.locator("#overview tr[data-id]").count()) === 4, "they are listed with the others");
  await page.locator("#overview tr", { hasText: "v1-packed" }).click();
  await row(page, "Ready.").waitFor();
  await counted(page, "16 events");
  await whole(page);
  expect((await page.evaluate(() => view.state.damaged)) === 0, "every line is intact");
  // The commands name the file, and not where the viewer keeps it.
  await page.locator("#list").focus();
  await page.keyboard.press("x");
  await page.locator("dialog code", { hasText: "acp-relay replay agent v1-packed.000.acpr.zst" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "hidden" });
  await page.reload();
  await counted(page, "16 events");
  await page.locator("#pick").setInputFiles({ name: "my capture.jsonl", mimeType: "", buffer: Buffer.from("no line") });
  await page.locator("#gone", { hasText: "my capture.jsonl: this is no recording" }).waitFor();
  await page.locator("#pick").setInputFiles({ name: "broken.acpr.zst", mimeType: "", buffer: Buffer.concat([Buffer.from("28b52ffd", "hex"), Buffer.alloc(99, 7)]) });
  await page.locator("#gone", { hasText: "broken: it is torn or damaged" }).waitFor();
  // A dropped file, and what the page says while it is dragged.
  await page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["no line"], "x.txt"));
    dispatchEvent(new DragEvent("dragenter", { dataTransfer }));
  });
  await page.locator("#drop", { hasText: "sent to the acp-relay of this page only" }).waitFor();
  await page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["no line"], "x.txt"));
    dispatchEvent(new DragEvent("drop", { dataTransfer }));
  });
  await page.locator("#gone", { hasText: "x.txt: this is no recording" }).waitFor();
  expect(readdirSync(join(root, "two")).length === 2, "nothing is written beside the recordings");
}, { fails: /415/ });

// The page's filter with the test cases of the program's filter.
const vectors = JSON.parse(readFileSync(new URL("../vectors/inspect/filter.json", import.meta.url)));
check("a filter has the same results on the page and in the program", plain, async (page) => {
  const wrong = await page.evaluate((vectors) => {
    const wrong = [];
    const known = (n) => ({ duration: vectors.facts[n]?.took ?? null, lint: vectors.facts[n]?.lint ?? [] });
    for (const { filter: text, n } of vectors.matches) {
      const filter = new Filter(text);
      const found = vectors.events.filter((line) => filter.matches(line, JSON.stringify(line), known(line.n))).map((line) => line.n);
      if (JSON.stringify(found) !== JSON.stringify(n)) wrong.push(`${text}: ${found} instead of ${n}`);
    }
    for (const { filter: text, at, why } of vectors.faults) {
      try {
        new Filter(text);
        wrong.push(`${text} is accepted`);
      } catch (fault) {
        if (fault.from !== at[0] || fault.to !== at[1] || !fault.message.includes(why)) wrong.push(`${text}: ${fault.from}..${fault.to} ${fault.message}`);
      }
    }
    return wrong;
  }, vectors);
  expect(vectors.matches.length > 50 && wrong.length === 0, wrong.join("\n"));
});
check("the page without a server shows hostile text as text", pathToFileURL(standalone), async (page) => {
  await page.locator("#pick").setInputFiles(join(root, "hostile.acpr"));
  await whole(page);
  await row(page, "prompt").waitFor();
  expect((await page.locator(".remark.damaged").count()) === 2, "two damaged lines");
  expect((await page.locator("img, iframe, a, svg").count()) === 0, "no text became an element");
});

if (options.big) {
  const recording = newRecording("big.acpr");
  const file = openSync(recording.path, "a");
  const words = "x".repeat(600);
  let written = 0;
  for (let id = 0; written < Number(options.big) * 2 ** 20; id++) {
    const m = chunk(`${id} ${words}`);
    if (id % 4 === 0) Object.assign(m.params.update, { sessionUpdate: "tool_call_update", title: `tool ${id}` });
    written += writeSync(file, recording.line({ k: "msg", h: "agent", d: "<", is: "notification", me: "session/update", s: "s1", t: id / 1e4, m }));
  }
  closeSync(file);
  check(`a recording of ${options.big} MiB opens`, recording.path, async (page) => {
    await row(page, "tool_call_update").waitFor();
    const first = await page.evaluate(() => performance.now());
    console.log(`viewer: measured: first rows of ${options.big} MiB after ${Math.round(first)} ms`);
    await page.waitForFunction(() => !/reading/.test(document.getElementById("state").textContent), null, { timeout: 2 * PATIENCE });
    const whole = await page.evaluate(() => performance.now());
    console.log(`viewer: measured: fully read after ${Math.round(whole)} ms, ${await page.locator("#count").textContent()}`);
  });
  check(`the page without a server shows a file of ${options.big} MiB`, pathToFileURL(standalone), async (page) => {
    await page.locator("#welcome").waitFor();
    // Measured on the page: the driver needs time to pass a file and to poll.
    await page.evaluate(() => {
      document.getElementById("pick").addEventListener("change", () => (window.begun = performance.now()), true);
      new MutationObserver((_, observer) => {
        if (!document.querySelector("#list .row")) return;
        observer.disconnect();
        requestAnimationFrame(() => requestAnimationFrame((now) => (window.painted = now)));
      }).observe(document.body, { childList: true, subtree: true });
    });
    await page.locator("#pick").setInputFiles(recording.path);
    await row(page, "tool_call_update").waitFor();
    await page.waitForFunction(() => window.painted);
    const first = await page.evaluate(() => window.painted - window.begun);
    console.log(`viewer: measured: first rows of a dropped file of ${options.big} MiB after ${Math.round(first)} ms`);
  });
}

const next = async () => {
  for (let one; (one = checks.shift()); ) await run(one);
};
await Promise.all([next(), next()]);
await browser.close();
for (const child of children) child.kill();
rmSync(root, { recursive: true, force: true });
console.log(`viewer: ${failures} failed`);
process.exit(failures ? 1 : 0);

// Checks of the overview, of the search over all recordings and of the comparison, for viewer.mjs.
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { HOSTILE, chunk, conversation, hostile, newRecording, root, turn } from "./viewer_book.mjs";
import { lowContrast, unnamed } from "./viewer_eyes.mjs";

const BEGAN = 1795190340;

/** A header of a conversation that began some seconds later. */
const members = (client, agent, later) => ({
  client: { name: client, dialect: "canonical" }, agent: { name: agent, dialect: "canonical" }, began: BEGAN + later,
});

/** The exchange with which peers say their names. */
function hello(recording, client, agent) {
  const asked = recording.frame("client", ">", "request", "initialize", { id: 0, params: { protocolVersion: 1, clientInfo: { name: client, version: "0.214" } } });
  recording.frame("agent", "<", "result", "initialize", { id: 0, result: { protocolVersion: 1, agentInfo: { name: agent, title: agent, version: "1.9.0" } } }, { re: asked });
}

/** A folder of recordings as people have them, and of some that are broken. */
export function library(name) {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const peers = [["Zed", "goose"], ["JetBrains", "Claude Code"], ["neovim", "gemini"], ["Zed", "codex"]];
  for (let at = 0; at < 14; at++) {
    const [client, agent] = peers[at % peers.length];
    const recording = newRecording(`${name}/talk-${String(at).padStart(2, "0")}.acpr`, members("stdio:", "process", at * 4000));
    hello(recording, client, agent);
    for (let id = 1; id <= (at * 5) % 12; id++) turn(recording, id, id === 3 ? `permission number ${at}` : "Hello");
    if (at % 4 === 1) {
      const asked = recording.frame("client", ">", "request", "session/prompt", { id: 90, params: { sessionId: "s1", prompt: [] } });
      recording.frame("agent", "<", "error", "session/prompt", { id: 90, error: { code: -32000, message: "out of credit" } }, { re: asked });
    }
    recording.add({ k: "end", why: "over", b3: "" });
  }
  writeFileSync(join(folder, "garbage.acpr"), "no recording at all\n".repeat(9));
  writeFileSync(join(folder, "empty.acpr"), "");
  const torn = conversation(`${name}/torn.acpr`, 2, "Hello", members("Zed", "goose", 60000));
  appendFileSync(torn.path, `{"n":99,"t":1}\n{"n":`);
  writeFileSync(join(folder, "notes.txt"), "not a recording");
  return folder;
}

/** Two conversations of which one has a changed text, a turn more, and an answer less. */
function twins(name, turns = 6) {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const make = (file, later, differs) => {
    const recording = newRecording(`${name}/${file}.acpr`, members("Zed", file, later));
    hello(recording, "Zed", "goose");
    const forwarded = (n) => recording.add({ k: "passed", h: "client", from: n, to: n, count: 1 });
    for (let id = 1; id <= turns; id++) {
      if (differs && id === 4) forwarded(turn(recording, 400, "only on the right"));
      forwarded(turn(recording, id, differs && id % 3 === 2 ? "The quick brown fox jumps" : "The quick red fox jumps", differs && id === 5 ? "refusal" : "end_turn"));
    }
    if (!differs) forwarded(recording.frame("agent", "<", "notification", "session/update", chunk("only on the left")));
    recording.add({ k: "end", why: "over", b3: "" });
    return recording.path;
  };
  make("before", 0, false);
  make("after", 60, true);
  return folder;
}

/** Adds the checks. */
export function overviews({ check, row, expect, until, options }) {
  const rows = (page) => page.locator("#overview tbody tr[data-id]");
  const line = (page, words) => page.locator("#overview tbody tr[data-id]", { hasText: words }).first();
  const names = (page) => page.locator("#overview tbody .c-name").allTextContents();
  /** Waits until all rows have what takes reading. */
  const read = (page) => page.waitForFunction(() => overview.order.length && overview.all.every((row) => row.turns !== undefined || row.fault));

  const talks = library("talks");
  check("the overview lists a folder, sorts by each column and shows faults as rows", talks, async (page) => {
    await read(page);
    expect((await rows(page).count()) === 17, `17 rows: ${await rows(page).count()}`);
    expect((await page.locator("#overview table th[aria-sort=descending]").textContent()) === "time", "the newest is first");
    expect((await names(page)).filter((name) => name.startsWith("talk")).join().startsWith("talk-13,talk-12"), `in order: ${await names(page)}`);
    const cells = await line(page, "talk-13").locator("td, th").allTextContents();
    expect(/Zed 0\.214/.test(cells[3]) === false && /JetBrains 0\.214/.test(cells[3]) && /^Claude Code 1\.9\.0/.test(cells[4]), `peers by their own names: ${cells}`);
    expect(cells[5] === "5" || cells[5] === "6", `turns: ${cells[5]}`);
    await line(page, "garbage").locator(".fault", { hasText: "this is no recording" }).waitFor();
    await line(page, "empty").locator(".fault", { hasText: "it is empty" }).waitFor();
    await line(page, "torn").locator(".fault", { hasText: "1 damaged line" }).waitFor();
    for (const [column, member] of [["turns", "turns"], ["errors", "errors"], ["findings", "findings"], ["length", "length"], ["size", "bytes"], ["time", "time"]]) {
      for (const way of ["descending", "ascending"]) {
        await page.locator("#overview thead").getByRole("button", { name: column }).click();
        await page.locator(`#overview th[aria-sort=${way}]`, { hasText: column }).waitFor();
        const values = await page.evaluate((member) => overview.order.map((id) => overview.rows.get(id)[member]).filter((value) => value !== undefined), member);
        const sorted = [...values].sort((a, b) => (way === "descending" ? b - a : a - b));
        expect(values.join() === sorted.join() && values.length > 10, `${column} ${way}: ${values}`);
      }
    }
    for (const column of ["recording", "client", "agent"]) {
      await page.locator("#overview thead").getByRole("button", { name: column }).click();
      await page.locator("#overview th[aria-sort=ascending]", { hasText: column }).waitFor();
    }
    expect((await page.locator("#overview th[aria-sort=ascending]").count()) === 1, "one column sorts");
  });

  check("the overview is used with the keyboard, and a key goes back to it", talks, async (page) => {
    await read(page);
    await page.locator("#overview tr.selected", { hasText: "torn" }).or(page.locator("#overview tr.selected")).first().waitFor();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    const name = await page.locator("#overview tr.selected .c-name").textContent();
    expect((await page.evaluate(() => document.activeElement.classList.contains("selected"))), "the row has the focus");
    await page.keyboard.press("Enter");
    await page.waitForFunction((name) => document.title.startsWith(`${name} `), name);
    await page.keyboard.press("o");
    await page.locator("#overview tr.selected", { hasText: name }).waitFor();
    await page.goBack();
    await page.waitForFunction((name) => document.title.startsWith(`${name} `), name);
    await page.goBack();
    await page.locator("#overview tr.selected", { hasText: name }).waitFor();
    await page.keyboard.press("End");
    await until(async () => (await page.evaluate(() => overview.order.indexOf(overview.selected))) === 16, "the last row");
    await page.keyboard.press("?");
    await page.locator("#dialog dt", { hasText: "o" }).first().waitFor();
    await page.keyboard.press("Escape");
  });

  check("a search over all counts the matches of each recording, and opens one with its filter", talks, async (page) => {
    await read(page);
    await page.keyboard.press("/");
    await page.keyboard.type('kind:error "out of credit"');
    await page.locator("#overview .status", { hasText: "4 of 17 recordings match" }).waitFor();
    await until(async () => (await rows(page).count()) === 4, "4 rows");
    expect((await page.locator("#overview .times").first().textContent()) === "1 ×", "the matches are counted");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /^1 of \d+ events$/.test(document.getElementById("count").textContent));
    expect((await page.locator("#filter").inputValue()) === 'kind:error "out of credit"', "the filter is set");
    await page.keyboard.press("o");
    await until(async () => (await rows(page).count()) === 4, "the search is still there");
    await page.locator("#overview input[type=search]").fill("metod:x");
    await page.locator("#overview .status", { hasText: "no such field" }).waitFor();
    await page.locator("#overview.stale").waitFor();
    expect((await rows(page).count()) === 4, "the list stays");
    await page.keyboard.press("Enter");
    expect((await page.evaluate(() => document.activeElement.type)) === "search", "a faulty filter keeps the focus");
    await page.locator("#overview input[type=search]").fill("dur>60ms");
    await page.locator("#overview .status", { hasText: "recordings match" }).waitFor();
    await page.keyboard.press("Escape");
    await until(async () => (await rows(page).count()) === 17, "all rows again");
  });

  check("a search over all can be stopped", talks, async (page) => {
    await read(page);
    // The answer does not end by itself.
    await page.evaluate(() => {
      const { fetch } = window;
      window.fetch = (address, how) => {
        if (!String(address).startsWith("api/search")) return fetch(address, how);
        const body = new ReadableStream({ start: (to) => {
          to.enqueue(new TextEncoder().encode('{"id":1,"count":3,"partial":true}\n{"searched":4}\n'));
          how.signal.addEventListener("abort", () => to.error(how.signal.reason));
        } });
        return Promise.resolve(new Response(body));
      };
    });
    await page.locator("#overview input[type=search]").fill("Hello");
    await page.locator("#overview .status", { hasText: "1 of 17 recordings matches, 4 searched" }).waitFor();
    await page.locator("#overview .times", { hasText: "3+ ×" }).waitFor();
    await page.getByRole("button", { name: "stop" }).click();
    await page.locator("#overview .status", { hasText: "stopped after 4" }).waitFor();
  });

  const two = twins("twins");
  check("two recordings are compared side by side, by turn, with signs", two, async (page) => {
    await read(page);
    await page.keyboard.press("Home");
    await page.keyboard.press("c");
    await page.getByRole("button", { name: "pick one more" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("c");
    await page.keyboard.press("Enter");
    await page.locator("#compare h2", { hasText: "after" }).waitFor();
    expect((await page.locator("#compare h2 bdi").allTextContents()).join() === "before,after", "the older one is on the left");
    expect((await page.locator("#count").textContent()).startsWith("3 changed, 1 only left, 5 only right"), `counts: ${await page.locator("#count").textContent()}`);
    const changed = page.locator(".pair.changed").first();
    expect((await changed.locator("del").textContent()) === "red" && (await changed.locator("ins").textContent()) === "brown", "the word that differs");
    expect((await changed.locator(".kind").first().textContent()) === "changed" && (await changed.locator(".sign").allTextContents()).join("") === "-+", "signs and words beside the colours");
    await page.locator(".pair.only-right", { hasText: "only on the right" }).waitFor();
    await page.locator(".pair.only-left", { hasText: "only on the left" }).waitFor();
    await page.locator(".both details summary", { hasText: "1 step is the same" }).first().waitFor();
    await page.locator(".both summary", { hasText: "The beginning to turn 1" }).click();
    await page.locator("details .pair.same .text", { hasText: "question 1" }).first().waitFor();
    await page.locator("#compare").focus();
    await page.keyboard.press("n");
    await page.keyboard.press("n");
    expect((await page.evaluate(() => [...document.querySelectorAll(".pair:not(.same)")].indexOf(document.activeElement))) === 1, "n goes to the next difference");
    const address = page.url();
    await page.keyboard.press("Enter");
    await page.locator("#detail .json").waitFor();
    await page.goBack();
    await page.locator(".pair.changed").first().waitFor();
    expect(page.url() === address, "the address of a comparison leads to it");
    await page.reload();
    await page.locator(".pair.changed").first().waitFor();
    await page.keyboard.press("Escape");
    await rows(page).first().waitFor();
  });

  check("a recording is compared with itself", two, async (page, address) => {
    await read(page);
    const same = await page.evaluate(() => fetch("api/compare?a=0&b=0").then((answer) => answer.json()));
    expect(same.changed + same.only_left + same.only_right === 0 && same.same > 10, "there is no difference");
    await page.goto(`${address}#view=compare&a=before&b=before`);
    await page.locator("#count", { hasText: "The same conversation" }).waitFor();
  });

  const growing = join(root, "growing");
  mkdirSync(growing);
  check("recordings appear in the overview and grow there", growing, async (page) => {
    await page.locator("#welcome", { hasText: "No recording yet" }).waitFor();
    await page.locator("#welcome code", { hasText: `acp-relay connect --record ${growing} -- AGENT` }).waitFor();
    const recording = conversation("growing/first.acpr", 1);
    await line(page, "first").locator(".c-turns", { hasText: "1" }).waitFor();
    expect((await page.locator("#welcome").count()) === 0, "there is a recording");
    const writer = spawn("flock", ["-x", recording.path, "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
    await once(writer.stdout, "data");
    for (let id = 2; id <= 5; id++) turn(recording, id, "Hello");
    await line(page, "first").locator(".now", { hasText: "live" }).waitFor();
    await line(page, "first").locator(".c-turns", { hasText: "5" }).waitFor();
    conversation("growing/second.acpr", 1, "Hello", members("Zed", "goose", 60));
    await line(page, "second").waitFor();
    writer.stdin.end();
    await line(page, "first").locator(".now").waitFor({ state: "detached" });
    await page.locator("#overview").getByText("second").click();
    await row(page, "question 1").waitFor();
    conversation("growing/third.acpr", 1, "Hello", members("Zed", "goose", 120));
    await page.locator("#newer", { hasText: "1 new" }).click();
    await page.waitForFunction(() => document.title.startsWith("third "));
  });

  const evil = join(root, "evil");
  mkdirSync(evil);
  const word = "<img src=x onerror=alert(5)>\u202e";
  hostile(`evil/${word}.acpr`, members(HOSTILE, HOSTILE, 0));
  const second = newRecording("evil/b.acpr", members(HOSTILE, HOSTILE, 9));
  second.frame("client", ">", "request", "initialize", { id: 0, params: { clientInfo: { name: HOSTILE, version: HOSTILE } } });
  second.frame("agent", "<", "result", "initialize", { id: 0, result: { agentInfo: { title: 7, name: HOSTILE } } }, { re: 1 });
  second.frame("client", ">", "request", "session/prompt", { id: HOSTILE, params: { prompt: [{ type: "text", text: `${HOSTILE} changed` }] } });
  second.frame("agent", "<", "notification", "session/update", chunk(`changed ${HOSTILE}`));
  check("hostile text is shown as text in the overview and in a comparison", evil, async (page, address) => {
    await read(page);
    expect((await rows(page).count()) === 2, "two rows");
    await page.locator("#overview .unseen", { hasText: "U+202E" }).first().waitFor();
    await page.locator("#overview input[type=search]").fill("alert");
    await page.locator("#overview .status", { hasText: "2 of 2 recordings match" }).waitFor();
    await page.goto(`${address}#${new URLSearchParams({ view: "compare", a: word, b: "b" })}`);
    await page.locator(".pair.changed").first().waitFor();
    for (const one of await page.locator("#compare summary").all()) await one.click();
    expect((await page.locator("img, iframe, a, svg, #compare script, #overview script, #compare link").count()) === 0, "no text became an element");
    expect(!(await page.evaluate(() => document.body.innerText)).includes("\u202e"), "no text changes the direction");
  });

  check("a capture that is dropped is imported on the way", two, async (page) => {
    await read(page);
    const message = (dir, ts, msg) => JSON.stringify({ dir, ts, msg: { jsonrpc: "2.0", ...msg } });
    const buffer = Buffer.from([
      message("c2a", 0.1, { id: 0, method: "initialize", params: { protocolVersion: 1, clientInfo: { name: "toad", version: "1" } } }),
      message("c2a", 0.2, { id: 1, method: "session/prompt", params: { sessionId: "a", prompt: [{ type: "text", text: "what is this" }] } }),
      message("a2c", 0.5, { id: 1, result: { stopReason: "end_turn" } }), "",
    ].join("\n"));
    await page.locator("#pick").setInputFiles({ name: "my capture.jsonl", mimeType: "", buffer });
    await row(page, "what is this").waitFor();
    await page.waitForFunction(() => view.state?.damaged === 0 && view.state.turns === 1);
    await page.keyboard.press("o");
    await line(page, "my capture.jsonl").locator(".c-client", { hasText: "toad 1" }).waitFor();
    expect((await rows(page).count()) === 3, "it is listed with the others");
  });

  for (const [width, height, scheme] of [[1280, 800, "dark"], [1280, 800, "light"], [640, 400, "dark"], [400, 800, "dark"], [400, 800, "light"]]) {
    const verify = async (page, what) => {
      const wide = await page.evaluate(() => [...document.querySelectorAll("#top *, #overview *, #compare *, #foot *")].filter((one) => one.checkVisibility() && !one.closest(".unheard, .sub > *") && one.getBoundingClientRect().right > innerWidth + 1 && !one.closest("#foot")).map((one) => one.outerHTML.slice(0, 80)));
      expect(wide.length === 0, `${what} fits: ${wide.join("\n")}`);
      const faults = [...await page.evaluate(lowContrast), ...await page.evaluate(unnamed)];
      expect(faults.length === 0, `${what} has contrast and names:\n${faults.join("\n")}`);
    };
    check(`the overview at ${width} pixels, ${scheme}: layout, contrast and names`, talks, async (page) => {
      await read(page);
      await line(page, "talk").waitFor();
      await verify(page, "the overview");
      if (width < 500) {
        await line(page, "talk-13").locator(".sub", { hasText: /^6 turns · 1 error · 41 findings/ }).waitFor();
        await page.locator("#overview select").selectOption("-errors");
        await until(async () => (await page.evaluate(() => overview.rows.get(overview.order[0]).errors)) === 1, "the select sorts");
      }
    }, { width, height, scheme });
    check(`a comparison at ${width} pixels, ${scheme}: layout, contrast and names`, two, async (page, address) => {
      await page.goto(`${address}#view=compare&a=before&b=after`);
      await page.locator(".pair.changed").first().waitFor();
      await verify(page, "the comparison");
    }, { width, height, scheme });
    const none = join(root, `none-${width}-${scheme}`);
    mkdirSync(none);
    check(`an empty folder at ${width} pixels, ${scheme}: layout, contrast and names`, none, async (page) => {
      await page.locator("#welcome code").first().waitFor();
      await verify(page, "the empty state");
    }, { width, height, scheme });
  }

  check("a thousand recordings are listed, and the columns fill in", () => {
    mkdirSync(join(root, "thousand"));
    for (let at = 0; at < 1000; at++) {
      const recording = newRecording(`thousand/talk-${at}.acpr`, members("Zed", "goose", at * 60));
      turn(recording, 1, `Hello ${at}`);
      recording.add({ k: "end", why: "over", b3: "" });
    }
    return options.open(join(root, "thousand"));
  }, async (page) => {
    await rows(page).first().waitFor();
    const first = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    await page.locator("#count", { hasText: "1\u202f000 recordings" }).waitFor();
    expect((await rows(page).count()) < 100, "only visible rows have elements");
    await read(page);
    const whole = await page.evaluate(() => performance.now());
    console.log(`viewer: measured: 1000 recordings painted by ${Math.round(first)} ms, all columns by ${Math.round(whole)} ms after navigation`);
    await page.keyboard.press("End");
    await page.locator("#overview tr.selected", { hasText: "talk-0" }).waitFor();
  });

  check("two recordings of 5 MiB are compared", () => twins5(), async (page, address) => {
    await read(page);
    const { ms, answer } = await page.evaluate(async () => {
      const begun = performance.now();
      await showComparison(0, 1);
      const ms = await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame((now) => done(now - begun))));
      return { ms, answer: document.getElementById("count").textContent };
    });
    console.log(`viewer: measured: two recordings of 5 MiB compared and painted in ${Math.round(ms)} ms: ${answer}`);
    expect(/changed/.test(answer), answer);
  }, { long: true });

  function twins5() {
    // A turn has some 2 KiB.
    const folder = twins("twins5", 2600);
    return options.open(folder);
  }
}

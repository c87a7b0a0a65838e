// Usability checks for viewer.mjs: addresses, copying, widths, times, neighbours, and labels for
// screen readers.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { conversation, newRecording, root } from "./viewer_book.mjs";

/** Adds the checks; `plain` is a recording of three turns. */
export function usability({ check, row, expect, until, click, whole, plain }) {
  check("a changed address changes the view, with time range and folding", plain, async (page, address) => {
    await whole(page);
    await page.evaluate(() => (location.hash = "recording=plain&t=100000-190000&all=1"));
    await page.locator("#range").waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".row").length === 10);
    expect((await page.locator("#fold").getAttribute("aria-pressed")) === "false", "chunks are not folded");
    await page.evaluate(() => (location.hash = "recording=plain&n=12"));
    await page.locator("#detail .j-string", { hasText: "question 2" }).waitFor();
    await page.locator("#range").waitFor({ state: "hidden" });
    await page.evaluate(() => (location.hash = "recording=plain&view=turns&n=12"));
    await page.locator("#tab-turns[aria-selected=true]").waitFor();
    await page.locator(".part.prompt.selected", { hasText: "question 2" }).waitFor();
    await page.evaluate(() => (location.hash = "recording=plain&q=metod:x"));
    await page.locator("#fault", { hasText: "no such field" }).waitFor();
    await page.locator("#detail").waitFor({ state: "hidden" });
    expect((await page.locator("#gone").count()) === 0, "no other error");
  });

  check("copied text is what was recorded, and the result of copying is shown", plain, async (page, address) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(address).origin });
    const pasted = () => page.evaluate(() => navigator.clipboard.readText());
    const line = readFileSync(plain, "utf8").split("\n").find((line) => line.includes("question 2"));
    await whole(page);
    await click(row(page, "question 2"), page.locator("#detail .json"));
    const copied = page.locator("#detail .copy", { hasText: "copied" });
    for (const [name, content] of [
      ["copy line", line], ["copy command", `acp-relay inspect show --bodies ${plain} n=12`], ["copy link", await page.evaluate(() => location.href)],
      ["copy", /"m":(.*),"crc"/.exec(line)[1]],
    ]) {
      const button = page.locator("#detail").getByRole("button", { name, exact: true });
      // It is shown for a moment only.
      await click(button, copied);
      expect((await pasted()) === content, `${name} copies ${await pasted()}`);
      // The button can be used again.
      await button.waitFor();
    }
    // Without a clipboard the selection is copied.
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
    await click(page.getByRole("button", { name: "copy line" }), copied);
    await page.evaluate(() => delete navigator.clipboard);
    expect((await pasted()) === line, "the same text without a clipboard");
    await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error("no"))));
    await click(page.getByRole("button", { name: "copy link" }), page.locator("#detail .copy", { hasText: "not allowed" }));
  });

  check("the width of the event panel, the theme and the time format are kept", plain, async (page) => {
    await whole(page);
    await click(row(page, "question 1"), page.locator("#detail .json"));
    const width = () => page.evaluate(() => Math.round(document.getElementById("detail").getBoundingClientRect().width));
    await until(async () => (await width()) === 589, "46 %");
    const bar = await page.locator("#split").boundingBox();
    await page.mouse.move(bar.x + 4, bar.y + 200);
    await page.mouse.down();
    await page.mouse.move(640, bar.y + 200, { steps: 3 });
    await page.mouse.up();
    await until(async () => (await width()) === 640, "the width follows the pointer");
    await page.locator("#split").focus();
    await page.keyboard.press("ArrowRight");
    await until(async () => (await width()) === 602, "keys change the width");
    expect((await page.locator("#split").getAttribute("aria-valuenow")) === "47", "the width is announced");
    await page.keyboard.press("d");
    await page.keyboard.press("w");
    await page.reload();
    await page.locator("#detail .json").waitFor();
    await until(async () => (await width()) === 602, "the width is kept");
    expect((await page.evaluate(() => document.documentElement.dataset.theme)) === "light", "the theme is kept");
    expect(/^16:59:00/.test(await row(page, "question 1").locator("time").textContent()), "the time format is kept");
  }, { zone: "Europe/Berlin" });

  check("times are local, with the offset from UTC", plain, async (page) => {
    await page.locator("#about .began", { hasText: "2026-11-20 07:59:00 −08:00" }).waitFor();
    expect((await page.locator("#about .began").getAttribute("title")).startsWith("2026-11-20T15:59:00"), "the title has UTC");
    const time = row(page, "question 1").locator("time");
    await whole(page);
    expect((await time.textContent()) === "00:00.040", "since the beginning");
    await page.locator("#hours").click();
    await until(async () => (await time.textContent()) === "07:59:00.040", "of the day");
    await click(row(page, "question 1"), page.locator("#detail time", { hasText: "2026-11-20 07:59:00.040 −08:00" }));
  }, { zone: "America/Los_Angeles" });

  check("only the changed lines are marked, and buttons lead to the neighbours", plain, async (page) => {
    await whole(page);
    await click(row(page, "mode-update"), page.locator(".after .differs").first());
    expect((await page.locator(".before .differs").allTextContents()).join() === '"modeId": "ask"', "one line before");
    expect((await page.locator(".after .differs").allTextContents()).join() === '"currentModeId": "ask"', "one line after");
    await page.locator("#detail").getByRole("button", { name: "‹" }).click();
    await page.locator(".row.selected", { hasText: "current_mode_update" }).locator(".lane.right").waitFor();
    await page.locator("#detail").getByRole("button", { name: "›" }).click();
    await page.locator(".row.selected", { hasText: "mode-update" }).waitFor();
  });

  check("screen readers get positions, headings and shapes", plain, async (page) => {
    await whole(page);
    const places = await page.locator(".row").evaluateAll((all) => all.map((one) => `${one.ariaPosInSet} of ${one.ariaSetSize}`));
    expect(places[0] === "1 of 20" && places[19] === "20 of 20", `rows have positions: ${places}`);
    expect((await page.locator("h1").textContent()) === "plain", "the recording is the heading");
    // Colour is not the only mark.
    const shape = (name) => page.evaluate((name) => {
      const made = document.createElement("i");
      made.className = `badge ${name}`;
      document.body.append(made);
      const { clipPath, borderRadius } = getComputedStyle(made);
      made.remove();
      return clipPath + borderRadius;
    }, name);
    expect(new Set([await shape("hint"), await shape("warning"), await shape("error")]).size === 3, "each severity has its shape");
    await page.keyboard.press("t");
    await page.locator(".turn .prompt").first().focus();
    expect((await page.locator(".turn h2").first().textContent()) === "Turn 1", "a turn is a heading");
    await page.keyboard.press(" ");
    await page.locator("#detail h2", { hasText: "session/prompt" }).waitFor();
    await page.locator(".part.prompt.selected").waitFor();
  });

  const long = newRecording("long.acpr");
  long.frame("client", ">", "request", "session/prompt", { id: 1, params: { sessionId: "s1", prompt: [{ type: "text", text: "much" }] } });
  for (let id = 0; id < 1500; id++) long.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: { sessionUpdate: "tool_call_update", toolCallId: `c${id}`, status: id === 3 ? "failed" : "completed" } } });
  long.frame("agent", "<", "result", "session/prompt", { id: 1, result: { stopReason: "max_tokens" } }, { re: 1 });
  check("a turn of many events shows its end, and links to the omitted events", long.path, async (page) => {
    await whole(page);
    await row(page, "c3").locator(".summary").waitFor();
    expect((await page.locator(".row.bad").count()) === 1, "the failed call is marked");
    await page.keyboard.press("t");
    await page.locator(".turn .stop", { hasText: "max_tokens" }).waitFor();
    await click(page.locator(".turn .more", { hasText: "502 more events" }), page.locator(".row.selected", { hasText: "c998" }));
  });

  check("the keys switch recordings, and go to the end of the turns", folder(), async (page) => {
    await page.locator("#overview tr.selected", { hasText: "b-2" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.title.startsWith("b-2 "));
    await page.keyboard.press("[");
    await page.waitForFunction(() => document.title.startsWith("a-1 "));
    await row(page, "question 1").waitFor();
    await page.keyboard.press("[");
    await whole(page);
    await page.keyboard.press("t");
    await page.locator(".turn .stop").first().waitFor();
    await page.keyboard.press("G");
    await page.waitForFunction(() => {
      const end = [...document.querySelectorAll(".turn")].at(-1).querySelector(".stop");
      return end && end.getBoundingClientRect().bottom < innerHeight;
    });
    expect(await page.locator(".part.stderr", { hasText: "gap" }).textContent() === "gap12 events are missing here: slow", "a gap is shown once");
    await page.keyboard.press("]");
    await page.waitForFunction(() => document.title.startsWith("b-2 "));
  });
}

/** Two recordings in a folder. */
export function folder() {
  mkdirSync(join(root, "two"), { recursive: true });
  const first = conversation("two/a-1.acpr", 30);
  first.frame("client", ">", "request", "session/prompt", { id: 99, params: { sessionId: "s1", prompt: [] } });
  first.add({ k: "gap", events: 12, why: "slow" });
  first.frame("agent", "<", "result", "session/prompt", { id: 99, result: { stopReason: "end_turn" } });
  conversation("two/b-2.acpr", 1);
  return join(root, "two");
}

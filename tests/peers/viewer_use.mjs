// The use of the page, for viewer.mjs: addresses, copying, widths, times, neighbours,
// and what screen readers get.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { conversation, paper, root } from "./viewer_book.mjs";

/** Adds the checks; `plain` is a recording of three turns. */
export function used({ check, row, demand, plain }) {
  check("a changed address is followed, with range and folding", plain, async (page, address) => {
    await row(page, "question 1").waitFor();
    await page.evaluate(() => (location.hash = "recording=plain&t=100000-190000&all=1"));
    await page.locator("#range").waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".row").length === 10);
    demand((await page.locator("#fold").getAttribute("aria-pressed")) === "false", "chunks stand apart");
    await page.evaluate(() => (location.hash = "recording=plain&n=12"));
    await page.locator("#detail .j-string", { hasText: "question 2" }).waitFor();
    await page.locator("#range").waitFor({ state: "hidden" });
    await page.evaluate(() => (location.hash = "recording=plain&view=turns&n=12"));
    await page.locator("#tab-turns[aria-selected=true]").waitFor();
    await page.locator(".part.prompt.selected", { hasText: "question 2" }).waitFor();
    await page.evaluate(() => (location.hash = "recording=plain&q=metod:x"));
    await page.locator("#fault", { hasText: "no such field" }).waitFor();
    await page.locator("#detail").waitFor({ state: "hidden" });
    demand((await page.locator("#gone").count()) === 0, "nothing else is wrong");
  });

  check("copied text is what was recorded, and the result of copying is shown", plain, async (page, address) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(address).origin });
    const pasted = () => page.evaluate(() => navigator.clipboard.readText());
    const line = readFileSync(plain, "utf8").split("\n").find((line) => line.includes("question 2"));
    await row(page, "question 2").click();
    for (const [name, content] of [
      ["copy line", line], ["copy command", `acp-relay inspect show --bodies ${plain} n=12`], ["copy link", page.url()],
      ["copy", /"m":(.*),"crc"/.exec(line)[1]],
    ]) {
      const button = page.locator("#detail").getByRole("button", { name, exact: true });
      await button.click();
      await page.locator("#detail .copy", { hasText: "copied" }).waitFor();
      demand((await pasted()) === content, `${name} gives ${await pasted()}`);
      // It can be used again.
      await button.waitFor();
    }
    // Without a clipboard what is selected is copied.
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
    await page.getByRole("button", { name: "copy line" }).click();
    await page.locator("#detail .copy", { hasText: "copied" }).waitFor();
    await page.evaluate(() => delete navigator.clipboard);
    demand((await pasted()) === line, "the same without a clipboard");
    await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error("no"))));
    await page.getByRole("button", { name: "copy link" }).click();
    await page.locator("#detail .copy", { hasText: "not allowed" }).waitFor();
  });

  check("the width of an event and the colours are kept", plain, async (page) => {
    await row(page, "question 1").click();
    const width = () => page.evaluate(() => Math.round(document.getElementById("detail").getBoundingClientRect().width));
    await page.locator("#detail .json").waitFor();
    demand((await width()) === 589, `46 %: ${await width()}`);
    const bar = await page.locator("#split").boundingBox();
    await page.mouse.move(bar.x + 4, bar.y + 200);
    await page.mouse.down();
    await page.mouse.move(640, bar.y + 200, { steps: 3 });
    await page.mouse.up();
    demand((await width()) === 640, `it follows the pointer: ${await width()}`);
    await page.locator("#split").focus();
    await page.keyboard.press("ArrowRight");
    demand((await width()) === 602, `keys move it: ${await width()}`);
    demand((await page.locator("#split").getAttribute("aria-valuenow")) === "47", "the width is announced");
    await page.keyboard.press("d");
    await page.keyboard.press("w");
    await page.reload();
    await page.locator("#detail .json").waitFor();
    demand((await width()) === 602, `it stays: ${await width()}`);
    demand((await page.evaluate(() => document.documentElement.dataset.theme)) === "light", "it stays light");
    demand(/^16:59:00/.test(await row(page, "question 1").locator("time").textContent()), "it stays the time of the day");
  }, { zone: "Europe/Berlin" });

  check("times are local, with the offset from UTC", plain, async (page) => {
    await page.locator("#about .began", { hasText: "2026-11-20 07:59:00 −08:00" }).waitFor();
    demand((await page.locator("#about .began").getAttribute("title")).startsWith("2026-11-20T15:59:00"), "UTC is there, too");
    const time = row(page, "question 1").locator("time");
    demand((await time.textContent()) === "00:00.040", "since the beginning");
    await page.locator("#hours").click();
    demand((await time.textContent()) === "07:59:00.040", `of the day: ${await time.textContent()}`);
    await row(page, "question 1").click();
    await page.locator("#detail time", { hasText: "2026-11-20 07:59:00.040 −08:00" }).waitFor();
  }, { zone: "America/Los_Angeles" });

  check("what was changed is one line of many, and the neighbours are a click away", plain, async (page) => {
    await row(page, "mode-update").click();
    await page.locator(".after .differs").first().waitFor();
    demand((await page.locator(".before .differs").allTextContents()).join() === '"modeId": "ask"', "one line of the one");
    demand((await page.locator(".after .differs").allTextContents()).join() === '"currentModeId": "ask"', "one line of the other");
    await page.locator("#detail").getByRole("button", { name: "‹" }).click();
    await page.locator(".row.selected", { hasText: "current_mode_update" }).locator(".lane.right").waitFor();
    await page.locator("#detail").getByRole("button", { name: "›" }).click();
    await page.locator(".row.selected", { hasText: "mode-update" }).waitFor();
  });

  check("screen readers get positions, headings and shapes", plain, async (page) => {
    await row(page, "question 1").waitFor();
    const places = await page.locator(".row").evaluateAll((all) => all.map((one) => `${one.ariaPosInSet} of ${one.ariaSetSize}`));
    demand(places[0] === "1 of 20" && places[19] === "20 of 20", `rows have positions: ${places}`);
    demand((await page.locator("h1").textContent()) === "plain", "the recording is the heading");
    // Colour is never all.
    const shape = (name) => page.evaluate((name) => {
      const made = document.createElement("i");
      made.className = `badge ${name}`;
      document.body.append(made);
      const { clipPath, borderRadius } = getComputedStyle(made);
      made.remove();
      return clipPath + borderRadius;
    }, name);
    demand(new Set([await shape("hint"), await shape("warning"), await shape("error")]).size === 3, "each severity has its shape");
    await page.keyboard.press("t");
    await page.locator(".turn .prompt").first().focus();
    demand((await page.locator(".turn h2").first().textContent()) === "Turn 1", "a turn is a heading");
    await page.keyboard.press(" ");
    await page.locator("#detail h2", { hasText: "session/prompt" }).waitFor();
    await page.locator(".part.prompt.selected").waitFor();
  });

  const long = paper("long.acpr");
  long.frame("client", ">", "request", "session/prompt", { id: 1, params: { sessionId: "s1", prompt: [{ type: "text", text: "much" }] } });
  for (let id = 0; id < 1500; id++) long.frame("agent", "<", "notification", "session/update", { method: "session/update", params: { sessionId: "s1", update: { sessionUpdate: "tool_call_update", toolCallId: `c${id}`, status: id === 3 ? "failed" : "completed" } } });
  long.frame("agent", "<", "result", "session/prompt", { id: 1, result: { stopReason: "max_tokens" } }, { re: 1 });
  check("a turn of many events shows its end, and leads to the events it leaves out", long.path, async (page) => {
    await row(page, "c3").locator(".summary").waitFor();
    demand((await page.locator(".row.bad").count()) === 1, "what failed stands out");
    await page.keyboard.press("t");
    await page.locator(".turn .stop", { hasText: "max_tokens" }).waitFor();
    await page.locator(".turn .more", { hasText: "502 more events" }).click();
    await page.locator(".row.selected", { hasText: "c998" }).waitFor();
  });

  check("the keys lead from recording to recording, and to the end of the turns", folder(), async (page) => {
    await page.locator("#about", { hasText: "stdio:" }).waitFor();
    demand((await page.locator("#recordings option:checked").textContent()).startsWith("b-"), "the newest is shown");
    await page.keyboard.press("[");
    await page.waitForFunction(() => document.querySelector("#recordings").selectedOptions[0].textContent.startsWith("a-"));
    await row(page, "question 1").waitFor();
    await page.keyboard.press("[");
    await page.keyboard.press("t");
    await page.locator(".turn .stop").first().waitFor();
    await page.keyboard.press("G");
    await page.waitForFunction(() => {
      const end = [...document.querySelectorAll(".turn")].at(-1).querySelector(".stop");
      return end && end.getBoundingClientRect().bottom < innerHeight;
    });
    demand(await page.locator(".part.stderr", { hasText: "gap" }).textContent() === "gap12 events are missing here: slow", "a gap is named once");
    await page.keyboard.press("]");
    await page.waitForFunction(() => document.querySelector("#recordings").selectedOptions[0].textContent.startsWith("b-"));
  });
}

/** Two recordings in a folder. */
function folder() {
  mkdirSync(join(root, "two"));
  const first = conversation("two/a-1.acpr", 30);
  first.frame("client", ">", "request", "session/prompt", { id: 99, params: { sessionId: "s1", prompt: [] } });
  first.add({ k: "gap", events: 12, why: "slow" });
  first.frame("agent", "<", "result", "session/prompt", { id: 99, result: { stopReason: "end_turn" } });
  conversation("two/b-2.acpr", 1);
  return join(root, "two");
}

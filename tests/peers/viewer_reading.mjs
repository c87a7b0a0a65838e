// Checks of the compact list, of turns as a text to read, of the filter while it is typed, and of what
// the schema says, for viewer.mjs.
import { chunk, newRecording } from "./viewer_book.mjs";

const ANSWER = `# Two causes

The parser reads \`n: 1\` as **two words**, see [the grammar](https://example.org/grammar?x=1).

1. \`next()\` skips white space
2. the value is empty:
   - so *nothing* is found
   - [x] a test shows it

| case | before | after |
|:-----|-------:|:-----:|
| \`n:1\` | 1 | 1 |
| \`n: 1\` | 0 | **1** |

> It is the same in 2 \\* 3 places.

\`\`\`rust
fn word(&self) -> &str { "<b>" }
\`\`\`
`;
const OLD = Array.from({ length: 30 }, (_, at) => `line ${at + 1}`).join("\n");

const update = (update) => ({ method: "session/update", params: { sessionId: "s1", update } });

/** A turn with Markdown, tools of several kinds, a permission, silence, and an error after it. */
export function project(name) {
  const recording = newRecording(name);
  let t = 0;
  const at = (ms) => ({ t: (t += ms * 1000) / 1e6 });
  const frame = (ms, h, d, is, me, m, more) => {
    const named = is === "request" || is === "notification" ? { method: me } : {};
    return recording.frame(h, d, is, me, { jsonrpc: "2.0", ...named, ...m }, { ...at(ms), ...more });
  };
  const says = (ms, body) => frame(ms, "agent", "<", "notification", "session/update", update(body));
  const hello = frame(2, "client", ">", "request", "initialize", { id: 0, params: { protocolVersion: 1, clientCapabilities: { fs: { readTextFile: true } }, _meta: { "zed.dev": 1 } } });
  frame(38, "agent", "<", "result", "initialize", { id: 0, result: { protocolVersion: 1, agentCapabilities: { loadSession: true, glimmer: 2 } } }, { re: hello });
  const asked = frame(5, "client", ">", "request", "session/prompt", { id: 1, params: { sessionId: "s1", prompt: [{ type: "text", text: "Why does `n: 1` find nothing?\n\n- read the parser\n- **fix** it" }] } });
  says(820, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "The *value* must follow at once." } });
  const tool = (id, title, kind, more, ms) => {
    says(30, { sessionUpdate: "tool_call", toolCallId: id, title, kind, status: "pending", ...more });
    says(10, { sessionUpdate: "tool_call_update", toolCallId: id, status: "in_progress" });
    return (content, status = "completed") => says(ms, { sessionUpdate: "tool_call_update", toolCallId: id, status, content });
  };
  const text = (text) => [{ type: "content", content: { type: "text", text } }];
  tool("c1", "Read parse.rs", "read", { locations: [{ path: "/project/src/parse.rs", line: 40 }] }, 45)(text(`\`\`\`rust\n${OLD}\n\`\`\``));
  const edit = tool("c2", "Edit parse.rs", "edit", {}, 12);
  const request = frame(4, "agent", "<", "request", "session/request_permission", { id: 7, params: { sessionId: "s1", toolCall: { toolCallId: "c2", title: "Edit parse.rs" }, options: [{ optionId: "allow", name: "Allow", kind: "allow_once" }] } });
  frame(3700, "client", ">", "result", "session/request_permission", { id: 7, result: { outcome: { outcome: "selected", optionId: "allow" } } }, { re: request });
  edit([{ type: "diff", path: "/project/src/parse.rs", oldText: OLD, newText: OLD.replace("line 9\n", "line nine\nand more\n").replace("line 28\n", "") }]);
  const run = tool("c3", "cargo test", "execute", { rawInput: { command: "cargo test --locked -- filter" } }, 2400);
  run(text(Array.from({ length: 60 }, (_, at) => `test case_${at} ... \u001b[32mok\u001b[0m`).join("\n")));
  for (const part of ANSWER.split(/(?<= )/)) frame(9, "agent", "<", "notification", "session/update", chunk(part));
  frame(15, "agent", "<", "result", "session/prompt", { id: 1, result: { stopReason: "end_turn" } }, { re: asked });
  const again = frame(1600, "client", ">", "request", "session/prompt", { id: 2, params: { sessionId: "s1", prompt: [{ type: "text", text: "And now?" }] } });
  const failing = tool("c4", "curl example.org", "fetch", {}, 310);
  failing(text("no route to host"), "failed");
  frame(20, "agent", "<", "error", "session/prompt", { id: 2, error: { code: -32000, message: "out of quota" } }, { re: again });
  const lone = frame(90, "client", ">", "request", "session/load", { id: 3, params: { sessionId: "s0", cwd: "/work", mcpServers: [] } });
  recording.add({ k: "passed", h: "agent", from: hello, to: hello, count: 1, ...at(1) });
  recording.add({ k: "passed", h: "agent", from: asked, to: asked, count: 1, ...at(0) });
  recording.add({ k: "passed", h: "agent", from: again, to: lone, count: 1, ...at(0) });
  recording.add({ k: "passed", h: "client", from: 2, to: lone, count: 1, ...at(0) });
  recording.add({ k: "end", why: "over", b3: "", ...at(1) });
  return recording.path;
}

/** A conversation of ACP v2. */
function versionTwo(name) {
  const recording = newRecording(name);
  const info = { name: "x", version: "1" };
  const asked = recording.frame("client", ">", "request", "initialize", { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: 2, info } });
  recording.frame("agent", "<", "result", "initialize", { jsonrpc: "2.0", id: 0, result: { protocolVersion: 2, info } }, { re: asked });
  recording.frame("agent", "<", "notification", "session/update", { jsonrpc: "2.0", ...update({ sessionUpdate: "tool_call_update", toolCallId: "c1", name: "read", glow: 1 }) });
  return recording.path;
}

/** Markdown that is to do harm, or to take long. */
function malicious(name) {
  const recording = newRecording(name);
  const ask = (id, text) => recording.frame("client", ">", "request", "session/prompt", { id, params: { sessionId: "s1", prompt: [{ type: "text", text }] } });
  const says = (text) => recording.frame("agent", "<", "notification", "session/update", chunk(text));
  const targets = ["javascript:alert(1)", "JaVaScRiPt:alert(2)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//evil.example", "blob:x", "java&#115;cript:alert(3)", "https:evil\" onclick=\"alert(4)"];
  const asked = ask(1, targets.map((target) => `[a](${target}) ![b](${target}) <${target}>`).join("\n"));
  says(`\`\`\`\`html"><script>alert(5)</script>\n\`\`\`js\n<img src=x onerror=alert(6)>\n\`\`\`\n\`\`\`\`\n\n| <b>a</b> | [b](javascript:alert(7)) |\n|--|--|\n| <i>c</i> | \`<u>\` |`);
  const done = { sessionUpdate: "tool_call_update", toolCallId: "c", title: "<b>t</b>", kind: "<i>k</i>", status: "completed", rawInput: { command: ["<u>", 7, null] }, locations: [null, { path: "<s>", line: "x" }] };
  recording.frame("agent", "<", "notification", "session/update", update({ ...done, content: [{ type: "content", content: { type: "text", text: "<b>\n".repeat(50000) } }, { type: "diff", path: "<p>", oldText: "<a>\n".repeat(3000), newText: "<c>\n".repeat(3000) }] }));
  for (const text of ["*".repeat(400000), "**a ".repeat(9000), "[".repeat(50000), "`".repeat(3001), `${">".repeat(5000)} ${"- ".repeat(5000)}x`, `|${"a|".repeat(9000)}\n|${"-|".repeat(9000)}`, "```\n".repeat(20000), "# ".repeat(20000), "\\".repeat(60000)]) {
    recording.frame("agent", "<", "notification", "session/update", update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "next" } }));
    says(text);
  }
  // Longer than what is read of an event.
  says("*".repeat(1 << 20));
  recording.frame("agent", "<", "result", "session/prompt", { id: 1, result: { stopReason: "end_turn" } }, { re: asked });
  return recording.path;
}

/** Adds the checks; `plain` is a recording of three turns, `standalone` the address of the page without a server. */
export function reading({ check, row, expect, until, click, whole, counted, plain, standalone }) {
  const path = project("project.acpr");
  const list = async (page) => {
    await whole(page);
    await page.keyboard.press("l");
    await page.locator("#list.dense .row .fall").first().waitFor();
  };
  const titles = (page) => page.locator("#list .row").evaluateAll((all) => all.map((one) => one.querySelector(".what").textContent));

  check("the compact list has columns, bars of time and marks of silence", path, async (page) => {
    await list(page);
    const height = (await row(page, "cargo test").boundingBox()).height;
    expect(height >= 20 && height <= 24, `a row is ${height} pixels high`);
    const cells = await row(page, "request_permissionEdit").evaluate((one) => [...one.children].slice(0, 6).map((cell) => cell.textContent.trim().replace(/^\d+ B$/, "bytes")));
    expect(cells.join("|") === "00:00.994|← agent|session/request_permissionEdit parse.rs|answered|bytes|3.70 s", `the cells are ${cells.join("|")}`);
    const hush = await page.locator(".hush").allTextContents();
    expect(hush.join() === "3.70 s of silence,2.40 s of silence,1.60 s of silence", `silences: ${hush}`);
    const bar = async (words) => await row(page, words).locator(".fall i").boundingBox();
    const [turn, permission, answer] = [await bar("Why does"), await bar("request_permissionEdit"), await bar("end_turn")];
    expect(turn.x < permission.x && turn.x + turn.width > permission.x + permission.width, "the permission lies within the turn");
    expect(Math.abs(permission.width / turn.width - 3.7 / 7.746) < 0.02, `bars are as long as what they stand for: ${permission.width} of ${turn.width}`);
    expect(Math.abs(answer.x - turn.x) < 2 && Math.abs(answer.width - turn.width) < 2, "an answer has the time since its request");
    await row(page, "session/load").locator(".state", { hasText: "no answer" }).waitFor();
    await row(page, "And now?").locator(".state", { hasText: "failed" }).waitFor();
    await row(page, "out of quota").locator(".state", { hasText: "error" }).waitFor();
    expect(/^after 3.70 s of silence, .*session\/request_permission, allow.*ok$/.test(await row(page, "allow").getAttribute("aria-label")), "a row has a label");
    // It works as the arrows do.
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator("#detail h2", { hasText: "initialize" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("l");
    await page.locator("#list:not(.dense) .row .lane").first().waitFor();
    await page.locator("#lanes").waitFor();
    await page.locator("#dense").click();
    await page.locator("#dense[aria-pressed=true]").waitFor();
  });

  check("the compact list is sorted by its columns, and an address restores it", path, async (page) => {
    await list(page);
    const head = (name) => page.locator(`#columns .${name}`);
    await head("duration").click();
    await until(async () => (await titles(page))[0] === "session/promptWhy does `n: 1` find nothing?LFLF- read the parserLF- **fix** it", "the longest stands first");
    expect((await head("duration").getAttribute("aria-label")) === "duration, descending", "the order has a name");
    expect(/list=1&sort=-duration/.test(page.url()), `the address: ${page.url()}`);
    await page.reload();
    await page.locator("#list.dense .row").first().waitFor();
    await until(async () => (await titles(page))[1]?.startsWith("session/promptend_turn"), "the order is kept");
    await head("status").click();
    await until(async () => (await titles(page))[0] === "session/prompt-32000 out of quota", "errors stand first");
    await head("method").focus();
    await page.keyboard.press("Enter");
    await until(async () => (await titles(page))[0]?.startsWith("agent_message_chunk"), "in the order of the alphabet");
    // The place of an event in that order.
    await page.evaluate(() => (location.hash = location.hash.replace(/$/, "&n=3")));
    await page.locator(".row.selected", { hasText: "Why does" }).waitFor();
    await page.keyboard.press("Escape");
    await head("time").click();
    await until(async () => (await titles(page))[0]?.startsWith("initialize"), "in the order of time");
    expect(!/sort/.test(page.url()), "which needs no name");
  });

  check("figures have percentiles, first updates and the slowest tool calls with links", path, async (page) => {
    await list(page);
    await page.locator("#figures summary", { hasText: "slowest tool call 3.73 s" }).waitFor();
    expect((await page.locator("#figures summary").textContent()) === "Figuresturn 370 ms, at most 7.75 sfirst update 30 ms, at most 820 msslowest tool call 3.73 s", await page.locator("#figures summary").textContent());
    await page.locator("#figures summary").focus();
    await page.keyboard.press("Enter");
    const cells = await page.locator("#figures tr", { hasText: "session/prompt" }).locator("td").allTextContents();
    expect(cells.join() === "2,370 ms,7.75 s,7.75 s,7.75 s", `percentiles: ${cells}`);
    const links = await page.locator("#figures .reach").allTextContents();
    expect(links.join() === "Turn 1820 ms,Turn 230 ms,Edit parse.rs3.73 s,cargo test2.41 s,curl example.org320 ms,Read parse.rs55 ms", `links: ${links}`);
    await page.locator("#figures .reach", { hasText: "cargo test" }).click();
    await page.locator(".row.selected", { hasText: "cargo test" }).waitFor();
    await page.locator("#detail .j-string", { hasText: "cargo test --locked" }).waitFor();
    await page.keyboard.press("t");
    await page.locator(".turn header", { hasText: "first update after 820 ms" }).waitFor();
  });

  check("rows that come twice keep their elements", plain, async (page) => {
    await whole(page);
    const kept = await page.evaluate(async () => {
      const load = () => {
        rows.windows.delete(0);
        return rows.load(0);
      };
      const [first, second] = [load(), load()];
      await first;
      const made = rows.row(3).element;
      await second;
      return made && made === rows.row(3).element && made.isConnected;
    });
    expect(kept, "a click that has begun reaches its row");
  });

  check("plain words are looked for, also the names of fields, and the page says what could be meant", path, async (page) => {
    await whole(page);
    for (const [words, count] of [["read text file", 1], ["text prompt", 2], ["tool call", 13], ["session prompt", 2]]) {
      await page.locator("#filter").fill(words);
      await until(async () => (await page.locator("#count").textContent()).startsWith(`${count} of`), `${words}: ${await page.locator("#count").textContent()}`);
    }
    await page.locator("#filter").fill("from nowhere");
    await page.locator("#empty", { hasText: "from was looked for as a word: from: with a value is the field." }).waitFor();
  });

  check("a filter with a fault keeps the focus, shows the fault below it and greys the list", path, async (page) => {
    await whole(page);
    await page.keyboard.press("/");
    await page.keyboard.type("metod:x");
    await page.keyboard.press("Enter");
    await page.keyboard.type("dj");
    expect((await page.locator("#filter").inputValue()) === "metod:xdj", "what is typed goes into the field");
    await page.locator("#fault", { hasText: "no such field" }).waitFor();
    const [field, fault] = [await page.locator("#filter").boundingBox(), await page.locator("#fault").boundingBox()];
    expect(fault.y >= field.y + field.height && fault.y < field.y + field.height + 12, "the fault is under the field");
    expect((await page.locator("#filter").getAttribute("aria-invalid")) === "true", "the field is marked");
    expect(Number(await page.locator("#list").evaluate((list) => getComputedStyle(list).opacity)) < 0.5, "the list is grey");
    // Elsewhere, single keys do nothing.
    await page.locator("#list").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("t");
    expect((await page.locator(".row.selected").count()) === 0 && (await page.locator("#tab-sequence").getAttribute("aria-selected")) === "true", "no command fires");
    await page.keyboard.press("/");
    await page.keyboard.type("kind:");
    await page.locator("#hints li").first().waitFor();
    await page.keyboard.press("Enter");
    await page.locator("#fault", { hasText: "right after" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#fault").waitFor({ state: "hidden" });
    await page.waitForFunction(() => !document.body.classList.contains("invalid"));
    await page.keyboard.press("j");
    await page.locator(".row.selected").waitFor();
  });

  check("turns render Markdown, and links are opened by a click only", path, async (page) => {
    await whole(page);
    await page.keyboard.press("t");
    const said = page.locator(".turn .words-of .md").first();
    await said.locator("h3", { hasText: "Two causes" }).waitFor();
    expect((await said.locator("ol > li > ul > li").count()) === 2 && (await said.locator("li.task .dot.completed").count()) === 1, "lists are nested");
    expect((await said.locator("td").allTextContents()).join() === "n:1,1,1,n: 1,0,1", "a table");
    expect((await said.locator("td.right").count()) === 2 && (await said.locator("th.center").count()) === 1, "its columns are aligned");
    expect((await said.locator("blockquote").textContent()) === "It is the same in 2 * 3 places.", "a quote");
    expect((await said.locator(".code .language").textContent()) === "rust" && (await said.locator(".code code").textContent()) === 'fn word(&self) -> &str { "<b>" }', "a fence with its language");
    expect((await said.locator("strong").first().textContent()) === "two words" && (await said.locator("em").textContent()) === "nothing", "emphasis");
    const link = await said.locator("a").evaluate((a) => [a.href, a.rel, a.target, a.nextSibling.textContent]);
    expect(link.join() === "https://example.org/grammar?x=1,noopener noreferrer,_blank, (https://example.org/grammar?x=1)", `the link: ${link}`);
    expect((await page.locator(".prompt .md li").count()) === 2 && (await page.locator(".prompt strong").textContent()) === "fix", "prompts, too");
    const [card, prompt] = [await page.locator(".turn .flow").first().boundingBox(), await page.locator(".prompt").first().boundingBox()];
    expect(prompt.width > card.width - 40 && prompt.width > 900, `a prompt uses the width: ${prompt.width} of ${card.width}`);
  });

  check("the output of tools folds by kind, and changes of files are differences", path, async (page) => {
    await whole(page);
    await page.keyboard.press("t");
    const tool = (title) => page.locator(".turn .tool", { hasText: title }).first();
    const lines = async (title) => (await tool(title).locator("pre:not(.shell)").innerText()).split("\n");
    await tool("Read parse.rs").locator(".more", { hasText: "26 more lines" }).waitFor();
    expect((await lines("Read parse.rs")).join() === "line 1,line 2,line 3,line 4", "the beginning of what was read, without the fence");
    await tool("Read parse.rs").locator(".more").focus();
    await page.keyboard.press("Enter");
    await tool("Read parse.rs").locator(".more[aria-expanded=true]:focus", { hasText: "fold" }).waitFor();
    expect((await lines("Read parse.rs")).length === 30, "all of it");
    expect(await page.locator("#detail").isHidden(), "the event stays closed");
    expect((await tool("cargo test").locator(".more").textContent()) === "48 lines before" && (await lines("cargo test")).at(-1) === "test case_59 ... ok", "the end of what a command printed, without colours");
    expect((await tool("cargo test").locator(".shell").textContent()) === "cargo test --locked -- filter", "the command");
    const diff = tool("Edit parse.rs");
    expect((await diff.locator(".old").allTextContents()).join() === "− line 9,− line 28" && (await diff.locator(".new").allTextContents()).join() === "+ line nine,+ and more", "a difference has marks");
    expect((await diff.locator(".skipped").allTextContents()).join() === "5 unchanged lines,12 unchanged lines", `the rest is counted: ${await diff.locator(".skipped").allTextContents()}`);
    expect((await diff.locator(".path").textContent()) === "/project/src/parse.rs+2−2", "and so are the changes");
    const [old, fresh] = [await diff.locator(".old").first().evaluate((one) => getComputedStyle(one).backgroundColor), await diff.locator(".new").first().evaluate((one) => getComputedStyle(one).backgroundColor)];
    expect(old !== fresh, "in red and green");
    await tool("curl").locator(".status", { hasText: "failed" }).waitFor();
  });

  for (const [name, address] of [["a server", null], ["no server", standalone]]) {
    check(`Markdown that is to do harm stays text, with ${name}`, address ?? malicious("malicious.acpr"), async (page) => {
      if (address) await page.locator("#pick").setInputFiles(malicious("malicious2.acpr"));
      await whole(page);
      await page.locator("#tab-turns").click();
      await page.locator(".turn .stop").waitFor();
      expect((await page.locator("#turns :is(img, iframe, svg, script, b, u, s, i:not(.dot))").count()) === 0, "no text became an element");
      const links = await page.locator("#turns a").evaluateAll((all) => all.map((a) => a.href));
      expect(links.every((href) => /^https?:/.test(href)), `the links: ${links}`);
      await page.locator(".prompt", { hasText: "[a](javascript:alert(1)) ![b](javascript:alert(1)) <javascript:alert(1)>" }).waitFor();
      expect((await page.locator(".words-of .code code").first().textContent()) === "```js\n<img src=x onerror=alert(6)>\n```", "a fence in a fence");
      expect((await page.locator(".words-of").count()) >= 9, "all texts are there");
      await page.locator(".tool .more", { hasText: "more lines" }).first().waitFor();
      expect((await page.evaluate(() => document.querySelectorAll("#turns *").length)) < 60000, "of a bounded size");
    });
  }

  check("members show what the schema says of them, and extensions are marked", path, async (page) => {
    await whole(page);
    await click(row(page, "initialize"), page.locator("#detail .j-key[data-about]").first());
    const key = (name) => page.locator("#detail .j-key", { hasText: `"${name}"` }).first();
    await key("clientCapabilities").hover();
    await page.locator("#tip", { hasText: "Capabilities supported by the client" }).waitFor();
    expect((await page.locator("#detail .j-key.extension").allTextContents()).join() === '"_meta"', "what clients may add");
    await page.keyboard.press("p");
    await page.locator("#detail .j-key", { hasText: "agentCapabilities" }).waitFor();
    expect((await page.locator("#detail .j-key.extension").allTextContents()).join() === '"glimmer"', "what the schema does not have");
    // With the keys: Tab goes to the first, arrows to the next.
    await page.locator("#detail .j-key[tabindex='0']").focus();
    await page.locator("#tip", { hasText: "JSON-RPC" }).waitFor();
    for (let presses = 0; presses < 4; presses++) await page.keyboard.press("ArrowDown");
    await page.locator("#tip", { hasText: "Capabilities supported by the agent" }).waitFor();
    expect((await page.evaluate(() => document.activeElement.getAttribute("aria-describedby"))) === "tip", "screen readers get it, too");
    await page.keyboard.press("Escape");
    await page.locator("#tip").waitFor({ state: "hidden" });
    // Within a union, that of the variant.
    await click(row(page, "Edit parse.rs — pending"), key("toolCallId"));
    await key("toolCallId").hover();
    await page.locator("#tip", { hasText: /tool call/ }).waitFor();
  });

  check("messages of a side that speaks v2 are described by the schema of v2", versionTwo("two.acpr"), async (page) => {
    await whole(page);
    await click(row(page, "tool_call_update"), page.locator("#detail .j-key[data-about]").first());
    await page.locator("#detail .j-key", { hasText: '"toolCallId"' }).hover();
    await page.locator("#tip", { hasText: "Unique identifier for this tool call within the session." }).waitFor();
    expect((await page.locator("#detail .j-key.extension").allTextContents()).join() === '"glow"', "what v2 does not have");
  });

  check("the page without a server shows the compact list in the order of time, without figures", standalone, async (page) => {
    await page.locator("#pick").setInputFiles(path);
    await list(page);
    await page.locator("#figures summary", { hasText: "inspect stats" }).waitFor();
    expect((await page.locator(".hush").count()) === 3, "silences");
    await page.locator("#columns .duration").click();
    await page.locator("#refused", { hasText: "sorts no rows" }).waitFor();
    await click(row(page, "initialize"), page.locator("#detail .json"));
    expect((await page.locator("#detail [data-about]").count()) === 0, "without the schema");
  });
}

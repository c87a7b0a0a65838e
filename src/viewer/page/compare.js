// Two recordings side by side, turn by turn: what is the same is folded, what differs has signs and
// words beside its colours. The server compares.

/** What the signs of a change mean, for screen readers. */
const ELEMENTS_OF = { "-": "del", "+": "ins" };

const comparison = el("section", "");
Object.assign(comparison, { id: "compare", ariaLabel: "Comparison", hidden: true });
$("foot").before(comparison);

/** Compares two recordings of the overview. */
async function showComparison(left, right) {
  mode("compare");
  const names = [left, right].map((id) => overview.rows.get(id));
  const parts = { view: "compare", a: names[0].name, b: names[1].name };
  history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
  document.title = "Comparison · acp-relay";
  $("about").replaceChildren(el("h1", "name", "Comparison"));
  comparison.replaceChildren(el("p", "soft", "comparing…"));
  const asked = (comparison.asked = {});
  let answer;
  try {
    answer = await (await request(`api/compare?${new URLSearchParams({ a: left, b: right })}`)).json();
  } catch (error) {
    if (comparison.asked === asked) comparison.replaceChildren(el("p", "bad", error.message));
    throw error.status ? Object.assign(error, { isOwn: true }) : error;
  }
  if (comparison.asked !== asked || comparison.hidden) return;
  const { changed, only_left, only_right, same } = answer;
  const counts = [[changed, "changed"], [only_left, "only left"], [only_right, "only right"], [same, "the same"]];
  $("count").textContent = changed + only_left + only_right ? counts.map(([count, words]) => `${grouped(count)} ${words}`).join(", ") : `The same conversation, in ${many(same, "step")}`;
  const title = (sign, one, row) => el("h2", ELEMENTS_OF[sign], el("b", "sign", sign), line("", one.name, 100), el("span", "soft", [row.agent, one.began ? dayOf({ time: one.began }) : ""].filter(Boolean).join(" · ").replace(UNSEEN_ALL, "·")));
  const open = [left, right];
  const cell = (row, at) => stepCell(row, at, open[at]);
  const list = el("div", "diffs", ...turnsOf(answer.rows, cell));
  if (answer.omitted) list.append(el("p", "soft", `${many(answer.omitted, "more step")} are not shown here. This command shows them:`), commandLine(`acp-relay inspect diff ${fileOf(names[0].name)}.acpr ${fileOf(names[1].name)}.acpr`));
  comparison.replaceChildren(el("header", "", title("-", answer.left, names[0]), title("+", answer.right, names[1])), list);
  comparison.tabIndex = -1;
  comparison.focus();
}

/** The turns with their rows; neighbours that are the same are folded together. */
function turnsOf(rows, cell) {
  const blocks = [];
  for (let at = 0; at < rows.length; ) {
    const { turn } = rows[at];
    const own = [];
    while (rows[at]?.turn === turn) own.push(rows[at++]);
    const same = own.every((row) => row.same);
    const before = blocks[blocks.length - 1];
    if (same && before?.same) {
      before.to = turn;
      before.rows.push(...own);
    } else blocks.push({ from: turn, to: turn, rows: own, same });
  }
  return blocks.map(({ from, to, rows }) => {
    const name = from === to ? (to ? `Turn ${to}` : "Before the first turn") : `${from ? `Turn ${from}` : "The beginning"} to turn ${to}`;
    const prompt = to && from === to ? line("soft", text((rows[0].left ?? rows[0].right).text), 100) : null;
    const differs = rows.filter((row) => !row.same).length;
    const head = [el("h3", "", name), prompt, el("span", differs ? "much" : "soft", differs ? many(differs, "difference") : `the same, ${many(rows.length, "step")}`)];
    if (!differs) return foldedSteps(rows, cell, ...head);
    const made = el("section", "both", el("header", "", ...head));
    for (let at = 0; at < rows.length; ) {
      const from = at;
      while (at < rows.length && rows[at].same) at++;
      if (at > from) made.append(foldedSteps(rows.slice(from, at), cell));
      else made.append(pairOf(rows[at++], cell));
    }
    return made;
  });
}

/** Steps that are the same: a line, or the head of their turns, which unfolds. */
function foldedSteps(rows, cell, ...head) {
  const words = `${many(rows.length, "step")} ${rows.length === 1 ? "is" : "are"} the same`;
  const made = el("details", head.length ? "both" : "", el("summary", "", ...(head.length ? head : [words])));
  made.addEventListener("toggle", () => made.children.length === 1 && made.append(...rows.map((row) => pairOf(row, cell))), { once: true });
  return made;
}

const kindOf = (row) => (row.same ? "same" : row.left && row.right ? "changed" : row.left ? "only left" : "only right");

function pairOf(row, cell) {
  const kind = kindOf(row);
  const made = el("div", `pair ${kind.replace(" ", "-")}`, cell(row, 0), cell(row, 1));
  made.role = "group";
  made.ariaLabel = kind;
  if (!row.same) made.tabIndex = 0;
  return made;
}

/** A step of one side; `id` is its recording. */
function stepCell(row, at, id) {
  const step = at ? row.right : row.left;
  const sign = at ? "+" : "-";
  if (!step) return el("div", "step missing", el("span", "unheard", `not on the ${at ? "right" : "left"}`));
  const go = button("go", `#${step.n}`, () => openStep(id, step.n), "Open this event in its recording");
  const kind = kindOf(row);
  const title = el("div", "title", kind === "same" ? null : el("b", "sign", sign), line(`by-${step.from}`, `${step.kind === "result" || step.kind === "error" ? `${step.kind} of ` : ""}${step.title}`, 80), kind === "same" ? null : el("span", "kind", kind), go);
  const made = el("div", `step ${kind === "same" ? "" : ELEMENTS_OF[sign]}`, title);
  if (kind !== "changed") made.append(line("text", step.text, 200));
  for (const { at: place, parts } of list(row.changes)) {
    const words = parts.filter(([one]) => one === " " || one === sign);
    if (!words.length) continue;
    made.append(el("div", "pointer", ...shown(place, false)), el("div", "words", ...words.map(([one, word]) => el(one === " " ? "span" : ELEMENTS_OF[one], "", ...shown(word, true)))));
  }
  if (row.more) made.append(el("p", "soft", `${many(row.more, "more change")}: open the event`));
  return made;
}

function openStep(id, n) {
  history.pushState(null, "", location.href);
  visit(id, new URLSearchParams({ n })).catch(showError);
}

/** Goes to the next or the previous difference. */
function nextDifference(by) {
  const all = Array.from(comparison.querySelectorAll(".pair:not(.same)"));
  const at = all.indexOf(document.activeElement.closest(".pair"));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(at + by, all.length - 1))];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

/** Handles a key of the comparison. Returns whether it was for it. */
function comparisonKey({ key, target }) {
  const by = { j: 1, n: 1, ArrowDown: 1, k: -1, N: -1, ArrowUp: -1 }[key];
  if (by) nextDifference(by);
  else if (key === "Escape" || key === "o") backToList();
  else if (key === "Enter" && target.matches(".pair")) target.querySelector(".go").click();
  else return false;
  return true;
}

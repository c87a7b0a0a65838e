// Tool calls of a turn: their kind, output that is folded as its kind asks, and differences of files.

/** Lines that are shown while an output is folded; a negative number counts from the end. */
const KEPT = { read: 4, fetch: 4, think: 4, search: 8, execute: -12, diff: 30 };
const KEPT_OTHERWISE = 8;

/** Lines that a fold hides at least, and characters of an output that are shown at most. */
const LEAST_FOLDED = 3;
const LONGEST_OUTPUT = 100000;

/** Unchanged lines around a change, and the work of comparing (lines by lines) that is done at most. */
const AROUND = 3;
const MOST_COMPARED = 400000;

/** A tool call with its last state. */
function toolCall(part) {
  const status = part.status || "pending";
  const known = ["pending", "in_progress", "completed", "failed"].includes(status) ? status : "";
  const head = el("div", "call", el("i", `dot ${known}`), part.tool ? line("tool-kind", part.tool.replace("_", " "), 20) : null, line("title", part.title || part.call, 200));
  head.append(line("status", status.replace("_", " "), 30), el("span", "lasts", took(part.until - part.t)));
  const made = [head];
  if (part.command && !part.title?.includes(part.command)) made.push(el("pre", "shell", ...shown(part.command.slice(0, 2000), true)));
  const changed = new Set(part.diffs.map((diff) => diff.path));
  const places = part.places?.filter((place) => !changed.has(place.path) && !part.title?.includes(place.path)) ?? [];
  if (places.length) made.push(el("div", "places", ...places.slice(0, 5).map((place) => line("path", place.path + (place.line ? `:${place.line}` : ""), 200))));
  if (part.text) made.push(outputOf(part.text, part.tool));
  for (const diff of part.diffs.slice(0, 50)) made.push(diffOf(diff));
  for (const grant of part.grants ?? []) made.push(el("div", "grant", "permission requested → ", line("", grant.summary || "no answer", 60), el("span", "lasts", took(grant.duration))));
  return made;
}

/** An output without the fence around it and without colours. */
function outputOf(text, kind) {
  const fence = /^```[^\n`]{0,40}\n/.exec(text);
  const bare = fence && text.trimEnd().endsWith("\n```") ? text.trimEnd().slice(fence[0].length, -4) : text;
  const plain = bare.slice(0, LONGEST_OUTPUT).replace(/\u001b\[[\d;]{0,30}m/g, "").trimEnd();
  const rows = plain.split("\n");
  if (bare.length > LONGEST_OUTPUT) rows.push(`… ${grouped(bare.length - LONGEST_OUTPUT)} more characters in the event`);
  return folding(rows, KEPT[kind] ?? KEPT_OTHERWISE, (rows) => el("pre", "", ...shown(rows.join("\n"), true)));
}

/** Rows, most of them hidden at first behind a button that counts them. */
function folding(rows, kept, render) {
  const box = el("div", "folding");
  const hidden = rows.length - Math.abs(kept);
  const draw = (open) => {
    const part = open || hidden < LEAST_FOLDED ? rows : kept < 0 ? rows.slice(kept) : rows.slice(0, kept);
    box.replaceChildren(render(part));
    if (hidden < LEAST_FOLDED) return null;
    const toggle = button("more", open ? "fold" : `${grouped(hidden)} ${kept < 0 ? "lines before" : "more lines"}`, (event) => {
      // It is no click on the part that it stands in.
      event.stopPropagation();
      draw(!open).focus({ preventScroll: true });
    });
    toggle.ariaExpanded = String(open);
    box[kept < 0 ? "prepend" : "append"](toggle);
    return toggle;
  };
  draw(false);
  return box;
}

/** The difference of a file, as lines with marks. */
function diffOf({ path, old, now }) {
  const rows = compared(old, now);
  const count = (sign) => rows.filter((row) => row.sign === sign).length;
  const head = el("div", "path", line("", path, 300), el("span", "added", `+${grouped(count("+"))}`), el("span", "removed", `−${grouped(count("−"))}`));
  const render = (rows) => el("pre", "diff", ...rows.map(({ sign, text }) => el("div", { "+": "new", "−": "old", " ": "same" }[sign] ?? "skipped", sign === "⋯" ? "" : `${sign} `, ...shown(text.slice(0, 1000), true))));
  return el("div", "", head, folding(rows, KEPT.diff, render));
}

/** The lines of two texts, each removed (−), added (+), in both, or standing for some that are (⋯). */
function compared(old, now) {
  const split = (text) => (text ? text.slice(0, LONGEST_OUTPUT).replace(/\n$/, "").split("\n") : []);
  const [a, b] = [split(old), split(now)];
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const rows = a.slice(0, start).map((text) => ({ sign: " ", text }));
  rows.push(...changes(a.slice(start, a.length - end), b.slice(start, b.length - end)));
  rows.push(...a.slice(a.length - end).map((text) => ({ sign: " ", text })));
  const near = (at) => rows.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((row) => row.sign !== " ");
  const made = [];
  rows.forEach((row, at) => {
    const last = made[made.length - 1];
    if (near(at)) made.push(row);
    else if (last?.sign === "⋯") last.text = many(++last.count, "unchanged line");
    else made.push({ sign: "⋯", count: 1, text: "1 unchanged line" });
  });
  return made;
}

/** What of `a` is not in `b`, and the other way, in order, by the longest common sequence of lines. */
function changes(a, b) {
  const [removed, added] = [(text) => ({ sign: "−", text }), (text) => ({ sign: "+", text })];
  if (a.length * b.length > MOST_COMPARED) return [...a.map(removed), ...b.map(added)];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      common[at] = a[i] === b[j] ? common[at + width + 1] + 1 : Math.max(common[at + width], common[at + 1]);
    }
  }
  const made = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      made.push({ sign: " ", text: a[i++] });
      j++;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) made.push(removed(a[i++]));
    else made.push(added(b[j++]));
  }
  return made;
}

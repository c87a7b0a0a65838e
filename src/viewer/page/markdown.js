// Markdown as elements: the part of CommonMark and of GitHub's tables that agents write. HTML and
// images stay text, a link names its target and is opened by a click only.
//
// Texts may be hostile: every repetition of a pattern has an end, and nesting has a limit, so that the
// time grows with the length alone.

/** Maximum nesting of quotes and lists, and of emphasis; maximum rows and columns of a table. */
const NESTED = 6;
const TABLE_ROWS = 300;
const TABLE_COLUMNS = 30;

const FENCE = /^ {0,3}(`{3,}|~{3,}) {0,9}([^`\s]{0,40})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?: +(.*))?$/;
const RULE = /^ {0,3}(?:\*(?: {0,9}\*){2,99}|-(?: {0,9}-){2,99}|_(?: {0,9}_){2,99})\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,60})([-*+]|\d{1,9}[.)])(?: {1,4}|$)/;
const DELIMITERS = /^ {0,3}\|?(?: *:?-+:? *\|){0,30} *:?-+:? *\|? *$/;

/** Within a line; the first that fits counts. Contents are as long as these numbers at most. */
const INLINE_MARKUP = new RegExp([
  /\\(?<escaped>[!-/:-@[-`{-~])/,
  /(?<ticks>`{1,3})(?!`)(?<code>[^]{1,800}?)(?<!`)\k<ticks>(?!`)/,
  /(?<image>!?)\[(?<label>[^[\]]{1,300})\]\((?<target>[^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,200})?)(?: "[^"]{0,300}")?\)/,
  /(?<two>\*\*|__|~~)(?=\S)(?<strong>[^]{0,400}?[^\s\\])\k<two>(?![*_])/,
  /(?<one>\*|(?<!\w)_)(?=[^\s*_])(?<em>[^]{0,300}?[^\s\\*_])\k<one>(?![\w*])/,
].map((part) => part.source).join("|"), "gu");

/** A text as blocks: its first `most` characters. */
function markdown(text, most = 20000) {
  return el("div", "words md", ...blocks(text.slice(0, most).replaceAll("\r\n", "\n").split("\n"), 0));
}

function blocks(rows, depth) {
  const made = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    const fence = FENCE.exec(row);
    const heading = HEADING.exec(row);
    if (!row.trim()) at++;
    else if (fence) at = fenced(rows, at, fence, made);
    else if (heading) {
      at++;
      // The page has the first two levels.
      const words = (heading[2] ?? "").trimEnd().replace(/ #{1,9}$/, "");
      made.push(el(`h${Math.min(6, heading[1].length + 2)}`, "", ...spans(words, 0)));
    } else if (RULE.test(row)) {
      at++;
      made.push(el("hr", ""));
    } else if (QUOTE.test(row) && depth < NESTED) {
      const inner = [];
      while (at < rows.length && QUOTE.test(rows[at])) inner.push(rows[at++].replace(QUOTE, ""));
      made.push(el("blockquote", "", ...blocks(inner, depth + 1)));
    } else if (ITEM.test(row) && depth < NESTED) at = itemized(rows, at, depth, made);
    else if (row.includes("|") && DELIMITERS.test(rows[at + 1] ?? "")) at = tabulated(rows, at, made);
    else {
      const words = [row];
      while (++at < rows.length && rows[at].trim() && !begins(rows[at])) words.push(rows[at]);
      made.push(el("p", "", ...spans(words.join("\n"), 0)));
    }
  }
  return made;
}

/** Whether a line ends the paragraph before it. */
const begins = (row) => FENCE.test(row) || HEADING.test(row) || RULE.test(row) || QUOTE.test(row) || ITEM.test(row);

/** A code fence; one that is not closed goes to the end. Returns where it ends. */
function fenced(rows, at, [, marks, language], made) {
  let end = at + 1;
  const closes = (row) => row.startsWith(marks) && row.replaceAll(marks[0], "") === "";
  while (end < rows.length && !closes(rows[end].trim())) end++;
  const code = rows.slice(at + 1, end).join("\n");
  const box = el("div", "code", el("pre", "", el("code", "", ...shown(code, true))));
  if (language) box.prepend(line("language", language, 40));
  made.push(box);
  return end + 1;
}

/** A list; what is indented more belongs to its item. Returns where it ends. */
function itemized(rows, at, depth, made) {
  const [, indent, sign] = ITEM.exec(rows[at]);
  const ordered = sign.length > 1;
  const list = el(ordered ? "ol" : "ul", "");
  if (ordered) list.start = parseInt(sign, 10);
  while (at < rows.length) {
    const item = ITEM.exec(rows[at]);
    if (!item || item[1].length < indent.length || item[2].length > 1 !== ordered || RULE.test(rows[at])) break;
    const own = [rows[at++].slice(item[0].length)];
    for (; at < rows.length; at++) {
      const row = rows[at];
      const deep = row.length - row.trimStart().length > indent.length;
      // After an empty line, only what is indented.
      if (row.trim() ? !deep && (begins(row) || !own[own.length - 1].trim()) : !rows[at + 1]?.startsWith(`${indent} `)) break;
      own.push(row.slice(Math.min(item[0].length, row.length - row.trimStart().length)));
    }
    const task = /^\[([ xX])\] /.exec(own[0]);
    if (task) own[0] = own[0].slice(4);
    const parts = blocks(own, depth + 1);
    // A single paragraph needs no space around it.
    if (parts[0]?.tagName === "P") parts.splice(0, 1, ...parts[0].childNodes);
    list.append(el("li", task ? "task" : "", task && mark(task[1] === " " ? "pending" : "completed"), ...parts));
    while (at < rows.length && !rows[at].trim() && ITEM.test(rows[at + 1] ?? "")) at++;
  }
  made.push(list);
  return at;
}

/** A table. Returns where it ends. */
function tabulated(rows, at, made) {
  const sides = cells(rows[at + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : ""));
  const make = (row, tag) => el("tr", "", ...sides.map((side, place) => el(tag, side, ...spans(cells(row)[place] ?? "", 0))));
  const table = el("table", "", el("thead", "", make(rows[at], "th")));
  const body = el("tbody", "");
  for (at += 2; at < rows.length && rows[at].includes("|") && body.children.length < TABLE_ROWS; at++) body.append(make(rows[at], "td"));
  table.append(body);
  made.push(el("div", "table", table));
  return at;
}

/** The cells of a row; an escaped bar is a bar. */
const cells = (row) => row.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/, TABLE_COLUMNS).map((cell) => cell.trim().replaceAll("\\|", "|"));

/** Text with emphasis, code and links. */
function spans(text, depth) {
  const made = [];
  let from = 0;
  for (const { 0: whole, index, groups } of depth < NESTED ? text.matchAll(INLINE_MARKUP) : []) {
    made.push(...shown(text.slice(from, index), true));
    from = index + whole.length;
    if (groups.escaped) made.push(groups.escaped);
    else if (groups.code) made.push(el("code", "", ...shown(groups.code, true)));
    else if (groups.label) made.push(...linked(groups, whole, depth));
    else if (groups.two) made.push(el(groups.two === "~~" ? "del" : "strong", "", ...spans(groups.strong, depth + 1)));
    else made.push(el("em", "", ...spans(groups.em, depth + 1)));
  }
  made.push(...shown(text.slice(from), true));
  return made;
}

/** A link with its target; anything but a web address stays text. */
function linked({ image, label, target }, whole, depth) {
  const url = image || !URL.canParse(target) ? null : new URL(target);
  if (!["http:", "https:"].includes(url?.protocol)) return shown(whole, true);
  const made = el("a", "", ...spans(label, depth + 1));
  Object.assign(made, { href: url.href, target: "_blank", rel: "noopener noreferrer", referrerPolicy: "no-referrer" });
  // It is no click on the part that it stands in.
  made.addEventListener("click", (event) => event.stopPropagation());
  return label === target ? [made] : [made, el("span", "target", " (", line("", url.href, 120), ")")];
}

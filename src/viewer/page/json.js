// JSON text: printed over lines without being parsed, so that large numbers, duplicate members and
// escapes stay as they are.

/** Where the value that begins at `at` ends. */
function valueEnd(text, at) {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const c = text[i];
    if (c === '"') {
      i = stringEnd(text, i) - 1;
      if (depth === 0) return i + 1;
    } else if (c === "{" || c === "[") depth++;
    else if (c === "}" || c === "]") {
      if (depth === 0) return i;
      if (--depth === 0) return i + 1;
    } else if (depth === 0 && (c === "," || c <= " ")) return i;
  }
  return text.length;
}

/** Where the string that begins at `at` ends. */
function stringEnd(text, at) {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === '"') return i + 1;
  }
  return text.length;
}

/** The text of a member of the object that `text` is; null when there is none. */
function member(text, name) {
  let at = text.indexOf("{") + 1;
  while (at > 0 && at < text.length) {
    while (text[at] <= " " || text[at] === ",") at++;
    if (text[at] !== '"') return null;
    const end = stringEnd(text, at);
    const key = text.slice(at + 1, end - 1);
    at = end;
    while (text[at] <= " " || text[at] === ":") at++;
    const last = valueEnd(text, at);
    if (key === name) return text.slice(at, last);
    at = last;
  }
  return null;
}

/** Containers up to this length, without others in them, stand in one line. */
const INLINE = 64;

/**
 * JSON over lines: each with its depth, its pieces (class and text), the JSON Pointer of what stands
 * there, and whether that is a whole container. What leads to one of `paths` is opened. Text that is no
 * JSON ends early and is given as it is.
 */
function lines(text, paths = []) {
  const made = [];
  const open = [];
  let at = 0;
  let current = null;
  const path = () => open.map((one) => "/" + one.step).join("");
  const begin = () => (current ??= { depth: open.length, pieces: [], path: path() });
  const put = (name, piece, key) => begin().pieces.push([name, piece, key]);
  const close = () => {
    if (current) made.push(current);
    current = null;
  };
  const scalar = (end) => {
    const piece = text.slice(at, end);
    const name = piece[0] === '"' ? "string" : /^[-0-9]/.test(piece) ? "number" : "literal";
    put(name, piece);
    at = end;
  };
  while (at < text.length) {
    const c = text[at];
    const top = open[open.length - 1];
    if (c <= " ") {
      at++;
    } else if (c === "{" || c === "[") {
      const end = at + INLINE + 2 > text.length ? text.length : at + INLINE;
      const head = text.slice(at + 1, end);
      const stop = head.search(/[{}[\]"]/) < 0 ? -1 : shortEnd(text, at, INLINE);
      const empty = /^\s*[}\]]/.exec(head);
      const leads = `${path()}/`;
      if (empty || (stop > 0 && !paths.some((one) => one.startsWith(leads)))) {
        const last = empty ? at + 1 + empty[0].length : stop;
        const own = path();
        inline(text.slice(at, last), (name, piece) => put(name, piece, name === "key" ? `${own}/${stepOf(piece)}` : undefined));
        current.whole = true;
        at = last;
      } else {
        put("mark", c);
        close();
        open.push({ list: c === "[", step: c === "[" ? 0 : "" });
        at++;
      }
    } else if (c === "}" || c === "]") {
      if (!top) break;
      close();
      open.pop();
      put("mark", c);
      at++;
    } else if (c === ",") {
      if (!top) break;
      put("mark", ",");
      close();
      if (top.list) top.step++;
      else top.step = "";
      at++;
    } else if (c === '"' && top && !top.list && top.step === "") {
      const end = stringEnd(text, at);
      const key = text.slice(at, end);
      top.step = stepOf(key) || " ";
      put("key", key, path());
      at = end;
    } else if (c === ":") {
      put("mark", ": ");
      at++;
    } else {
      const end = valueEnd(text, at);
      if (end === at) break;
      scalar(end);
    }
  }
  if (at < text.length) put("odd", text.slice(at));
  close();
  return made;
}

/** The name of a member as a step of a JSON Pointer. */
const stepOf = (key) => key.slice(1, -1).replaceAll("~", "~0").replaceAll("/", "~1");

/** Where a short container without others in it ends; -1 when it is longer, or has some. */
function shortEnd(text, at, most) {
  for (let i = at + 1; i < text.length && i - at < most; i++) {
    if (text[i] === '"') i = stringEnd(text, i) - 1;
    else if (text[i] === "{" || text[i] === "[") return -1;
    else if (text[i] === "}" || text[i] === "]") return i - at < most ? i + 1 : -1;
  }
  return -1;
}

/** The pieces of a short container. */
function inline(text, put) {
  let at = 0;
  let name = text[0] === "{";
  while (at < text.length) {
    const c = text[at];
    if (c === '"') {
      const end = stringEnd(text, at);
      put(name ? "key" : "string", text.slice(at, end));
      at = end;
    } else if (c <= " ") {
      at++;
    } else if ("{}[],:".includes(c)) {
      name = text[0] === "{" && c !== ":";
      put("mark", c === "," || c === ":" ? c + " " : c);
      at++;
    } else {
      const end = Math.max(valueEnd(text, at), at + 1);
      put(/^[-0-9]/.test(c) ? "number" : "literal", text.slice(at, end));
      at = end;
    }
  }
}

/** Lines and characters of a string that are shown at first. */
const LINES = 1500;
const LONG = 1200;

/** JSON as an element; lines at or under one of `paths` stand out; `known` describes members. */
function printed(text, paths = [], known = new Map()) {
  const block = el("div", "json");
  const all = lines(text, paths);
  let described = 0;
  // What stands in one line stands out as a whole.
  const differs = (path, whole) => paths.some((one) => path === one || path.startsWith(one + "/") || (whole && one.startsWith(path + "/")));
  const show = (from) => {
    const part = document.createDocumentFragment();
    for (const { depth, pieces, path, whole } of all.slice(from, from + LINES)) {
      const row = el("div", differs(path, whole) ? "jl differs" : "jl");
      row.style.setProperty("--depth", depth);
      row.dataset.depth = depth;
      if (!whole && depth > 0 && /[[{]$/.test(pieces[pieces.length - 1][1])) row.append(foldable(row, depth));
      for (const [name, piece, key] of pieces) {
        const token = tokenOf(name, piece);
        const member = key === undefined ? undefined : known.get(key);
        if (member) {
          token.dataset.about = member.about;
          token.classList.toggle("extension", member.extension);
          // One of them is reached with Tab, the others with arrows.
          Object.assign(token, { tabIndex: described++ ? -1 : 0, role: "term" });
        }
        row.append(token);
      }
      part.append(row);
    }
    block.append(part);
    const left = all.length - from - LINES;
    if (left > 0) {
      const more = button("more", `${grouped(left)} more lines`, () => {
        more.remove();
        show(from + LINES);
      });
      block.append(more);
    }
  };
  show(0);
  return block;
}

function tokenOf(name, piece) {
  const token = el("bdi", "j-" + name, ...spelt(name, piece.slice(0, LONG)));
  if (piece.length > LONG) {
    const rest = button("more", `… ${size(piece.length - LONG)} more`, () => {
      rest.replaceWith(...spelt(name, piece.slice(LONG)));
    });
    token.append(rest);
  }
  return token;
}

/** A piece as it is spelled; the line breaks in a string break the line, too. */
function spelt(name, piece) {
  if (name !== "string" || !piece.includes("\\n")) return shown(piece, false);
  const parts = piece.split(/(?<=(?<!\\)(?:\\\\)*\\n)(?!"$)/);
  return parts.flatMap((part, at) => (at ? [el("br"), ...shown(part, false)] : shown(part, false)));
}

/** Has what a line opens closed, and opened again. */
function foldable(row, depth) {
  const toggle = button("toggle", "", () => {
    const closes = toggle.getAttribute("aria-expanded") === "true";
    toggle.setAttribute("aria-expanded", String(!closes));
    row.classList.toggle("closed", closes);
    for (let next = row.nextElementSibling; next && Number(next.dataset.depth) > depth; next = next.nextElementSibling) {
      next.hidden = closes;
      // What was closed within it opens with it.
      next.classList.remove("closed");
      next.querySelector(".toggle")?.setAttribute("aria-expanded", "true");
    }
  }, "Fold");
  toggle.setAttribute("aria-expanded", "true");
  toggle.ariaLabel = "Fold";
  return toggle;
}

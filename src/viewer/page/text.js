// Text from recordings, made harmless: it only ever becomes text nodes, and characters that are
// invisible, or change how other text is displayed, are shown as marks.

const $ = (id) => document.getElementById(id);

/** An element with a class and children; strings among them are inserted as text. */
function el(tag, name, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A button that calls `act`. */
function button(name, text, act, title) {
  const made = el("button", name, text);
  made.type = "button";
  if (title) made.title = title;
  made.addEventListener("click", act);
  return made;
}

// Controls, formats (bidi, zero width, tags), halves of pairs, and letters without a shape.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/u;
const UNSEEN_ALL = new RegExp(UNSEEN.source, "gu");

const CONTROLS = "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

/** The text of a mark for a character. */
function markOf(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return CONTROLS[code];
  return "U+" + code.toString(16).toUpperCase().padStart(4, "0");
}

/** Text as nodes. In a block, line breaks and tabs stay what they are. */
function shown(text, block) {
  text = String(text);
  if (!UNSEEN.test(text)) return [document.createTextNode(text)];
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(UNSEEN_ALL)) {
    const character = match[0];
    if (block && (character === "\n" || character === "\t")) continue;
    if (match.index > from) nodes.push(document.createTextNode(text.slice(from, match.index)));
    const mark = el("span", "unseen", markOf(character));
    mark.title = "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    nodes.push(mark);
    from = match.index + character.length;
  }
  if (from < text.length) nodes.push(document.createTextNode(text.slice(from)));
  return nodes;
}

/** The beginning of such a text, in one line. */
function line(name, text, most = 240) {
  text = String(text ?? "");
  return el("bdi", name, ...shown(text.length > most ? text.slice(0, most) + "…" : text, false));
}

/** Microseconds as a duration. */
function took(micros) {
  if (micros === null || micros === undefined) return "";
  if (micros < 1e3) return `${micros} µs`;
  if (micros < 1e6) return `${(micros / 1e3).toFixed(micros < 1e4 ? 1 : 0)} ms`;
  if (micros < 6e7) return `${(micros / 1e6).toFixed(2)} s`;
  const seconds = Math.round(micros / 1e6);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** Microseconds as a place in time. */
function clock(micros) {
  const seconds = Math.floor(micros / 1e6);
  const part = String(Math.floor((micros % 1e6) / 1e3)).padStart(3, "0");
  const two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}.${part}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

/** Seconds since 1970 as a date and a time of the day, in UTC. */
function utc(seconds) {
  const at = new Date(seconds * 1000);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().replace("T", " ");
}

/** The same in local time, with the offset from UTC. */
function wall(seconds) {
  const away = -new Date(seconds * 1000).getTimezoneOffset();
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const zone = away ? `${away < 0 ? "−" : "+"}${two(Math.abs(away) / 60)}:${two(Math.abs(away) % 60)}` : "UTC";
  const there = utc(seconds + away * 60);
  return there && `${there.slice(0, -1)} ${zone}`;
}

/** Bytes. */
function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1 << 20) return `${(bytes / 1024).toFixed(1)} KiB`;
  if (bytes < 1 << 30) return `${(bytes / (1 << 20)).toFixed(1)} MiB`;
  return `${(bytes / (1 << 30)).toFixed(2)} GiB`;
}

/** A count with its noun. */
const many = (count, one) => `${grouped(count)} ${one}${count === 1 ? "" : "s"}`;

const grouped = (number) => number.toLocaleString("en-US").replaceAll(",", "\u202f");

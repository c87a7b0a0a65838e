// The filter language of `analysis::filter`, for files that no server reads, and to report faults
// while a filter is typed. tests/vectors/inspect/filter.json tests both.

const EVENT_KINDS = "request notification result error answer message noise passed stderr process link note gap clock mark resume end other".split(" ");

/** Fields, and the form of their values: a list of words, or the name of a form. */
const FIELDS = {
  method: "text", session: "text", id: "text", kind: EVENT_KINDS, dir: ["<", ">"], from: ["client", "agent"], at: ["client", "agent"],
  update: "text", tool: "text", text: "text", rule: "text", note: "text", lint: "text", n: "count", t: "seconds", dur: "seconds", size: "bytes",
};
const UNITS = {
  count: { "": 1 }, bytes: { "": 1, b: 1, k: 1024, m: 1048576 },
  seconds: { us: 1, "µs": 1, ms: 1e3, s: 1e6, "": 1e6, m: 6e7, h: 3.6e9 },
};
const EXAMPLES = { count: "42", bytes: "10k", seconds: "2s, 150ms or 1m30s" };
const DEEPEST = 64;

/** Why a text is not a filter, and where. */
class FilterFault extends Error {
  constructor(why, from, to) {
    super(why);
    Object.assign(this, { from, to });
  }
}

/** A text with `*` for anything; letters match in either case. */
class Glob {
  constructor(pattern) {
    this.parts = pattern.toLowerCase().split("*");
  }

  within(text) {
    return this.after(text.toLowerCase(), this.parts, 0) >= 0;
  }

  starts(text) {
    text = text.toLowerCase();
    return text.startsWith(this.parts[0]) && this.after(text, this.parts.slice(1), this.parts[0].length) >= 0;
  }

  is(text) {
    text = text.toLowerCase();
    if (this.parts.length === 1) return text === this.parts[0];
    const last = this.parts[this.parts.length - 1];
    const most = text.length - last.length;
    if (most < this.parts[0].length || !text.startsWith(this.parts[0]) || !text.endsWith(last)) return false;
    const end = this.after(text, this.parts.slice(1, -1), this.parts[0].length);
    return end >= 0 && end <= most;
  }

  /** Where the last of the parts ends, one after the other from a place on; -1 when one is missing. */
  after(text, parts, at) {
    for (const part of parts) {
      const found = text.indexOf(part, at);
      if (found < 0) return -1;
      at = found + part.length;
    }
    return at;
  }
}

class Filter {
  /** Reads a text; throws a FilterFault. */
  constructor(text) {
    this.text = text;
    this.words = wordsOf(text);
    this.next = 0;
    this.depth = 0;
    this.fields = new Set();
    /** The words that are looked for as text. */
    this.bare = [];
    this.expr = this.words.length ? this.any() : () => true;
    if (this.words[this.next]) this.fail("this parenthesis was never opened");
  }

  /** Whether an event matches: its line parsed and as text, and facts about it. */
  matches(line, spelled, facts) {
    return this.expr({ line, spelled, facts });
  }

  fail(why) {
    const end = this.text.trimEnd().length;
    const word = this.words[this.next] ?? { from: end, to: end };
    throw new FilterFault(why, word.from, word.to);
  }

  any() {
    const parts = [this.all()];
    while (this.take("or")) parts.push(this.all());
    return parts.length === 1 ? parts[0] : (one) => parts.some((part) => part(one));
  }

  all() {
    const parts = [this.one()];
    const ends = () => [undefined, "or", ")"].includes(this.words[this.next]?.sort);
    while (this.take("and") || !ends()) parts.push(this.one());
    return parts.length === 1 ? parts[0] : (one) => parts.every((part) => part(one));
  }

  one() {
    if (this.depth >= DEEPEST) this.fail("this is nested too deep");
    this.depth++;
    const made = this.inner();
    this.depth--;
    return made;
  }

  inner() {
    const open = this.next;
    const word = this.words[this.next];
    switch (word?.sort) {
      case undefined:
        return this.fail("something is missing at the end");
      case "not": {
        this.next++;
        const inner = this.one();
        return (one) => !inner(one);
      }
      case "(": {
        this.next++;
        const inner = this.any();
        if (!this.take(")")) {
          this.next = open;
          this.fail("this parenthesis is never closed");
        }
        return inner;
      }
      case "quoted":
        this.next++;
        return this.matchText("text", word.text);
      case "bare":
        if (this.words[this.next + 1]?.sort === "sign") return this.term(word.text);
        this.next++;
        this.bare.push(word.text);
        return this.matchText("text", word.text);
      case "sign":
        return this.fail("a field is missing before this");
      default:
        return this.fail("something is missing before this");
    }
  }

  term(name) {
    if (!Object.hasOwn(FIELDS, name)) this.fail(`no such field; there are ${Object.keys(FIELDS).join(", ")}; quotes look for a text`);
    const sort = FIELDS[name];
    const isText = sort === "text" || Array.isArray(sort);
    this.next++;
    const { text: sign, to: near } = this.words[this.next];
    if (isText && sign !== "=") this.fail(`\`${name}\` is a text: write ${name}:value`);
    this.next++;
    const value = this.words[this.next];
    if (!["bare", "quoted"].includes(value?.sort) || value.from !== near) {
      this.next--;
      this.fail("a value is missing right after this");
    }
    const made = this.value(name, sort, sign, value.text);
    this.next++;
    return made;
  }

  value(name, sort, sign, value) {
    this.fields.add(name);
    if (sort === "text") return this.matchText(name, value);
    if (Array.isArray(sort)) {
      if (!sort.includes(value)) this.fail(`expected one of: ${sort.join(" ")}`);
      return (one) => WORD_MATCHES[name](one, value);
    }
    const bound = quantity(value, UNITS[sort]);
    if (bound === null) this.fail(`expected a number, such as ${EXAMPLES[sort]}`);
    const holds = { "=": (a) => a === bound, "<": (a) => a < bound, "<=": (a) => a <= bound, ">": (a) => a > bound, ">=": (a) => a >= bound }[sign];
    return (one) => {
      const own = NUMBERS[name](one);
      return typeof own === "number" && holds(own);
    };
  }

  matchText(name, value) {
    this.fields.add(name);
    const glob = new Glob(value);
    const rules = name === "lint" && JSON.parse($("known").textContent);
    if (rules && !rules.some((id) => glob.is(id))) {
      this.fail(rules.length ? "no such rule; `acp-relay inspect lint --list` lists them" : "this page has no findings; `acp-relay inspect open` shows them");
    }
    return (one) => TEXT_MATCHES[name](one, glob);
  }

  take(sort) {
    const found = this.words[this.next]?.sort === sort;
    if (found) this.next++;
    return found;
  }
}

/** The words of a filter, each with its place. */
function wordsOf(text) {
  const words = [];
  for (let at = 0; at < text.length; ) {
    const from = at;
    const c = text[at++];
    if (/\s/.test(c)) continue;
    const last = words[words.length - 1];
    const isValue = last?.sort === "sign" && last.to === from;
    const put = (sort, text) => words.push({ sort, text, from, to: at });
    if (c === "(" || c === ")") put(c, c);
    else if (c === '"') {
      let quote = "";
      while (at < text.length && text[at] !== '"') {
        if (text[at] === "\\") at++;
        quote += text[at++] ?? "";
      }
      if (text[at] !== '"') throw new FilterFault("this quote is never closed", from, text.length);
      at++;
      put("quoted", quote);
    } else if (":<>=".includes(c) && !isValue) {
      const two = text[at] === "=" && "<>".includes(c);
      if (two) at++;
      put("sign", two ? c + "=" : c === ":" ? "=" : c);
    } else {
      const ends = isValue ? /[\s()"]/ : /[\s()":<>=]/;
      while (at < text.length && !ends.test(text[at])) at++;
      const bare = text.slice(from, at);
      put(!isValue && ["and", "or", "not"].includes(bare) ? bare : "bare", bare);
    }
  }
  return words;
}

/** `1m30s` in the smallest unit. */
function quantity(text, units) {
  if (!/^(?:[0-9.]+[^0-9.]*)+$/.test(text)) return null;
  let sum = 0;
  for (const [, number, unit] of text.matchAll(/([0-9.]+)([^0-9.]*)/g)) {
    const factor = Object.hasOwn(units, unit.toLowerCase()) ? units[unit.toLowerCase()] : null;
    if (factor === null || !/^(?:\d+\.?\d*|\.\d+)$/.test(number)) return null;
    sum += Number(number) * factor;
  }
  return sum;
}

const isMessage = ({ line }) => line.k === "msg";
const kindName = (line) => ({ proc: "process", rotate: "end" })[line.k] ?? (EVENT_KINDS.indexOf(line.k) > 6 ? line.k : "other");

const WORD_MATCHES = {
  kind(one, word) {
    if (!isMessage(one)) return kindName(one.line) === word;
    const own = text(one.line.is) || "noise";
    return own === word || (own !== "noise" && word === "message") || (word === "answer" && (own === "result" || own === "error"));
  },
  dir: (one, word) => isMessage(one) && one.line.d === word,
  from: (one, word) => isMessage(one) && (one.line.d === ">" ? "client" : "agent") === word,
  at: (one, word) => (isMessage(one) || one.line.k === "link") && one.line.h === word,
};

const matchesText = (value, glob) => typeof value === "string" && glob.is(value);
const TEXT_MATCHES = {
  method: (one, glob) => isMessage(one) && matchesText(one.line.me, glob),
  session: (one, glob) => isMessage(one) && typeof one.line.s === "string" && glob.starts(one.line.s),
  id: (one, glob) => isMessage(one) && one.line.id !== undefined && glob.is((member(one.spelled, "id") ?? "").replace(/^"+|"+$/g, "")),
  update: (one, glob) => matchesText(updateOf(one).sessionUpdate, glob),
  tool(one, glob) {
    const own = updateOf(one).toolCallId ?? object(object(treeOf(one)?.params).toolCall).toolCallId;
    return typeof own === "string" && glob.starts(own);
  },
  rule: (one, glob) => isMessage(one) && list(one.line.rules).some((rule) => matchesText(rule, glob)),
  note: (one, glob) => one.line.k === "note" && matchesText(one.line.name, glob),
  lint: (one, glob) => list(one.facts.lint).some((id) => glob.is(id)),
  text(one, glob) {
    const { line } = one;
    if (isMessage(one)) {
      const tree = treeOf(one);
      return tree === undefined ? glob.within(bodyText(line)) && line.z === undefined : contains(tree, glob);
    }
    const own = { stderr: line.b ?? (line.x && bodyText(line)), proc: line.what, link: line.what, note: line.text, mark: line.text, gap: line.why, end: line.why, rotate: line.why }[line.k];
    return typeof own === "string" && glob.within(own);
  },
};

const NUMBERS = {
  n: ({ line }) => line.n,
  t: ({ line }) => Math.round(line.t * 1e6),
  dur: ({ facts }) => facts.duration,
  size({ line, spelled }) {
    if (line.k !== "msg" && line.k !== "stderr") return undefined;
    if (typeof line.z === "number") return line.z;
    if (typeof line.x === "string") return Math.floor((line.x.replace(/=+$/, "").length * 3) / 4);
    return new TextEncoder().encode(typeof line.b === "string" ? line.b : (member(spelled, "m") ?? "")).length;
  },
};

/** The tree of a message; undefined when it is no JSON, or left out. */
function treeOf(one) {
  if (!isMessage(one)) return undefined;
  if (one.line.m !== undefined) return one.line.m;
  try {
    return JSON.parse(one.line.b);
  } catch {
    return undefined;
  }
}

function updateOf(one) {
  const isUpdate = isMessage(one) && one.line.me === "session/update" && one.line.is === "notification";
  return isUpdate ? object(object(object(treeOf(one)).params).update) : {};
}

/** Whether a text occurs anywhere in a tree, in names of members too. */
function contains(tree, glob) {
  if (typeof tree === "object" && tree !== null) {
    return Array.isArray(tree) ? tree.some((one) => contains(one, glob)) : Object.entries(tree).some(([name, value]) => glob.within(name) || contains(value, glob));
  }
  return tree !== null && glob.within(String(tree));
}

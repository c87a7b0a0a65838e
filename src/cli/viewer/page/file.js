// Recordings that were dropped onto the page, read here: an index first, windows of it later.
// What a recording answers is what the server answers.

/** Bytes that are looked through at a time. */
const BLOCK = 1 << 20;

/** Milliseconds that a filter is given until it says what it has so far. */
const SIFTING = 150;

/** Filters whose work is kept. */
const SIEVES = 4;

/** Items within which a translated message follows the one it was made of. */
const NEAR = 10000;

/** How often it is said how far a file was read, in milliseconds. */
const OFTEN = 200;

/** Turns up to which the timeline shows each. */
const SPANS = 240;

/** Chunks of a run that are looked at for what it says. */
const CHUNKS = 24;

/** The recordings that files hold, by name; the segments of one belong together. */
function droppedOf(files) {
  const named = new Map();
  for (const file of Array.from(files).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = file.name.replace(/(?:\.\d{3})?\.acpr(?:\.zst)?$/, "");
    named.set(name, [...(named.get(name) ?? []), file]);
  }
  return Array.from(named, ([name, files]) => ({ name, files, bytes: files.reduce((sum, file) => sum + file.size, 0) }));
}

/** A file that holds no line of a recording. */
class NoRecording extends Error {}

class Dropped {
  live = false;

  constructor({ name, files }) {
    Object.assign(this, { name, files });
    this.stock = new Stock(files);
    this.items = [];
    this.order = [];
    this.folded = [];
    this.turnList = [];
    this.asks = new Map();
    this.answers = new Map();
    this.byId = new Map();
    this.runs = [];
    this.header = null;
    this.counts = { errors: 0, damaged: 0 };
    this.revision = 0;
    this.sieves = new Map();
    this.linter = new Linter();
    this.found = new Map();
    this.rules = new Map();
  }

  /** Reads all of it; `progress` is told now and then. */
  async read(progress) {
    let rest = new Uint8Array(0);
    // What the first block holds is shown at once.
    let again = 0;
    let busy = performance.now();
    let at = 0;
    const none = () => !this.header && this.counts.damaged === this.items.length;
    for await (const block of this.stock.blocks()) {
      if (this.closed) return;
      const bytes = new Uint8Array(rest.length + block.length);
      bytes.set(rest);
      bytes.set(block, rest.length);
      let from = 0;
      for (let end; (end = bytes.indexOf(10, from)) >= 0; from = end + 1) {
        this.take(at - rest.length + from, bytes.subarray(from, end));
        if (performance.now() - busy < BUSY) continue;
        await breath();
        busy = performance.now();
      }
      rest = bytes.slice(from);
      at += block.length;
      // The beginning of a recording may be damaged, but not so much of it.
      if (none() && at > 2 * READ) throw new NoRecording();
      if (performance.now() > again && !none()) {
        const begun = performance.now();
        this.revision++;
        await progress();
        // Of a large recording it takes a while to say how it stands: reading goes first.
        again = performance.now() + Math.max(OFTEN, 10 * (performance.now() - begun));
      }
    }
    if (none()) throw new NoRecording();
    this.linter.unanswered().forEach((finding) => this.find(finding));
    this.whole = true;
    this.revision++;
    progress();
  }

  take(at, bytes) {
    const line = parseLine(bytes);
    if (line?.acpr) {
      this.linter.begin(line);
      this.header ??= line;
      return;
    }
    const last = this.items[this.items.length - 1];
    const item = { at, length: bytes.length + 1, n: line?.n ?? last?.n ?? 0, t: last?.t ?? 0, run: 1, passed: false, kind: "other", place: this.items.length };
    const i = this.items.push(item) - 1;
    if (line?.k === "msg" && line.of && line.h === (line.d === ">" ? "agent" : "client")) {
      const origin = this.itemOf(line.of);
      if (this.items[origin].n === line.of && i - origin < NEAR) item.place = origin;
    }
    this.put(this.order, i);
    if (!line) {
      item.kind = "damaged";
      this.counts.damaged++;
      this.linter.gaps = true;
    } else {
      item.t = Math.max(item.t, Math.round(line.t * 1e6));
      this.learn(i, item, line);
      this.linter.see(line, { n: item.n, t: item.t }).forEach((finding) => this.find(finding));
    }
    if (item.kind !== "passed" && item.run > 0) this.put(this.folded, i);
  }

  /** Whether item `a` is listed before item `b`: translated messages stand behind those they were made of. */
  before(a, b) {
    const place = (i) => this.items[i]?.place ?? Infinity;
    return place(a) === place(b) ? a < b : place(a) < place(b);
  }

  put(items, i) {
    const last = items[items.length - 1];
    if (last === undefined || this.before(last, i)) items.push(i);
    else items.splice(parted(items.length, (at) => this.before(items[at], i)), 0, i);
  }

  /** The first item with number `n` or a later one. */
  itemOf(n) {
    return parted(this.items.length, (at) => this.items[at].n < n);
  }

  find(finding) {
    const { id, weight, says, was } = finding;
    if (was) {
      const own = this.found.get(finding.n) ?? [];
      const at = own.findIndex((one) => one.id === was);
      if (at >= 0) own.splice(at, 1);
      if (--this.rules.get(was).count === 0) this.rules.delete(was);
    }
    if (!this.rules.has(id)) this.rules.set(id, { id, weight, says, count: 0 });
    this.rules.get(id).count++;
    this.found.set(finding.n, [...(this.found.get(finding.n) ?? []), finding]);
  }

  learn(i, item, line) {
    this.ended = line.k === "end";
    this.rotated = line.k === "rotate";
    if (line.k === "passed") {
      item.kind = "passed";
      for (let at = i - 1; at >= 0 && this.items[at].n >= line.from; at--) {
        const one = this.items[at];
        if (one.n <= line.to && one.to === line.h) one.passed = true;
      }
      return;
    }
    if (line.k !== "msg") {
      this.runs = [];
      return;
    }
    const to = line.d === ">" ? "agent" : "client";
    item.to = to;
    item.kind = line.is === "error" ? "error" : to;
    this.counts.errors += line.is === "error" ? 1 : 0;
    const edge = (item.edge = text(line.h) + to);
    const kind = line.me === "session/update" ? text(object(object(object(line.m).params).update).sessionUpdate) : "";
    const run = kind.endsWith("_chunk") ? this.runs.find((one) => one.edge === edge && one.kind === kind && one.session === line.s && !this.parts(one, i, item)) : null;
    if (run) {
      run.last = item.place;
      run.head.run++;
      item.run = 0;
    } else {
      this.runs = this.runs.filter((one) => one.edge !== edge);
      if (kind.endsWith("_chunk")) this.runs.push({ edge, kind, session: line.s, head: item, last: item.place });
    }
    this.pair(i, item, line, edge);
  }

  /** Whether a message that was passed on as it was stands between a run and a translated chunk. */
  parts({ last }, i, item) {
    if (item.place === i) return false;
    return this.items.slice(last + 1, item.place).some((one, at) => one.to === item.to && one.place === last + 1 + at);
  }

  pair(i, item, line, edge) {
    if (line.is === "request") {
      const ask = { i, n: line.n, t: item.t, of: line.of, id: JSON.stringify(line.id), method: line.me, key: edge + JSON.stringify(line.id) };
      this.asks.set(line.n, ask);
      this.byId.set(ask.key, ask);
      if (line.me === "session/prompt" && line.h === "client" && line.d === ">") {
        ask.turn = { i, n: line.n, t: item.t, session: line.s, end: null };
        this.turnList.push(ask.turn);
      }
    } else if (line.is === "result" || line.is === "error") {
      const back = text(line.h) + (line.d === ">" ? "client" : "agent") + JSON.stringify(line.id);
      // Where the answer does not say it, an open request with its id; a second answer has none.
      const ask = this.asks.get(line.re) ?? (line.id === undefined ? undefined : this.byId.get(back));
      if (!ask) return;
      this.byId.delete(ask.key);
      this.answers.set(line.n, ask);
      ask.answer ??= { n: line.n, t: item.t };
      // The answer to a translated request is the client's answer, too.
      const asked = this.asks.get(ask.of);
      const own = asked && asked.id === ask.id ? asked : ask;
      own.answer ??= ask.answer;
      const { turn } = own;
      if (turn && (!turn.end || (line.h === "client" && line.of))) turn.end = { i, n: line.n, t: item.t, failed: line.is === "error" };
    }
  }

  async state() {
    const names = ["agent", "client", "error", "other"];
    const buckets = Object.fromEntries(names.map((name) => [name, new Array(240).fill(0)]));
    const lasted = this.items[this.items.length - 1]?.t ?? 0;
    const events = this.items.length;
    for (let i = 0, busy = performance.now(); i < events; i++) {
      const item = this.items[i];
      if (item.kind !== "passed") (buckets[item.kind] ?? buckets.other)[Math.floor((item.t * 240) / (lasted + 1))]++;
      if (i % 10000 || performance.now() - busy < BUSY) continue;
      await breath();
      busy = performance.now();
    }
    const worst = ["error", "warning", "hint"];
    const byWeight = Array.from(this.rules.values()).sort((a, b) => worst.indexOf(a.weight) - worst.indexOf(b.weight));
    const total = byWeight.reduce((sum, rule) => sum + rule.count, 0);
    const header = this.header && {
      began: new Date(this.header.began * 1000).toISOString().slice(0, 19) + "Z",
      by: this.header.by,
      client: object(this.header.client),
      agent: object(this.header.agent),
      redaction: object(this.header.redact).mode,
    };
    return {
      name: this.name, path: this.files[0].name, header, buckets, lasted, revision: this.revision, bytes: this.stock.read, of: this.stock.of,
      events: this.items.length, turns: this.turnList.length, ended: this.ended === true, rotated: this.rotated === true, writing: false, ...this.counts,
      lint: { seen: this.items.length, total, rules: byWeight.map((rule) => ({ ...rule })) },
      spans: this.turnList.length > SPANS ? [] : this.turnList.map((turn) => [turn.t, turn.end?.t ?? null]),
    };
  }

  async rows({ q = "", all, t0 = 0, t1 = Infinity, i0 = 0, i1 = Infinity, from = 0, count = 100, n }) {
    const { items } = this;
    const sieve = q ? await this.sift(q, all) : { found: all ? this.order : this.folded, seen: items.length };
    const { found } = sieve;
    // An item counts as of the time of the one it is listed behind, so all of these only grow.
    const time = (i) => items[items[i].place].t;
    const first = parted(found.length, (at) => this.before(found[at], i0) || time(found[at]) < t0);
    const last = Math.max(first, parted(found.length, (at) => !this.before(i1, found[at]) && time(found[at]) <= t1));
    const place = n === undefined ? null : Math.max(0, Math.min(last, parted(found.length, (at) => this.before(found[at], this.itemOf(n)))) - first);
    const window = found.slice(first + from, Math.min(last, first + from + count));
    return {
      total: last - first, seen: sieve.seen, done: sieve.seen >= items.length, events: items.length, from, place,
      rows: await this.drawn(window, !q && !all),
    };
  }

  /** Rows, of which what lies together is read together. */
  async drawn(window, folded) {
    const { items } = this;
    const [first, last] = [items[window[0]], items[Math.min(items.length - 1, window[window.length - 1] + 4 * CHUNKS)]];
    const near = first && last.at + last.length - first.at < READ;
    const span = near && { at: first.at, bytes: new Uint8Array(await this.stock.file.slice(first.at, last.at + last.length).arrayBuffer()) };
    return await Promise.all(window.map((i) => this.row(i, folded, span)));
  }

  async row(i, folded, span) {
    const item = this.items[i];
    const ask = this.answers.get(item.n) ?? this.asks.get(item.n);
    const row = { i, size: item.length, run: folded ? item.run : 1, passed: item.passed, t: item.t };
    if (ask) {
      row.asked = ask.n;
      row.answered = ask.answer?.n;
      row.took = (ask.n === item.n ? ask.answer?.t : item.t) - ask.t;
      if (Number.isNaN(row.took)) row.took = null;
    }
    row.lint = item.kind === "damaged" ? [] : this.found.get(item.n);
    if (row.run > 1) row.says = await this.says(i, item, span);
    const line = item.kind === "damaged" ? null : parseLine(await this.within(item, span), true);
    return line ? { ...row, line } : { ...row, fault: "the line is not what was written: it was changed or damaged" };
  }

  /** The beginning of what a run of chunks says. */
  async says(i, head, span) {
    const run = this.items.slice(i + 1, i + 4 * CHUNKS).filter((item) => item.run === 0 && item.edge === head.edge);
    const chunks = [head, ...run].slice(0, Math.min(CHUNKS, head.run));
    const lines = await Promise.all(chunks.map((item) => this.within(item, span)));
    return lines.map((bytes) => text(object(updateOf({ line: object(parseLine(bytes, true)) }).content).text)).join("");
  }

  /** What a filter lets through, as far as it has come. */
  async sift(q, all) {
    const key = `${q} ${all}`;
    let sieve = this.sieves.get(key);
    // How long something took, and what was found at it, may be known only now.
    if (!sieve || (this.whole && !sieve.whole && /\b(?:dur|lint)\b/.test(q))) {
      sieve = { filter: new Filter(q), found: [], seen: 0, whole: this.whole, works: Promise.resolve() };
      this.sieves.set(key, sieve);
      if (this.sieves.size > SIEVES) this.sieves.delete(this.sieves.keys().next().value);
    }
    // Whoever asks for the same waits for the same.
    if (sieve.seen < this.items.length) sieve.works = sieve.works.then(() => this.siftOn(sieve, all));
    await sieve.works;
    return sieve;
  }

  async siftOn(sieve, all) {
    const begun = performance.now();
    for (let busy = begun; sieve.seen < this.items.length && performance.now() - begun < SIFTING; ) {
      const first = this.items[sieve.seen];
      let end = sieve.seen + 1;
      while (end < this.items.length && this.items[end].at + this.items[end].length - first.at <= BLOCK) end++;
      const last = this.items[end - 1];
      const block = new Uint8Array(await this.stock.file.slice(first.at, last.at + last.length).arrayBuffer());
      while (sieve.seen < end) {
        const i = sieve.seen++;
        if (this.passes(sieve.filter, this.items[i], all, block, first.at)) this.put(sieve.found, i);
        if (performance.now() - busy < BUSY) continue;
        await breath();
        busy = performance.now();
      }
    }
  }

  passes(filter, item, all, block, from) {
    if (item.kind === "damaged" || (item.kind === "passed" && !all)) return false;
    const bytes = block.subarray(item.at - from, item.at - from + item.length);
    const line = parseLine(bytes, true);
    const found = () => (this.found.get(item.n) ?? []).map((one) => one.id);
    return line && filter.matches(line, decoder.decode(bytes), { took: this.took(item), lint: found() });
  }

  /** From a request to its answer; both have it. */
  took(item) {
    const ask = this.answers.get(item.n) ?? this.asks.get(item.n);
    return ask?.answer && (item.n === ask.n || item.n === ask.answer.n) ? ask.answer.t - ask.t : null;
  }

  async findings(id, from, count) {
    const all = Array.from(this.found.values()).flat().sort((a, b) => a.n - b.n);
    return { findings: all.filter((one) => one.id === id).slice(from, from + count) };
  }

  async turns(from) {
    return { total: this.turnList.length, from, turns: this.turnList.slice(from, from + 500) };
  }

  async event(i) {
    const line = await this.bytesOf(this.items[i]).text();
    return { line, whole: true, length: line.length };
  }

  async rule() {
    return {};
  }

  /** The bytes of an item, out of what was read if they are there. */
  async within(item, span) {
    const from = item.at - span?.at;
    if (from >= 0 && from + item.length <= span.bytes.length) return span.bytes.subarray(from, from + item.length);
    return new Uint8Array(await this.bytesOf(item).arrayBuffer());
  }

  bytesOf(item) {
    return this.stock.file.slice(item.at, item.at + item.length);
  }

  close() {
    this.closed = true;
  }
}

/** How many of the first of so many places hold, of which none does after one that does not. */
function parted(length, holds) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

const decoder = new TextDecoder();
const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0x82f63b78 : byte >>> 1;
  return byte;
});
// The same of a byte with one, two and three bytes behind it.
const CRC1 = CRC.map((sum) => CRC[sum & 255] ^ (sum >>> 8));
const CRC2 = CRC1.map((sum) => CRC[sum & 255] ^ (sum >>> 8));
const CRC3 = CRC2.map((sum) => CRC[sum & 255] ^ (sum >>> 8));

/** The CRC32C of the first `end` bytes, four at a time. */
function crcOf(bytes, end) {
  let sum = -1;
  let i = 0;
  for (const whole = end - 3; i < whole; i += 4) {
    sum ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    sum = CRC3[sum & 255] ^ CRC2[(sum >>> 8) & 255] ^ CRC1[(sum >>> 16) & 255] ^ CRC[sum >>> 24];
  }
  for (; i < end; i++) sum = CRC[(sum ^ bytes[i]) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/** A line whose checksum holds; null for any other. */
function parseLine(bytes, checked) {
  const end = bytes.length - (bytes[bytes.length - 1] === 10 ? 19 : 18);
  if (end < 1) return null;
  if (!checked) {
    const said = decoder.decode(bytes.subarray(end + 8, end + 16));
    if (crcOf(bytes, end).toString(16).padStart(8, "0") !== said) return null;
  }
  try {
    return object(JSON.parse(decoder.decode(bytes)));
  } catch {
    return null;
  }
}

// Recordings that were dropped onto the page, read here: an index first, windows of it later.
// What a recording answers is what the server answers.

/** Bytes that are looked through at a time. */
const BLOCK = 1 << 20;

/** Bytes that are read at a time when all are. */
const READ = 4 << 20;

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

/** A file as it was before it was packed, if it was. */
async function plainOf(file) {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  if (head.length < 4 || !isPacked(head)) return file;
  const parts = [];
  for (const part of unpacked(new Uint8Array(await file.arrayBuffer()))) {
    parts.push(part);
    // The page stays awake.
    await new Promise((done) => setTimeout(done));
  }
  return new Blob(parts);
}

class Dropped {
  live = false;

  constructor({ name, files }) {
    Object.assign(this, { name, files });
    this.file = new Blob();
    this.items = [];
    this.folded = [];
    this.turnList = [];
    this.asks = new Map();
    this.answers = new Map();
    this.byId = new Map();
    this.runs = [];
    this.header = null;
    this.counts = { errors: 0, damaged: 0 };
    this.bytes = 0;
    this.revision = 0;
    this.sieves = new Map();
    this.linter = new Linter();
    this.found = new Map();
    this.rules = new Map();
  }

  /** Reads all of it; `progress` is told now and then. */
  async read(progress) {
    const parts = await Promise.all(this.files.map(plainOf));
    this.file = parts.length === 1 ? parts[0] : new Blob(parts);
    let rest = new Uint8Array(0);
    // What the first block holds is shown at once.
    let again = 0;
    // The next block comes while this one is taken in.
    let next = this.file.slice(0, READ).arrayBuffer();
    for (let at = 0; at < this.file.size && !this.closed; at += READ) {
      const block = new Uint8Array(await next);
      next = this.file.slice(at + READ, at + 2 * READ).arrayBuffer();
      const bytes = new Uint8Array(rest.length + block.length);
      bytes.set(rest);
      bytes.set(block, rest.length);
      let from = 0;
      for (let end; (end = bytes.indexOf(10, from)) >= 0; from = end + 1) {
        this.take(at - rest.length + from, bytes.subarray(from, end));
      }
      rest = bytes.slice(from);
      this.bytes = at + block.length;
      if (performance.now() > again) {
        const begun = performance.now();
        this.revision++;
        await progress();
        // Of a large recording it takes a while to say how it stands: reading goes first.
        again = performance.now() + Math.max(OFTEN, 10 * (performance.now() - begun));
      }
    }
    this.linter.unanswered().forEach((finding) => this.find(finding));
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
    const item = { at, length: bytes.length + 1, n: line?.n ?? last?.n ?? 0, t: last?.t ?? 0, run: 1, passed: false, kind: "other" };
    const i = this.items.push(item) - 1;
    if (!line) {
      item.kind = "damaged";
      this.counts.damaged++;
      this.linter.gaps = true;
    } else {
      item.t = Math.max(item.t, Math.round(line.t * 1e6));
      this.learn(i, item, line);
      this.linter.see(line, { n: item.n, t: item.t }).forEach((finding) => this.find(finding));
    }
    if (item.kind !== "passed" && item.run > 0) this.folded.push(i);
  }

  find(finding) {
    const { id, weight, says } = finding;
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
    const run = kind.endsWith("_chunk") ? this.runs.find((one) => one.edge === edge && one.kind === kind && one.session === line.s) : null;
    if (run) {
      run.head.run++;
      item.run = 0;
    } else {
      this.runs = this.runs.filter((one) => one.edge !== edge);
      if (kind.endsWith("_chunk")) this.runs.push({ edge, kind, session: line.s, head: item });
    }
    this.pair(i, item, line, edge);
  }

  pair(i, item, line, edge) {
    if (line.is === "request") {
      const ask = { i, n: line.n, t: item.t, method: line.me, key: edge + JSON.stringify(line.id) };
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
      if (ask.turn && !ask.turn.end) ask.turn.end = { i, n: line.n, t: item.t, failed: line.is === "error" };
    }
  }

  async state() {
    const names = ["agent", "client", "error", "other"];
    const buckets = Object.fromEntries(names.map((name) => [name, new Array(240).fill(0)]));
    const lasted = this.items[this.items.length - 1]?.t ?? 0;
    for (const item of this.items) {
      if (item.kind !== "passed") (buckets[item.kind] ?? buckets.other)[Math.floor((item.t * 240) / (lasted + 1))]++;
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
      name: this.name, path: this.files[0].name, header, buckets, lasted, revision: this.revision, bytes: this.bytes, of: this.file.size,
      events: this.items.length, turns: this.turnList.length, ended: this.ended === true, rotated: this.rotated === true, writing: false, ...this.counts,
      lint: { seen: this.items.length, total, rules: byWeight.map((rule) => ({ ...rule })) },
      spans: this.turnList.length > SPANS ? [] : this.turnList.map((turn) => [turn.t, turn.end?.t ?? null]),
    };
  }

  async rows({ q = "", all, t0 = 0, t1 = Infinity, i0 = 0, i1 = Infinity, from = 0, count = 100, n }) {
    let picked = all ? this.items.keys() : this.folded;
    if (q) picked = await this.sift(q, all);
    const inside = (i) => i >= i0 && i <= i1 && this.items[i].t >= t0 && this.items[i].t <= t1;
    const rows = Array.from(picked).filter(inside);
    const place = n === undefined ? null : rows.filter((i) => this.items[i].n < n).length;
    const window = rows.slice(from, from + count);
    return {
      total: rows.length, seen: this.items.length, done: true, events: this.items.length, from, place,
      rows: await Promise.all(window.map((i) => this.row(i, !q && !all))),
    };
  }

  async row(i, folded) {
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
    if (row.run > 1) row.says = await this.says(i, item);
    const line = item.kind === "damaged" ? null : parseLine(new Uint8Array(await this.bytesOf(item).arrayBuffer()), true);
    return line ? { ...row, line } : { ...row, fault: "the line is not what was written: it was changed or damaged" };
  }

  /** The beginning of what a run of chunks says. */
  async says(i, head) {
    const run = this.items.slice(i + 1, i + 4 * CHUNKS).filter((item) => item.run === 0 && item.edge === head.edge);
    const chunks = [head, ...run].slice(0, Math.min(CHUNKS, head.run));
    const lines = await Promise.all(chunks.map((item) => this.bytesOf(item).text()));
    return lines.map((spelled) => text(object(updateOf({ line: JSON.parse(spelled) }).content).text)).join("");
  }

  /** What a filter lets through. */
  async sift(q, all) {
    const key = `${q} ${all} ${this.items.length}`;
    const known = this.sieves.get(key);
    if (known) return known;
    const filter = new Filter(q);
    const found = [];
    for (let i = 0; i < this.items.length; ) {
      let end = i;
      const first = this.items[i];
      while (end < this.items.length && this.items[end].at + this.items[end].length - first.at <= BLOCK) end++;
      end = Math.max(end, i + 1);
      const last = this.items[end - 1];
      const block = new Uint8Array(await this.file.slice(first.at, last.at + last.length).arrayBuffer());
      for (; i < end; i++) {
        const item = this.items[i];
        if (item.kind === "damaged" || (item.kind === "passed" && !all)) continue;
        const bytes = block.subarray(item.at - first.at, item.at - first.at + item.length);
        const line = parseLine(bytes, true);
        if (line && filter.matches(line, decoder.decode(bytes), { took: this.took(item), lint: (this.found.get(item.n) ?? []).map((one) => one.id) })) found.push(i);
      }
    }
    this.sieves.clear();
    this.sieves.set(key, found);
    return found;
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

  bytesOf(item) {
    return this.file.slice(item.at, item.at + item.length);
  }

  close() {
    this.closed = true;
  }
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

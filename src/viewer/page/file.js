// Plain recordings that were dropped onto a page without a server: an index first, windows of it
// later. A recording answers as the server does; it has no findings.

/** Bytes that are read at a time; fewer of the beginning, which is shown at once. */
const READ = 4 << 20;
const BEGIN = 256 << 10;

/** Milliseconds that the page may be busy before it handles input. */
const BUSY = 16;
const yieldToBrowser = () => new Promise((done) => setTimeout(done));

/** Bytes that are searched at a time. */
const BLOCK = 1 << 20;

/** Milliseconds that one call searches before it returns the matches so far. */
const SEARCH_TIME = 150;

/** Searches that are kept. */
const SEARCHES = 4;

/** Maximum distance in items at which a translated message is listed after its original. */
const NEAR = 10000;

/** Milliseconds between two reports of how far a file was read. */
const OFTEN = 200;

/** Turns up to which the timeline shows each, and outages that it shows. */
const SPANS = 240;

/** Microseconds without an event that count as silence. */
const SILENCE = 1e6;

/** Chunks of a run that are read for its text. */
const CHUNKS = 24;

/** The recordings in these files, by name, each with its segments. */
function droppedOf(files) {
  const named = new Map();
  for (const file of Array.from(files).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = file.name.replace(/(?:\.\d{3})?\.acpr(?:\.zst)?$/, "");
    named.set(name, [...(named.get(name) ?? []), file]);
  }
  return Array.from(named, ([name, files]) => ({ name, files, bytes: files.reduce((sum, file) => sum + file.size, 0) }));
}

/** A file without a line of a recording. */
class NoRecording extends Error {}

/** A file that is packed with Zstandard (RFC 8878), which this page does not unpack. */
class PackedRecording extends Error {}
const isPacked = async (file) => new DataView(await file.slice(0, 4).arrayBuffer()).getUint32(0, true) === 0xfd2fb528;

class Dropped {
  live = false;

  constructor({ name, files }) {
    Object.assign(this, { name, files });
    this.file = new Blob(files);
    this.bytes = 0;
    this.items = [];
    this.order = [];
    this.folded = [];
    this.turnList = [];
    this.outages = [];
    this.lost = {};
    this.requests = new Map();
    this.answers = new Map();
    this.byId = new Map();
    this.runs = [];
    this.header = null;
    this.counts = { errors: 0, damaged: 0 };
    this.revision = 0;
    this.searches = new Map();
  }

  /** Reads all of it, and calls `progress` now and then. */
  async read(progress) {
    for (const file of this.files) if (file.size >= 4 && (await isPacked(file))) throw new PackedRecording();
    let rest = new Uint8Array(0);
    // The first block is shown at once.
    let again = 0;
    let busy = performance.now();
    const none = () => !this.header && this.counts.damaged === this.items.length;
    const blockAt = (at) => this.file.slice(at, at + (at ? READ : BEGIN)).arrayBuffer();
    // The next block is read while this one is processed.
    let next = blockAt(0);
    for (let at = 0; at < this.file.size; ) {
      const block = new Uint8Array(await next);
      next = blockAt(at + block.length);
      if (this.closed) return;
      const bytes = new Uint8Array(rest.length + block.length);
      bytes.set(rest);
      bytes.set(block, rest.length);
      let from = 0;
      for (let end; (end = bytes.indexOf(10, from)) >= 0; from = end + 1) {
        this.addLine(at - rest.length + from, bytes.subarray(from, end));
        if (performance.now() - busy < BUSY) continue;
        await yieldToBrowser();
        busy = performance.now();
      }
      rest = bytes.slice(from);
      this.bytes = at += block.length;
      // The beginning of a recording may be damaged, but not so much of it.
      if (none() && at > 2 * READ) throw new NoRecording();
      if (performance.now() > again && !none()) {
        const begun = performance.now();
        this.revision++;
        await progress();
        // The state of a large recording takes a while to compute: reading goes first.
        again = performance.now() + Math.max(OFTEN, 10 * (performance.now() - begun));
      }
    }
    if (none()) throw new NoRecording();
    this.whole = true;
    this.revision++;
    progress();
  }

  addLine(at, bytes) {
    const line = parseLine(bytes);
    if (line?.acpr) {
      this.header ??= line;
      return;
    }
    const last = this.items[this.items.length - 1];
    const item = { at, length: bytes.length + 1, n: line?.n ?? last?.n ?? 0, t: last?.t ?? 0, run: 1, forwarded: false, kind: "other", place: this.items.length };
    const i = this.items.push(item) - 1;
    if (line?.k === "msg" && line.of && line.h === (line.d === ">" ? "agent" : "client")) {
      const origin = this.itemOf(line.of);
      if (this.items[origin].n === line.of && i - origin < NEAR) item.place = origin;
    }
    this.put(this.order, i);
    if (!line) {
      item.kind = "damaged";
      this.counts.damaged++;
    } else {
      item.t = Math.max(item.t, Math.round(line.t * 1e6));
      this.indexLine(i, item, line);
    }
    if (item.kind !== "passed" && item.run > 0) this.put(this.folded, i);
  }

  /** Whether item `a` is listed before item `b`: translated messages follow their originals. */
  before(a, b) {
    const place = (i) => this.items[i]?.place ?? Infinity;
    return place(a) === place(b) ? a < b : place(a) < place(b);
  }

  put(items, i) {
    const last = items[items.length - 1];
    if (last === undefined || this.before(last, i)) items.push(i);
    else items.splice(partitionPoint(items.length, (at) => this.before(items[at], i)), 0, i);
  }

  /** The first item with number `n` or a later one. */
  itemOf(n) {
    return partitionPoint(this.items.length, (at) => this.items[at].n < n);
  }

  indexLine(i, item, line) {
    this.ended = line.k === "end";
    this.rotated = line.k === "rotate";
    if (line.k === "passed") {
      item.kind = "passed";
      for (let at = i - 1; at >= 0 && this.items[at].n >= line.from; at--) {
        const one = this.items[at];
        if (one.n <= line.to && one.to === line.h) one.forwarded = true;
      }
      return;
    }
    if (line.k !== "msg") {
      this.runs = [];
      if (line.k === "link") this.trackOutage(item.t, text(line.h), text(line.ev));
      return;
    }
    const to = line.d === ">" ? "agent" : "client";
    item.to = to;
    item.kind = line.is === "error" ? "error" : to;
    this.counts.errors += line.is === "error" ? 1 : 0;
    const edge = (item.edge = text(line.h) + to);
    const kind = line.me === "session/update" ? text(object(object(object(line.m).params).update).sessionUpdate) : "";
    const run = kind.endsWith("_chunk") ? this.runs.find((one) => one.edge === edge && one.kind === kind && one.session === line.s && !this.interrupts(one, i, item)) : null;
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

  /** An outage: from, to (unless it is not over), the side that was lost. */
  trackOutage(t, side, event) {
    if (this.lost[side]) this.lost[side][1] = t;
    delete this.lost[side];
    if (event === "lost") this.outages.push((this.lost[side] = [t, null, side]));
  }

  /** Whether a message that was forwarded unchanged lies between a run and a translated chunk. */
  interrupts({ last }, i, item) {
    if (item.place === i) return false;
    return this.items.slice(last + 1, item.place).some((one, at) => one.to === item.to && one.place === last + 1 + at);
  }

  pair(i, item, line, edge) {
    if (line.is === "request") {
      const request = { i, n: line.n, t: item.t, of: line.of, id: JSON.stringify(line.id), method: line.me, key: edge + JSON.stringify(line.id) };
      this.requests.set(line.n, request);
      this.byId.set(request.key, request);
      if (line.me === "session/prompt" && line.h === "client" && line.d === ">") {
        request.turn = { i, n: line.n, t: item.t, session: line.s, end: null };
        this.turnList.push(request.turn);
      }
    } else if (line.is === "result" || line.is === "error") {
      const back = text(line.h) + (line.d === ">" ? "client" : "agent") + JSON.stringify(line.id);
      // Without a reference in the answer, the open request with its id; a second answer has none.
      const request = this.requests.get(line.re) ?? (line.id === undefined ? undefined : this.byId.get(back));
      if (!request) return;
      this.byId.delete(request.key);
      this.answers.set(line.n, request);
      request.answer ??= { n: line.n, t: item.t, failed: line.is === "error" };
      // The answer to a translated request also answers the client's.
      const original = this.requests.get(request.of);
      const own = original && original.id === request.id ? original : request;
      own.answer ??= request.answer;
      const { turn } = own;
      if (turn && (!turn.end || (line.h === "client" && line.of))) turn.end = { i, n: line.n, t: item.t, failed: line.is === "error" };
    }
  }

  async state() {
    const names = ["agent", "client", "error", "other"];
    const buckets = Object.fromEntries(names.map((name) => [name, new Array(240).fill(0)]));
    const duration = this.items[this.items.length - 1]?.t ?? 0;
    const events = this.items.length;
    for (let i = 0, busy = performance.now(); i < events; i++) {
      const item = this.items[i];
      if (item.kind !== "passed") (buckets[item.kind] ?? buckets.other)[Math.floor((item.t * 240) / (duration + 1))]++;
      if (i % 10000 || performance.now() - busy < BUSY) continue;
      await yieldToBrowser();
      busy = performance.now();
    }
    const lasted = ([from, to]) => (to ?? duration) - from;
    const header = this.header && {
      began: new Date(this.header.began * 1000).toISOString().slice(0, 19) + "Z",
      by: this.header.by,
      client: object(this.header.client),
      agent: object(this.header.agent),
      redaction: object(this.header.redact).mode,
    };
    return {
      name: this.name, path: this.files[0].name, header, buckets, duration, revision: this.revision, bytes: this.bytes, total: this.file.size,
      events: this.items.length, turns: this.turnList.length, ended: this.ended === true, rotated: this.rotated === true, writing: false, ...this.counts,
      outages: [...this.outages].sort((a, b) => lasted(b) - lasted(a)).slice(0, SPANS),
      spans: this.turnList.length > SPANS ? [] : this.turnList.map((turn) => [turn.t, turn.end?.t ?? null]),
    };
  }

  async rows({ q = "", all, t0 = 0, t1 = Infinity, i0 = 0, i1 = Infinity, from = 0, count = 100, n }) {
    const { items } = this;
    const search = q ? await this.search(q, all) : { found: all ? this.order : this.folded, searched: items.length };
    const { found } = search;
    // An item counts with the time of the one it is listed after, so all of these only grow.
    const time = (i) => items[items[i].place].t;
    const first = partitionPoint(found.length, (at) => this.before(found[at], i0) || time(found[at]) < t0);
    const last = Math.max(first, partitionPoint(found.length, (at) => !this.before(i1, found[at]) && time(found[at]) <= t1));
    const place = n === undefined ? null : Math.max(0, Math.min(last, partitionPoint(found.length, (at) => this.before(found[at], this.itemOf(n)))) - first);
    const window = found.slice(first + from, Math.min(last, first + from + count));
    return {
      total: last - first, searched: search.searched, done: search.searched >= items.length, events: items.length, from, place,
      rows: await this.rowsOf(window, !q && !all),
    };
  }

  /** The rows of a window; what lies together is read together. */
  async rowsOf(window, folded) {
    const { items } = this;
    const [first, last] = [items[window[0]], items[Math.min(items.length - 1, window[window.length - 1] + 4 * CHUNKS)]];
    const near = first && last.at + last.length - first.at < READ;
    const span = near && { at: first.at, bytes: new Uint8Array(await this.file.slice(first.at, last.at + last.length).arrayBuffer()) };
    return await Promise.all(window.map((i) => this.row(i, folded, span)));
  }

  async row(i, folded, span) {
    const item = this.items[i];
    const request = this.answers.get(item.n) ?? this.requests.get(item.n);
    const row = { i, size: item.length, run: folded ? item.run : 1, forwarded: item.forwarded, t: item.t };
    if (request) {
      row.request = request.n;
      row.answer = request.answer?.n;
      row.duration = (request.n === item.n ? request.answer?.t : item.t) - request.t;
      if (Number.isNaN(row.duration)) row.duration = null;
    }
    const silence = item.t - (this.items[i - 1]?.t ?? item.t);
    if (silence >= SILENCE) row.silence = silence;
    row.failed = request?.n === item.n && request.answer?.failed === true;
    if (row.run > 1) row.text = await this.runText(i, item, span);
    const line = item.kind === "damaged" ? null : parseLine(await this.within(item, span), true);
    return line ? { ...row, line } : { ...row, fault: "this line was changed or damaged after it was written" };
  }

  /** The beginning of the text of a run of chunks. */
  async runText(i, head, span) {
    const run = this.items.slice(i + 1, i + 4 * CHUNKS).filter((item) => item.run === 0 && item.edge === head.edge);
    const chunks = [head, ...run].slice(0, Math.min(CHUNKS, head.run));
    const lines = await Promise.all(chunks.map((item) => this.within(item, span)));
    return lines.map((bytes) => text(object(updateOf({ line: object(parseLine(bytes, true)) }).content).text)).join("");
  }

  /** The matches of a filter so far. */
  async search(q, all) {
    const key = `${q} ${all}`;
    let search = this.searches.get(key);
    // Durations may be known only now.
    if (!search || (this.whole && !search.whole && /\bdur\b/.test(q))) {
      search = { filter: new Filter(q), found: [], searched: 0, whole: this.whole, running: Promise.resolve() };
      this.searches.set(key, search);
      if (this.searches.size > SEARCHES) this.searches.delete(this.searches.keys().next().value);
    }
    // Calls with the same filter wait for the same search.
    if (search.searched < this.items.length) search.running = search.running.then(() => this.continueSearch(search, all));
    await search.running;
    return search;
  }

  async continueSearch(search, all) {
    const begun = performance.now();
    for (let busy = begun; search.searched < this.items.length && performance.now() - begun < SEARCH_TIME; ) {
      const first = this.items[search.searched];
      let end = search.searched + 1;
      while (end < this.items.length && this.items[end].at + this.items[end].length - first.at <= BLOCK) end++;
      const last = this.items[end - 1];
      const block = new Uint8Array(await this.file.slice(first.at, last.at + last.length).arrayBuffer());
      while (search.searched < end) {
        const i = search.searched++;
        if (this.accepts(search.filter, this.items[i], all, block, first.at)) this.put(search.found, i);
        if (performance.now() - busy < BUSY) continue;
        await yieldToBrowser();
        busy = performance.now();
      }
    }
  }

  accepts(filter, item, all, block, from) {
    if (item.kind === "damaged" || (item.kind === "passed" && !all)) return false;
    const bytes = block.subarray(item.at - from, item.at - from + item.length);
    const line = parseLine(bytes, true);
    return line && filter.matches(line, decoder.decode(bytes), { duration: this.durationOf(item) });
  }

  /** From a request to its answer; both have it. */
  durationOf(item) {
    const request = this.answers.get(item.n) ?? this.requests.get(item.n);
    return request?.answer && (item.n === request.n || item.n === request.answer.n) ? request.answer.t - request.t : null;
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

  /** The bytes of an item, from `span` if they are in it. */
  async within(item, span) {
    const from = item.at - span?.at;
    if (from >= 0 && from + item.length <= span.bytes.length) return span.bytes.subarray(from, from + item.length);
    return new Uint8Array(await this.bytesOf(item).arrayBuffer());
  }

  bytesOf(item) {
    return this.file.slice(item.at, item.at + item.length);
  }

  close() {
    this.closed = true;
  }
}

/** The first of `length` places for which `holds` is false; it is false for all after it. */
function partitionPoint(length, holds) {
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

/** A parsed line with a valid checksum; null for any other. */
function parseLine(bytes, checked) {
  const end = bytes.length - (bytes[bytes.length - 1] === 10 ? 19 : 18);
  if (end < 1) return null;
  if (!checked) {
    const given = decoder.decode(bytes.subarray(end + 8, end + 16));
    if (crcOf(bytes, end).toString(16).padStart(8, "0") !== given) return null;
  }
  try {
    return object(JSON.parse(decoder.decode(bytes)));
  } catch {
    return null;
  }
}

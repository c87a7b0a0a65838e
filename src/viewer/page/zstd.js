// Unpacks Zstandard (RFC 8878), which browsers do not do and which complete recordings are packed
// with. Only what a decoder must do, without dictionaries. Checksums of frames are passed
// over: every line of a recording has its own.

/** Extra bits of the codes for lengths of literals and of matches; what a code stands for adds up. */
const LITERAL_BITS = [...Array(16).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const MATCH_BITS = [...Array(32).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const bases = (bits, first) => bits.map((_, at) => bits.slice(0, at).reduce((sum, bit) => sum + 2 ** bit, first));
const LITERAL_BASES = bases(LITERAL_BITS, 0);
const MATCH_BASES = bases(MATCH_BITS, 3);

/** The tables that a block may rely on: how probable each code is, and the logarithm of their sum. */
const PREDEFINED = {
  literal: [[4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1], 6],
  offset: [[1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1], 5],
  match: [[1, 4, 3, 2, 2, 2, 2, 2, 2, ...Array(37).fill(1), -1, -1, -1, -1, -1, -1, -1], 6],
};

const MAGIC = 0xfd2fb528;
/** The largest frame that is unpacked; the relay's have a MiB. */
const LARGEST = 1 << 30;

class Damaged extends Error {}
const must = (holds) => {
  if (!holds) throw new Damaged("it is no Zstandard, or damaged");
};

/** Whether bytes begin as a packed file does. */
const isPacked = (bytes) => word(bytes, 0) === MAGIC;

const word = (bytes, at) => (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;

/** The frames of a packed file, unpacked, one after the other, and where each ends in it. */
function* unpacked(bytes) {
  for (let at = 0; at < bytes.length; ) {
    must(at + 8 <= bytes.length);
    const magic = word(bytes, at);
    if (magic >>> 4 === 0x184d2a5) {
      at += 8 + word(bytes, at + 4);
      continue;
    }
    must(magic === MAGIC);
    const frame = new PackedFrame(bytes, at + 4);
    const plain = frame.unpack();
    at = frame.at;
    yield [plain, at];
  }
}

/** Bits from the end of a stretch of bytes to its beginning; before that there are zeros. */
class BitsBackwards {
  constructor(bytes, from, to) {
    must(to > from && bytes[to - 1]);
    Object.assign(this, { bytes, from: from * 8 });
    // The highest bit that is set marks where they begin.
    this.at = (to - 1) * 8 + 31 - Math.clz32(bytes[to - 1]);
  }

  get left() {
    return this.at - this.from;
  }

  /** The next `count` bits, at most 24, which stay. */
  peek(count) {
    const at = this.at - count;
    if (at < this.from) return this.left > 0 ? (this.cut(this.from, this.left) << (this.from - at)) & (2 ** count - 1) : 0;
    return this.cut(at, count);
  }

  cut(at, count) {
    return (word(this.bytes, at >> 3) >>> (at & 7)) & (2 ** count - 1);
  }

  take(count) {
    if (count > 16) return this.take(count - 16) * 65536 + this.take(16);
    const bits = this.peek(count);
    this.at -= count;
    return bits;
  }
}

/** A table of finite state entropy: what each state stands for, and how to get to the next. */
class StateTable {
  constructor(chances, log) {
    const size = 1 << log;
    this.log = log;
    this.codes = new Uint8Array(size);
    this.bits = new Uint8Array(size);
    this.bases = new Uint16Array(size);
    const next = chances.map((chance) => Math.abs(chance));
    let high = size - 1;
    chances.forEach((chance, code) => chance < 0 && (this.codes[high--] = code));
    let place = 0;
    chances.forEach((chance, code) => {
      for (let times = 0; times < chance; times++) {
        this.codes[place] = code;
        do place = (place + (size >> 1) + (size >> 3) + 3) & (size - 1);
        while (place > high);
      }
    });
    must(place === 0);
    for (let state = 0; state < size; state++) {
      const turn = next[this.codes[state]]++;
      this.bits[state] = log - (31 - Math.clz32(turn));
      this.bases[state] = (turn << this.bits[state]) - size;
    }
  }

  /** A table for one code alone. */
  static of(code) {
    return Object.assign(Object.create(StateTable.prototype), { log: 0, codes: [code], bits: [0], bases: [0] });
  }

  /** Reads how probable each code is from `bytes` at `from`; the table and where it ends. */
  static read(bytes, from, most) {
    const log = (bytes[from] & 15) + 5;
    must(log <= most);
    let [left, bit] = [1 << log, from * 8 + 4];
    const chances = [];
    while (left > 0) {
      const count = 32 - Math.clz32(left + 1);
      const few = 2 ** count - 2 - left;
      let value = (word(bytes, bit >> 3) >>> (bit & 7)) & (2 ** count - 1);
      const low = value & (2 ** (count - 1) - 1);
      if (low < few) value = low;
      else if (value >= 2 ** (count - 1)) value -= few;
      bit += low < few ? count - 1 : count;
      const chance = value - 1;
      left -= Math.abs(chance);
      chances.push(chance);
      for (let more = chance === 0 ? 3 : 0; more === 3; bit += 2) {
        more = (word(bytes, bit >> 3) >>> (bit & 7)) & 3;
        for (let times = 0; times < more; times++) chances.push(0);
      }
      must(chances.length <= 256);
    }
    must(left === 0);
    return [new StateTable(chances, log), (bit + 7) >> 3];
  }
}

/** A table of Huffman codes. */
class CodeTable {
  /** Reads it from `bytes` at `from`; `end` is where it ends. */
  constructor(bytes, from) {
    const head = bytes[from];
    const weights = head < 128 ? CodeTable.packed(bytes, from + 1, head) : Array.from({ length: head - 127 }, (_, at) => (bytes[from + 1 + (at >> 1)] >> (at & 1 ? 0 : 4)) & 15);
    this.end = from + 1 + (head < 128 ? head : (head - 126) >> 1);
    const sum = weights.reduce((sum, weight) => sum + (weight ? 1 << (weight - 1) : 0), 0);
    must(sum > 0);
    this.log = 32 - Math.clz32(sum);
    must(this.log <= 11);
    // The last weight is what is missing to a power of two.
    const missing = (1 << this.log) - sum;
    must((missing & (missing - 1)) === 0);
    weights.push(32 - Math.clz32(missing));
    this.codes = new Uint8Array(1 << this.log);
    this.bits = new Uint8Array(1 << this.log);
    let place = 0;
    for (let weight = 1; weight <= this.log; weight++) {
      weights.forEach((own, code) => {
        if (own !== weight) return;
        const end = place + (1 << (weight - 1));
        this.codes.fill(code, place, end);
        this.bits.fill(this.log + 1 - weight, place, end);
        place = end;
      });
    }
  }

  /** Weights that are packed themselves: two states that take turns. */
  static packed(bytes, from, length) {
    const [table, at] = StateTable.read(bytes, from, 6);
    const bits = new BitsBackwards(bytes, at, from + length);
    const states = [bits.take(table.log), bits.take(table.log)];
    const weights = [];
    for (let turn = 0; ; turn ^= 1) {
      const state = states[turn];
      weights.push(table.codes[state]);
      if (bits.left < table.bits[state]) {
        weights.push(table.codes[states[turn ^ 1]]);
        return weights;
      }
      must(weights.length < 255);
      states[turn] = table.bases[state] + bits.take(table.bits[state]);
    }
  }

  /** Unpacks what stands from one place to another into `out`. */
  unpack(bytes, from, to, out) {
    const bits = new BitsBackwards(bytes, from, to);
    for (let at = 0; at < out.length; at++) {
      const place = bits.peek(this.log);
      out[at] = this.codes[place];
      bits.at -= this.bits[place];
    }
    must(bits.left === 0);
  }
}

/** One frame; `at` is where it is read. */
class PackedFrame {
  constructor(bytes, at) {
    Object.assign(this, { bytes, at, tables: {}, repeats: [1, 4, 8], length: 0 });
  }

  little(count) {
    let value = 0;
    for (let i = 0; i < count; i++) value += this.bytes[this.at + i] * 2 ** (8 * i);
    this.at += count;
    must(this.at <= this.bytes.length);
    return value;
  }

  unpack() {
    const head = this.little(1);
    const isOne = head & 32;
    if (!isOne) this.at += 1;
    must((head & 3) === 0);
    const width = [isOne ? 1 : 0, 2, 4, 8][head >> 6];
    const declared = this.little(width) + (width === 2 ? 256 : 0);
    must(declared <= LARGEST);
    this.out = new Uint8Array(declared || 1 << 20);
    for (let last = 0; !last; ) {
      const block = this.little(3);
      last = block & 1;
      this.block((block >> 1) & 3, block >> 3);
    }
    if (head & 4) this.at += 4;
    must(this.at <= this.bytes.length && (!width || this.length === declared));
    return this.out.subarray(0, this.length);
  }

  block(sort, size) {
    must(sort < 3 && size <= 1 << 17);
    const end = this.at + (sort === 1 ? 1 : size);
    must(end <= this.bytes.length);
    if (sort === 2) {
      this.sequences(end, this.literals());
    } else {
      this.room(size);
      if (sort === 1) this.out.fill(this.bytes[this.at], this.length, this.length + size);
      else this.out.set(this.bytes.subarray(this.at, end), this.length);
      this.length += size;
    }
    this.at = end;
  }

  /** Makes room for so many bytes more. */
  room(count) {
    if (this.length + count <= this.out.length) return;
    must(this.length + count <= LARGEST);
    const out = new Uint8Array(Math.max(this.out.length * 2, this.length + count));
    out.set(this.out);
    this.out = out;
  }

  literals() {
    const head = this.bytes[this.at];
    const [sort, form] = [head & 3, (head >> 2) & 3];
    if (sort < 2) {
      const size = form & 1 ? this.little(form === 1 ? 2 : 3) >> 4 : this.little(1) >> 3;
      const literals = sort ? new Uint8Array(size).fill(this.bytes[this.at]) : this.bytes.subarray(this.at, this.at + size);
      this.at += sort ? 1 : size;
      return literals;
    }
    const width = [10, 10, 14, 18][form];
    const sizes = Math.floor(this.little([3, 3, 4, 5][form]) / 16);
    const literals = new Uint8Array(sizes % 2 ** width);
    const end = this.at + Math.floor(sizes / 2 ** width);
    if (sort === 2) {
      this.tables.literals = new CodeTable(this.bytes, this.at);
      this.at = this.tables.literals.end;
    }
    const { literals: table } = this.tables;
    must(table);
    if (form === 0) table.unpack(this.bytes, this.at, end, literals);
    else {
      const jumps = [this.little(2), this.little(2), this.little(2)];
      const part = (literals.length + 3) >> 2;
      for (let stream = 0; stream < 4; stream++) {
        const to = stream < 3 ? this.at + jumps[stream] : end;
        must(to <= end);
        table.unpack(this.bytes, this.at, to, literals.subarray(stream * part, stream < 3 ? (stream + 1) * part : undefined));
        this.at = to;
      }
    }
    this.at = end;
    return literals;
  }

  /** The table of one sort of codes in this block. */
  table(sort, mode, most) {
    if (mode === 0) this.tables[sort] = PREDEFINED[sort].table ??= new StateTable(...PREDEFINED[sort]);
    else if (mode === 1) this.tables[sort] = StateTable.of(this.little(1));
    else if (mode === 2) [this.tables[sort], this.at] = StateTable.read(this.bytes, this.at, most);
    must(this.tables[sort]);
    return this.tables[sort];
  }

  /** Copies literals and what was there before, as the sequences describe. */
  sequences(end, literals) {
    let count = this.little(1);
    if (count === 255) count = this.little(2) + 0x7f00;
    else if (count > 127) count = (count - 128) * 256 + this.little(1);
    let used = 0;
    if (count) {
      const modes = this.little(1);
      const codes = [this.table("literal", modes >> 6, 9), this.table("offset", (modes >> 4) & 3, 8), this.table("match", (modes >> 2) & 3, 9)];
      const bits = new BitsBackwards(this.bytes, this.at, end);
      const [literal, offset, match] = codes;
      let [a, b, c] = codes.map((table) => bits.take(table.log));
      while (count--) {
        const far = offset.codes[b];
        const [own, long] = [literal.codes[a], match.codes[c]];
        must(far < 32 && own < LITERAL_BITS.length && long < MATCH_BITS.length);
        const back = 2 ** far + bits.take(far);
        const length = MATCH_BASES[long] + bits.take(MATCH_BITS[long]);
        const before = LITERAL_BASES[own] + bits.take(LITERAL_BITS[own]);
        must(used + before <= literals.length);
        this.room(before + length);
        this.out.set(literals.subarray(used, used + before), this.length);
        used += before;
        this.length += before;
        this.copy(this.distance(back, before), length);
        if (count === 0) break;
        a = literal.bases[a] + bits.take(literal.bits[a]);
        c = match.bases[c] + bits.take(match.bits[c]);
        b = offset.bases[b] + bits.take(offset.bits[b]);
      }
      must(bits.left === 0);
    }
    this.room(literals.length - used);
    this.out.set(literals.subarray(used), this.length);
    this.length += literals.length - used;
  }

  /** How far back a match is: the three last distances have short names. */
  distance(back, before) {
    const { repeats } = this;
    if (back > 3) {
      this.repeats = [back - 3, repeats[0], repeats[1]];
      return back - 3;
    }
    const name = back - (before ? 1 : 0);
    const far = name === 3 ? repeats[0] - 1 : repeats[name];
    if (name === 1) this.repeats = [far, repeats[0], repeats[2]];
    else if (name > 1) this.repeats = [far, repeats[0], repeats[1]];
    return far;
  }

  copy(back, length) {
    const from = this.length - back;
    must(back > 0 && from >= 0);
    if (back >= length) this.out.copyWithin(this.length, from, from + length);
    else for (let i = 0; i < length; i++) this.out[this.length + i] = this.out[from + i];
    this.length += length;
  }
}

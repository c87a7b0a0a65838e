// What dropped files hold, block by block, unpacked where they are packed: the first block is small and
// comes at once. Not here: what stands in it (see file.js), how it is unpacked (see zstd.js).

/** Bytes that are read at a time when all are; of the beginning fewer, for it is shown at once. */
const READ = 4 << 20;
const BEGIN = 256 << 10;

/** Milliseconds that a page may be busy before it sees to whoever uses it. */
const BUSY = 16;
const breath = () => new Promise((done) => setTimeout(done));

class Stock {
  /** What was given so far, as it was before it was packed. */
  file = new Blob();
  /** Bytes of the files that were read. */
  read = 0;

  constructor(files) {
    this.files = files;
    this.of = files.reduce((sum, file) => sum + file.size, 0);
  }

  /** What the files hold, block by block; what was given can be read again from `file`. */
  async *blocks() {
    let size = BEGIN;
    for (const file of this.files) {
      const [before, packed] = [this.read, isPacked(new Uint8Array(await file.slice(0, 4).arrayBuffer()))];
      for await (const [block, read] of packed ? this.unpack(file, size) : this.plain(file, size)) {
        this.read = before + read;
        yield block;
      }
      size = READ;
      this.read = before + file.size;
    }
  }

  /** A file as it is: blocks, and how far it has been read with each. */
  async *plain(file, size) {
    this.file = new Blob([this.file, file]);
    // The next block comes while this one is taken in.
    let next = file.slice(0, size).arrayBuffer();
    for (let at = 0; at < file.size; ) {
      const block = new Uint8Array(await next);
      next = file.slice(at + block.length, at + block.length + READ).arrayBuffer();
      at += block.length;
      yield [block, at];
    }
  }

  /** A packed file; the relay packs a MiB at a time, so that its beginning is soon there. */
  async *unpack(file, size) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    let parts = [];
    const give = async (at) => {
      const blob = new Blob(parts);
      this.file = new Blob([this.file, blob]);
      parts = [];
      return [new Uint8Array(await blob.arrayBuffer()), at];
    };
    let held = 0;
    let last = 0;
    for (const [part, at] of unpacked(bytes)) {
      parts.push(part);
      held += part.length;
      last = at;
      if (held < size) {
        await breath();
        continue;
      }
      yield await give(at);
      [held, size] = [0, READ];
    }
    if (parts.length) yield await give(last);
  }
}

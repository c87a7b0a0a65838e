// The content of dropped files, block by block, unpacked if packed: the first block is small and
// comes at once. file.js reads the lines, zstd.js unpacks.

/** Bytes that are read at a time; fewer of the beginning, which is shown at once. */
const READ = 4 << 20;
const BEGIN = 256 << 10;

/** Milliseconds that the page may be busy before it handles input. */
const BUSY = 16;
const yieldToBrowser = () => new Promise((done) => setTimeout(done));

class FileContent {
  /** The content that was returned so far, unpacked. */
  file = new Blob();
  /** Bytes of the files that were read. */
  read = 0;

  constructor(files) {
    this.files = files;
    this.total = files.reduce((sum, file) => sum + file.size, 0);
  }

  /** The content of the files, block by block; it can be read again from `file`. */
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

  /** A plain file: blocks, and how far it has been read with each. */
  async *plain(file, size) {
    this.file = new Blob([this.file, file]);
    // The next block is read while this one is processed.
    let next = file.slice(0, size).arrayBuffer();
    for (let at = 0; at < file.size; ) {
      const block = new Uint8Array(await next);
      next = file.slice(at + block.length, at + block.length + READ).arrayBuffer();
      at += block.length;
      yield [block, at];
    }
  }

  /** A packed file; the relay packs a MiB at a time, so its beginning comes soon. */
  async *unpack(file, size) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    let parts = [];
    const take = async (at) => {
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
        await yieldToBrowser();
        continue;
      }
      yield await take(at);
      [held, size] = [0, READ];
    }
    if (parts.length) yield await take(last);
  }
}

// A list of any length: only visible rows have elements. Rows come in windows, are kept for a
// while, and are requested again when the content of the list changes.

/** Rows in a window, and windows that are kept. */
const WINDOW = 100;
const WINDOWS = 40;

/** Browsers lay out some million pixels at most; beyond that, a pixel of the bar is many rows. */
const TALLEST = 6e6;

class List {
  total = 0;
  top = 0;
  windows = new Map();
  generation = 0;

  /** `fetch(from, count)` returns rows, `render(row, place)` an element. */
  constructor(box, fetch, render) {
    Object.assign(this, { box, fetch, render });
    this.spacer = el("div", "spacer");
    this.rows = el("div", "rows");
    this.spacer.append(this.rows);
    box.append(this.spacer);
    box.addEventListener("scroll", () => this.scrolled());
    new ResizeObserver(() => this.layOut()).observe(box);
  }

  get height() {
    return (this.rowHeight ??= parseFloat(getComputedStyle(this.box).getPropertyValue("--row")) || 36);
  }

  get tall() {
    return this.total * this.height;
  }

  get tallest() {
    return Math.max(0, this.tall - this.box.clientHeight);
  }

  /** How far a pixel of the scroll bar goes. */
  get scale() {
    const bar = Math.min(this.tall, TALLEST) - this.box.clientHeight;
    return bar > 0 ? this.tallest / bar : 1;
  }

  /** Discards all rows. */
  reset() {
    this.generation++;
    this.windows.clear();
    this.rows.replaceChildren();
    this.go(0);
  }

  /** There are more rows, so the last window is incomplete. */
  grow(total) {
    if (total === this.total) return;
    // And the one before it: a translated message is listed after its original.
    const last = Math.floor(Math.max(0, Math.min(this.total, total) - 1) / WINDOW);
    for (const at of [last, last - 1]) this.windows.delete(at);
    this.total = total;
    this.layOut();
  }

  /** The rows that are kept. */
  *known() {
    for (const rows of this.windows.values()) if (!(rows instanceof Promise)) yield* rows;
  }

  /** Renders all rows again. */
  redraw() {
    for (const row of this.known()) row.element = row.spelled = undefined;
    this.draw();
  }

  /** Rows may have changed (an answer came, a run became longer). */
  refresh() {
    const first = Math.floor(this.top / this.height / WINDOW);
    for (const at of [first, first + 1, Math.floor((this.total - 1) / WINDOW)]) {
      const known = this.windows.get(at);
      if (known && !(known instanceof Promise)) known.stale = true;
    }
    this.layOut();
  }

  /** Scrolls to the row at `place`. */
  reveal(place, centre) {
    const [at, room] = [place * this.height, this.box.clientHeight];
    if (centre && (at < this.top || at + this.height > this.top + room)) this.go(at - room / 2);
    else if (at < this.top) this.go(at);
    else if (at + this.height > this.top + room) this.go(at + this.height - room);
    else this.draw();
  }

  go(top) {
    this.top = Math.max(0, Math.min(top, this.tallest));
    this.layOut();
  }

  scrolled() {
    const moved = this.box.scrollTop - this.bar;
    if (Math.abs(moved) < 1) return;
    // The wheel scrolls by rows, dragging the bar scrolls through the whole list.
    const near = Math.abs(moved) < 2 * this.box.clientHeight;
    this.top = this.scale === 1 || !near ? this.box.scrollTop * this.scale : this.top + moved;
    this.layOut();
  }

  layOut() {
    this.top = Math.max(0, Math.min(this.top, this.tallest));
    this.spacer.style.height = `${Math.min(this.tall, TALLEST)}px`;
    this.box.scrollTop = this.top / this.scale;
    this.bar = this.box.scrollTop;
    this.draw();
  }

  /** A row, if it is loaded. */
  row(place) {
    const rows = this.windows.get(Math.floor(place / WINDOW));
    return rows && !(rows instanceof Promise) ? rows[place % WINDOW] : undefined;
  }

  /** A row, once it is loaded. */
  async rowAt(place) {
    if (place < 0 || place >= this.total) return undefined;
    // A row that is being loaded again will do; `mark` replaces it.
    if (!this.row(place)) await this.load(Math.floor(place / WINDOW));
    return this.row(place);
  }

  load(at) {
    const known = this.windows.get(at);
    if (known && !known.stale) return known;
    const generation = this.generation;
    const loading = this.fetch(at * WINDOW, WINDOW)
      .then((rows) => {
        if (generation !== this.generation) return;
        // Unchanged rows stay, with their elements, which may be receiving a click. Another answer may
        // have brought them meanwhile.
        const before = this.windows.get(at);
        rows.forEach((row, place) => {
          row.spelled = JSON.stringify(row);
          const same = Array.isArray(before) && before[place]?.spelled === row.spelled;
          if (same) rows[place] = before[place];
        });
        this.windows.delete(at);
        this.windows.set(at, rows);
        if (this.windows.size > WINDOWS) this.windows.delete(this.windows.keys().next().value);
        this.draw();
      })
      .catch(() => generation === this.generation && this.windows.delete(at));
    // Stale rows are shown until new ones are loaded.
    if (known) known.stale = false;
    else this.windows.set(at, loading);
    return loading;
  }

  draw() {
    if (this.box.hidden) return;
    const first = Math.max(0, Math.floor(this.top / this.height) - 4);
    const last = Math.min(this.total, Math.ceil((this.top + this.box.clientHeight) / this.height) + 4);
    this.rows.style.transform = `translateY(${this.bar + first * this.height - this.top}px)`;
    const made = [];
    for (let place = first; place < last; place++) {
      const row = this.row(place);
      if (!row || this.windows.get(Math.floor(place / WINDOW)).stale) this.load(Math.floor(place / WINDOW));
      made.push(row ? (row.element ??= this.render(row)) : el("div", "row waiting"));
      if (row) {
        // Most rows have no elements that a screen reader could count.
        Object.assign(row.element, { ariaSetSize: this.total, ariaPosInSet: place + 1 });
        this.mark?.(row, row.element);
      }
    }
    const shown = this.rows.children;
    const same = shown.length === made.length && made.every((one, at) => one === shown[at]);
    if (!same) this.rows.replaceChildren(...made);
    this.drawn?.(first, last);
  }
}

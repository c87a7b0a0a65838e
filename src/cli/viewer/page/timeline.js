// The timeline: how much went in each direction, where the turns and the errors are, and a range to
// select.

/** Parts of the time that a key moves by, and that it is divided in. */
const STEPS = 240;

/** Pixels between two marks of the time, at least. */
const APART = 90;

class Timeline {
  range = null;
  /** Where the keys are, in microseconds, and where a range began. */
  at = 0;
  anchor = null;

  /** `changed(at)` is told of a time that somebody wants to see, or that the range is another. */
  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed });
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.end(event));
    canvas.addEventListener("pointercancel", () => (this.from = undefined));
    canvas.addEventListener("pointerleave", () => this.tell(null));
    canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && this.tell(this.at));
    canvas.addEventListener("blur", () => this.tell(null));
    $("range").querySelector("button").addEventListener("click", () => this.clear());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  get lasted() {
    return this.state?.lasted ?? 0;
  }

  show(state) {
    this.state = state;
    this.canvas.setAttribute("aria-valuemax", this.lasted);
    this.draw();
  }

  clear() {
    if (!this.range) return;
    this.range = null;
    this.draw();
    this.changed();
  }

  /** Marks what the list shows, from one time to another. */
  see(from, to) {
    this.window = [from, to];
    const cursor = $("cursor");
    const lasted = this.lasted + 1;
    cursor.hidden = !this.state;
    cursor.style.left = `${(from / lasted) * 100}%`;
    cursor.style.width = `max(2px, ${((to - from) / lasted) * 100}%)`;
  }

  /** Says which time a place is, and what happened there. */
  tell(time) {
    const hour = $("hour");
    hour.hidden = time === null || !this.state?.events;
    if (hour.hidden) return;
    const { agent, client, error } = this.state.buckets;
    const bucket = Math.min(agent.length - 1, Math.floor((time * agent.length) / (this.lasted + 1)));
    const counts = [[agent[bucket], "→"], [client[bucket], "←"], [error[bucket], "failed"]].filter(([count]) => count);
    const share = time / Math.max(1, this.lasted);
    hour.textContent = [clock(time), ...counts.map(([count, way]) => `${grouped(count)} ${way}`)].join("  ");
    hour.style.left = `${share * 100}%`;
    hour.style.transform = `translateX(${-share * 100}%)`;
    this.canvas.setAttribute("aria-valuenow", time);
    this.canvas.setAttribute("aria-valuetext", clock(time) + (this.range ? `, ${took(this.range[1] - this.range[0])} selected` : ""));
  }

  /** The keys of the timeline; whether it was one. */
  key({ key, shiftKey }) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -STEPS, End: STEPS }[key];
    if (key === "Enter") this.changed(this.at);
    else if (!step || !this.state) return false;
    else {
      const from = this.anchor ?? this.at;
      this.at = Math.max(0, Math.min(this.lasted, this.at + Math.round((step * this.lasted) / STEPS)));
      this.anchor = shiftKey ? from : null;
      if (shiftKey) {
        this.select(from / this.lasted, this.at / this.lasted);
        this.changed();
      }
      this.tell(this.at);
    }
    return true;
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
  }

  begin(event) {
    if (!this.state?.events) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.from = this.place(event);
  }

  move(event) {
    this.tell(Math.round(this.place(event) * this.lasted));
    if (this.from !== undefined) this.select(this.from, this.place(event));
  }

  end(event) {
    if (this.from === undefined) return;
    const [from, to] = [this.from, this.place(event)];
    this.from = undefined;
    // A click goes there, a pull selects.
    if (Math.abs(to - from) < 0.004) {
      const had = this.range;
      this.range = null;
      this.draw();
      if (had) this.changed();
      this.changed((this.at = Math.round(to * this.lasted)));
    } else {
      this.select(from, to);
      this.changed();
    }
  }

  select(a, b) {
    this.range = [Math.round(Math.min(a, b) * this.lasted), Math.round(Math.max(a, b) * this.lasted)];
    this.draw();
  }

  draw() {
    const { canvas, state } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !state) return;
    const dots = devicePixelRatio || 1;
    canvas.width = width * dots;
    canvas.height = height * dots;
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.drawTurns(pen, width, height, colour);
    this.drawBars(pen, width, height, colour);
    this.drawScale(pen, width, height, colour);
    const label = $("range");
    label.hidden = !this.range;
    if (this.range) {
      const [from, to] = this.range;
      const share = (value) => (value / Math.max(1, state.lasted)) * 100;
      label.style.left = `${share(from)}%`;
      label.style.width = `${share(to) - share(from)}%`;
      label.firstElementChild.textContent = took(to - from);
    }
    if (this.window) this.see(...this.window);
  }

  /** Each turn is a shade behind what happened in it. */
  drawTurns(pen, width, height, colour) {
    pen.fillStyle = colour("--pair");
    const lasted = Math.max(1, this.lasted);
    for (const [from, to] of list(this.state.spans)) {
      const left = (from / lasted) * width;
      pen.fillRect(left, 0, Math.max(1, ((to ?? this.lasted) / lasted) * width - left - 1), height);
    }
  }

  drawBars(pen, width, height, colour) {
    const { agent, client, error, other } = this.state.buckets;
    const count = agent.length;
    const most = Math.max(1, ...agent, ...client.map((value, at) => value + error[at]));
    const [middle, step] = [(height - 12) / 2 + 1, width / count];
    // The root, so that single events can be seen beside bursts.
    const tall = (value) => (value ? Math.max(3, Math.sqrt(value / most) * (middle - 4)) : 0);
    const [from, to] = this.range ?? [-1, Infinity];
    for (let at = 0; at < count; at++) {
      const time = (at / count) * this.lasted;
      pen.globalAlpha = time + this.lasted / count >= from && time <= to ? 1 : 0.25;
      const bar = (name, value, up) => {
        pen.fillStyle = colour(name);
        pen.fillRect(at * step, up ? middle - 1 - tall(value) : middle + 1, Math.max(2, step - 1), tall(value));
      };
      bar("--client", agent[at], true);
      bar("--agent", client[at], false);
      if (error[at]) {
        bar("--bad", error[at], false);
        // A shape, for those to whom all bars have one colour.
        pen.beginPath();
        pen.moveTo(at * step - 3, 1);
        pen.lineTo(at * step + 6, 1);
        pen.lineTo(at * step + 1.5, 8);
        pen.fill();
      }
      if (other[at]) {
        pen.fillStyle = colour("--faint");
        pen.fillRect(at * step, middle - 1, Math.max(2, step - 1), 2);
      }
    }
    pen.globalAlpha = 1;
  }

  /** Marks of the time, at round numbers. */
  drawScale(pen, width, height, colour) {
    const least = (this.lasted * APART) / width;
    const round = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5].map((ms) => ms * 1e3);
    const step = round.find((one) => one >= least);
    if (!step) return;
    pen.fillStyle = colour("--faint");
    pen.font = `10px ${colour("--mono")}`;
    for (let time = step; time < this.lasted; time += step) {
      const left = Math.round((time / this.lasted) * width);
      pen.fillRect(left, height - 12, 1, 4);
      const words = took(time).replace(/\.00(?= s)|(?<=[mh]) 0 [sm]$/, "");
      if (left + 3 + words.length * 6 < width) pen.fillText(words, left + 3, height - 4);
    }
  }
}

// The timeline: traffic in each direction, turns, outages, errors, and a range to select.

/** Steps of a key over the whole time. */
const STEPS = 240;

/** Least pixels between two marks of the scale. */
const APART = 90;

class Timeline {
  range = null;
  /** The position of the keys in microseconds, and the begin of a range. */
  at = 0;
  anchor = null;

  /** Calls `changed(at)` to go to a time, and `changed()` when the range has changed. */
  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed });
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.end(event));
    canvas.addEventListener("pointercancel", () => (this.from = undefined));
    canvas.addEventListener("pointerleave", () => this.describe(null));
    canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && this.describe(this.at));
    canvas.addEventListener("blur", () => this.describe(null));
    $("range").querySelector("button").addEventListener("click", () => this.clear());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  get duration() {
    return this.state?.duration ?? 0;
  }

  show(state) {
    this.state = state;
    this.canvas.setAttribute("aria-valuemax", this.duration);
    this.draw();
  }

  clear() {
    if (!this.range) return;
    this.range = null;
    this.draw();
    this.changed();
  }

  /** Marks the times that the list shows. */
  see(from, to) {
    this.window = [from, to];
    const cursor = $("cursor");
    const duration = this.duration + 1;
    cursor.hidden = !this.state;
    cursor.style.left = `${(from / duration) * 100}%`;
    cursor.style.width = `max(2px, ${((to - from) / duration) * 100}%)`;
  }

  /** Shows the time at a position, and what happened then. */
  describe(time) {
    const hour = $("hour");
    hour.hidden = time === null || !this.state?.events;
    if (hour.hidden) return;
    const { agent, client, error } = this.state.buckets;
    const bucket = Math.min(agent.length - 1, Math.floor((time * agent.length) / (this.duration + 1)));
    const counts = [[agent[bucket], "→"], [client[bucket], "←"], [error[bucket], "failed"]].filter(([count]) => count);
    const near = this.duration / STEPS;
    const lost = list(this.state.outages).filter(([from, to]) => from - near <= time && time <= (to ?? this.duration) + near);
    const words = [clock(time), ...lost.map((outage) => `${outage[2]} lost for ${took(this.lasted(outage))}`)];
    const share = time / Math.max(1, this.duration);
    hour.textContent = [...words, ...counts.map(([count, way]) => `${grouped(count)} ${way}`)].join("  ");
    hour.style.left = `${share * 100}%`;
    hour.style.transform = `translateX(${-share * 100}%)`;
    this.canvas.setAttribute("aria-valuenow", time);
    this.canvas.setAttribute("aria-valuetext", words.join(", ") + (this.range ? `, ${took(this.range[1] - this.range[0])} selected` : ""));
  }

  /** Handles a key. Returns whether it was for the timeline. */
  key({ key, shiftKey }) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -STEPS, End: STEPS }[key];
    if (key === "Enter") this.changed(this.at);
    else if (!step || !this.state) return false;
    else {
      const from = this.anchor ?? this.at;
      this.at = Math.max(0, Math.min(this.duration, this.at + Math.round((step * this.duration) / STEPS)));
      this.anchor = shiftKey ? from : null;
      if (shiftKey) {
        this.select(from / this.duration, this.at / this.duration);
        this.changed();
      }
      this.describe(this.at);
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
    this.describe(Math.round(this.place(event) * this.duration));
    if (this.from !== undefined) this.select(this.from, this.place(event));
  }

  end(event) {
    if (this.from === undefined) return;
    const [from, to] = [this.from, this.place(event)];
    this.from = undefined;
    // A click goes there, dragging selects.
    if (Math.abs(to - from) < 0.004) {
      const had = this.range;
      this.range = null;
      this.draw();
      if (had) this.changed();
      this.changed((this.at = Math.round(to * this.duration)));
    } else {
      this.select(from, to);
      this.changed();
    }
  }

  select(a, b) {
    this.range = [Math.round(Math.min(a, b) * this.duration), Math.round(Math.max(a, b) * this.duration)];
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
    this.drawOutages(pen, width, height, colour);
    this.drawBars(pen, width, height, colour);
    this.drawScale(pen, width, height, colour);
    const label = $("range");
    label.hidden = !this.range;
    if (this.range) {
      const [from, to] = this.range;
      const share = (value) => (value / Math.max(1, state.duration)) * 100;
      label.style.left = `${share(from)}%`;
      label.style.width = `${share(to) - share(from)}%`;
      label.firstElementChild.textContent = took(to - from);
    }
    if (this.window) this.see(...this.window);
  }

  /** Each turn is a shaded background. */
  drawTurns(pen, width, height, colour) {
    pen.fillStyle = colour("--pair");
    const duration = Math.max(1, this.duration);
    for (const [from, to] of list(this.state.spans)) {
      const left = (from / duration) * width;
      pen.fillRect(left, 0, Math.max(1, ((to ?? this.duration) / duration) * width - left - 1), height);
    }
  }

  /** How long an outage lasts; one that is not over, until now. */
  lasted([from, to]) {
    return (to ?? this.duration) - from;
  }

  /** Each outage is a marked background, with its duration. */
  drawOutages(pen, width, height, colour) {
    const duration = Math.max(1, this.duration);
    pen.font = `10px ${colour("--mono")}`;
    for (const outage of list(this.state.outages)) {
      const left = (outage[0] / duration) * width;
      const wide = Math.max(2, (this.lasted(outage) / duration) * width);
      const words = took(this.lasted(outage));
      pen.fillStyle = colour("--rule-bg");
      pen.fillRect(left, 0, wide, height);
      pen.fillStyle = colour("--rule");
      pen.fillRect(left, 0, wide, 3);
      if (words.length * 6 + 6 < wide) pen.fillText(words, left + 3, 13);
    }
  }

  drawBars(pen, width, height, colour) {
    const { agent, client, error, other } = this.state.buckets;
    const count = agent.length;
    const most = Math.max(1, ...agent, ...client.map((value, at) => value + error[at]));
    const [middle, step] = [(height - 12) / 2 + 1, width / count];
    // The square root, so that single events are visible beside bursts.
    const tall = (value) => (value ? Math.max(3, Math.sqrt(value / most) * (middle - 4)) : 0);
    const [from, to] = this.range ?? [-1, Infinity];
    for (let at = 0; at < count; at++) {
      const time = (at / count) * this.duration;
      pen.globalAlpha = time + this.duration / count >= from && time <= to ? 1 : 0.25;
      const bar = (name, value, up) => {
        pen.fillStyle = colour(name);
        pen.fillRect(at * step, up ? middle - 1 - tall(value) : middle + 1, Math.max(2, step - 1), tall(value));
      };
      bar("--client", agent[at], true);
      bar("--agent", client[at], false);
      if (error[at]) {
        bar("--bad", error[at], false);
        // A shape, because colour alone may not be visible.
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

  /** The scale, at round numbers. */
  drawScale(pen, width, height, colour) {
    const least = (this.duration * APART) / width;
    const round = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5].map((ms) => ms * 1e3);
    const step = round.find((one) => one >= least);
    if (!step) return;
    pen.fillStyle = colour("--faint");
    pen.font = `10px ${colour("--mono")}`;
    for (let time = step; time < this.duration; time += step) {
      const left = Math.round((time / this.duration) * width);
      pen.fillRect(left, height - 12, 1, 4);
      const words = took(time).replace(/\.00(?= s)|(?<=[mh]) 0 [sm]$/, "");
      if (left + 3 + words.length * 6 < width) pen.fillText(words, left + 3, height - 4);
    }
  }
}

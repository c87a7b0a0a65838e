// The timeline: how much went in each direction, where the errors are, and a range to select.

class Timeline {
  range = null;

  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed });
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.end(event));
    canvas.addEventListener("pointercancel", () => (this.from = undefined));
    $("range").querySelector("button").addEventListener("click", () => this.clear());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(state) {
    this.state = state;
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
    const lasted = (this.state?.lasted ?? 0) + 1;
    cursor.hidden = !this.state;
    cursor.style.left = `${(from / lasted) * 100}%`;
    cursor.style.width = `max(2px, ${((to - from) / lasted) * 100}%)`;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
  }

  begin(event) {
    if (!this.state?.events) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.from = this.at(event);
  }

  move(event) {
    if (this.from === undefined) return;
    this.select(this.from, this.at(event));
  }

  end(event) {
    if (this.from === undefined) return;
    const [from, to] = [this.from, this.at(event)];
    this.from = undefined;
    // A click goes there, a pull selects.
    if (Math.abs(to - from) < 0.004) {
      this.range = null;
      this.draw();
      this.changed(Math.round(to * this.state.lasted));
    } else {
      this.select(from, to);
      this.changed();
    }
  }

  select(a, b) {
    const lasted = this.state.lasted;
    this.range = [Math.round(Math.min(a, b) * lasted), Math.round(Math.max(a, b) * lasted)];
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
    const { agent, client, error, other } = state.buckets;
    const count = agent.length;
    const most = Math.max(1, ...agent, ...client.map((value, at) => value + error[at]));
    const [middle, step] = [height / 2, width / count];
    // The root, so that single events can be seen beside bursts.
    const tall = (value) => (value ? Math.max(2, Math.sqrt(value / most) * (middle - 4)) : 0);
    const [from, to] = this.range ?? [-1, Infinity];
    for (let at = 0; at < count; at++) {
      const time = (at / count) * state.lasted;
      pen.globalAlpha = time + state.lasted / count >= from && time <= to ? 1 : 0.25;
      const bar = (name, value, up) => {
        pen.fillStyle = colour(name);
        const h = tall(value);
        pen.fillRect(at * step, up ? middle - 1 - h : middle + 1, Math.max(1, step - 1), h);
      };
      bar("--client", agent[at], true);
      bar("--agent", client[at], false);
      if (error[at]) bar("--bad", error[at], false);
      if (other[at]) {
        pen.fillStyle = colour("--faint");
        pen.fillRect(at * step, middle - 1, Math.max(1, step - 1), 2);
      }
    }
    const label = $("range");
    label.hidden = !this.range;
    if (this.range) {
      const share = (value) => (value / Math.max(1, state.lasted)) * 100;
      label.style.left = `${share(from)}%`;
      label.style.width = `${share(to) - share(from)}%`;
      label.firstElementChild.textContent = took(to - from);
    }
    if (this.window) this.see(...this.window);
  }
}

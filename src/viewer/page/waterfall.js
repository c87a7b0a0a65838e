// The compact list: a row of columns for each event, with a bar from a request to its answer, and
// figures of the whole recording above it. It shows the rows of the sequence in another form.

/** The columns that can be sorted by, and whether the largest stands first at first. */
const ROW_COLUMNS = { time: false, side: false, method: false, status: false, size: true, duration: true };

/** Microseconds that the axis of time has at least. */
const SHORTEST = 1000;

/** Turns that are listed with the time to their first update. */
const TURNS_LISTED = 200;

class Waterfall {
  on = false;
  /** The column that the rows are sorted by, with a minus for the largest first; empty for the order of time. */
  sort = "";

  /** `changed()` is called when the order has changed, `jump(n)` goes to an event. */
  constructor(box, rows, changed, jump) {
    Object.assign(this, { box, rows, changed, jump });
    this.heads = Object.keys(ROW_COLUMNS).map((name) => {
      const head = button(name, name, () => this.by(name));
      head.dataset.name = name;
      return head;
    });
    this.axis = el("div", "fall", ...[0, 25, 50, 75].map(() => el("span", "")));
    this.columns = el("div", "", ...this.heads, this.axis);
    this.columns.id = "columns";
    this.figures = el("details", "", el("summary", ""), el("div", "figures"));
    this.figures.id = "figures";
    this.refused = el("p", "");
    Object.assign(this.refused, { id: "refused", role: "status" });
    box.before(this.figures, this.refused, this.columns);
    this.show(true);
  }

  /** Shows the list, or the arrows; `visible` when it is the current view. */
  show(visible) {
    this.box.classList.toggle("dense", this.on);
    $("lanes").hidden = this.on || !visible;
    for (const part of [this.columns, this.figures]) part.hidden = !this.on || !visible;
    this.refused.hidden = !this.on || !visible || !this.isRefused;
    $("dense").setAttribute("aria-pressed", String(this.on));
    this.rows.rowHeight = undefined;
    for (const head of this.heads) {
      const { name } = head.dataset;
      const own = this.sort.replace("-", "") === name ? (this.sort.startsWith("-") ? "descending" : "ascending") : !this.sort && name === "time" ? "ascending" : "";
      head.replaceChildren(name, el("span", "", { ascending: " ▴", descending: " ▾" }[own] ?? ""));
      head.ariaLabel = head.title = own ? `${name}, ${own}` : `sort by ${name}`;
    }
  }

  by(name) {
    const order = ROW_COLUMNS[name] ? [`-${name}`, name, ""] : name === "time" ? ["", "-time"] : [name, `-${name}`, ""];
    this.order(order[(order.indexOf(this.sort) + 1) % order.length]);
    this.changed();
  }

  order(sort) {
    this.sort = Object.hasOwn(ROW_COLUMNS, sort.replace(/^-/, "")) ? sort : "";
  }

  /** Says whether the rows came in the order that was asked for. */
  ordered({ sorted }) {
    this.isRefused = Boolean(this.on && this.sort && sorted !== true);
    const why = sorted === false ? "There are too many rows to sort them; a filter or a range of time leaves fewer. These are in the order of time." : "This page sorts no rows; acp-relay inspect open does. These are in the order of time.";
    if (this.refused.textContent !== why) this.refused.textContent = why;
    this.refused.hidden = !this.isRefused || this.columns.hidden;
  }

  /** Adapts the axis of time to the rows in view; rows in another order show the whole time. */
  scale(duration) {
    if (!this.on) return;
    const { rows } = this;
    const first = Math.floor(rows.top / rows.height);
    const last = Math.min(rows.total, Math.ceil((rows.top + this.box.clientHeight) / rows.height));
    let [from, to] = [Infinity, 0];
    for (let place = first; place < last; place++) {
      const fact = rows.row(place) && facts(rows.row(place));
      if (fact) [from, to] = [Math.min(from, fact.t), Math.max(to, fact.t)];
    }
    if (from > to || (this.sort && !this.isRefused)) [from, to] = timeline.range ?? [0, duration];
    const span = Math.max(SHORTEST, (to - from) * 1.03);
    this.box.style.setProperty("--from", from);
    this.box.style.setProperty("--span", span);
    [...this.axis.children].forEach((mark, at) => (mark.textContent = at ? `+${took(Math.round((span * at) / 4))}` : clock(from)));
  }

  row(row, writing) {
    const fact = facts(row);
    const made = el("div", "row");
    made.id = `row-${fact.i}`;
    made.setAttribute("role", "option");
    made.dataset.i = fact.i;
    const isMessage = Boolean(fact.hop) && fact.kind in KINDS;
    const way = isMessage ? wayOf(fact) : [el("span", "who", SIGNS[fact.kind] ?? "other")];
    const state = stateOf(fact, writing);
    const hush = fact.silence ? `${took(fact.silence)} of silence` : "";
    made.setAttribute("aria-label", [hush && `after ${hush}`, spoken(fact), state].filter(Boolean).join(", "));
    const time = el("time", "", badge(fact.lint), hour(fact));
    time.title = ofDay ? `${clock(fact.t)} since the beginning` : wall(fact.w);
    const what = el("span", "what", fact.title === SIGNS[fact.kind] ? null : line("title", fact.title, 80), fact.run > 1 ? el("span", "times", `×${grouped(fact.run)}`) : null, ...list(fact.rules).slice(0, 1).map((rule) => line("rule", rule.split("/").pop(), 40)), line("summary", fact.summary, 160), hush && el("span", "hush", took(fact.silence), el("span", "who", " of silence")));
    const answers = fact.kind === "result" || fact.kind === "error";
    const lasts = fact.duration ?? null;
    const bar = el("span", "fall", el("i", ""));
    const open = fact.kind === "request" && !fact.answer;
    made.append(time, el("span", `side ${isMessage ? `by-${fact.to === "agent" ? "client" : "agent"}` : ""}`, ...way), what, line("state", state, 40), el("span", "size", isMessage ? size(fact.length ?? fact.size) : ""));
    made.append(el("span", lasts > 2e6 ? "lasts slow" : "lasts", open && writing && fact.received ? waited(fact.w) : took(lasts)), bar);
    if (open && writing && fact.received) Object.assign(made.querySelector(".lasts"), { className: "lasts tail waiting" }).dataset.since = fact.w;
    const kind = fact.kind === "request" && (lasts !== null || fact.received) ? (open ? "asked open" : "asked") : answers && lasts ? "answered" : "moment";
    bar.firstChild.className = `${kind} ${isMessage ? `to-${fact.to}` : ""}`;
    made.style.setProperty("--t", answers && lasts ? fact.t - lasts : fact.t);
    made.style.setProperty("--d", lasts ?? (open && fact.received ? 1e13 : 0));
    if (hush) {
      made.classList.add("hushed");
      made.style.setProperty("--hush", fact.silence);
      made.style.setProperty("--at", fact.t);
    }
    if (fact.bad || fact.failed) made.classList.add("bad");
    return made;
  }

  /** Shows the figures of the recording, if they are to be seen and may have changed. */
  async update(source, events) {
    if (!this.on || this.known === source && this.events === events) return;
    Object.assign(this, { known: source, events });
    const figures = await source.figures?.();
    if (this.known !== source) return;
    const [head, body] = this.figures.children;
    if (!figures) return void head.replaceChildren(el("b", "", "Figures"), el("span", "", "are computed by acp-relay inspect stats, or inspect open"));
    const { turns, first_update: first, slowest, methods } = figures;
    const brief = (name, times) => times.count && el("span", "", `${name} `, el("b", "", took(times.p50)), times.count > 1 ? `, at most ${took(times.max)}` : null);
    const words = [brief("turn", turns), brief("first update", first), slowest.length && el("span", "", "slowest tool call ", el("b", "", took(slowest[0].lasted)))];
    head.replaceChildren(el("b", "", "Figures"), ...words.filter(Boolean));
    body.replaceChildren(this.latencies(methods), this.links("Time to the first update", figures.firsts.slice(0, TURNS_LISTED), (one) => [`Turn ${one.turn}`, one.first]), this.links("Slowest tool calls", slowest, (one) => [one.title || one.id, one.lasted]));
  }

  /** The percentiles of each method. */
  latencies(methods) {
    const heads = ["method", "count", "p50", "p90", "p99", "max"];
    const table = el("table", "", el("thead", "", el("tr", "", ...heads.map((head) => Object.assign(el("th", "", head), { scope: "col" })))), el("tbody", ""));
    for (const { from, method, took: times } of methods) {
      const name = Object.assign(el("th", "", el("span", `side by-${from}`, from), " ", line("", method, 60)), { scope: "row" });
      table.lastChild.append(el("tr", "", name, el("td", "", grouped(times.count)), ...heads.slice(2).map((head) => el("td", "", took(times[head])))));
    }
    return el("section", "", el("h3", "", "From request to answer"), methods.length ? table : el("p", "soft", "No request was answered."));
  }

  /** Events with a duration, each a link to it. */
  links(title, all, words) {
    const made = el("section", "", el("h3", "", title), all.length ? null : el("p", "soft", "none"));
    for (const one of all) {
      const [name, time] = words(one);
      made.append(button("reach", "", () => this.jump(one.n), "Go to the event"));
      made.lastChild.append(line("", name, 80), el("span", "lasts", took(time)));
    }
    return made;
  }
}

/** Who sent a message, and to which side. */
function wayOf({ to, received }) {
  const who = el("span", "who", ` ${received ? (to === "agent" ? "client" : "agent") : "relay"} `);
  return to === "agent" ? [who, "→"] : ["←", who];
}

/** What became of it, in a word or two. */
function stateOf(fact, writing) {
  if (fact.kind === "request") return fact.answer ? (fact.failed ? "failed" : "answered") : fact.received ? (writing ? "waiting" : "no answer") : "";
  return { result: "ok", error: "error", malformed: "invalid" }[fact.kind] ?? fact.status ?? "";
}

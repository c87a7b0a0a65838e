// The recordings of the viewer's server as a table: sorted, searched, and picked for a comparison.
// The server sends rows when they change; only visible ones have elements.

/** The columns: a member of a row, its title, and what a cell shows. */
const COLUMNS = [
  ["time", "time", (row) => [whenOf(row), row.writing ? el("span", "now", "live") : null]],
  ["name", "recording", (row) => [line("", row.name, 200)]],
  ["client", "client", (row) => [line("", row.client, 80)]],
  ["agent", "agent", (row) => [el("div", "peer", row.agent ? line("", row.agent, 80) : null, row.fault ? line("bad fault", row.fault, 300) : null), el("div", "sub", ...subOf(row))]],
  ["turns", "turns", (row) => [countOf(row, "turns", "")]],
  ["errors", "errors", (row) => [countOf(row, "errors", "bad")]],
  ["findings", "findings", (row) => [countOf(row, "findings", text(row.severity) === "error" ? "bad" : text(row.severity))]],
  ["length", "length", (row) => [row.length === undefined ? unread(row) : `${row.partial ? "> " : ""}${took(row.length)}`]],
  ["bytes", "size", (row) => [size(row.bytes)]],
];
const TEXTUAL = ["name", "client", "agent"];

/** Rows above and below the visible ones that have elements. */
const SPARE = 10;

/** Milliseconds between two requests while the table is not shown. */
const SELDOM = 4000;

const dayOf = (row) => wall(row.time / 1e6).replace(/\.\d+.*/, "");
function whenOf(row) {
  const made = el("time", "", el("span", "year", dayOf(row).slice(0, 5)), dayOf(row).slice(5, 16), el("span", "second", dayOf(row).slice(16)));
  made.title = wall(row.time / 1e6);
  return made;
}
function unread(row) {
  const made = el("span", "unread", row.fault ? "–" : "…");
  made.ariaLabel = row.fault ? "unknown" : "not read yet";
  return made;
}
function countOf(row, name, mark) {
  const count = row[name];
  if (count === undefined) return unread(row);
  return el("span", count ? mark : "none", `${grouped(count)}${row.partial ? "+" : ""}`);
}
/** What narrow windows show below the agent. */
function subOf(row) {
  const words = [row.turns === undefined ? null : many(row.turns, "turn"), row.errors ? el("span", "bad", many(row.errors, "error")) : null, row.findings ? many(row.findings, "finding") : null,
    line("", row.client, 40), row.length === undefined ? null : took(row.length), size(row.bytes)];
  return words.filter((word) => word?.textContent ?? word).flatMap((word, at) => (at ? [" · ", word] : [word]));
}

class Overview {
  rows = new Map();
  order = [];
  sort = { by: "time", down: true };
  revision = 0;
  selected = null;
  picked = [];
  hits = null;
  typed = "";

  constructor() {
    this.body = el("tbody", "");
    this.head = el("tr", "", el("th", "c-pick", el("span", "unheard", "compare")), ...COLUMNS.map(([name, title]) => {
      const made = el("th", `c-${name}`, button("", title, () => this.sortBy(name), `Sort by ${title}`));
      made.scope = "col";
      return made;
    }));
    const table = el("table", "", el("caption", "unheard", "Recordings"), el("thead", "", this.head), this.body);
    this.sheet = el("div", "sheet", table);
    this.sheet.tabIndex = -1;
    this.field = el("input", "");
    Object.assign(this.field, { type: "search", placeholder: "Search all recordings, such as permission or kind:error", ariaLabel: "Search all recordings", autocomplete: "off", spellcheck: false });
    this.stop = button("tool", "stop", () => this.cancel(), "Stop searching");
    this.compare = button("tool", "", () => this.compareNow());
    this.status = el("span", "status");
    this.status.role = "status";
    this.sorts = el("select", "narrow", ...COLUMNS.flatMap(([name, title]) => [new Option(`${title} ↓`, `-${name}`), new Option(`${title} ↑`, name)]));
    this.sorts.ariaLabel = "Sort by";
    this.sorts.addEventListener("change", () => this.sortBy(this.sorts.value.replace("-", ""), this.sorts.value.startsWith("-")));
    this.box = el("section", "", el("div", "bar", el("div", "filter", this.field, el("kbd", "", "/")), this.stop, this.status, this.sorts, this.compare), this.sheet);
    Object.assign(this.box, { id: "overview", ariaLabel: "Recordings", hidden: true });
    $("foot").before(this.box);
    const tips = el("span", "tips", ...[["Enter", "open"], ["c", "pick to compare"], ["/", "search"], ["?", "keys"]].map(([key, does]) => el("span", "", el("kbd", "", key), ` ${does}`)));
    tips.ariaHidden = "true";
    $("foot").append(tips);
    this.field.addEventListener("input", () => {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.searchTyped().catch(showError), 200);
    });
    this.sheet.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.sheet);
    this.body.addEventListener("click", ({ target }) => {
      const row = target.closest("tr[data-id]");
      if (!row) return;
      if (target.closest(".c-pick")) this.pick(Number(row.dataset.id), target.type === "checkbox");
      else this.enter(Number(row.dataset.id));
    });
  }

  /** Takes changed rows from the server. Returns the ids of those that are new. */
  async update(wait) {
    const fresh = [];
    for (let more = true; more; wait = false) {
      const answer = await Server.recordings(this.revision, wait);
      for (const row of answer.rows) {
        if (!this.rows.has(row.id)) fresh.push(row.id);
        const before = this.rows.get(row.id);
        row.focused = before?.element?.contains(document.activeElement);
        this.rows.set(row.id, row);
      }
      Object.assign(this, { revision: answer.revision, folder: answer.folder });
      more = answer.more;
    }
    return fresh;
  }

  get shown() {
    return !this.box.hidden;
  }

  get height() {
    return parseFloat(getComputedStyle(this.sheet).getPropertyValue("--row"));
  }

  get all() {
    return Array.from(this.rows.values()).filter((row) => !row.gone);
  }

  show(there) {
    const sort = /^(-?)(\w+)$/.exec(there.get("sort") ?? "-time");
    if (COLUMNS.some(([name]) => name === sort?.[2])) this.sort = { by: sort[2], down: sort[1] === "-" };
    mode("list");
    document.title = "Recordings · acp-relay";
    $("about").replaceChildren(el("h1", "name", "Recordings"), line("peers", this.folder ?? "", 200));
    this.field.value = there.get("q") ?? "";
    this.layOut();
    this.searchTyped(true).catch(showError);
    if (this.order.length) this.go(Math.max(0, this.order.indexOf(this.selected)));
  }

  /** Sorts and shows the rows. */
  layOut() {
    const { by, down } = this.sort;
    const value = (row) => row[by];
    const compare = TEXTUAL.includes(by) ? (a, b) => value(a).localeCompare(value(b), "en", { numeric: true }) : (a, b) => value(a) - value(b);
    const known = (row) => value(row) !== undefined;
    const rows = this.all.filter((row) => !this.hits || this.hits.has(row.id));
    // What is not known yet comes last.
    rows.sort((a, b) => known(b) - known(a) || (known(a) && (down ? -1 : 1) * compare(a, b)) || b.time - a.time || b.id - a.id);
    this.order = rows.map((row) => row.id);
    COLUMNS.forEach(([name], at) => (this.head.children[at + 1].ariaSort = name === by ? (down ? "descending" : "ascending") : "none"));
    this.sorts.value = `${down ? "-" : ""}${by}`;
    this.report();
    this.draw();
  }

  /** Shows how many recordings there are, and how far the server is. */
  report() {
    if (!this.shown) return;
    const { all } = this;
    const left = all.filter((row) => row.turns === undefined && !row.fault).length;
    $("count").textContent = many(all.length, "recording");
    $("state").replaceChildren(...[size(all.reduce((sum, row) => sum + row.bytes, 0)), left ? `reading, ${Math.floor(((all.length - left) * 100) / all.length)} %` : null].filter(Boolean).map((word) => el("span", "", word)));
    const searched = this.progress?.searched ?? 0;
    if (this.fault) this.status.textContent = this.fault;
    else if (this.hits) {
      const found = `${grouped(this.order.length)} of ${many(all.length, "recording")} match${this.order.length === 1 ? "es" : ""}`;
      this.status.textContent = this.searching ? `${found}, ${grouped(searched)} searched` : this.progress?.complete ? found : `${found}, stopped after ${grouped(searched)}`;
    } else this.status.textContent = "";
    this.stop.hidden = !this.searching;
    this.compare.hidden = !this.picked.length;
    this.compare.disabled = this.picked.length < 2;
    this.compare.textContent = this.picked.length < 2 ? "pick one more to compare" : "compare the two";
    const none = !all.length;
    if (none && !$("welcome")) {
      const record = (command) => commandLine(`acp-relay ${command} --record ${fileOf(this.folder ?? "FOLDER")} -- AGENT`);
      const words = "Each conversation is listed here as soon as it begins. AGENT is the command of an agent, such as goose acp. To record what an editor does, let it start this instead of the agent:";
      welcome("No recording yet", words, record("connect"), el("p", "", "Or serve the agent to any number of editors:"), record("serve"), el("p", "", "Or drop a recording or a capture here."), button("tool", "choose a file", () => $("pick").click()));
      this.box.append($("welcome"));
    } else if (!none) $("welcome")?.remove();
  }

  draw() {
    if (!this.shown) return;
    const { height } = this;
    const first = Math.max(0, Math.floor(this.sheet.scrollTop / height) - SPARE);
    const last = Math.min(this.order.length, Math.ceil((this.sheet.scrollTop + this.sheet.clientHeight) / height) + SPARE);
    const space = (rows) => {
      const made = el("tr", "space", el("td", ""));
      made.style.height = `${rows * height}px`;
      made.ariaHidden = "true";
      return made;
    };
    const { activeElement } = document;
    const made = this.order.slice(first, last).map((id, at) => this.element(this.rows.get(id), first + at));
    this.body.replaceChildren(space(first), ...made, space(this.order.length - last));
    this.body.parentElement.ariaRowCount = this.order.length + 1;
    const again = made.find((row) => row.wanted) ?? (activeElement !== document.activeElement && activeElement.isConnected ? activeElement : null);
    again?.focus({ preventScroll: true });
    for (const row of made) row.wanted = false;
  }

  /** The element of a row. */
  element(row, place) {
    const hits = this.hits?.get(row.id);
    const picked = this.picked.includes(row.id);
    const spelled = `${hits?.count} ${picked}`;
    if (row.spelled !== spelled || !row.element) {
      const box = el("input", "");
      Object.assign(box, { type: "checkbox", checked: picked, tabIndex: -1, ariaLabel: `Compare ${row.name}` });
      const cells = COLUMNS.map(([name, , shows]) => el(name === "name" ? "th" : "td", `c-${name}`, ...shows(row)));
      cells[1].scope = "row";
      cells[1].title = row.name.replace(UNSEEN_ALL, "·");
      cells[3].title = text(row.fault ?? row.agent).replace(UNSEEN_ALL, "·");
      if (hits) cells[3].firstChild.prepend(el("span", "times", `${grouped(hits.count)}${hits.partial ? "+" : ""} ×`));
      const made = el("tr", "", el("td", "c-pick", box), ...cells);
      made.dataset.id = row.id;
      made.wanted = row.focused || (row.element?.contains(document.activeElement) ?? false);
      Object.assign(row, { spelled, element: made, focused: false });
    }
    row.element.ariaRowIndex = place + 2;
    row.element.tabIndex = row.id === this.selected || (place === 0 && !this.order.includes(this.selected)) ? 0 : -1;
    row.element.classList.toggle("selected", row.id === this.selected);
    row.element.classList.toggle("picked", picked);
    return row.element;
  }

  sortBy(by, down) {
    this.sort = { by, down: down ?? (this.sort.by === by ? !this.sort.down : !TEXTUAL.includes(by)) };
    this.sheet.scrollTop = 0;
    this.layOut();
    this.remember();
  }

  /** Selects the row at a place. */
  go(place) {
    place = Math.max(0, Math.min(place, this.order.length - 1));
    this.selected = this.order[place] ?? null;
    const { height } = this;
    const [top, room] = [place * height, this.sheet.clientHeight - this.head.offsetHeight];
    if (top < this.sheet.scrollTop) this.sheet.scrollTop = top;
    if (top + height > this.sheet.scrollTop + room) this.sheet.scrollTop = top + height - room;
    this.draw();
    if (this.selected !== null) this.rows.get(this.selected).element?.focus({ preventScroll: true });
  }

  pick(id, isBox) {
    this.picked = this.picked.includes(id) ? this.picked.filter((one) => one !== id) : [...this.picked, id].slice(-2);
    this.report();
    this.draw();
    if (this.picked.length === 2 && !isBox) this.compare.focus();
  }

  compareNow() {
    // The older one is on the left.
    const [left, right] = [...this.picked].sort((a, b) => this.rows.get(a).time - this.rows.get(b).time || a - b);
    history.pushState(null, "", location.href);
    showComparison(left, right).catch(showError);
  }

  /** Opens a recording, with the filter of the search. */
  enter(id) {
    this.selected = id;
    history.pushState(null, "", location.href);
    visit(id, new URLSearchParams({ q: this.hits ? this.typed : "" })).catch(showError);
  }

  /** Searches for what is typed, unless it is a fault or was searched already. */
  async searchTyped(again) {
    const typed = this.field.value.trim();
    this.fault = null;
    try {
      if (typed) new Filter(typed);
    } catch (error) {
      if (!(error instanceof FilterFault)) throw error;
      this.fault = error.message;
    }
    this.box.classList.toggle("stale", Boolean(this.fault));
    this.report();
    if (this.fault || (typed === this.typed && !again)) return;
    if (typed === this.typed && this.progress?.complete) return this.remember();
    this.typed = typed;
    this.remember();
    this.searching?.abort();
    this.searching = null;
    this.hits = typed ? new Map() : null;
    this.progress = null;
    this.sheet.scrollTop = 0;
    if (typed) await this.search(typed);
    else this.layOut();
  }

  /** Has the server search, and shows the matches as they come. */
  async search(q) {
    const searching = (this.searching = new AbortController());
    this.layOut();
    try {
      const answer = await request(`api/search?${new URLSearchParams({ q })}`, { signal: searching.signal });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part; !(part = await reader.read()).done; ) {
        const lines = (rest + part.value).split("\n");
        rest = lines.pop();
        for (const one of lines.map((line) => JSON.parse(line))) {
          if (one.count) this.hits.set(one.id, one);
          else this.progress = one;
        }
        this.layOut();
      }
    } finally {
      if (this.searching === searching) {
        this.searching = null;
        this.layOut();
      }
    }
  }

  cancel() {
    this.searching?.abort();
    this.field.focus();
  }

  remember() {
    if (!this.shown) return;
    const sort = `${this.sort.down ? "-" : ""}${this.sort.by}`;
    const parts = { view: "list", q: this.typed, sort: sort === "-time" ? "" : sort };
    history.replaceState(null, "", `#${new URLSearchParams(Object.entries(parts).filter(([, value]) => value))}`);
  }

  /** Handles a key. Returns whether it was for the table. */
  key({ key, target }) {
    const place = this.order.indexOf(this.selected);
    const inField = target === this.field;
    const rows = Math.floor(this.sheet.clientHeight / this.height) - 1;
    const moves = { ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + rows, PageUp: place - rows };
    const letters = { j: place + 1, k: place - 1, g: 0, G: Infinity, Home: 0, End: Infinity };
    if (key === "Escape") {
      if (this.searching && !inField) this.cancel();
      else if (this.field.value) (this.field.value = ""), this.searchTyped().catch(showError);
      else if (this.picked.length) (this.picked = []), this.layOut();
      if (this.order.length) this.go(Math.max(0, place));
    } else if (target === this.sorts) return false;
    else if (key in moves) this.go(inField ? 0 : moves[key]);
    else if (inField) {
      if (key !== "Enter") return false;
      this.searchTyped().catch(showError);
      // An invalid filter keeps the focus.
      if (!this.fault) this.go(0);
    } else if (key in letters) this.go(letters[key]);
    else if (key === "/") this.field.select();
    else if (key === "c" && place >= 0) this.pick(this.selected);
    else if (key === "Enter" && place >= 0 && !target.closest("button")) this.enter(this.selected);
    else return false;
    return true;
  }
}

const overview = new Overview();

/** Shows a part of the page: a recording, the list, or the comparison. */
function mode(name) {
  document.body.dataset.mode = name;
  overview.box.hidden = name !== "list";
  comparison.hidden = name !== "compare";
  $("welcome")?.remove();
  $("back").hidden = !SERVED || name === "list" || !(overview.folder || overview.all.length > 1);
  Object.assign($("newer"), { hidden: true, textContent: "" });
  if (name === "recording") return;
  view.source?.close();
  Object.assign(view, { source: null, state: null, selected: null });
  document.body.classList.remove("open");
  for (const id of ["about", "count", "state"]) $(id).replaceChildren();
  $("fault").hidden = true;
  showError(null);
  $("top").classList.remove("live");
}

/** Leaves a recording or the comparison. */
async function backToList() {
  if (!SERVED || $("back").hidden) return;
  history.pushState(null, "", location.href);
  const { by, down } = overview.sort;
  overview.show(new URLSearchParams({ q: overview.typed, sort: `${down ? "-" : ""}${by}` }));
  await served();
  overview.layOut();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || $("dialog").open || view.source) return;
  const taken = overview.shown ? overview.key(event) : !comparison.hidden && comparisonKey(event);
  const act = event.target.matches("input, select") ? null : { d: theme, "?": showKeys }[event.key];
  if (!taken && !act) return;
  event.preventDefault();
  if (!taken) act();
});
$("back").addEventListener("click", () => backToList().catch(showError));

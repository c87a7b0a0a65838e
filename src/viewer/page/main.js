// The page as a whole: the recording, the selection, and how the parts work together.

const view = { source: null, state: null, selected: null, q: "", all: false, tab: "sequence" };
const TABS = ["sequence", "turns", "findings"];
const BOXES = { sequence: "list", turns: "turns", findings: "lint" };

/** Milliseconds before the page tries again when the viewer did not answer. */
const RETRY_INTERVAL = 1000;

const rows = new List($("list"), async (from, count) => (await requestRows({ from, count })).rows, (row) => (waterfall.on ? waterfall.row(row, view.state?.writing) : sequenceRow(row, view.state?.writing)));
const waterfall = new Waterfall($("list"), rows, () => arrange(), (n) => jump(n).catch(showError));
const timeline = new Timeline($("bars"), (at) => (at === undefined ? restart() : goTo(at)));
new Descriptions($("detail"));
const splitter = new Splitter($("split"), () => rows.layOut());
const hints = new Hints($("filter"), $("hints"), knownValues, () => filterSoon());

/** The parameters that select the rows of the list. */
function selection() {
  const [t0, t1] = timeline.range ?? [];
  return { q: view.q, all: view.all ? "1" : "", t0, t1, sort: waterfall.on ? waterfall.sort : "" };
}

/** The values of a field of the filter in the loaded rows. */
function knownValues(field) {
  if (field === "lint") return list(view.state?.lint?.rules).map((rule) => rule.id);
  const found = new Set();
  for (const row of rows.known()) {
    const fact = facts(row);
    const own = { method: fact.method, session: fact.session, rule: fact.rules, update: fact.update, note: fact.kind === "note" ? fact.title : "" }[field];
    for (const value of [own ?? []].flat()) if (value) found.add(value);
  }
  return Array.from(found).sort();
}

rows.mark = (row, element) => {
  const fact = facts(row);
  const selected = view.selected && facts(view.selected);
  const isIt = selected?.i === fact.i;
  const inPair = selected?.request && selected.answer;
  element.classList.toggle("selected", isIt);
  element.classList.toggle("pair", Boolean(selected?.request && selected.request === fact.request && !isIt));
  element.classList.toggle("spans", Boolean(inPair && fact.n >= selected.request && fact.n <= selected.answer));
  element.classList.toggle("asks", Boolean(inPair && fact.n === selected.request));
  element.classList.toggle("answers", Boolean(inPair && fact.n === selected.answer));
  element.setAttribute("aria-selected", String(isIt));
  if (isIt && view.selected.spelled !== row.spelled) {
    // The row has changed.
    view.selected = row;
    view.detail.renew(row);
  }
};
rows.drawn = (first, last) => {
  const [top, end] = [rows.row(Math.min(first + 4, rows.total - 1)), rows.row(Math.max(0, last - 5))];
  if (top && end && !selection().sort) timeline.see(facts(top).t, facts(end).t);
  waterfall.scale(view.state?.duration ?? 0);
  const selected = view.selected && $(`row-${facts(view.selected).i}`);
  if (selected) $("list").setAttribute("aria-activedescendant", selected.id);
  else $("list").removeAttribute("aria-activedescendant");
};

/** Updates the number of rows. A search that is not done is continued. */
function updateCount(answer) {
  const before = rows.total;
  rows.grow(answer.total);
  const searching = !answer.done;
  waterfall.ordered(answer);
  $("count").textContent = view.q || timeline.range
    ? `${grouped(answer.total)} of ${grouped(answer.events)} events${searching ? `, ${Math.floor((answer.searched * 100) / answer.events)} % searched` : ""}`
    : many(answer.events, "event");
  if (view.tab === "sequence") {
    const nothing = answer.total === 0 && !searching;
    const why = answer.events > 0 ? `No event matches this filter. Esc clears it.${alsoField()}` : view.state?.writing ? "No messages yet." : "This recording is empty.";
    empty(nothing && (answer.events > 0 || view.state?.total) ? why : null);
  }
  if (view.following && answer.total !== before) rows.go(Infinity);
  if (searching) {
    clearTimeout(view.again);
    view.again = setTimeout(() => count().catch(() => {}), 30);
  }
}

/** That a word of the filter could have been meant as a field. */
function alsoField() {
  const word = new Filter(view.q).bare.find((word) => Object.hasOwn(FIELDS, word));
  return word ? ` ${word} was looked for as a word: ${word}: with a value is the field.` : "";
}

/** Shows why nothing is displayed; null hides the text. */
function empty(why, more) {
  $("empty").hidden = !why;
  $("empty").replaceChildren(why ?? "", more ?? "");
}

/** Requests rows of the selection. An answer that arrives after a restart is of another selection, and does not change the number of rows. */
async function requestRows(query) {
  const { generation } = rows;
  const answer = await view.source.rows({ ...selection(), ...query });
  if (generation === rows.generation) updateCount(answer);
  return answer;
}

/** Updates the number of rows. */
const count = () => requestRows({ from: 0, count: 0 });

function restart() {
  rows.total = 0;
  view.place = undefined;
  rows.reset();
  remember();
  // The first rows come with the number of rows.
  rows.load(0);
}

/** Shows the rows as a list or with arrows, and in the order that was chosen. */
function arrange() {
  waterfall.show(view.tab === "sequence");
  if (!view.source) return;
  restart();
  if (view.state) waterfall.update(view.source, view.state.events).catch(showError);
}

/** Switches between the list and the arrows. */
function dense() {
  if (view.tab !== "sequence") {
    tab("sequence");
    if (waterfall.on) return;
  }
  waterfall.on = !waterfall.on;
  const seen = view.selected && facts(view.selected).n;
  arrange();
  if (seen) return requestRows({ n: seen, count: 0 }).then(({ place }) => rows.reveal(place, true));
}

async function goTo(time) {
  if (view.tab !== "sequence") tab("sequence");
  const { t0, sort, ...rest } = selection();
  if (sort) {
    waterfall.order("");
    arrange();
  }
  const before = await view.source.rows({ ...rest, t1: Math.max(0, time - 1), count: 0 });
  rows.go(before.total * rows.height - 60);
}

/** Shows a recording. */
async function look(source) {
  view.source?.close();
  Object.assign(view, { source, state: null, selected: null });
  view.turns = new Turns($("turns"), source, (i) => openItem(i), (n) => jump(n).catch(showError));
  view.detail = new Detail($("detail"), source, { jump, narrow, walk: (by) => walk(by).catch(showError) });
  view.findings = new Findings($("lint"), source, jump, narrow);
  document.body.classList.remove("open");
  view.detail.hide();
  timeline.range = null;
  restart();
  await follows(source);
}

/** Shows the state of the recording whenever it changes, until another one is shown. */
async function follows(source) {
  for (let state; view.source === source; ) {
    try {
      state = await source.state(state?.revision);
      if (view.source !== source) return;
      showError(null);
      await showAll(state);
      await pause(120);
    } catch (error) {
      if (view.source !== source) return;
      showError(error);
      if (error.status) return;
      state = undefined;
      await pause(RETRY_INTERVAL);
    }
    if (!source.live) return;
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Updates the whole page. */
async function showAll(state) {
  const { writing } = view.state ?? {};
  view.state = state;
  view.source.path = state.path;
  showState(state);
  if (writing !== state.writing) rows.redraw();
  await Promise.all([count(), waterfall.update(view.source, state.events), view.tab === "turns" && showTurns(), view.tab === "findings" && showFindings()]);
  rows.refresh();
}

/** Shows the state of the recording. */
function showState(state) {
  const { header, lint } = state;
  $("found").hidden = !lint?.total;
  $("found").textContent = grouped(lint?.total ?? 0);
  $("found").className = text(list(lint?.rules)[0]?.severity);
  document.title = `${state.name} · acp-relay`.replace(UNSEEN_ALL, "·");
  const about = $("about");
  about.replaceChildren(el("h1", "name", line("", state.name, 60)));
  if (header) {
    const peer = (one) => [line("peer", one.name, 80), one.dialect && one.dialect !== "canonical" ? line("dialect", one.dialect, 40) : null].filter(Boolean);
    about.append(el("span", "peers", ...peer(header.client), " ⇄ ", ...peer(header.agent)), began(header));
  }
  const done = state.bytes >= state.total;
  const errors = button("bad", many(state.errors, "error"), () => narrow("kind:error"), "Show them");
  const linting = done && lint && lint.checked < state.events && state.events > 0;
  const words = [
    took(state.duration), size(state.total), many(state.turns, "turn"),
    state.errors ? errors : null, state.damaged ? many(state.damaged, "damaged line") : null,
    !done ? `reading, ${Math.floor((state.bytes * 100) / state.total)} %` : state.writing || state.ended ? null : state.rotated ? "its next file is missing" : "not ended",
    linting && lint.checked ? `linting, ${Math.floor((lint.checked * 100) / state.events)} %` : null,
    state.error ? `reading failed: ${state.error}` : null,
  ];
  $("state").replaceChildren(...words.filter(Boolean).map((word) => word instanceof Node ? word : line(/damaged|failed|not ended|missing/.test(word) ? "bad" : "", word, 200)));
  $("top").classList.toggle("live", Boolean(state.writing));
  timeline.show(state);
}

/** When a recording began, in local time. */
function began(header) {
  const made = el("time", "began", wall(Date.parse(header.began) / 1000).replace(/\.\d+/, ""));
  made.title = text(header.began);
  return made;
}

/** Applies the filter. A fault in it is shown under the field, and the list, which stays as it was, is grey. Returns whether there is none. */
function filtered(entered) {
  const fault = $("fault");
  const field = $("filter");
  const typed = field.value;
  const valid = (is) => {
    document.body.classList.toggle("invalid", !is);
    field.setAttribute("aria-invalid", String(!is));
    return is;
  };
  try {
    new Filter(typed);
    fault.hidden = true;
  } catch (error) {
    if (!(error instanceof FilterFault)) throw error;
    const { from, to } = error;
    // An incomplete word is not a fault yet.
    fault.hidden = !entered && hints.open && to >= typed.trimEnd().length;
    if (fault.hidden) return valid(true);
    const marked = el("mark", "", ...shown(typed.slice(from, Math.max(to, from + 1)) || " ", false));
    fault.replaceChildren(el("code", "", ...shown(typed.slice(0, from), false), marked, ...shown(typed.slice(Math.max(to, from + 1)), false)), error.message);
    return valid(false);
  }
  valid(true);
  if (view.q === typed.trim()) return true;
  view.q = typed.trim();
  // The filter applies to the sequence.
  if (view.tab !== "sequence") tab("sequence");
  restart();
  return true;
}

/** Applies the filter after a pause in typing. */
function filterSoon() {
  clearTimeout(view.typed);
  view.typed = setTimeout(() => view.source && filtered(), 150);
}

/** Shows only the events of a filter. */
function narrow(filter) {
  $("filter").value = filter;
  if (view.tab !== "sequence") tab("sequence");
  filtered();
}

async function showTurns() {
  await view.turns.update(view.state?.writing);
  if (view.tab === "turns") empty(view.turns.known.length ? null : "There is no prompt in this recording.");
}

async function showFindings() {
  const { lint, events } = view.state;
  if (!lint) return view.tab === "findings" && empty("This page has no findings. This command shows them:", openCommand(view.state.path));
  await view.findings.update(lint);
  if (view.tab !== "findings") return;
  empty(lint.total ? null : lint.checked < events ? "No findings so far." : "The linter has no findings.");
}

/** Shows an error; null removes it. */
function showError(error) {
  if (error?.name === "AbortError") return;
  const gone = $("gone") ?? el("p", "");
  gone.id = "gone";
  gone.role = "alert";
  $("top").classList.toggle("gone", Boolean(error));
  if (!error) return gone.remove();
  $("top").classList.remove("live");
  const why = !(view.source?.live ?? SERVED) || error.isOwn ? error.message
    : !error.status ? "acp-relay does not answer. This page tries again."
    : /cannot be read/.test(error.message) ? error.message
    : "The acp-relay process of this address has ended. A new one prints a new address when it starts.";
  const words = [...shown(why, false)];
  if (gone.text !== why) gone.replaceChildren(...words);
  gone.text = why;
  if (!gone.isConnected) $("top").after(gone);
}

/** Selects the row at a place of the list. */
async function select(place, open) {
  place = Math.max(0, Math.min(place, rows.total - 1));
  const row = await rows.rowAt(place);
  if (!row) return;
  view.place = place;
  view.selected = row;
  if (place < rows.total - 1) follow(false);
  rows.reveal(place);
  if (open || !$("detail").hidden) show(row);
  else remember();
}

function show(row) {
  document.body.classList.add("open");
  const shows = view.detail.show(row);
  remember();
  shows.then(() => rows.layOut());
}

function unselect() {
  document.body.classList.remove("open");
  view.detail.hide();
  view.turns.mark();
  remember();
  focusView();
}

/** Selects the next or the previous row; without a selection, the first visible one. */
async function walk(by) {
  if (!view.selected) return select(Math.ceil(rows.top / rows.height));
  // Its place in the list, if it was selected elsewhere.
  view.place ??= (await view.source.rows({ ...selection(), n: facts(view.selected).n, count: 0 })).place;
  return select(view.place + by);
}

/** Goes to the event with number `n`. */
async function jump(n) {
  if (view.tab !== "sequence") tab("sequence");
  let answer = await requestRows({ n, count: 0 });
  let there = answer.total > answer.place && (await rows.rowAt(answer.place));
  if (!there || facts(there).n !== n) {
    // The filter or folding hides it: remove the filter first.
    timeline.range = null;
    view.q = $("filter").value = "";
    timeline.draw();
    restart();
    answer = await requestRows({ n, count: 0 });
    there = await rows.rowAt(answer.place);
    if (!there || facts(there).n !== n) {
      fold(false);
      answer = await requestRows({ n, count: 0 });
    }
  }
  await select(answer.place, true);
  rows.reveal(answer.place, true);
}

async function openItem(i) {
  const answer = await view.source.rows({ all: "1", i0: i, i1: i });
  if (!answer.rows.length) return;
  view.selected = answer.rows[0];
  view.place = undefined;
  view.turns.mark(i);
  show(view.selected);
}

function tab(name) {
  view.tab = name;
  for (const one of TABS) {
    $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
    $(`tab-${one}`).tabIndex = one === name ? 0 : -1;
    $(BOXES[one]).hidden = one !== name;
  }
  $("left").setAttribute("aria-labelledby", `tab-${name}`);
  waterfall.show(name === "sequence");
  empty(null);
  remember();
  if (name === "sequence") rows.layOut();
  const update = { sequence: count, turns: showTurns, findings: () => view.state && showFindings() }[name];
  Promise.resolve(view.source && update()).catch(showError);
}

function focusView() {
  $(BOXES[view.tab]).focus();
}

/** Goes to the next or the previous event with a finding. */
async function finding(by) {
  const at = view.selected ? facts(view.selected).i : by > 0 ? -1 : Infinity;
  const query = { q: "lint:*", all: "1" };
  // From the place of the selected event on.
  const range = by > 0 ? { i0: Math.max(at, 0) } : { i1: Math.min(at, 4294967295) };
  let answer = await view.source.rows({ ...query, ...range, count: 2 });
  if (by < 0 && answer.total > 2) answer = await view.source.rows({ ...query, ...range, from: answer.total - 2, count: 2 });
  const next = (by > 0 ? answer.rows : answer.rows.reverse()).find((row) => row.i !== at);
  if (next) await jump(facts(next).n);
}

function fold(on) {
  view.all = !on;
  $("fold").setAttribute("aria-pressed", String(on));
  restart();
}

function follow(on) {
  view.following = on;
  $("follow").setAttribute("aria-pressed", String(on));
  if (on) rows.go(Infinity);
  view.turns?.stay(on);
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  saveSetting("theme", root.dataset.theme);
  timeline.draw();
}

/** Puts the current view into the address, so that a reload restores it. */
function remember() {
  if (!view.source?.live) return;
  const parts = { recording: view.source.name, view: view.tab === "sequence" ? "" : view.tab, q: view.q, all: view.all ? "1" : "", list: waterfall.on ? "1" : "", sort: waterfall.on ? waterfall.sort : "", t: timeline.range?.join("-"), n: view.selected && !$("detail").hidden ? facts(view.selected).n : "" };
  const hash = new URLSearchParams(Object.entries(parts).filter(([, value]) => value));
  history.replaceState(null, "", `#${hash}`);
}

/** Rows show the time of day, or the time since the beginning. */
function timeOfDay(on) {
  ofDay = on;
  saveSetting("time", on ? "day" : "since");
  $("hours").textContent = on ? "time of day" : "elapsed";
  rows.redraw();
}

/** Restores the view of an address. */
async function arrive(there) {
  const range = /^(\d+)-(\d+)$/.exec(there.get("t"));
  const { q, ...before } = selection();
  timeline.range = range && [Number(range[1]), Number(range[2])];
  timeline.draw();
  view.all = there.get("all") === "1";
  $("fold").setAttribute("aria-pressed", String(!view.all));
  waterfall.on = there.get("list") === "1";
  waterfall.order(there.get("sort") ?? "");
  if (rows.total) rows.redraw();
  $("filter").value = there.get("q") ?? "";
  filtered(true);
  const { q: now, ...after } = selection();
  if (now === q && JSON.stringify(before) !== JSON.stringify(after)) restart();
  const name = TABS.includes(there.get("view")) ? there.get("view") : "sequence";
  tab(name);
  const n = Number(there.get("n"));
  if (!n) return $("detail").hidden || unselect();
  if (name === "sequence") return await jump(n);
  const { place } = await view.source.rows({ all: "1", n, count: 0 });
  const { rows: found } = await view.source.rows({ all: "1", from: place, count: 1 });
  if (found.length) await openItem(found[0].i);
}

/** Updates how long open requests have been waiting. */
setInterval(() => {
  for (const tail of document.querySelectorAll(".tail.waiting")) tail.textContent = waited(tail.dataset.since);
}, 1000);

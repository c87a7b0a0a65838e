// The page as a whole: what is looked at, what is selected, and how the parts go together.

const view = { source: null, state: null, selected: null, q: "", all: false, tab: "sequence" };
const TABS = ["sequence", "turns", "findings"];
const BOXES = { sequence: "list", turns: "turns", findings: "lint" };

/** How long the page waits before it asks a viewer again that did not answer. */
const AGAIN = 1000;

const rows = new List($("list"), async (from, count) => {
  const answer = await view.source.rows({ ...asked(), from, count });
  listed(answer);
  return answer.rows;
}, (row) => sequenceRow(row, view.state?.writing));
const timeline = new Timeline($("bars"), (at) => (at === undefined ? restart() : goTo(at)));
const splitter = new Splitter($("split"), () => rows.layOut());
const hints = new Hints($("filter"), $("hints"), seen, () => filterSoon());

/** What narrows the list. */
function asked() {
  const [t0, t1] = timeline.range ?? [];
  return { q: view.q, all: view.all ? "1" : "", t0, t1 };
}

/** The values of a field of the filter that the page has come across. */
function seen(field) {
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
  const inPair = selected?.asked && selected.answered;
  element.classList.toggle("selected", isIt);
  element.classList.toggle("pair", Boolean(selected?.asked && selected.asked === fact.asked && !isIt));
  element.classList.toggle("spans", Boolean(inPair && fact.n >= selected.asked && fact.n <= selected.answered));
  element.classList.toggle("asks", Boolean(inPair && fact.n === selected.asked));
  element.classList.toggle("answers", Boolean(inPair && fact.n === selected.answered));
  element.setAttribute("aria-selected", String(isIt));
  if (isIt && view.selected.spelled !== row.spelled) {
    // More is known of it now.
    view.selected = row;
    view.detail.renew(row);
  }
};
rows.drawn = (first, last) => {
  const [top, end] = [rows.row(Math.min(first + 4, rows.total - 1)), rows.row(Math.max(0, last - 5))];
  if (top && end) timeline.see(facts(top).t, facts(end).t);
  const selected = view.selected && $(`row-${facts(view.selected).i}`);
  if (selected) $("list").setAttribute("aria-activedescendant", selected.id);
  else $("list").removeAttribute("aria-activedescendant");
};

/** Takes in how many rows there are. A filter that has not seen all is asked again. */
function listed(answer) {
  const before = rows.total;
  rows.grow(answer.total);
  const sifting = !answer.done;
  $("count").textContent = view.q || timeline.range
    ? `${grouped(answer.total)} of ${grouped(answer.events)} events${sifting ? `, ${Math.floor((answer.seen * 100) / answer.events)} % searched` : ""}`
    : many(answer.events, "event");
  if (view.tab === "sequence") {
    const nothing = answer.total === 0 && !sifting;
    const why = answer.events > 0 ? "Nothing here goes with this filter. Esc clears it." : view.state?.writing ? "Nothing was said yet." : "There is nothing in this recording.";
    empty(nothing && (answer.events > 0 || view.state?.of) ? why : null);
  }
  if (view.following && answer.total !== before) rows.go(Infinity);
  if (sifting) {
    clearTimeout(view.again);
    view.again = setTimeout(() => count().catch(() => {}), 30);
  }
}

/** Says why there is nothing to be seen; nothing when there is something. */
function empty(why, more) {
  $("empty").hidden = !why;
  $("empty").replaceChildren(why ?? "", more ?? "");
}

/** Asks how many rows there are now. */
async function count() {
  const source = view.source;
  const answer = await source.rows({ ...asked(), from: 0, count: 0 });
  if (source === view.source) listed(answer);
}

function restart() {
  rows.total = 0;
  view.place = undefined;
  rows.reset();
  remember();
  // With the first rows comes how many there are.
  rows.load(0);
}

async function goTo(time) {
  if (view.tab !== "sequence") tab("sequence");
  const { t0, ...rest } = asked();
  const before = await view.source.rows({ ...rest, t1: Math.max(0, time - 1), count: 0 });
  rows.go(before.total * rows.height - 60);
}

/** Looks at a recording, from now on. */
async function look(source) {
  view.source?.close();
  Object.assign(view, { source, state: null, selected: null });
  view.turns = new Turns($("turns"), source, (i) => openItem(i), (n) => jump(n).catch(trouble));
  view.detail = new Detail($("detail"), source, { jump, narrow, walk: (by) => walk(by).catch(trouble) });
  view.findings = new Findings($("lint"), source, jump, narrow);
  document.body.classList.remove("open");
  view.detail.hide();
  timeline.range = null;
  restart();
  await follows(source);
}

/** Shows how it stands, now and whenever that changes, as long as it is looked at. */
async function follows(source) {
  for (let state; view.source === source; ) {
    try {
      state = await source.state(state?.revision);
      if (view.source !== source) return;
      trouble(null);
      await showAll(state);
      await pause(120);
    } catch (error) {
      if (view.source !== source) return;
      trouble(error);
      if (error.status) return;
      state = undefined;
      await pause(AGAIN);
    }
    if (!source.live) return;
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Has everything show what there is now. */
async function showAll(state) {
  const { writing } = view.state ?? {};
  view.state = state;
  view.source.path = state.path;
  tell(state);
  if (writing !== state.writing) rows.redraw();
  await Promise.all([count(), view.tab === "turns" && showTurns(), view.tab === "findings" && showFindings()]);
  rows.refresh();
}

/** Says how the recording stands. */
function tell(state) {
  const { header, lint } = state;
  $("found").hidden = !lint?.total;
  $("found").textContent = grouped(lint?.total ?? 0);
  $("found").className = text(list(lint?.rules)[0]?.weight);
  document.title = `${state.name} · acp-relay`.replace(UNSEEN_ALL, "·");
  const about = $("about");
  about.replaceChildren(el("h1", "name", line("", state.name, 60)));
  if (header) {
    const peer = (one) => [line("peer", one.name, 80), one.dialect && one.dialect !== "canonical" ? line("dialect", one.dialect, 40) : null].filter(Boolean);
    about.append(el("span", "peers", ...peer(header.client), " ⇄ ", ...peer(header.agent)), began(header));
  }
  const done = state.bytes >= state.of;
  const errors = button("bad", many(state.errors, "error"), () => narrow("kind:error"), "Show them");
  const linting = done && lint && lint.seen < state.events && state.events > 0;
  const words = [
    took(state.lasted), size(state.of), many(state.turns, "turn"),
    state.errors ? errors : null, state.damaged ? many(state.damaged, "damaged line") : null,
    !done ? `reading, ${Math.floor((state.bytes * 100) / state.of)} %` : state.writing || state.ended ? null : state.rotated ? "its next file is missing" : "broke off",
    linting && lint.seen ? `linting, ${Math.floor((lint.seen * 100) / state.events)} %` : null,
    state.trouble ? `cannot be read further: ${state.trouble}` : null,
  ];
  $("state").replaceChildren(...words.filter(Boolean).map((word) => word instanceof Node ? word : line(/damaged|cannot|broke|missing/.test(word) ? "bad" : "", word, 200)));
  $("top").classList.toggle("live", Boolean(state.writing));
  timeline.show(state);
}

/** When a recording began, where the reader is. */
function began(header) {
  const made = el("time", "began", wall(Date.parse(header.began) / 1000).replace(/\.\d+/, ""));
  made.title = text(header.began);
  return made;
}

/** Reads the filter; what is wrong with it is said, and the list stays as it was. */
function filtered() {
  const fault = $("fault");
  const asked = $("filter").value;
  try {
    new Filter(asked);
    fault.hidden = true;
  } catch (error) {
    if (!(error instanceof FilterFault)) throw error;
    const { from, to } = error;
    const marked = el("mark", "", ...shown(asked.slice(from, Math.max(to, from + 1)) || " ", false));
    fault.replaceChildren(el("code", "", ...shown(asked.slice(0, from), false), marked, ...shown(asked.slice(Math.max(to, from + 1)), false)), error.message);
    // Half a word is no fault yet.
    fault.hidden = hints.open && to >= asked.trimEnd().length;
    return;
  }
  if (view.q === asked.trim()) return;
  view.q = asked.trim();
  // It is the sequence that is filtered.
  if (view.tab !== "sequence") tab("sequence");
  restart();
}

/** Reads the filter once nobody types. */
function filterSoon() {
  clearTimeout(view.typed);
  view.typed = setTimeout(() => view.source && filtered(), 150);
}

/** Shows only what goes with a filter. */
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
  await view.findings.update(lint);
  if (view.tab !== "findings") return;
  empty(lint.total ? null : lint.seen < events ? "Nothing so far." : "The linter has found nothing.", view.source.live ? null : butFor(view.state.path));
}

/** Says why nothing new comes; nothing when all is well. */
function trouble(error) {
  if (error?.name === "AbortError") return;
  const gone = $("gone") ?? el("p", "");
  gone.id = "gone";
  gone.role = "alert";
  $("top").classList.toggle("gone", Boolean(error));
  if (!error) return gone.remove();
  $("top").classList.remove("live");
  const why = !view.source?.live ? error.message
    : !error.status ? "acp-relay does not answer. This page tries again."
    : /cannot be read/.test(error.message) ? error.message
    : "The run of acp-relay that this address belongs to has ended. A new one has a new address, which it says when it starts.";
  const words = [...shown(why, false)];
  if (gone.textContent !== gone.said || gone.said !== why) gone.replaceChildren(...words);
  gone.said = why;
  if (!gone.isConnected) $("fault").after(gone);
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

/** Selects the next row, or the one before; without any, the first in sight. */
async function walk(by) {
  if (!view.selected) return select(Math.ceil(rows.top / rows.height));
  // Where it is in the list, if that is another than it was selected in.
  view.place ??= (await view.source.rows({ ...asked(), n: facts(view.selected).n, count: 0 })).place;
  return select(view.place + by);
}

/** Goes to the event with number `n`, wherever it is. */
async function jump(n) {
  if (view.tab !== "sequence") tab("sequence");
  let answer = await view.source.rows({ ...asked(), n, count: 0 });
  listed(answer);
  let there = answer.total > answer.place && (await rows.rowAt(answer.place));
  if (!there || facts(there).n !== n) {
    // It is filtered away, or folded: without a filter it is there.
    timeline.range = null;
    view.q = $("filter").value = "";
    timeline.draw();
    restart();
    answer = await view.source.rows({ ...asked(), n, count: 0 });
    listed(answer);
    there = await rows.rowAt(answer.place);
    if (!there || facts(there).n !== n) {
      fold(false);
      answer = await view.source.rows({ ...asked(), n, count: 0 });
      listed(answer);
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
  $("lanes").hidden = name !== "sequence";
  empty(null);
  remember();
  if (name === "sequence") rows.layOut();
  const update = { sequence: count, turns: showTurns, findings: () => view.state && showFindings() }[name];
  Promise.resolve(view.source && update()).catch(trouble);
}

function focusView() {
  $(BOXES[view.tab]).focus();
}

/** Goes to the next event that something was found at, or the one before. */
async function finding(by) {
  const at = view.selected ? facts(view.selected).i : by > 0 ? -1 : Infinity;
  const asked = { q: "lint:*", all: "1" };
  // Where the selected event stands among them, had it a finding.
  const range = by > 0 ? { i0: Math.max(at, 0) } : { i1: Math.min(at, 4294967295) };
  let answer = await view.source.rows({ ...asked, ...range, count: 2 });
  if (by < 0 && answer.total > 2) answer = await view.source.rows({ ...asked, ...range, from: answer.total - 2, count: 2 });
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
  keep("theme", root.dataset.theme);
  timeline.draw();
}

/** Puts where somebody is into the address, so that loading it again leads there. */
function remember() {
  if (!view.source?.live) return;
  const parts = { recording: view.source.name, view: view.tab === "sequence" ? "" : view.tab, q: view.q, all: view.all ? "1" : "", t: timeline.range?.join("-"), n: view.selected && !$("detail").hidden ? facts(view.selected).n : "" };
  const said = new URLSearchParams(Object.entries(parts).filter(([, value]) => value));
  history.replaceState(null, "", `#${said}`);
}

/** Has rows say the time of the day, or how long it was since the beginning. */
function timeOfDay(on) {
  ofDay = on;
  keep("time", on ? "day" : "since");
  $("hours").textContent = on ? "time of day" : "elapsed";
  rows.redraw();
}

/** Goes to where an address says that somebody was. */
async function arrive(there) {
  const range = /^(\d+)-(\d+)$/.exec(there.get("t"));
  const { q, ...before } = asked();
  timeline.range = range && [Number(range[1]), Number(range[2])];
  timeline.draw();
  view.all = there.get("all") === "1";
  $("fold").setAttribute("aria-pressed", String(!view.all));
  $("filter").value = there.get("q") ?? "";
  filtered();
  const { q: now, ...after } = asked();
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

/** Requests that wait say for how long. */
setInterval(() => {
  for (const tail of document.querySelectorAll(".tail.waiting")) tail.textContent = waited(tail.dataset.since);
}, 1000);

// The page as a whole: what is looked at, what is selected, the keys.

const view = { source: null, state: null, selected: null, q: "", all: false, tab: "sequence" };
const TABS = ["sequence", "turns", "findings"];
const KEYS = [
  ["j  k", "next and previous event"], ["g  G", "first and last"], ["Enter", "open the event"], ["Esc", "close, clear"],
  ["/", "filter"], ["p", "the request or answer that belongs to it"], ["t", "sequence, turns, findings"], ["n  N", "next and previous finding"],
  ["c", "fold runs of chunks"], ["f", "follow what is being recorded"], ["d", "dark or light"], ["?", "these keys"],
];
const WORDS = [
  ["permission", "a word, or \"some words\", anywhere in the message"], ["method:session/*", "of that method, answers too"],
  ["kind:error", "request, notification, answer, stderr, mark …"], ["from:agent", "who said it"],
  ["session:0199", "of the session that begins so"], ["update:tool_call*", "the kind of a session/update"],
  ["dur>2s  t<1m  size>10k", "how long, when, how large"], ["lint:*  rule:goose/*", "where the linter found something, or a rule changed it"],
  ["not  or  ( )", "join them"],
];

const rows = new List($("list"), async (from, count) => {
  const answer = await view.source.rows({ ...asked(), from, count });
  listed(answer);
  return answer.rows;
}, sequenceRow);
const timeline = new Timeline($("bars"), (at) => (at === undefined ? restart() : goTo(at)));

/** What narrows the list. */
function asked() {
  const [t0, t1] = timeline.range ?? [];
  return { q: view.q, all: view.all ? "1" : "", t0, t1 };
}

rows.mark = (row, element) => {
  const fact = facts(row);
  const selected = view.selected && facts(view.selected);
  const pair = selected?.asked && selected.asked === fact.asked && selected.i !== fact.i;
  element.classList.toggle("selected", selected?.i === fact.i);
  element.classList.toggle("pair", Boolean(pair));
  element.classList.toggle("found", fact.lint.length > 0);
  element.setAttribute("aria-selected", String(selected?.i === fact.i));
};
rows.drawn = (first, last) => {
  const [top, end] = [rows.row(Math.min(first + 4, rows.total - 1)), rows.row(Math.max(0, last - 5))];
  if (top && end) timeline.see(facts(top).t, facts(end).t);
};

/** Takes in how many rows there are. A filter that has not seen all is asked again. */
function listed(answer) {
  const before = rows.total;
  rows.grow(answer.total);
  const sifting = !answer.done;
  $("count").textContent = view.q || timeline.range
    ? `${grouped(answer.total)} of ${grouped(answer.events)} events${sifting ? `, ${Math.floor((answer.seen * 100) / answer.events)} % searched` : ""}`
    : many(answer.events, "event");
  const nothing = answer.total === 0 && !sifting && answer.events > 0;
  $("empty").hidden = !nothing || view.tab !== "sequence";
  if (nothing) $("empty").textContent = "Nothing here goes with this filter. Esc clears it.";
  if (view.following && answer.total !== before) rows.go(Infinity);
  if (sifting) {
    clearTimeout(view.again);
    view.again = setTimeout(count, 30);
  }
}

/** Asks how many rows there are now. */
async function count() {
  const source = view.source;
  const answer = await source.rows({ ...asked(), from: 0, count: 0 });
  if (source === view.source) listed(answer);
}

function restart() {
  rows.total = 0;
  rows.reset();
  count().catch(trouble);
}

async function goTo(time) {
  const { t0, ...rest } = asked();
  const before = await view.source.rows({ ...rest, t1: Math.max(0, time - 1), count: 0 });
  rows.go(before.total * rows.height - 60);
}

/** Looks at a recording, from now on. */
async function look(source) {
  view.source?.close();
  view.source = source;
  view.selected = null;
  view.live = false;
  view.turns = new Turns($("turns"), source, (i) => openItem(i));
  view.detail = new Detail($("detail"), source, jump, narrow);
  view.detail.hide();
  view.findings = new Findings($("lint"), source, jump, narrow);
  $("turns").replaceChildren();
  timeline.range = null;
  restart();
  let state = await source.state();
  for (;;) {
    if (view.source !== source) return;
    tell(state);
    if (!source.live) return;
    try {
      await Promise.all([count(), view.tab === "turns" && view.turns.update(), view.tab === "findings" && lint()]);
      rows.refresh();
      await new Promise((done) => setTimeout(done, 120));
      const { revision, bytes, of } = state;
      while (view.source === source && state.revision === revision) state = await source.state(revision);
      if (bytes >= of && state.bytes > bytes) grew();
    } catch (error) {
      if (view.source === source) trouble(error);
      return;
    }
  }
}

/** It has become longer: it is live, until nothing has come for a while. */
function grew() {
  view.live = true;
  clearTimeout(view.still);
  view.still = setTimeout(() => {
    view.live = false;
    $("top").classList.remove("live");
  }, 10000);
}

/** Says how the recording stands. */
function tell(state) {
  view.state = state;
  const { header, lint } = state;
  $("found").hidden = !lint?.total;
  $("found").textContent = grouped(lint?.total ?? 0);
  $("found").className = text(list(lint?.rules)[0]?.weight);
  document.title = `${state.name} · acp-relay`;
  const about = $("about");
  about.replaceChildren(line("name", state.name, 60));
  if (header) {
    const peer = (one) => (one.dialect && one.dialect !== "canonical" ? `${one.name} (${one.dialect})` : one.name);
    about.append(line("peers", `${peer(header.client)} ⇄ ${peer(header.agent)}`, 120), line("began", text(header.began).replace("T", " "), 30));
  }
  const done = state.bytes >= state.of;
  const errors = button("bad", many(state.errors, "error"), () => narrow("kind:error"), "Show them");
  const linting = done && lint && lint.seen < state.events && state.events > 0;
  const words = [
    took(state.lasted), size(state.of), many(state.turns, "turn"),
    state.errors ? errors : null, state.damaged ? many(state.damaged, "damaged line") : null,
    done ? (state.ended ? null : "not ended") : `reading, ${Math.floor((state.bytes * 100) / state.of)} %`,
    linting && lint.seen ? `linting, ${Math.floor((lint.seen * 100) / state.events)} %` : null,
    state.trouble ? `cannot be read further: ${state.trouble}` : null,
  ];
  $("state").replaceChildren(...words.filter(Boolean).map((word) => word instanceof Node ? word : line(/damaged|cannot/.test(word) ? "bad" : "", word, 200)));
  $("top").classList.toggle("live", Boolean(view.live && !state.ended && done));
  timeline.show(state);
}

/** Reads the filter; what is wrong with it is said, and the list stays as it was. */
function filtered() {
  const fault = $("fault");
  const asked = $("filter").value;
  try {
    const filter = new Filter(asked);
    fault.hidden = true;
    if (filter.fields.has("lint") && !view.source.live) {
      fault.replaceChildren("This page does not lint by itself: look at the file with acp-relay inspect open.");
      fault.hidden = false;
    }
  } catch (error) {
    if (!(error instanceof FilterFault)) throw error;
    const { from, to } = error;
    const marked = el("mark", "", ...shown(asked.slice(from, Math.max(to, from + 1)) || " ", false));
    fault.replaceChildren(el("code", "", ...shown(asked.slice(0, from), false), marked, ...shown(asked.slice(Math.max(to, from + 1)), false)), error.message);
    fault.hidden = false;
    return;
  }
  if (view.q === asked.trim()) return;
  view.q = asked.trim();
  restart();
}

/** Shows only what goes with a filter. */
function narrow(filter) {
  $("filter").value = filter;
  if (view.tab !== "sequence") tab("sequence");
  filtered();
}

/** Shows what the linter has found. */
async function lint() {
  const { lint, events } = view.state;
  await view.findings.update(lint);
  const none = !lint?.total;
  const busy = lint && lint.seen < events;
  if (view.tab !== "findings") return;
  $("empty").hidden = !none;
  $("empty").textContent = !lint ? "This page does not lint by itself: look at the file with acp-relay inspect open."
    : busy ? "Nothing so far." : "The linter has found nothing.";
}

function trouble(error) {
  if (error.name === "AbortError") return;
  $("top").classList.remove("live");
  $("state").replaceChildren(line("bad", `the viewer is gone: ${error.message}`, 200));
}

/** Selects the row at a place of the list. */
async function select(place, open) {
  const row = await rows.rowAt(Math.max(0, Math.min(place, rows.total - 1)));
  if (!row) return;
  view.place = Math.max(0, Math.min(place, rows.total - 1));
  view.selected = row;
  if (place < rows.total - 1) follow(false);
  rows.reveal(view.place);
  if (open || !$("detail").hidden) show(row);
}

function show(row) {
  document.body.classList.add("open");
  view.detail.show(row).then(() => rows.layOut());
}

function unselect() {
  document.body.classList.remove("open");
  view.detail.hide();
  focusView();
}

/** Goes to the event with number `n`, wherever it is. */
async function jump(n) {
  if (view.tab !== "sequence") tab("sequence");
  let answer = await view.source.rows({ ...asked(), n, count: 0 });
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
  show(answer.rows[0]);
}

function tab(name) {
  view.tab = name;
  for (const one of TABS) $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
  $("list").hidden = $("lanes").hidden = name !== "sequence";
  $("turns").hidden = name !== "turns";
  $("lint").hidden = name !== "findings";
  $("empty").hidden = true;
  if (name === "turns") {
    view.turns?.update().then(() => {
      const none = view.turns.known.length === 0;
      $("empty").hidden = !none || view.tab !== "turns";
      if (none) $("empty").textContent = "There is no prompt in this recording.";
    }).catch(trouble);
  } else if (name === "findings") {
    if (view.state) lint().catch(trouble);
  } else {
    rows.layOut();
    count().catch(trouble);
  }
  focusView();
}

function focusView() {
  $({ sequence: "list", turns: "turns", findings: "lint" }[view.tab]).focus();
}

/** Goes to the next event that something was found at, or the one before. */
async function finding(by) {
  if (!view.source.live) return;
  const at = view.selected ? facts(view.selected).i : by > 0 ? -1 : Infinity;
  const asked = { q: "lint:*", all: "1" };
  // Where the selected event stands among them, had it a finding.
  const range = by > 0 ? { i0: at + 1 } : { i1: Math.min(at - 1, 4294967295) };
  if (by < 0 && at < 1) return;
  let answer = await view.source.rows({ ...asked, ...range, count: 1 });
  if (by < 0 && answer.total > 1) answer = await view.source.rows({ ...asked, ...range, from: answer.total - 1, count: 1 });
  if (answer.rows.length) await jump(facts(answer.rows[0]).n);
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
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  timeline.draw();
}

function help() {
  const box = $("help");
  const table = (name, list) => {
    const made = el("dl", "", el("h2", "", name));
    for (const [key, words] of list) made.append(el("div", "", el("dt", "", ...key.split("  ").map((one) => el("kbd", "", one))), el("dd", "", words)));
    return made;
  };
  box.replaceChildren(button("tool", "close", () => box.close()), table("Keys", KEYS), table("Filter", WORDS));
  box.showModal();
}

/** What Esc takes away: one thing at a time. */
function less() {
  if (!$("detail").hidden) unselect();
  else if (timeline.range) timeline.clear();
  else if ($("filter").value) narrow("");
  else if (view.selected) {
    view.selected = null;
    rows.draw();
  }
  focusView();
}

const DOES = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  g: () => select(0), G: () => select(rows.total - 1), Home: () => select(0), End: () => select(rows.total - 1),
  PageDown: () => step(Math.floor($("list").clientHeight / rows.height)), PageUp: () => step(-Math.floor($("list").clientHeight / rows.height)),
  Enter: () => view.selected && show(view.selected),
  Escape: less, "/": () => $("filter").select(), "?": help, d: theme, c: () => fold(view.all), f: () => follow(!view.following),
  t: () => tab(TABS[(TABS.indexOf(view.tab) + 1) % TABS.length]), n: () => finding(1), N: () => finding(-1),
  p: () => {
    const fact = view.selected && facts(view.selected);
    const other = fact && (fact.kind === "request" ? fact.answered : fact.asked);
    if (other) jump(other);
  },
};

/** To the next event, or the next turn. */
function step(by) {
  if (view.tab !== "sequence") return void $(view.tab === "turns" ? "turns" : "lint").scrollBy(0, by * 120);
  return select(view.selected ? view.place + by : Math.ceil(rows.top / rows.height));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = event.target === $("filter");
  if (typing && event.key !== "Escape" && event.key !== "Enter") return;
  if (typing && event.key === "Enter") return void focusView();
  if (event.key === "Enter" && event.target.closest("button, select, .part, summary")) return;
  const act = Object.hasOwn(DOES, event.key) ? DOES[event.key] : null;
  if (!act || !view.source) return;
  event.preventDefault();
  Promise.resolve(act()).catch(trouble);
});
document.addEventListener("unselect", unselect);
$("list").addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (!row?.dataset.i) return;
  const first = Math.max(0, Math.floor(rows.top / rows.height) - 4);
  select(first + Array.prototype.indexOf.call(rows.rows.children, row), true);
});
$("list").addEventListener("wheel", (event) => event.deltaY < 0 && follow(false), { passive: true });
$("filter").addEventListener("input", () => {
  clearTimeout(view.typed);
  view.typed = setTimeout(() => view.source && filtered(), 150);
});
for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => tab(name));
$("fold").addEventListener("click", () => fold(view.all));
$("follow").addEventListener("click", () => follow(!view.following));
$("theme").addEventListener("click", theme);
$("ask").addEventListener("click", help);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.draw());

/** Looks at a file of this machine, which nobody else gets to see. */
async function lookAt(file) {
  if (!file) return;
  if (file.name.endsWith(".zst")) return void welcome("This recording is packed. Unpack it with zstd, or look at it with acp-relay inspect open.");
  $("welcome")?.remove();
  $("recordings").hidden = true;
  const source = new Dropped(file);
  await look(source);
  await source.read(async () => {
    if (view.source !== source) return;
    tell(await source.state());
    await count();
    rows.refresh();
    if (view.tab === "turns") await view.turns.update();
  });
}
let depth = 0;
addEventListener("dragenter", () => ($("drop").hidden = ++depth === 0));
addEventListener("dragleave", () => ($("drop").hidden = --depth <= 0));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  depth = 0;
  $("drop").hidden = true;
  lookAt(event.dataTransfer.files[0]).catch(trouble);
});
$("pick").addEventListener("change", () => lookAt($("pick").files[0]).catch(trouble));

/** The page without a recording. */
function welcome(words, waiting) {
  $("welcome")?.remove();
  const box = el("div", "", el("h2", "", "Drop a recording here"), el("p", "", words ?? "It is read in this page alone and sent nowhere."), button("tool", "or choose a file", () => $("pick").click()));
  if (waiting) box.replaceChildren(el("h2", "", "Nothing to show yet"), el("p", "", words));
  box.id = "welcome";
  $("left").append(box);
}

async function start() {
  if (!location.protocol.startsWith("http")) return welcome();
  const choice = $("recordings");
  const offer = (all) => {
    all.slice(choice.options.length).forEach((one) => choice.append(new Option(`${one.name} · ${size(one.bytes)} · ${text(one.agent)}`.replace(UNSEEN_ALL, "·"), choice.options.length)));
    choice.hidden = all.length < 2;
  };
  let all = await Server.recordings();
  if (!all.length) welcome("There is no recording here yet. The first one is shown as soon as it begins.", true);
  while (!all.length) {
    await new Promise((done) => setTimeout(done, 1000));
    all = await Server.recordings();
  }
  $("welcome")?.remove();
  offer(all);
  choice.value = String(all.length - 1);
  choice.addEventListener("change", () => look(new Server(Number(choice.value))).catch(trouble));
  // Those that begin later are offered when somebody chooses.
  for (const event of ["pointerdown", "focus"]) choice.addEventListener(event, () => Server.recordings().then(offer).catch(trouble));
  addEventListener("visibilitychange", () => document.hidden || Server.recordings().then(offer).catch(trouble));
  $("list").focus();
  await look(new Server(all.length - 1));
}
start().catch(trouble);

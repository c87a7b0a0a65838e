// Keys and clicks.

/** What Esc does: closes or clears one thing at a time. */
function escape() {
  if (document.body.classList.contains("invalid")) narrow("");
  else if (!$("detail").hidden) unselect();
  else if (timeline.range) timeline.clear();
  else if ($("filter").value) narrow("");
  else if (view.selected) {
    view.selected = null;
    rows.draw();
  }
  focusView();
}

/** To the next event; in the other views, to the next thing that can be opened. */
function step(by) {
  if (view.tab === "sequence") return walk(by);
  view.turns.stay(false);
  const all = Array.from($(BOXES[view.tab]).querySelectorAll(".part, .place"));
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? all.find((one) => one.getBoundingClientRect().bottom > $("left").getBoundingClientRect().top) : all[Math.max(0, Math.min(at + by, all.length - 1))];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

/** To the beginning or the end. */
function edge(end) {
  if (view.tab === "sequence") return select(end ? rows.total - 1 : 0);
  if (view.tab === "turns") view.turns.stay(end);
  const box = $(BOXES[view.tab]);
  box.scrollTop = end ? box.scrollHeight : 0;
}

function page(by) {
  const box = $(BOXES[view.tab]);
  if (view.tab === "sequence") return step(by * Math.floor(box.clientHeight / rows.height));
  view.turns.stay(false);
  box.scrollBy(0, by * box.clientHeight * 0.9);
}

/** Goes to the request of the selected answer, or to the answer of the selected request. */
function pair() {
  const fact = view.selected && facts(view.selected);
  const other = fact && (fact.kind === "request" ? fact.answer : fact.request);
  return other && jump(other);
}

const commands = () => showCommands(view.state?.path ?? "FILE", view.q);

function nextTab(by, focus) {
  tab(TABS[(TABS.indexOf(view.tab) + by + TABS.length) % TABS.length]);
  if (focus) $(`tab-${view.tab}`).focus();
  else focusView();
}

const ACTIONS = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  g: () => edge(false), G: () => edge(true), Home: () => edge(false), End: () => edge(true), PageDown: () => page(1), PageUp: () => page(-1),
  Enter: () => view.selected && view.tab === "sequence" && show(view.selected), Escape: escape, "/": () => $("filter").select(),
  p: pair, t: () => nextTab(1), n: () => finding(1), N: () => finding(-1), c: () => fold(view.all), l: dense, w: () => timeOfDay(!ofDay), "[": () => neighbour(-1), "]": () => neighbour(1), f: () => follow(!view.following), o: backToList,
  x: commands, d: theme, "?": showKeys,
};

/** Keys that elements which scroll, or use them themselves, keep. */
const OWN = /^(?:Arrow|Page|Home|End|Enter)/;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog").open) return;
  const { key, target } = event;
  if (target === $("filter")) {
    if (hints.key(key)) event.preventDefault();
    else if (key === "Enter") {
      hints.hide();
      if (filtered(true)) focusView();
    }
    else if (key === "Escape") escape();
    return;
  }
  if (target.closest("#bars") && timeline.key(event)) return void event.preventDefault();
  if (target.closest("#split") && splitter.key(event)) return void event.preventDefault();
  if (target.closest("[role=tab]") && /^Arrow(?:Left|Right)$/.test(key)) return nextTab(key === "ArrowRight" ? 1 : -1, true);
  if (OWN.test(key) && target.closest(key === "Enter" ? "button, select, .part, summary" : "select, #detail")) return;
  const act = Object.hasOwn(ACTIONS, key) ? ACTIONS[key] : null;
  // Until the filter is right, its rows are not there; a key may be meant for the field.
  const misled = document.body.classList.contains("invalid") && !["Escape", "/", "?"].includes(key);
  if (!act || !view.source || misled) return;
  event.preventDefault();
  Promise.resolve(act()).catch(showError);
});
document.addEventListener("unselect", unselect);
$("list").addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (!row?.dataset.i) return;
  const first = Math.max(0, Math.floor(rows.top / rows.height) - 4);
  select(first + Array.prototype.indexOf.call(rows.rows.children, row), true);
});
$("list").addEventListener("wheel", (event) => event.deltaY < 0 && follow(false), { passive: true });
$("filter").addEventListener("input", filterSoon);
$("filter").addEventListener("blur", () => view.source && filtered(true));
for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => tab(name));
$("dense").addEventListener("click", () => Promise.resolve(dense()).catch(showError));
$("fold").addEventListener("click", () => fold(view.all));
$("follow").addEventListener("click", () => follow(!view.following));
$("more").addEventListener("click", commands);
$("theme").addEventListener("click", theme);
$("hours").addEventListener("click", () => timeOfDay(!ofDay));
$("ask").addEventListener("click", showKeys);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.draw());

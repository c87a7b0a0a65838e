// Which recordings there are: those of the viewer's server, or files of this machine, which nobody
// else gets to see.

/** How often the page asks whether another recording has begun. */
const LOOK_AGAIN = 4000;

/** What there is to choose from; each has a name, bytes, perhaps an agent, and can be opened. */
const offered = [];

/** Offers more recordings; the newest stands first. */
function offer(more) {
  const choice = $("recordings");
  for (const one of more) {
    const words = [one.name, size(one.bytes), text(one.agent)].filter(Boolean).join(" · ");
    choice.prepend(new Option(words.replace(UNSEEN_ALL, "·"), String(offered.push(one) - 1)));
  }
  choice.hidden = offered.length < 2;
}

function choose(place) {
  $("welcome")?.remove();
  $("newer").hidden = true;
  $("recordings").value = String(place);
  return look(offered[place].open());
}

/** The recording before or after the one that is looked at. */
function neighbour(by) {
  const place = Number($("recordings").value) + by;
  return place in offered ? (view.source.live ? choose : read)(place) : undefined;
}

/** Looks at files. */
async function lookAt(files) {
  const held = droppedOf(files);
  if (!held.length) return;
  offered.length = 0;
  $("recordings").replaceChildren();
  offer(held.map((one) => ({ ...one, open: () => new Dropped(one) })));
  await read(0);
}

/** Reads a file, and shows what was read of it meanwhile. */
async function read(place) {
  await choose(place);
  const { source } = view;
  try {
    await source.read(async () => view.source === source && showAll(await source.state()).catch(trouble));
  } catch (error) {
    if (error instanceof NoRecording && view.source === source) return noRecording(source.files[0].name);
    trouble(error instanceof Damaged ? new Error(`${source.name} cannot be unpacked: ${error.message}`) : error);
  }
}

/** The page without a recording. */
function welcome(title, words, ...more) {
  $("welcome")?.remove();
  const box = el("div", "", el("h2", "", title), el("p", "", words), ...more);
  box.id = "welcome";
  $("left").append(box);
}

/** Says that a file is none, and what makes one of it. */
function noRecording(name) {
  const command = `acp-relay inspect import ${fileOf(name)} ${fileOf(name.replace(/\.\w+$/, "").replace(/^-/, "") || "recording")}.acpr`;
  view.source.close();
  for (const id of ["about", "count", "state"]) $(id).replaceChildren();
  welcome("This is no recording", "Of a capture, a trace or a HAR file this makes one:", el("div", "command", el("code", "", command), copier("copy", () => command, `Copy: ${command}`)), button("tool", "choose another file", () => $("pick").click()));
}

/** Offers the recordings that the server has now. */
async function served() {
  const all = await Server.recordings();
  const before = offered.length;
  offer(all.slice(before).map((one, at) => ({ ...one, open: () => new Server(before + at, one.name) })));
  return offered.length - before;
}

/** Says that another recording has begun. */
async function lookForNewer() {
  for (;;) {
    await pause(LOOK_AGAIN);
    if (document.hidden || !view.source?.live) continue;
    // That the server does not answer is said where the recording is followed.
    const more = await served().catch(() => 0);
    if (more) $("newer").textContent = `${Number($("newer").textContent.split(" ")[0]) + more} new`;
    $("newer").hidden &&= !more;
  }
}

async function start() {
  if (!location.protocol.startsWith("http")) {
    return welcome("Drop a recording here", "An .acpr or .acpr.zst, or all segments of one. It is read in this page alone and sent nowhere.", button("tool", "or choose a file", () => $("pick").click()));
  }
  while (!(await served())) {
    if (!$("welcome")) welcome("Nothing to show yet", "There is no recording here yet. The first one is shown as soon as it begins.");
    await pause(AGAIN);
  }
  lookForNewer();
  addEventListener("hashchange", () => addressed().catch(trouble));
  await addressed();
}

/** Looks at what the address names; without any, at the newest. */
async function addressed() {
  const there = new URLSearchParams(location.hash.slice(1));
  const named = offered.findIndex((one) => one.name === there.get("recording"));
  const place = named < 0 ? offered.length - 1 : named;
  const looks = view.source?.name === offered[place].name ? null : choose(place);
  // Of another recording only what it is looked at with holds.
  if (named < 0) there.delete("n");
  arrive(there).catch(trouble);
  await looks;
}

timeOfDay(ofDay);
if (["dark", "light"].includes(kept("theme"))) document.documentElement.dataset.theme = kept("theme");
let depth = 0;
addEventListener("dragenter", () => ($("drop").hidden = ++depth === 0));
addEventListener("dragleave", () => ($("drop").hidden = --depth <= 0));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  depth = 0;
  $("drop").hidden = true;
  lookAt(event.dataTransfer.files).catch(trouble);
});
$("pick").addEventListener("change", () => lookAt($("pick").files).catch(trouble));
$("recordings").addEventListener("change", () => (view.source?.live ? choose : read)(Number($("recordings").value)).catch(trouble));
$("newer").addEventListener("click", () => choose(offered.length - 1).catch(trouble));
start().catch(trouble);

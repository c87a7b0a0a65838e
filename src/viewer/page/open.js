// The available recordings: those of the viewer's server, which also takes files that are dropped
// onto the page; without a server local files, which are sent nowhere.

const SERVED = location.protocol.startsWith("http");

/** The recordings to choose from; each has a name, bytes, perhaps an agent, and can be opened. */
const offered = [];

/** Adds recordings to the choice; the newest stands first. */
function offer(more) {
  const choice = $("recordings");
  for (const one of more) {
    const words = [one.name, size(one.bytes), text(one.agent)].filter(Boolean).join(" · ");
    choice.prepend(new Option(words.replace(UNSEEN_ALL, "·"), String(offered.push(one) - 1)));
  }
  choice.hidden = offered.length < 2;
}

function choose(place) {
  mode("recording");
  $("recordings").value = String(place);
  return look(offered[place].open());
}

/** Shows the recording before or after the current one. */
function neighbour(by) {
  const live = overview.all.sort((a, b) => a.time - b.time || a.id - b.id).map((row) => row.id);
  const place = view.source.live ? live[live.indexOf(view.source.place) + by] : Number($("recordings").value) + by;
  return place in offered ? (view.source.live ? choose : read)(place) : undefined;
}

/** Shows files. */
async function showFiles(files) {
  if (!files.length) return;
  if (SERVED) return await sendFiles(Array.from(files));
  const held = droppedOf(files);
  offered.length = 0;
  $("recordings").replaceChildren();
  offer(held.map((one) => ({ ...one, open: () => new Dropped(one) })));
  await read(0);
}

/** Has the server unpack and lint files, and shows them. */
async function sendFiles(files) {
  $("drop").hidden = false;
  $("drop").firstChild.textContent = "The files are sent to acp-relay.";
  try {
    const places = await Server.send(files);
    await served();
    await choose(places[0]);
  } catch (error) {
    throw error.status ? Object.assign(error, { isOwn: true }) : error;
  } finally {
    $("drop").hidden = true;
  }
}

/** Reads a file, and shows it while it is read. */
async function read(place) {
  await choose(place);
  const { source } = view;
  try {
    await source.read(async () => view.source === source && showAll(await source.state()).catch(showError));
  } catch (error) {
    if (view.source !== source) return;
    const { name } = source.files[0];
    if (error instanceof NoRecording) instead("This is not a recording", "This converts a capture, a trace or a HAR file:", importCommand(name));
    else if (error instanceof PackedRecording) instead("This recording is packed", "This page does not unpack. This command shows it:", openCommand(name));
    else showError(error);
  }
}

/** The page without a recording. */
function welcome(title, words, ...more) {
  $("welcome")?.remove();
  const box = el("div", "", el("h2", "", title), el("p", "", words), ...more);
  box.id = "welcome";
  $("left").append(box);
}

/** Shows why there is no recording, and the command that helps. */
function instead(title, words, command) {
  view.source.close();
  for (const id of ["about", "count", "state"]) $(id).replaceChildren();
  welcome(title, words, command, button("tool", "choose another file", () => $("pick").click()));
}

const importCommand = (name) => commandLine(`acp-relay inspect import ${fileOf(name)} ${fileOf(name.replace(/\.\w+$/, "").replace(/^-/, "") || "recording")}.acpr`);

/** Requests what has changed among the server's recordings, once there is something with `wait`. Returns the new ones. */
async function served(wait) {
  const fresh = await overview.update(wait);
  for (const id of fresh) {
    const { name } = overview.rows.get(id);
    offered[id] = { name, open: () => new Server(id, name) };
  }
  return fresh;
}

/** Keeps the list up to date, and reports new recordings beside another one. */
async function followRecordings() {
  for (;;) {
    await pause(overview.shown ? 120 : SELDOM);
    if (document.hidden) continue;
    try {
      const fresh = await served(true);
      if (overview.shown) {
        showError(null);
        overview.layOut();
      } else if (fresh.length && view.source?.live) {
        $("newer").textContent = `${Number($("newer").textContent.split(" ")[0]) + fresh.length} new`;
        $("newer").hidden = false;
      }
    } catch (error) {
      // Beside a recording, a server that does not answer is reported by `follows`.
      if (overview.shown) showError(error);
      await pause(RETRY_INTERVAL);
    }
  }
}

async function start() {
  if (!SERVED) {
    const words = "An .acpr file, or all segments of a recording. It is read by this page only and sent nowhere. For packed recordings (.acpr.zst) and for findings there is this command:";
    return welcome("Drop a recording here", words, openCommand("FILE"), button("tool", "or choose a file", () => $("pick").click()));
  }
  await served();
  followRecordings();
  addEventListener("hashchange", () => addressed().catch(showError));
  await addressed();
}

/** The recording that was begun last. */
const newest = () => overview.all.reduce((last, row) => (row.time >= last.time ? row : last)).id;

/** Shows what the address names: a recording, the comparison of two, or the list; for a single file, the newest recording. */
async function addressed() {
  const there = new URLSearchParams(location.hash.slice(1));
  const [named, a, b] = ["recording", "a", "b"].map((name) => offered.findIndex((one) => one?.name === there.get(name)));
  if (there.get("view") === "compare" && a >= 0 && b >= 0) return await showComparison(a, b);
  if (named < 0 && (overview.folder || there.get("view") === "list")) return overview.show(there);
  // For another recording, only the view and the filter hold.
  if (named < 0) there.delete("n");
  await visit(named < 0 ? newest() : named, there);
}

/** Shows a recording as an address describes it. */
async function visit(place, there) {
  const looking = view.source?.name === offered[place].name ? null : choose(place);
  arrive(there).catch(showError);
  await looking;
}

timeOfDay(ofDay);
if (["dark", "light"].includes(setting("theme"))) document.documentElement.dataset.theme = setting("theme");
let depth = 0;
addEventListener("dragenter", () => {
  $("drop").hidden = ++depth === 0;
  $("drop").firstChild.textContent = SERVED ? "Drop a recording or a capture to open it. It is sent to the acp-relay of this page only." : "Drop a recording to open it";
});
addEventListener("dragleave", () => ($("drop").hidden = --depth <= 0));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  depth = 0;
  $("drop").hidden = true;
  showFiles(event.dataTransfer.files).catch(showError);
});
$("pick").addEventListener("change", () => showFiles($("pick").files).catch(showError));
$("recordings").addEventListener("change", () => (view.source?.live ? choose : read)(Number($("recordings").value)).catch(showError));
$("newer").addEventListener("click", () => choose(newest()).catch(showError));
start().catch(showError);

// Settings that the browser keeps: colours, time, width of the event. And copying.

/** A setting; null where the browser keeps none. */
function setting(name) {
  try {
    return localStorage.getItem(`acp-relay.${name}`);
  } catch {
    return null;
  }
}

function saveSetting(name, value) {
  try {
    localStorage.setItem(`acp-relay.${name}`, value);
  } catch {
    // Then it is lost when the page is left.
  }
}

/** How long a button shows that it has copied, in milliseconds. */
const COPIED_TIME = 1500;

/** A button that copies what `content()` returns, and shows whether that worked. */
function copyButton(words, content, title) {
  const made = button("tool copy", words, async () => {
    const done = await copyText(String(await content())).catch(() => false);
    made.textContent = done ? "copied" : "not allowed";
    clearTimeout(made.later);
    made.later = setTimeout(() => (made.textContent = words), COPIED_TIME);
  }, title);
  made.setAttribute("aria-live", "polite");
  return made;
}

/** Copies a text. Returns whether that worked. */
async function copyText(content) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(content);
    return true;
  }
  // A page from another machine over plain HTTP has no clipboard, but can copy a selection.
  const box = el("textarea", "aside");
  box.value = content;
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  const before = document.activeElement;
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  before?.focus();
  return done;
}

/** Minimum and maximum width of the event, and the step of a key, in percent. */
const NARROWEST = 25;
const WIDEST = 75;
const NUDGE = 3;

/** The line between the list and an event: dragged, or moved with the keys. */
class Splitter {
  constructor(line, changed) {
    Object.assign(this, { line, changed });
    line.addEventListener("pointerdown", (event) => {
      line.setPointerCapture(event.pointerId);
      this.dragged = true;
      event.preventDefault();
      line.focus();
    });
    line.addEventListener("pointermove", (event) => this.dragged && this.set(100 - (event.clientX * 100) / innerWidth));
    for (const name of ["pointerup", "pointercancel"]) line.addEventListener(name, () => (this.dragged = false));
    line.addEventListener("dblclick", () => this.set(46));
    this.set(Number(setting("split")) || 46);
  }

  set(share) {
    this.share = Math.round(Math.max(NARROWEST, Math.min(WIDEST, share)) * 10) / 10;
    document.documentElement.style.setProperty("--split", `${this.share}%`);
    this.line.setAttribute("aria-valuenow", Math.round(this.share));
    saveSetting("split", this.share);
    this.changed();
  }

  /** Handles a key. Returns whether it was for the splitter. */
  key({ key }) {
    const to = { ArrowLeft: this.share + NUDGE, ArrowRight: this.share - NUDGE, Home: WIDEST, End: NARROWEST }[key];
    if (to !== undefined) this.set(to);
    return to !== undefined;
  }
}

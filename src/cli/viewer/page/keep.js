// What stays as somebody has set it: the colours, the time, how wide an event is. And copying.

/** What was set before; nothing where a browser keeps nothing. */
function kept(name) {
  try {
    return localStorage.getItem(`acp-relay.${name}`);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`acp-relay.${name}`, value);
  } catch {
    // Then it stays until the page is left.
  }
}

/** How long a button says that it has copied, in milliseconds. */
const SAID = 1500;

/** A button that copies what `content()` gives, and says whether that went well. */
function copier(words, content, title) {
  const made = button("tool copy", words, async () => {
    const done = await copied(String(await content())).catch(() => false);
    made.textContent = done ? "copied" : "not allowed";
    clearTimeout(made.later);
    made.later = setTimeout(() => (made.textContent = words), SAID);
  }, title);
  made.setAttribute("aria-live", "polite");
  return made;
}

/** Whether a text was copied. */
async function copied(content) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(content);
    return true;
  }
  // A page that comes over plain HTTP from another machine has no clipboard, but what is selected.
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

/** Least and most that an event takes of the width, and what a key moves, in percent. */
const NARROWEST = 25;
const WIDEST = 75;
const NUDGE = 3;

/** The line between the list and an event: it is pulled, or moved with the keys. */
class Splitter {
  constructor(line, changed) {
    Object.assign(this, { line, changed });
    line.addEventListener("pointerdown", (event) => {
      line.setPointerCapture(event.pointerId);
      this.pulled = true;
      event.preventDefault();
      line.focus();
    });
    line.addEventListener("pointermove", (event) => this.pulled && this.set(100 - (event.clientX * 100) / innerWidth));
    for (const name of ["pointerup", "pointercancel"]) line.addEventListener(name, () => (this.pulled = false));
    line.addEventListener("dblclick", () => this.set(46));
    this.set(Number(kept("split")) || 46);
  }

  set(share) {
    this.share = Math.round(Math.max(NARROWEST, Math.min(WIDEST, share)) * 10) / 10;
    document.documentElement.style.setProperty("--split", `${this.share}%`);
    this.line.setAttribute("aria-valuenow", Math.round(this.share));
    keep("split", this.share);
    this.changed();
  }

  /** Whether a key was one of its own. */
  key({ key }) {
    const to = { ArrowLeft: this.share + NUDGE, ArrowRight: this.share - NUDGE, Home: WIDEST, End: NARROWEST }[key];
    if (to !== undefined) this.set(to);
    return to !== undefined;
  }
}

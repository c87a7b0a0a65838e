// Suggestions for the filter: fields, and values that occur in the recording.

/** Suggestions that are shown. */
const HINTS = 8;

/** What each field is for. */
const MEANINGS = {
  method: "of that method, answers too", session: "sessions with this prefix", kind: "request, error, stderr, mark …", from: "client or agent",
  update: "the kind of a session/update", tool: "of a tool call", text: "anywhere in the message", rule: "changed by a rule", lint: "with a finding of this rule",
  dur: "how long it took, such as dur>2s", t: "when, such as t<1m", size: "how large, such as size>10k", id: "its JSON-RPC id", note: "a note of the relay",
  at: "the side of the relay", dir: "> to the agent, < to the client", n: "its number",
};
const ORDER = Object.keys(MEANINGS);

class Hints {
  /** `values(field)` returns its values in the recording; calls `changed()` when the text changes. */
  constructor(input, box, values, changed) {
    Object.assign(this, { input, box, values, changed, at: -1 });
    input.addEventListener("focus", () => this.show());
    input.addEventListener("input", () => this.show());
    input.addEventListener("blur", () => this.hide());
    // The field keeps the focus.
    box.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  get open() {
    return !this.box.hidden;
  }

  hide() {
    this.box.hidden = true;
    this.at = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  show() {
    const { word, hints } = this.next();
    this.box.replaceChildren(...hints.slice(0, HINTS).map(([term, means], place) => this.hint(term, means, place, word)));
    this.at = -1;
    this.input.removeAttribute("aria-activedescendant");
    this.box.hidden = hints.length === 0;
    this.input.setAttribute("aria-expanded", String(this.open));
  }

  hint(term, means, place, word) {
    const made = el("li", "", line("term", term, 60), el("span", "soft", means));
    Object.assign(made, { id: `hint-${place}`, role: "option", take: () => this.take(term, word) });
    made.setAttribute("aria-selected", "false");
    made.addEventListener("click", made.take);
    return made;
  }

  /** The word before the caret, and suggestions for it. */
  next() {
    const before = this.input.value.slice(0, this.input.selectionStart ?? undefined);
    const word = /[^\s()]*$/.exec(before)[0];
    const field = /^([a-z]+):/.exec(word)?.[1];
    if (field && Object.hasOwn(FIELDS, field)) {
      const begun = word.slice(field.length + 1).replace(/^"/, "").toLowerCase();
      const own = FIELDS[field];
      const values = Array.isArray(own) ? own : this.values(field);
      const fits = values.filter((value) => value.toLowerCase().includes(begun) && value.toLowerCase() !== begun);
      return { word, hints: fits.map((value) => [`${field}:${termOf(value)}`, ""]) };
    }
    const fits = ORDER.filter((name) => name.startsWith(word));
    return { word, hints: fits.map((name) => [FIELDS[name] === "text" || Array.isArray(FIELDS[name]) ? `${name}:` : `${name}>`, MEANINGS[name]]) };
  }

  take(term, word) {
    const end = this.input.selectionStart;
    const rest = this.input.value.slice(end);
    const done = !/[:>]$/.test(term) && !rest.startsWith(" ");
    this.input.setRangeText(term + (done ? " " : ""), end - word.length, end, "end");
    this.changed();
    this.show();
  }

  /** Handles a key. Returns whether it was for the suggestions. */
  key(name) {
    if (!this.open) return false;
    const all = this.box.children;
    if (name === "Escape") this.hide();
    else if ((name === "Enter" || name === "Tab") && this.at >= 0) all[this.at].take();
    else if (name === "ArrowDown" || name === "ArrowUp") {
      all[this.at]?.setAttribute("aria-selected", "false");
      this.at = (this.at + (name === "ArrowDown" ? 1 : this.at < 0 ? 0 : -1) + all.length) % all.length;
      all[this.at].setAttribute("aria-selected", "true");
      this.input.setAttribute("aria-activedescendant", all[this.at].id);
    } else return false;
    return true;
  }
}

/** A value as a filter spells it. */
const termOf = (value) => (/^[^\s"\\():<>=*]+$/.test(value) ? value : JSON.stringify(value));

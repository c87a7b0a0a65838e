// The findings of the linter: by rule, the most severe first, each with its events.

/** Findings of a rule that are listed at first. */
const LISTED = 8;

class Findings {
  /** `jump(n)` goes to an event, `narrow(term)` filters the sequence. */
  constructor(box, source, jump, narrow) {
    Object.assign(this, { box, source, jump, narrow, groups: new Map() });
    box.replaceChildren();
  }

  /** Shows the current findings, after the update before has finished. */
  update(lint) {
    this.done = (this.done ?? Promise.resolve()).catch(() => {}).then(() => this.show(lint));
    return this.done;
  }

  async show(lint) {
    const counts = new Map(list(lint?.rules).map((rule) => [rule.id, rule.count]));
    // Findings that were provisional are shown again.
    for (const [id, known] of this.groups) if (!(counts.get(id) >= known.count)) this.groups.delete(id);
    for (const rule of list(lint?.rules)) {
      const known = this.groups.get(rule.id);
      if (known?.count === rule.count) continue;
      const group = known ?? { box: el("article", `group ${rule.severity}`), listed: 0 };
      group.count = rule.count;
      this.groups.set(rule.id, group);
      if (!known) group.box.append(this.head(rule, group), el("div", "places"), button("more", "", () => this.more(rule.id, group)));
      group.box.querySelector(".times").textContent = grouped(rule.count);
      if (group.listed < Math.min(LISTED, rule.count)) await this.more(rule.id, group);
      this.left(group);
    }
    // The most severe stands first, also when it came last.
    this.box.replaceChildren(...list(lint?.rules).map((rule) => this.groups.get(rule.id).box));
  }

  head(rule) {
    const only = button("tool", "filter", () => this.narrow(`lint:${rule.id}`), `Filter: lint:${rule.id}`);
    return el("header", "", el("span", `severity ${rule.severity}`, rule.severity), el("h2", "", rule.id), el("span", "times"), el("p", "", ...rule.message.split("`").map((part, at) => (at % 2 ? el("code", "", part) : part))), only);
  }

  async more(id, group) {
    const { findings } = await this.source.findings(id, group.listed, group.listed ? 100 : LISTED);
    group.listed += findings.length;
    group.box.querySelector(".places").append(...findings.map((one) => this.place(one)));
    this.left(group);
  }

  left(group) {
    const more = group.box.querySelector(".more");
    more.hidden = group.listed >= group.count;
    more.textContent = `${grouped(group.count - group.listed)} more`;
  }

  place(one) {
    const words = [one.method ? line("method", one.method, 80) : null, line("summary", one.what, 300)];
    const made = button("place", "", () => this.jump(one.n), "Go to the event");
    made.append(el("time", "", clock(one.t)), one.side ? el("span", `side by-${one.side}`, one.side) : el("span", "side"), el("span", "what", ...words.filter(Boolean)));
    return made;
  }
}

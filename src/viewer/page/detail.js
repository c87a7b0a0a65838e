// One event in full: its bytes, its translation with the rules, and its request or answer.

class Detail {
  /** `jump(n)` goes to an event, `narrow(term)` filters, `walk(by)` goes to a neighbour. */
  constructor(box, source, { jump, narrow, walk }) {
    Object.assign(this, { box, source, jump, narrow, walk, at: 0 });
  }

  /** Shows a row, its findings first. */
  async show(row) {
    const turn = ++this.at;
    const fact = facts(row);
    const body = el("div", "body", el("p", "soft", "reading…"));
    this.box.replaceChildren(this.head(fact), body);
    this.box.hidden = false;
    this.box.scrollTop = 0;
    try {
      const parts = await this.parts(row, fact);
      if (turn === this.at) body.replaceChildren(...parts);
    } catch (error) {
      if (turn === this.at) body.replaceChildren(el("p", "soft", `This cannot be read: ${error.message}`));
    }
  }

  /** Shows the current facts about the row; its body does not change. */
  renew(row) {
    if (!this.box.hidden) this.box.firstElementChild.replaceWith(this.head(facts(row)));
  }

  hide() {
    this.at++;
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  head(fact) {
    const head = el("header", "");
    const close = button("close", "×", () => document.dispatchEvent(new Event("unselect")), "Close (Esc)");
    const walks = [["‹", -1, "Previous event (k)"], ["›", 1, "Next event (j)"]].map(([sign, by, title]) => button("walk", sign, () => this.walk(by), title));
    head.append(el("div", "first", el("h2", "title", line("", fact.title, 120)), el("span", `kind ${fact.kind in KINDS ? fact.kind : ""}`, SIGNS[fact.kind] ?? fact.kind), el("span", "walks", ...walks, close)));
    const way = fact.kind in KINDS
      ? [`${fact.received ? "received from" : "sent to"} the ${fact.hop}`, fact.forwarded ? "forwarded unchanged" : null]
      : [];
    const words = [fact.n === null ? null : `event ${fact.n}`, clock(fact.t), ...way, size(fact.length ?? fact.size)];
    const when = el("time", "", wall(fact.w));
    when.title = utc(fact.w);
    head.append(el("p", "soft", words.filter(Boolean).join(" · "), when.textContent && " · ", when));
    const known = el("dl", "");
    const put = (name, value) => value && known.append(el("dt", "", name), el("dd", "", value));
    if (fact.kind in KINDS) {
      put("method", fact.method ? this.only("method", fact.method, fact.method) : null);
      put("id", fact.id === undefined ? null : line("", JSON.stringify(fact.id), 60));
      put("session", fact.session ? this.only("session", fact.session, fact.session) : null);
      if (fact.kind === "request") put("answer", fact.answer ? this.link(fact.answer, `event ${fact.answer}, after ${took(fact.duration)}`) : "none in this recording");
      else if (fact.request) put("request", this.link(fact.request, `event ${fact.request}, ${took(fact.duration)} before`));
      put("redacted", fact.redacted.length ? line("", fact.redacted.map((one) => one || "the whole message").join(", ")) : null);
    }
    put("translated from", fact.of ? this.link(fact.of, `event ${fact.of}`) : null);
    if (known.children.length) head.append(known);
    head.append(this.copies(fact));
    for (const one of fact.lint) {
      const only = button("id", one.id, () => this.narrow(`lint:${one.id}`), "Show all of these");
      head.append(el("div", `finding ${one.severity}`, only, el("p", "", one.message, " ", line("", one.what, 400))));
    }
    return head;
  }

  /** Buttons that copy parts of an event. */
  copies(fact) {
    const made = [copyButton("copy line", async () => (await this.source.event(fact.i, true)).line.trimEnd(), "Copy the line of the recording")];
    const command = fact.n === null ? null : commandFor(this.source.path, `n=${fact.n}`);
    if (command) made.push(copyButton("copy command", () => command, `Copy: ${command}`));
    if (this.source.live && fact.n !== null) made.push(copyButton("copy link", () => location.href, "Copy the address of this event; it is valid while this viewer runs"));
    return el("div", "copies", ...made);
  }

  /** A value that the sequence can be filtered by. */
  only(field, value, words) {
    const made = button("only", "", () => this.narrow(`${field}:${termOf(value)}`), `Filter: ${field}:…`);
    made.append(line("", words, 80));
    return made;
  }

  link(n, words) {
    return button("go", words, () => this.jump(n));
  }

  async parts(row, fact) {
    if (fact.kind === "damaged") return [el("p", "soft", fact.summary), this.bytes((await this.source.event(row.i)).line)];
    if (!(fact.kind in KINDS)) return await this.plain(row, fact);
    const { before, after } = await this.sides(row, fact);
    if (!before || !after) return [...(fact.run > 1 ? [await this.whole(row, fact)] : []), this.pane("", await this.body(row), [])];
    const sent = facts(after);
    const paths = sent.patch.map((step) => text(step.path)).filter(Boolean);
    const rules = el("div", "rules", el("h3", "", sent.rules.length ? "Changed by" : "Changed"));
    for (const rule of sent.rules) rules.append(this.rule(rule));
    if (sent.patch.length) rules.append(patch(sent.patch));
    const left = this.pane(`received from the ${facts(before).hop}`, await this.body(before), paths, "before");
    const right = this.pane(`sent to the ${sent.hop}`, await this.body(after), paths, "after");
    return [rules, el("div", "sides", left, right)];
  }

  /** The received message and its translation, if there are both. */
  async sides(row, fact) {
    if (fact.of) {
      const { place } = await this.source.rows({ all: "1", n: fact.of, count: 0 });
      const near = await this.source.rows({ all: "1", from: place, count: 1 });
      return { before: near.rows.find((one) => facts(one).n === fact.of), after: row };
    }
    if (!fact.received || fact.forwarded) return {};
    // It is listed after this one.
    const near = await this.source.rows({ all: "1", i0: row.i, count: 60 });
    return { before: row, after: near.rows.find((one) => facts(one).of === fact.n && facts(one).kind in KINDS) };
  }

  /** The whole text of a run of chunks. */
  async whole(row, fact) {
    const rows = await this.source.rows({ all: "1", i0: row.i, count: Math.min(500, fact.run * 4) });
    const same = (one) => one.title === fact.title && one.hop === fact.hop && one.to === fact.to;
    const chunks = rows.rows.filter((one) => same(facts(one))).slice(0, fact.run);
    const words = chunks.map((one) => text(object(object(object(object(object(one.line).m).params).update).content).text));
    return el("div", "pane", el("h3", "", `Text of ${grouped(fact.run)} chunks`), el("div", "words", ...shown(words.join(""), true)));
  }

  rule(id) {
    const made = el("div", "reason", line("rule", id, 120));
    this.source.rule(id).then(({ why, lossy }) => {
      if (why) made.append(el("p", "", ...shown(why, false)));
      if (lossy) made.append(el("p", "soft", "lost: ", ...shown(lossy, false)));
    }).catch(() => {});
    return made;
  }

  async body(row) {
    const { line, whole, length } = await this.source.event(row.i);
    const body = member(line, "m");
    const fact = facts(row);
    const schema = await schemaOf(this.source, view.state?.versions?.[fact.hop] ?? 1);
    const known = (text) => describe(schema, fact.method, text);
    return { known, text: body ?? bodyText(whole ? object(JSON.parse(line)) : {}), json: body !== null, whole, length, i: row.i };
  }

  pane(title, body, paths, side) {
    const pane = el("section", `pane ${side ?? ""}`);
    const show = (body) => {
      const copy = copyButton("copy", async () => (body.whole ? body.text : await this.rest(body)), "Copy the message as it was sent");
      const content = body.json ? printed(body.text, paths, body.known(body.text)) : this.bytes(body.text);
      pane.replaceChildren(el("div", "pane-head", el("h3", "", title || "body"), copy), content);
      if (!body.whole) {
        pane.append(button("more", `show all ${size(body.length)}`, async () => {
          show({ ...body, text: await this.rest(body), whole: true });
        }));
      }
    };
    show(body);
    return pane;
  }

  /** The whole body, of which only the beginning was read. */
  async rest({ i }) {
    const { line } = await this.source.event(i, true);
    return member(line, "m") ?? line;
  }

  async plain(row, fact) {
    const { line } = await this.source.event(row.i);
    const full = fact.kind === "stderr" ? bodyText(object(JSON.parse(line))) : fact.summary;
    return [this.bytes(full), el("details", "", el("summary", "", "the line in the recording"), printed(line))];
  }

  bytes(words) {
    return el("pre", "bytes", ...shown(words.slice(0, 200000), true));
  }
}

/** A patch (RFC 6902), readable. */
function patch(steps) {
  const signs = { add: "+", remove: "−", replace: "~", move: "→", copy: "⧉", test: "=" };
  const made = el("ul", "patch");
  for (const step of steps.slice(0, 200)) {
    const value = step.value === undefined ? null : line("value", JSON.stringify(step.value), 160);
    made.append(el("li", signs[step.op] ? text(step.op) : "", el("b", "", signs[step.op] ?? "?"), line("path", text(step.path) || "the whole message", 160), value));
  }
  return made;
}

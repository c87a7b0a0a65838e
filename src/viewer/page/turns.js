// The turn view: each prompt with its results: joined text, thoughts, plans, tool calls with their
// last state, permissions, and the end.

/** Rows of a turn, and characters of a text, that are shown. */
const TURN_ROWS = 1000;
const SHOWN = 20000;

/** Long messages of a turn that are read. */
const LONG_BODIES = 100;

class Turns {
  /** `open(i)` shows an event, `jump(n)` goes to it in the sequence. */
  constructor(box, source, open, jump) {
    Object.assign(this, { box, source, open, jump, known: [], writing: false });
    box.replaceChildren();
    this.visibility = new IntersectionObserver((seen) => {
      for (const { target, isIntersecting } of seen) if (isIntersecting) this.fill(target).catch(() => this.missed(target));
    }, { root: box, rootMargin: "600px" });
    // Scrolling by hand ends following.
    for (const name of ["wheel", "pointerdown"]) box.addEventListener(name, () => this.stay(false), { passive: true });
  }

  /** Goes to the end and stays there, also while cards at the end are still being filled. */
  stay(on) {
    this.stays = on;
    if (on) this.box.scrollTop = this.box.scrollHeight;
  }

  /** Shows all turns; those that are complete are not made again. */
  async update(writing) {
    this.writing = writing;
    for (let from = 0, total = 1; from < total; from += 500) {
      const answer = await this.source.turns(from);
      total = answer.total;
      answer.turns.forEach((turn, at) => this.place(from + at, turn));
      if (from > 5000) break;
    }
  }

  place(at, turn) {
    const known = this.known[at];
    if (known?.done && known.turn.end.i === turn.end.i && !known.card.missed) return;
    const card = known?.card ?? el("article", "turn");
    this.known[at] = { card, turn, done: turn.end !== null };
    card.turn = { ...turn, number: at + 1 };
    card.filled = card.missed = false;
    if (!known) {
      card.append(this.head(card.turn), el("div", "flow"));
      this.box.append(card);
    }
    this.visibility.unobserve(card);
    this.visibility.observe(card);
  }

  head(turn) {
    const lasts = turn.end ? took(turn.end.t - turn.t) : this.writing ? "goes on" : "no end";
    const head = el("header", "", el("h2", "", `Turn ${turn.number}`), el("time", "", clock(turn.t)), el("span", turn.end ? "lasts" : "lasts open", lasts));
    if (turn.first !== undefined) head.append(el("span", "lasts", `first update after ${took(turn.first)}`));
    if (turn.session) head.append(line("session", turn.session, 40));
    return head;
  }

  async fill(card) {
    if (card.filled) return;
    card.filled = true;
    const { turn } = card;
    const i1 = turn.end?.i;
    const rows = [];
    for (let total = 1; rows.length < Math.min(total, TURN_ROWS); ) {
      const answer = await this.source.rows({ all: "1", i0: turn.i, i1, from: rows.length, count: 500 });
      total = answer.total;
      card.left = total - TURN_ROWS;
      if (!answer.rows.length) break;
      rows.push(...answer.rows);
    }
    await this.long(rows);
    const flow = el("div", "flow");
    for (const part of parts(rows.map(facts), rows)) flow.append(this.part(part));
    if (card.left > 0) flow.append(await this.left(card, facts(rows[rows.length - 1]).n));
    if (!turn.end && this.writing) flow.append(el("p", "rest goes-on", "goes on"));
    card.replaceChildren(this.head(turn), flow);
    if (this.stays) this.stay(true);
  }

  /** Reads the bodies of long messages, which rows come without. */
  async long(rows) {
    const bodies = rows.filter((row) => row.short).slice(0, LONG_BODIES).map(async (row) => {
      const { line, whole } = await this.source.event(row.i);
      if (whole) row.line = object(JSON.parse(line));
    });
    await Promise.all(bodies);
  }

  /** A card that could not be filled, because the relay is gone, is filled with the next update. */
  missed(card) {
    card.filled = false;
    card.missed = true;
  }

  /** Stands for the events of a turn that are not shown; also shows how the turn ended. */
  async left({ left, turn }, last) {
    const made = el("div", "left", button("more", `${grouped(left)} more events`, () => this.jump(last), "Show them in the sequence"));
    if (!turn.end) return made;
    const { rows } = await this.source.rows({ all: "1", i0: turn.end.i, i1: turn.end.i });
    for (const part of parts(rows.map(facts), rows)) made.append(this.part(part));
    return made;
  }

  /** Marks the selected part. */
  mark(i) {
    this.selected = i;
    for (const part of this.box.querySelectorAll(".part")) part.classList.toggle("selected", Number(part.dataset.i) === i);
  }

  part(part) {
    const made = el("div", `part ${part.kind}`);
    // It holds links and buttons, so it is none itself.
    Object.assign(made, { tabIndex: 0, role: "group", ariaLabel: part.label || part.title || part.kind });
    made.addEventListener("click", () => getSelection().isCollapsed && this.open(part.i));
    made.dataset.i = part.i;
    made.classList.toggle("selected", part.i === this.selected);
    made.addEventListener("keydown", (event) => {
      if (event.target !== made || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      this.open(part.i);
    });
    if (part.label) made.append(el("span", "speaker", part.label));
    if (part.kind === "tool") made.append(...toolCall(part));
    else if (part.kind === "plan") {
      for (const entry of part.entries) made.append(el("div", "entry", mark(entry.status), line("", entry.content)));
    } else {
      const written = ["prompt", "words-of", "thought"].includes(part.kind);
      made.append(written ? markdown(part.text.trim(), SHOWN) : el("div", "words", ...shown(part.text.trim().slice(0, SHOWN), true)));
      if (part.text.length > SHOWN) made.append(el("span", "times", `${grouped(part.text.length - SHOWN)} more characters`));
    }
    if (part.count > 1) made.append(el("span", "times", `${grouped(part.count)} chunks`));
    return made;
  }
}

/** The status of an entry of a plan, also for screen readers. */
function mark(status) {
  const made = el("i", `dot ${status}`);
  Object.assign(made, { title: status.replace("_", " "), role: "img", ariaLabel: status.replace("_", " ") });
  return made;
}

/** The parts of a turn, with chunks joined and the updates of a tool call merged. */
function parts(all, rows) {
  const made = [];
  const tools = new Map();
  const grants = new Map();
  // For translated messages, what the client received.
  const replaced = new Set(all.filter((fact) => fact.of && (fact.hop === "client" || fact.kind === "note")).map((fact) => fact.of));
  const add = (fact, kind, label, words, more = {}) => made.push({ i: fact.i, t: fact.t, kind, label, text: words, count: 1, ...more });
  all.forEach((fact, at) => {
    const body = object(object(rows[at].line).m);
    const params = object(body.params);
    if (fact.hop === "agent" && (fact.to === "agent" || (!fact.forwarded && replaced.has(fact.n)))) return;
    if (fact.kind === "stderr") add(fact, "stderr", "stderr", fact.summary);
    else if (fact.kind === "request" && fact.method === "session/prompt") {
      const words = list(params.prompt).map((block) => text(object(block).text) || `[${text(object(block).type) || "?"}]`);
      add(fact, "prompt", "prompt", words.join("\n"));
    } else if (fact.method === "session/prompt" && fact.duration !== undefined && fact.kind !== "request") {
      add(fact, fact.bad ? "stop failed" : "stop", "", fact.bad ? `failed: ${fact.summary}` : fact.summary || "ended");
    } else if (fact.method === "session/cancel") add(fact, "stop", "", "cancel requested");
    else if (fact.method === "session/request_permission") {
      if (fact.kind === "request") {
        const grant = { summary: "", duration: null };
        grants.set(fact.n, grant);
        const tool = tools.get(text(object(params.toolCall).toolCallId));
        if (tool) (tool.grants ??= []).push(grant);
        else add(fact, "tool", "", "", { title: fact.summary || "permission", status: "pending", until: fact.t, diffs: [], grants: [grant] });
      } else Object.assign(grants.get(fact.request) ?? {}, { summary: fact.summary, duration: fact.duration });
    } else if (fact.method === "session/update" && fact.length) add(fact, "stderr", "update", `${size(fact.length)} that are not shown here`);
    else if (fact.method === "session/update") update(fact, object(params.update), made, tools, add);
    else if (fact.kind === "request") add(fact, "call", fact.to === "client" ? "request of the agent" : "request of the client", `${fact.method} ${fact.summary}`);
    else if (fact.kind === "note" || fact.kind === "damaged" || fact.kind === "gap") add(fact, "stderr", fact.kind, [fact.title === fact.kind ? "" : fact.title, fact.summary].filter(Boolean).join(" "));
  });
  return made;
}

function update(fact, update, made, tools, add) {
  const kind = text(update.sessionUpdate);
  const last = made[made.length - 1];
  if (kind.endsWith("_chunk")) {
    const label = { agent_message_chunk: "agent", agent_thought_chunk: "thought", user_message_chunk: "user" }[kind] ?? kind;
    const content = object(update.content);
    const words = text(content.text) || (content.type && content.type !== "text" ? `[${text(content.type)}]` : "");
    if (last?.label === label) {
      last.text += words;
      last.count++;
    } else if (words) add(fact, label === "thought" ? "thought" : "words-of", label, words);
  } else if (kind === "tool_call" || kind === "tool_call_update") {
    const id = text(update.toolCallId);
    let tool = tools.get(id);
    if (!tool) {
      add(fact, "tool", "", "", { call: id, until: fact.t, diffs: [] });
      tools.set(id, (tool = made[made.length - 1]));
    }
    tool.title = text(update.title) || tool.title;
    tool.tool = text(update.kind) || tool.tool;
    const { command } = object(update.rawInput);
    tool.command = (Array.isArray(command) ? command.map(String).join(" ") : text(command)) || tool.command;
    if (Array.isArray(update.locations)) tool.places = update.locations.map((one) => ({ path: text(object(one).path), line: Number(object(one).line) || 0 }));
    tool.status = text(update.status) || tool.status;
    tool.until = fact.t;
    const contents = list(update.content).map(object);
    const words = contents.map((one) => text(object(one.content).text)).filter(Boolean).join("\n");
    if (words) tool.text = words;
    const diffs = contents.filter((one) => one.type === "diff");
    if (diffs.length) tool.diffs = diffs.map((one) => ({ path: text(one.path), old: text(one.oldText), now: text(one.newText) }));
  } else if (kind === "subagent_update" || kind === "session_message" || kind === "notice") add(fact, "call", kind, fact.summary);
  else if (kind === "plan" || kind === "plan_update") {
    const plan = kind === "plan" ? update : object(update.plan);
    if (text(plan.content)) return add(fact, "words-of", "plan", text(plan.content));
    const entries = list(plan.entries).map((one) => ({ content: text(object(one).content), status: ["completed", "in_progress"].find((known) => known === object(one).status) ?? "pending" }));
    add(fact, "plan", "plan", "", { entries });
  }
}

// The linter of `recording::lint`, for files that no server reads: the order of messages. It does
// not know the schema, so members and types are not checked. The rules and the methods come with
// the page. tests/vectors/inspect/lint.txt tests both linters.

const SAFE = Number.MAX_SAFE_INTEGER;

class Linter {
  constructor() {
    const { rules, methods } = JSON.parse($("known").textContent);
    this.rules = new Map(rules.map((rule) => [rule.id, rule]));
    this.methods = new Map(methods);
    this.sessions = new Sessions();
    this.open = new Map();
    this.done = new Set();
    this.deviations = new Map();
    this.gaps = false;
    this.cut = false;
  }

  /** Begins a segment. Messages before the first segment, and in missing ones, are assumed to be correct. */
  begin({ seg, first }) {
    const follows = this.segment === undefined ? first <= 1 : seg === this.segment + 1;
    this.segment = seg;
    this.cut = false;
    if (follows) return;
    this.gaps = true;
    this.open.clear();
    this.done.clear();
    this.sessions.beginLate();
  }

  /** The findings of a parsed line of the recording. */
  add(line, at) {
    const found = [];
    if (line.k === "gap") {
      this.gaps = true;
      found.push(["missing-events", `${line.events} events`]);
    }
    // Open requests at the end of a segment may be answered in the next one, which may be missing.
    if (line.k === "end" || line.k === "rotate") this.cut = line.k === "rotate";
    const [from, to] = line.d === ">" ? ["client", "agent"] : ["agent", "client"];
    // Translated messages are not checked again.
    if (line.k === "msg" && line.h !== to) this.message(line, from, found);
    const findings = found.map(([id, what]) => this.finding(id, what, at, line.k === "msg" ? from : null, line.me));
    const deviations = findings.filter(({ id }) => id === "unknown-method" || id === "wrong-side");
    if (deviations.length) this.deviations.set(line.n, deviations);
    return [...this.repaired(line, from, to), ...findings];
  }

  /** Findings of a message that its translation repaired; they replace the earlier ones. */
  repaired(line, from, to) {
    const known = this.deviations.get(line.of) ?? [];
    const note = text(line.text);
    if (line.k === "note" && /^(?:untranslatable|permission) /.test(note)) this.deviations.delete(line.of);
    const removed = line.k === "note" && line.name === "translated";
    const translated = line.k === "msg" && line.h === to && list(line.rules).length && (line.is === "request" || line.is === "notification");
    if (!removed && !translated) return [];
    this.deviations.delete(line.of);
    const rules = removed ? note : list(line.rules).map(text).join(", ");
    const gone = known.filter(({ id }) => removed || id !== this.violation(text(line.me), from));
    return gone.map((old) => ({ ...old, ...this.finding("schema-repaired", `repaired by ${rules}: ${old.what}`, old, old.side, old.method), was: old.id }));
  }

  /** The rule that a method from this side violates, if any. */
  violation(method, from) {
    if (this.methods.get(method) === from) return "wrong-side";
    return this.methods.has(method) || method.startsWith("_") ? undefined : "unknown-method";
  }

  /** The requests that have no answer. */
  unanswered() {
    return this.cut ? [] : [...this.open.values()].map((one) => this.finding("unanswered", "", one.at, one.from === "client" ? "agent" : "client", one.method));
  }

  finding(id, what, at, side, method) {
    const { severity, message } = this.rules.get(id);
    return { ...at, id, severity, message, side, method: text(method) || null, what: what.slice(0, 400) };
  }

  message(line, from, found) {
    const answered = line.is === "result" || line.is === "error";
    const key = (sender) => sender + JSON.stringify(line.id);
    const mine = answered ? key(from === "client" ? "agent" : "client") : key(from);
    const hasId = line.id !== undefined && line.id !== null;
    const [isOpen, isDone] = [this.open.has(mine), this.done.has(mine)];
    if (hasId && answered) {
      this.open.delete(mine);
      this.done.add(mine);
      if (!isOpen && isDone) found.push(["answered-twice", ""]);
    } else if (hasId && line.is === "request") {
      this.done.delete(mine);
      this.open.set(mine, { at: { n: line.n, t: Math.round(line.t * 1e6) }, from, method: line.me });
    }
    if (line.z !== undefined) return;
    const tree = treeOf({ line });
    const readable = spelling(tree, found);
    if (!line.is) {
      found.push([tree === undefined ? "noise" : Array.isArray(tree) ? "batch" : "not-json-rpc", ""]);
      return;
    }
    if (answered && !isOpen && !isDone && !this.gaps && !text(line.me) && (hasId || (line.id === null && line.is === "result"))) found.push(["answer-without-request", ""]);
    if (!answered) {
      const method = text(line.me);
      if (isOpen && hasId && line.is === "request") found.push(["duplicate-id", ""]);
      const violation = this.violation(method, from);
      if (violation) found.push([violation, method]);
    }
    this.sessions.add(line, from, readable ? object(tree) : {}, found);
  }
}

/** Adds findings about strings and numbers; returns false if few programs can read the text. */
function spelling(tree, found) {
  const first = {};
  const look = (value, place) => {
    if (typeof value === "string" && !value.isWellFormed()) first.half ??= place;
    else if (typeof value === "number" && !Number.isFinite(value)) first.far ??= place;
    else if (typeof value === "number" && Math.abs(value) > SAFE && Number.isInteger(value)) first.big ??= `${value} at ${place}`;
    else if (value && typeof value === "object") {
      for (const [name, member] of Object.entries(value)) {
        look(name, place);
        look(member, `${place}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
      }
    }
  };
  look(tree, "");
  if (first.half !== undefined) found.push(["lone-surrogate", `at ${first.half || "the text itself"}`]);
  if (first.big !== undefined && first.far === undefined) found.push(["big-number", first.big]);
  if (first.far !== undefined) found.push(["number-range", `at ${first.far}`]);
  return first.far === undefined;
}

/** The order of messages: handshake, sessions, turns, tool calls, permissions. */
class Sessions {
  constructor() {
    Object.assign(this, { initialize: undefined, initialized: false, client: {}, agent: {} });
    this.sessions = new Map();
    this.opening = new Map();
    this.prompts = new Map();
    this.permissions = new Map();
    this.late = false;
  }

  /** Messages before now are not known. */
  beginLate() {
    this.late = true;
    // Turns may have begun and ended meanwhile.
    for (const known of this.sessions.values()) Object.assign(known, { late: true, turns: 0, open: 0 });
  }

  add(line, from, tree, found) {
    const id = JSON.stringify(line.id) ?? "";
    const params = object(tree.params);
    if (line.is === "request") this.request(from, id, text(line.me), params, found);
    else if (line.is === "notification") this.notification(from, text(line.me), params, found);
    else if (from === "agent") this.agentAnswers(id, object(tree[line.is]), line.is === "result", found);
    else this.clientAnswers(id, object(tree[line.is]), line.is === "result", found);
  }

  session(id) {
    if (!this.sessions.has(id)) this.sessions.set(id, { known: false, loading: 0, turns: 0, open: 0, tools: new Map(), late: this.late });
    return this.sessions.get(id);
  }

  request(from, id, method, params, found) {
    if (!this.initialized && !this.late && method !== "initialize" && method !== "authenticate") found.push(["not-initialized", `${method} comes too early`]);
    const path = { "session/new": params.cwd, "session/load": params.cwd, "fs/read_text_file": params.path, "fs/write_text_file": params.path }[method];
    if (typeof path === "string" && !/^(?:\/|\\\\|[A-Za-z]:[\\/])/.test(path)) found.push(["relative-path", path]);
    const session = text(params.sessionId);
    if (from === "agent") {
      if (method === "session/request_permission") this.permission(id, session, params, found);
      else this.capable(method, found);
    } else if (method === "initialize") {
      if (this.initialize !== undefined || this.initialized) found.push(["initialized-twice", ""]);
      this.initialize = id;
      this.client = object(params.clientCapabilities);
    } else if (method === "session/new" || method === "session/fork") {
      this.opening.set(id, null);
    } else if (method === "session/load" || method === "session/resume") {
      if (method === "session/load" && this.initialized && this.agent.loadSession !== true) found.push(["not-capable", "the agent has no loadSession"]);
      this.opening.set(id, session);
      this.session(session).loading++;
    } else if (method === "session/prompt") {
      const known = this.session(session);
      if (!known.known && !known.late) found.push(["unknown-session", session]);
      if (known.open > 0) found.push(["turn-in-turn", `${known.open} open`]);
      known.open++;
      known.turns++;
      known.loaded = known.reported = known.cancelled = false;
      this.prompts.set(id, session);
    }
  }

  /** Checks that the client has the capability for a request of the agent. */
  capable(method, found) {
    const { fs, terminal } = this.client;
    const [name, can] = {
      "fs/read_text_file": ["fs.readTextFile", object(fs).readTextFile],
      "fs/write_text_file": ["fs.writeTextFile", object(fs).writeTextFile],
    }[method] ?? (method.startsWith("terminal/") ? ["terminal", terminal] : ["", true]);
    if (this.initialized && can !== true) found.push(["not-capable", `the client has no ${name}`]);
  }

  permission(id, session, params, found) {
    const tool = text(object(params.toolCall).toolCallId);
    const known = this.session(session);
    if (!known.tools.has(tool) && !known.late) found.push(["permission-unknown-tool", tool]);
    const options = new Set(list(params.options).map((one) => object(one).optionId));
    this.permissions.set(id, { session, options, cancelled: known.cancelled });
  }

  notification(from, method, params, found) {
    const session = text(params.sessionId);
    if (from === "client" && method === "session/cancel") {
      const known = this.session(session);
      known.cancelled = known.open > 0;
      for (const one of this.permissions.values()) one.cancelled ||= one.session === session;
    }
    if (from === "agent" && method === "session/update") this.update(session, object(params.update), found);
  }

  update(session, update, found) {
    const kind = text(update.sessionUpdate);
    const known = this.session(session);
    if (!known.known && !known.late && known.loading === 0 && !known.early) {
      known.early = true;
      const opening = [...this.opening.values()].includes(null);
      found.push([opening ? "early-update" : "unknown-session", session]);
    }
    const works = kind.endsWith("_chunk") || kind.startsWith("tool_call") || kind === "plan";
    // Reported once per prompt.
    if (works && known.open === 0 && known.loading === 0 && (known.loaded || known.turns || !known.late) && !known.reported) {
      known.reported = true;
      found.push([known.loaded ? "late-history" : known.turns ? "update-after-turn" : "update-outside-turn", kind]);
    }
    const tool = update.toolCallId;
    if (typeof tool !== "string") return;
    const over = update.status === "completed" || update.status === "failed";
    if (kind === "tool_call") known.tools.set(tool, over);
    else if (kind === "tool_call_update") {
      if (!known.tools.has(tool) && !known.late) found.push(["unknown-tool", tool]);
      known.tools.set(tool, known.tools.get(tool) || over);
    }
  }

  clientAnswers(id, body, well, found) {
    const permission = this.permissions.get(id);
    if (!permission) return;
    this.permissions.delete(id);
    const { outcome, optionId } = object(body.outcome);
    if (permission.cancelled && well && outcome !== "cancelled") found.push(["permission-after-cancel", `answered ${text(outcome) || "otherwise"}`]);
    if (outcome === "selected" && !permission.options.has(text(optionId))) found.push(["unknown-option", text(optionId)]);
  }

  agentAnswers(id, body, well, found) {
    if (this.initialize === id) {
      this.initialize = undefined;
      this.initialized ||= well;
      this.agent = object(body.agentCapabilities);
    }
    if (this.opening.has(id)) {
      const loaded = this.opening.get(id);
      this.opening.delete(id);
      if (loaded !== null) {
        const known = this.session(loaded);
        known.loading = Math.max(0, known.loading - 1);
        known.loaded = true;
        known.reported = false;
      }
      const session = typeof body.sessionId === "string" ? body.sessionId : loaded;
      if (well && session !== null) {
        const known = this.session(session);
        known.known = true;
        known.late &&= loaded !== null;
      }
    }
    if (!this.prompts.has(id)) return;
    const known = this.session(this.prompts.get(id));
    this.prompts.delete(id);
    known.open = Math.max(0, known.open - 1);
    const reason = text(body.stopReason) || "an error";
    if (known.cancelled && reason !== "cancelled") found.push(["cancel-ignored", `the turn ended with ${reason}`]);
    known.cancelled = false;
    const open = [...known.tools].filter(([, over]) => !over).map(([tool]) => tool);
    if (!open.length) return;
    found.push(["tool-open", open.sort().join(", ")]);
    // Each is reported once.
    for (const tool of known.tools.keys()) known.tools.set(tool, true);
  }
}

// What a row shows: made of a line of the recording and of facts that depend on other lines.
// A line may hold anything, so no member is relied on.

const text = (value) => (typeof value === "string" ? value : "");
const object = (value) => (value && typeof value === "object" ? value : {});
const list = (value) => (Array.isArray(value) ? value : []);

/** The facts of a row, once. */
function facts(row) {
  return (row.facts ??= Object.assign(factsOf(row), {
    i: row.i,
    size: row.size ?? 0,
    run: row.run ?? 1,
    forwarded: row.forwarded === true,
    request: row.request,
    answer: row.answer,
    duration: row.duration,
    silence: row.silence,
    failed: row.failed === true,
    lint: list(row.lint),
    ...(typeof row.text === "string" ? { summary: row.text } : {}),
  }));
}

function factsOf(row) {
  if (row.fault) return { n: null, t: row.t ?? 0, kind: "damaged", title: "damaged", summary: row.fault };
  const line = object(row.line);
  const base = { n: line.n, t: Math.round(line.t * 1e6), w: line.w, kind: text(line.k) };
  switch (line.k) {
    case "msg":
      return message(base, line);
    case "passed":
      return { ...base, to: text(line.h), title: "forwarded", summary: `${line.from} to ${line.to} unchanged, ${line.count} messages` };
    case "stderr":
      return { ...base, title: "stderr", summary: bodyText(line).trimEnd() };
    case "proc":
      return { ...base, title: `process ${text(line.ev)}`, summary: text(line.what), bad: /code [1-9]|signal/.test(text(line.what)) };
    case "link":
      return { ...base, hop: text(line.h), title: `${text(line.h)} ${text(line.ev)}`, summary: text(line.what) };
    case "note":
      return { ...base, title: text(line.name), summary: text(line.text), of: line.of };
    case "gap":
      return { ...base, title: "gap", summary: `${line.events} events are missing here: ${text(line.why)}`, bad: true };
    case "clock":
      return { ...base, title: "clock", summary: `the wall clock jumped by ${line.jump} s` };
    case "mark":
      return { ...base, title: "mark", summary: text(line.text) };
    case "resume":
      return { ...base, title: "resume", summary: "the recording continues" };
    case "end":
    case "rotate":
      return { ...base, title: line.k === "end" ? "end" : "next file", summary: text(line.why) };
    default:
      return { ...base, title: base.kind || "unknown", summary: "an event of an unknown kind" };
  }
}

function message(base, line) {
  const [hop, to] = [text(line.h), line.d === ">" ? "agent" : "client"];
  const body = object(line.m);
  const method = text(line.me);
  const kind = text(line.is) || "malformed";
  const made = {
    ...base,
    kind,
    hop,
    to,
    received: hop !== to,
    method,
    id: line.id,
    session: text(line.s),
    of: line.of,
    rules: list(line.rules).map(text),
    patch: list(line.p).map(object),
    redacted: list(line.rd).map(text),
    length: line.z,
    title: method || "no method",
    summary: "",
  };
  if (kind === "malformed") return { ...made, title: "no message", summary: bodyText(line), bad: true };
  const [title, summary] = summarize(kind, method, body);
  const update = method === "session/update" ? text(object(object(body.params).update).sessionUpdate) : "";
  const status = text(object(object(body.params).update).status).replace("_", " ");
  return { ...made, update, status, title: title || made.title, summary, bad: kind === "error" || (/^tool_call/.test(update) && object(body.params.update).status === "failed") };
}

/** A short title and the summary of a message. */
function summarize(kind, method, body) {
  const params = object(body.params);
  const result = object(body.result);
  const error = object(body.error);
  if (kind === "error") return [method, `${error.code ?? ""} ${text(error.message)}`.trim()];
  if (kind === "result") {
    const outcome = object(result.outcome);
    const summary =
      text(result.stopReason) ||
      text(outcome.optionId) || text(outcome.outcome) ||
      text(object(result.agentInfo).title) || text(object(result.agentInfo).name) ||
      text(result.sessionId) || text(result.content) || text(result.terminalId) || text(result.output);
    return [method, summary];
  }
  const update = object(params.update);
  if (method === "session/update") return summarizeUpdate(update);
  const info = object(params.clientInfo);
  const prompt = list(params.prompt).map((block) => text(object(block).text) || `[${text(object(block).type)}]`);
  const summary =
    prompt.join(" ") ||
    text(object(params.toolCall).title) ||
    text(params.path) || [text(params.command), ...list(params.args).map(text)].join(" ").trim() ||
    [text(info.title) || text(info.name), text(info.version)].join(" ").trim() ||
    text(params.cwd) || text(params.modeId) || text(params.methodId) || text(params.terminalId);
  return [method, summary];
}

function summarizeUpdate(update) {
  const kind = text(update.sessionUpdate);
  const content = object(update.content);
  const status = text(update.status);
  const plan = object(update.plan);
  const entries = (all) => list(all).map((entry) => text(object(entry).content)).join(" · ");
  const about = {
    plan: () => entries(update.entries),
    plan_update: () => entries(plan.entries) || text(plan.content) || text(plan.planId),
    plan_removed: () => text(update.planId),
    subagent_update: () => [text(update.title) || text(update.sessionId), text(object(update.state).state)].filter(Boolean).join(" — "),
    session_message: () => list(update.content).map((block) => text(object(block).text)).join(" "),
    available_commands_update: () => list(update.availableCommands).map((one) => "/" + text(object(one).name)).join(" "),
    current_mode_update: () => text(update.currentModeId),
  }[kind];
  const summary = about?.() || text(content.text) || text(update.title) || text(update.toolCallId) || "";
  return [kind || "session/update", status ? `${summary} — ${status}` : summary];
}

/** The body of a line that is not a JSON message, as text. */
function bodyText(line) {
  if (typeof line.b === "string") return line.b;
  if (typeof line.x === "string") {
    try {
      return Array.from(atob(line.x), (c) => (c >= " " && c <= "~") || c === "\n" ? c : "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
    } catch {
      return line.x;
    }
  }
  return line.z ? `${size(line.z)} that are not shown here` : line.m ? JSON.stringify(line.m) : "";
}

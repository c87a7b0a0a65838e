// The sequence view: three lanes, an arrow for each message, other events between them.

/** The sign of each kind of event that is not a message. */
const SIGNS = {
  stderr: "stderr", proc: "process", link: "link", note: "note", gap: "gap", mark: "mark",
  clock: "clock", resume: "resume", end: "end", rotate: "next", damaged: "damaged", passed: "forwarded",
};

/** Whether rows show the time of day or the time since the beginning. */
let ofDay = setting("time") === "day";

const hour = (fact) => (ofDay && wall(fact.w).slice(11, 23)) || clock(fact.t);

function sequenceRow(row, writing) {
  const fact = facts(row);
  const made = el("div", "row");
  made.id = `row-${fact.i}`;
  made.setAttribute("role", "option");
  made.setAttribute("aria-label", spoken(fact));
  made.dataset.i = fact.i;
  const time = el("time", "", badge(fact.lint), hour(fact));
  time.title = ofDay ? `${clock(fact.t)} since the beginning` : wall(fact.w);
  made.append(time, fact.hop && fact.kind in KINDS ? arrow(fact) : remark(fact), tail(fact, writing));
  if (fact.bad) made.classList.add("bad");
  return made;
}

/** A row as text, for screen readers. */
function spoken(fact) {
  const way = fact.hop && fact.kind in KINDS ? `${fact.to === "agent" ? "client" : "agent"} ${KINDS[fact.kind]}` : fact.kind;
  const found = fact.lint.map((one) => one.id).join(", ");
  const words = [clock(fact.t), way, fact.title, fact.summary.slice(0, 120), fact.run > 1 ? `${fact.run} chunks` : "", fact.kind === "result" || fact.kind === "error" ? `after ${took(fact.duration)}` : "", found && `findings: ${found}`];
  return words.filter(Boolean).join(", ").replace(UNSEEN_ALL, " ");
}

/** Shows that there are findings, and their severity. */
function badge(lint) {
  if (!lint.length) return "";
  const severity = ["error", "warning"].find((known) => lint.some((one) => one.severity === known)) ?? "hint";
  const made = el("i", `badge ${severity}`);
  made.title = lint.map((one) => `${one.id}: ${one.message}`).join("\n");
  return made;
}

const KINDS = { request: "request", notification: "notification", result: "result", error: "error", malformed: "invalid message" };

/** A message: an arrow across the lanes. */
function arrow(fact) {
  const box = el("div", `lane ${fact.kind} to-${fact.to} by-${fact.to === "agent" ? "client" : "agent"}`);
  const through = fact.received && fact.forwarded;
  box.classList.add(through ? "through" : fact.hop === "client" ? "left" : "right");
  const label = el("div", "label", line("title", fact.title, 80));
  if (fact.run > 1) label.append(el("span", "times", `×${grouped(fact.run)}`));
  for (const rule of fact.rules.slice(0, 2)) label.append(line("rule", rule.split("/").pop(), 40));
  if (fact.rules.length > 2) label.append(el("span", "rule", `+${fact.rules.length - 2}`));
  if (fact.redacted.length) label.append(el("span", "lock", "redacted"));
  label.append(line("summary", fact.summary));
  box.append(label, el("i", "shaft"));
  if (through) box.append(el("i", "stop"));
  return box;
}

function remark(fact) {
  const box = el("div", `remark ${SIGNS[fact.kind] ?? "other"}`);
  box.append(el("span", "sign", SIGNS[fact.kind] ?? "other"), fact.title === SIGNS[fact.kind] ? "" : line("title", fact.title, 60), line("summary", fact.summary));
  return box;
}

/** The duration or the size. */
function tail(fact, writing) {
  if (fact.kind === "result" || fact.kind === "error") {
    const made = el("span", "tail", took(fact.duration));
    if (fact.duration > 2e6) made.classList.add("slow");
    return made;
  }
  if (fact.kind === "request" && fact.received && !fact.answer) {
    const made = el("span", writing ? "tail open waiting" : "tail open", writing ? waited(fact.w) : "no answer");
    made.dataset.since = fact.w;
    return made;
  }
  return el("span", "tail size", fact.kind in KINDS ? size(fact.length ?? fact.size) : "");
}

/** How long a request has been waiting, since a time in seconds. */
const waited = (since) => `… ${took(Math.max(0, Math.floor(Date.now() / 1000 - since)) * 1e6)}`;

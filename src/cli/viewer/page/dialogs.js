// What stands before the page for a while: the keys, and what else can be done with a recording.
//
// The page only reads. What starts a program, such as a replay, it gives as a command for the
// terminal of whoever looks at it.

const KEYS = [
  ["j  k", "next and previous event"], ["g  G", "first and last"], ["Enter", "open the event"], ["Esc", "close, clear"],
  ["/", "filter"], ["p", "the request or answer that belongs to it"], ["t", "sequence, turns, findings"], ["n  N", "next and previous finding"],
  ["c", "fold runs of chunks"], ["w", "time since the beginning, or of the day"], ["[  ]", "older and newer recording"], ["f", "follow what is being recorded"], ["x", "replay, export or share it"], ["d", "dark or light"], ["?", "these keys"],
];

/** What a filter can say. */
const TERMS = [
  ["permission", "a word, or \"some words\", anywhere in the message"], ["method:session/*", "of that method, answers too"],
  ["kind:error", "request, notification, answer, stderr, mark …"], ["from:agent", "the side that sent it"],
  ["session:0199", "of the session that begins so"], ["update:tool_call*", "the kind of a session/update"],
  ["dur>2s  t<1m  size>10k", "how long, when, how large"], ["lint:*  rule:goose/*", "where the linter found something, or a rule changed it"],
  ["not  or  ( )", "join them"],
];

/** Opens the dialog; whoever closes it is where they were. */
function say(...content) {
  const box = $("dialog");
  box.replaceChildren(button("tool", "close", () => box.close()), ...content);
  box.showModal();
}

function sayKeys() {
  const table = (name, list) => {
    const made = el("dl", "", el("h2", "", name));
    for (const [key, words] of list) made.append(el("div", "", el("dt", "", ...key.split("  ").map((one) => el("kbd", "", one))), el("dd", "", words)));
    return made;
  };
  say(el("div", "tables", table("Keys", KEYS), table("Filter", TERMS)));
}

/** A word of a command line. */
const quoted = (word) => (/^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** A path on a command line; one with control characters would do more than stand there. */
const fileOf = (path) => (UNSEEN.test(path) ? "FILE" : quoted(path));

/** The command that shows in a terminal what `filter` lets through. */
const commandFor = (path, filter) => `acp-relay inspect show --bodies ${fileOf(path ?? "FILE")} ${quoted(filter)}`;

/** What can be done with the recording at `path` in a terminal; `filter` is what the list shows. */
function sayCommands(path, filter) {
  const file = fileOf(path);
  const narrowed = filter && !UNSEEN.test(filter) ? ` ${quoted(filter)}` : "";
  const commands = [
    ["Play the agent to a client, as it was recorded", `acp-relay replay agent ${file}`],
    ["Play the client to an agent, and see what is different", `acp-relay replay client ${file} -- AGENT`],
    ["Share it: a copy without texts, only their lengths", `acp-relay inspect scrub --redact structure ${file} shared.acpr`],
    ["A transcript, turn by turn", `acp-relay inspect export --to md ${file}${narrowed}`],
    ["For the official trace viewer", `acp-relay inspect export --to jsons ${file}${narrowed}`],
    ["The same in the terminal", `acp-relay inspect show ${file}${narrowed}`],
  ];
  const made = commands.map(([what, command]) => {
    return el("div", "command", el("p", "", what), el("code", "", ...shown(command, false)), copier("copy", () => command, `Copy: ${what}`));
  });
  say(el("h2", "", "With this recording"), el("p", "soft", "This page reads and starts nothing. In a terminal:"), ...made);
}

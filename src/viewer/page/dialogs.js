// Dialogs: the keys, and commands for a recording.
//
// The page only reads. To start a program, such as a replay, it shows a command for the terminal.

const KEYS = [
  ["j  k", "next and previous event"], ["g  G", "first and last"], ["Enter", "open the event"], ["Esc", "close, clear"],
  ["/", "filter"], ["p", "its request or answer"], ["t", "sequence, turns, findings"], ["n  N", "next and previous finding"],
  ["l", "compact list with durations"], ["c", "fold runs of chunks"], ["w", "time since the beginning, or of the day"], ["[  ]", "older and newer recording"], ["o", "all recordings; there, c picks two to compare"], ["f", "follow a recording that grows"], ["x", "replay, export or share it"], ["d", "dark or light"], ["?", "these keys"],
];

/** Examples of filters. */
const TERMS = [
  ["read file", "words, or \"a text\", anywhere in the message"], ["method:session/*", "of that method, answers too"],
  ["kind:error", "request, notification, answer, stderr, mark …"], ["from:agent", "the sender"],
  ["session:0199", "sessions with this prefix"], ["update:tool_call*", "the kind of a session/update"],
  ["dur>2s  t<1m  size>10k", "how long, when, how large"], ["lint:*  rule:goose/*", "with a finding, or changed by a rule"],
  ["not  or  ( )", "combine terms"],
];

/** Opens the dialog. */
function openDialog(...content) {
  const box = $("dialog");
  box.replaceChildren(button("tool", "close", () => box.close()), ...content);
  box.showModal();
}

function showKeys() {
  const table = (name, list) => {
    const made = el("dl", "", el("h2", "", name));
    for (const [key, words] of list) made.append(el("div", "", el("dt", "", ...key.split("  ").map((one) => el("kbd", "", one))), el("dd", "", words)));
    return made;
  };
  openDialog(el("div", "tables", table("Keys", KEYS), table("Filter", TERMS)));
}

/** A word of a command line. */
const quoted = (word) => (/^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** A path on a command line; one with control characters could do harm there. */
const fileOf = (path) => (UNSEEN.test(path) ? "FILE" : quoted(path));

/** A command for the terminal, and a button that copies it. */
const commandLine = (command) => el("div", "command", el("code", "", ...shown(command, false)), copyButton("copy", () => command, `Copy: ${command}`));

/** The command that shows a recording in a viewer, which unpacks and lints it. */
const openCommand = (path) => commandLine(`acp-relay inspect open ${fileOf(path)}`);

/** The command that shows the events of `filter` in a terminal. */
const commandFor = (path, filter) => `acp-relay inspect show --bodies ${fileOf(path ?? "FILE")} ${quoted(filter)}`;

/** Shows commands for the recording at `path`; `filter` is that of the list. */
function showCommands(path, filter) {
  const file = fileOf(path);
  const narrowed = filter && !UNSEEN.test(filter) ? ` ${quoted(filter)}` : "";
  const commands = [
    ["Play the agent to a client, as it was recorded", `acp-relay replay agent ${file}`],
    ["Play the client to an agent, and compare the result", `acp-relay replay client ${file} -- AGENT`],
    ["Share it: a copy without texts, only their lengths", `acp-relay inspect scrub --redact structure ${file} shared.acpr`],
    ["A transcript, turn by turn", `acp-relay inspect export --to md ${file}${narrowed}`],
    ["For the official trace viewer", `acp-relay inspect export --to jsons ${file}${narrowed}`],
    ["The same in the terminal", `acp-relay inspect show ${file}${narrowed}`],
  ];
  const made = commands.map(([what, command]) => {
    return el("div", "command", el("p", "", what), el("code", "", ...shown(command, false)), copyButton("copy", () => command, `Copy: ${what}`));
  });
  openDialog(el("h2", "", "With this recording"), el("p", "soft", "This page only reads and starts no program. In a terminal:"), ...made);
}

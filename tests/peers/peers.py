"""Who takes part: the real agents, and the ways in which client and agent are joined.

To add an agent, install it in install.sh and describe it here. What it says need not be known:
its direct run is the measure of its other runs.
"""
from dataclasses import dataclass, field
from pathlib import Path

from framing import CONTENT_LENGTH, NDJSON
from paths import PEERS

SDK = PEERS / "npm/node_modules/@agentclientprotocol/sdk"
GOOSE = PEERS / "goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose"

# Non-ASCII, an astral character, escapes, and a line separator that is legal inside a JSON
# string and a trap for whoever splits lines by Unicode's rules.
WORDS = "za\u017c\u00f3\u0142\u0107 \U0001f980 \"quoted\" \\ tab\there\nline \u2028 end"


@dataclass
class Agent:
    """A real agent, and the conversation it is known to hold."""

    name: str
    command: list
    expect: str
    prompt: str = WORDS
    cancel_prompt: str = "again " + WORDS
    cancel_after: int = 1
    auth: str | None = None
    llm: bool = False
    side_jobs: tuple = ()
    server: list | None = None
    env: dict = field(default_factory=dict)
    home: dict = field(default_factory=dict)

    def installed(self):
        """install.sh leaves out what a machine cannot have."""
        return all(Path(word).exists() for word in self.command if word.startswith(str(PEERS)))


AGENTS = [
    # Streams, reports tool calls, asks permission, cancels. Touches no file.
    Agent("ts-sdk", ["node", str(SDK / "dist/examples/agent.js")],
          expect="text,tool_call,permission,end_turn,cancelled"),
    # Echoes the prompt in three updates; has no tools, and answers a cancelled prompt end_turn.
    Agent("python-sdk", [str(PEERS / "python/bin/python"), str(PEERS / "python/examples/agent.py")],
          expect="text,end_turn,answered"),
    # A product: authenticate, a tool call that reads, asks and writes through the client.
    Agent("gemini-cli",
          ["node", str(PEERS / "npm/node_modules/@google/gemini-cli/bundle/gemini.js"),
           "--acp", "--model", "gemini-2.5-flash"],
          prompt="[[edit]] " + WORDS, cancel_prompt="[[slow]] " + WORDS, cancel_after=2,
          auth="gemini-api-key", llm=True,
          expect="text,tool_call,permission,read,write,end_turn,cancelled",
          env={"GEMINI_API_KEY": "mock-key", "GOOGLE_GEMINI_BASE_URL": "{llm}"},
          home={".gemini/settings.json": {"security": {"folderTrust": {"enabled": False}},
                                          "privacy": {"usageStatisticsEnabled": False},
                                          "general": {"enableAutoUpdate": False}}}),
    # Another family: Rust. Updates before the answer to session/new, ids that are UUIDs, fs in
    # both directions, end_turn for a cancelled prompt, and it ignores the end of its input.
    Agent("goose", [str(GOOSE), "acp", "--with-builtin", "developer"],
          server=[str(GOOSE), "serve", "--host", "127.0.0.1", "--port", "{port}", "--with-builtin", "developer"],
          prompt="[[edit]] " + WORDS, cancel_prompt="[[slow]] " + WORDS, cancel_after=2, llm=True,
          expect="text,tool_call,permission,read,write,end_turn,answered",
          # It asks the model for titles beside the turn and tells them when they are there.
          side_jobs=("session_info_update", '"title": "Hello from the mock model."'),
          env={"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "mock-model", "OPENAI_HOST": "{llm}",
               "OPENAI_API_KEY": "mock", "GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "approve",
               "GOOSE_TELEMETRY_ENABLED": "false"}),
]


@dataclass
class Way:
    """How client and agent are joined. `listen` stands between `connect` and `serve`; without
    it one `connect` starts the agent itself, and `direct` has no relay at all. `theirs` names
    the side that speaks WebSocket itself, by its own library: no tee stands there, and our
    part is only `serve` or only `connect`."""

    name: str
    listen: str | None = None
    theirs: str | None = None
    agent_framing: str = NDJSON
    client_framing: str = NDJSON


WAYS = [
    Way("direct"),
    Way("connect"),
    Way("ws", "ws://127.0.0.1:0/acp"),
    Way("tcp", "tcp://127.0.0.1:0"),
    Way("unix", "unix:{dir}/relay.sock"),
    # Bodies of these two are printed over many lines on the side that frames by length.
    Way("agent-content-length", "ws://127.0.0.1:0/acp", agent_framing=CONTENT_LENGTH),
    Way("client-content-length", "tcp://127.0.0.1:0", client_framing=CONTENT_LENGTH),
    Way("their-ws-client", "ws://127.0.0.1:0/acp", theirs="client"),
    Way("their-ws-server", theirs="server"),
]

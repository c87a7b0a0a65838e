"""The real agents, and the ways to connect client and agent.

To add an agent, install it in install.sh and describe it here. Its messages need not be known:
its direct run is the reference for its other runs.
"""
import json
from dataclasses import dataclass, field
from pathlib import Path

from framing import CONTENT_LENGTH, NDJSON
from paths import PEERS

SDK = PEERS / "npm/node_modules/@agentclientprotocol/sdk"
CLAUDE = PEERS / "claude/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"
OPENCODE = PEERS / "opencode/node_modules/opencode-linux-x64/bin/opencode"
GOOSE = PEERS / "goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose"

# Non-ASCII, an astral character, escapes, and a line separator that is legal inside a JSON
# string and breaks a reader that splits lines by Unicode's rules.
WORDS = "za\u017c\u00f3\u0142\u0107 \U0001f980 \"quoted\" \\ tab\there\nline \u2028 end"


# The ways and clients of http_server.py for agents that start slowly.
FEW = ("direct", "connect", "ws", "ts-2.4-http", "rust-ws")


@dataclass
class Agent:
    """A real agent, and the conversation it is expected to hold."""

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
    server_options: tuple = ()
    slow: bool = False  # starts slowly: run over the ways in `FEW` only
    env: dict = field(default_factory=dict)
    home: dict = field(default_factory=dict)

    def goes(self, way):
        """Whether it is run over this way."""
        return way.name in FEW if self.slow else way.theirs != "server" or bool(self.server)

    def variables(self, llm):
        """Its environment, with the address of the language model."""
        return {name: value.replace("{llm}", llm) for name, value in self.env.items()}

    def installed(self):
        """install.sh skips agents that the machine cannot run."""
        return all(Path(word).exists() for word in self.command if word.startswith(str(PEERS)))


AGENTS = [
    # Streams, reports tool calls, requests permission, cancels. Accesses no file.
    Agent("ts-sdk", ["node", str(SDK / "dist/examples/agent.js")],
          expect="text,tool_call,permission,end_turn,cancelled"),
    # Echoes the prompt in three updates; has no tools, and answers a cancelled prompt end_turn.
    Agent("python-sdk", [str(PEERS / "python/bin/python"), str(PEERS / "python/examples/agent.py")],
          expect="text,end_turn,answered"),
    # A product: authenticate, a tool call that reads, requests permission and writes through the client.
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
    # Written in Rust. Updates before the answer to session/new, UUIDs as ids, fs in both
    # directions, end_turn for a cancelled prompt; it ignores EOF on stdin.
    Agent("goose", [str(GOOSE), "acp", "--with-builtin", "developer"],
          server=[str(GOOSE), "serve", "--host", "127.0.0.1", "--port", "{port}", "--with-builtin", "developer"],
          prompt="[[edit]] " + WORDS, cancel_prompt="[[slow]] " + WORDS, cancel_after=2, llm=True,
          expect="text,tool_call,permission,read,write,end_turn,answered",
          # It requests titles from the model during the turn and sends them when they arrive.
          side_jobs=("session_info_update", '"title": "Hello from the mock model."'),
          env={"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "mock-model", "OPENAI_HOST": "{llm}",
               "OPENAI_API_KEY": "mock", "GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "approve",
               "GOOSE_TELEMETRY_ENABLED": "false", "GOOSE_SERVER__SECRET_KEY": "mock-secret"},
          server_options=("--header", "X-Secret-Key: mock-secret")),
    # Requests permission for the edit and writes through the client.
    Agent("opencode", [str(OPENCODE), "acp"],
          prompt="[[edit]] " + WORDS, cancel_prompt="[[slow]] " + WORDS, cancel_after=2, llm=True,
          expect="text,tool_call,permission,write,end_turn,cancelled",
          slow=True,
          env={"OPENCODE_CONFIG_CONTENT": json.dumps({
              "autoupdate": False, "share": "disabled",
              "model": "mock/mock-model", "small_model": "mock/mock-model",
              "permission": {"edit": "ask", "bash": "ask"},
              "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock",
                                    "options": {"baseURL": "{llm}/v1", "apiKey": "mock"},
                                    "models": {"mock-model": {"name": "Mock model"}}}}})}),
    # Supports ACP v1 and v2. Writes files itself, after a permission.
    Agent("claude-agent-acp", ["node", str(CLAUDE)],
          prompt="[[write]] " + WORDS, cancel_prompt="[[slow]] " + WORDS, cancel_after=2, llm=True,
          expect="text,tool_call,permission,end_turn,cancelled",
          # Titles and usage arrive at any time.
          side_jobs=("session_info_update", "usage_update"), slow=True,
          home={".claude/settings.json": {"permissions": {"defaultMode": "default"}}},
          env={"ANTHROPIC_API_KEY": "mock", "ANTHROPIC_BASE_URL": "{llm}", "DISABLE_AUTOUPDATER": "1",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
               # Otherwise it refuses to start as root.
               "IS_SANDBOX": "1"}),
]


@dataclass
class Way:
    """How client and agent are connected. `listen` is the endpoint between `connect` and `serve`;
    without it one `connect` starts the agent itself, and `direct` has no relay at all. `theirs`
    names the side that uses its own WebSocket library: there is no tee on that side, and the
    relay is only `serve` or only `connect`."""

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
    # The bodies of these two are pretty-printed on the Content-Length side.
    Way("agent-content-length", "ws://127.0.0.1:0/acp", agent_framing=CONTENT_LENGTH),
    Way("client-content-length", "tcp://127.0.0.1:0", client_framing=CONTENT_LENGTH),
    Way("their-ws-client", "ws://127.0.0.1:0/acp", theirs="client"),
    Way("their-ws-server", theirs="server"),
]

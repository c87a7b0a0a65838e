#!/usr/bin/env python3
"""versions.py: clients of ACP v1 with agents of v2, and clients of v2 with agents of v1.

    versions.py [--relay BINARY] [--peer NAME]... [--way NAME]... [--all] [--jobs N] [--keep]
    versions.py --prove                  the validation finds an unknown member in each message

The clients are client.mjs (TypeScript SDK 1.9) and client2.mjs (the v2 side of SDK 2.4), which hold a whole
conversation over every way: a prompt with a permission, one that is cancelled, the same with the permission open,
one during which a second one is sent, the history of the session in use, one more prompt, and the end of the
session during another one; and programs that send one prompt: `v2_one_shot_client` of the Rust SDK, acpx, and
goose, which uses the agent as its model. A tee captures both sides of the relay.
A run passes when every step happened, every message that the relay sends is valid by its method in the
version of the peer that gets it (check_v2.py: unknown members are errors), no request stays unanswered, and
no process is left. Without --all only the runs in `SHORT` are made.
"""
import argparse
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from paths import PEERS, RELAY

if not importlib.util.find_spec("jsonschema"):
    # install.sh puts it there.
    os.execv(PEERS / "versions/bin/python", ["python", *sys.argv])

import check_v2
import isolation
from capture import Capture, kind_of
from peers import AGENTS, GOOSE, SDK, WAYS, WORDS, Agent, Way
from run import HERE, Run, RunError

SDK2 = PEERS / "npm2/node_modules/@agentclientprotocol/sdk"
CROW = PEERS / "crow/bin/crow-cli"
# The clients that send one prompt: the program, and its arguments for an agent's command and the prompt.
ONE_PROMPT = {
    "rust": (PEERS / "rust_v2/bin/v2_one_shot_client", lambda agent, prompt: ["--command", agent, prompt]),
    "acpx": (PEERS / "acpx/node_modules/acpx/dist/cli.js",
             lambda agent, prompt: ["--agent", agent, "--approve-all", "exec", prompt]),
    # Its provider `claude-acp` runs a program of the name `claude-agent-acp`.
    "goose": (GOOSE, lambda agent, prompt: ["run", "--no-session", "--text", prompt]),
}
BRIDGED = [
    Way("stdio"),
    Way("ws-link", "ws://127.0.0.1:0/acp"),
    Way("ws", "ws://127.0.0.1:0/acp"),
    Way("http", "http://127.0.0.1:0"),
    # The client's own transport, without `connect` (SDK 1.9 has only WebSocket), and the agent's, without `serve`.
    Way("their-ws", "ws://127.0.0.1:0/acp", theirs="client"),
    Way("their-http", "http://127.0.0.1:0", theirs="client"),
    Way("their-server", theirs="server"),
]
# The turns of all, and those with a permission.
TURNS = ",overlap,replayed,again,closed,once"
ASKED = ",tool_call,permission,withdrawn"


@dataclass
class Peer:
    """An agent, the version that it speaks, and options of the relay."""

    agent: Agent
    speaks: int
    options: tuple = ()
    client: str = ""  # one of `ONE_PROMPT`


def known(agent_name, **changes):
    return replace(next(agent for agent in AGENTS if agent.name == agent_name), **changes)


# The example's router takes the offered version. Without its v1 side it speaks v2 only.
ONLY_V2 = ("const at = %s; const { agentProtocolRouter } = await import(at + '/dist/v2/acp.js');"
           "Object.getPrototypeOf(agentProtocolRouter()).withV1 = function () { return this; };"
           "await import(at + '/dist/examples/dual-version-agent.js');" % json.dumps(str(SDK)))
DUAL = Agent("dual-version", ["node", "--input-type=module", "--eval", ONLY_V2], prompt="first", cancel_prompt="second",
             cancel_after=0, expect="text,end_turn,cancelled,refused,replayed,again,closed,once")

PEERS_V2 = [
    Peer(known("claude-agent-acp", name="claude-v2", expect="text,end_turn,cancelled" + ASKED + TURNS), 2),
    Peer(DUAL, 2),
    # The router's v2 side, because the relay is told to offer v2.
    Peer(replace(DUAL, name="dual-offered-2", command=["node", str(SDK / "dist/examples/dual-version-agent.js")]), 2,
         ("--agent-protocol", "2")),
    Peer(Agent("rust-v2", [str(PEERS / "rust_v2/bin/simple_agent_v2")], prompt="first", cancel_prompt="second",
               expect="text,end_turn,answered,overlap,replayed,again,once"), 2),
    Peer(Agent("codex-v2", ["node", str(PEERS / "codex/node_modules/@agentclientprotocol/codex-acp/dist/index.js")],
               prompt="[[write]] " + WORDS, cancel_prompt="[[slow]] " + WORDS, cancel_after=2, llm=True, slow=True,
               expect="text,end_turn,cancelled" + ASKED + TURNS,
               env={"OPENAI_API_KEY": "mock", "INITIAL_AGENT_MODE": "read-only", "NO_BROWSER": "1",
                    "CODEX_CONFIG": json.dumps({"model": "mock-model", "model_provider": "mock", "model_providers": {
                        "mock": {"name": "Mock", "base_url": "{llm}/v1", "wire_api": "responses", "env_key": "OPENAI_API_KEY"}}})}),
         2, ("--agent-protocol", "2")),
    # It has no tools of its own, so that the model only answers.
    Peer(Agent("crow-v2", [str(CROW), "acp2"], server=[str(CROW), "acp2", "--http", "--port", "{port}"],
               prompt="first", cancel_prompt="second", cancel_after=1, llm=True, expect="text,end_turn,answered" + TURNS,
               home={".agents/crow/config.yaml": {"providers": {"mock": {"api_key": "mock", "base_url": "${MOCK_LLM}/v1"}},
                                                  "models": {"mock": {"provider": "mock", "model": "mock-model"}}}},
               env={"MOCK_LLM": "{llm}"}), 2),
]
PEERS_V2[0].agent.env = {**PEERS_V2[0].agent.env, "CLAUDE_AGENT_ACP_PROTOCOL": "v2"}
PEERS_V1 = [
    # It finds no session in use when it is to load one.
    Peer(known("gemini-cli", expect="text,end_turn,cancelled,overlap,again,closed,once" + ASKED), 1),
    Peer(known("opencode", expect="text,end_turn,cancelled" + ASKED + TURNS), 1),
    Peer(known("goose", expect="text,end_turn,answered" + ASKED + TURNS), 1),
    Peer(known("python-sdk", expect="text,end_turn,answered,overlap,again,once"), 1),
    Peer(known("ts-sdk", expect="text,tool_call,permission,end_turn,cancelled,overlap,again,closed,once"), 1),
]


def with_client(peer, client):
    return replace(peer, agent=replace(peer.agent, name="%s-%s" % (peer.agent.name, client)), client=client)


PEERS_V1 += [with_client(peer, "rust") for peer in PEERS_V1 if peer.agent.name != "gemini-cli"]
# goose sets a mode of claude's before its prompt.
PEERS_V2 += [with_client(PEERS_V2[0], "goose"),
             *(with_client(peer, "acpx") for peer in PEERS_V2 if peer.agent.name != "dual-offered-2")]
# The runs of check.sh.
SHORT = [("claude-v2", "stdio"), ("dual-version", "http"), ("rust-v2", "ws-link"), ("gemini-cli", "ws"), ("goose", "stdio"),
         ("python-sdk", "their-http"), ("python-sdk-rust", "stdio")]


class VersionsRun(Run):
    """One conversation between a client of one version and an agent of the other."""

    BEHIND, spoil = "agent-{pid}", False

    def __init__(self, peer, way, relay, root):
        super().__init__(AGENTS[0], WAYS[0], relay, root)
        self.peer, self.agent, self.way = peer, peer.agent, way
        self.dir = Path(root) / ("%s-%s" % (self.agent.name, way.name))
        self.workspace = Path(root) / ("w-%s-%s" % (self.agent.name, way.name))
        # `auto` in both, which is the default.
        self.DIALECTS = list(peer.options)
        self.connect_options = [] if way.name == "ws-link" else ["--no-link"]
        self.options = ["--overlap", "[[brief]] " + WORDS if self.agent.llm else "third", "--timeout", 170]
        self.limit = 200
        if peer.speaks == 1:
            self.CLIENT = "client2.mjs"
            self.options += ["--sdk", SDK2]
        self.count = Counter()

    def converse(self, env, peer):
        if not self.peer.client:
            return super().converse(env, peer)
        program, words = ONE_PROMPT[self.peer.client]
        agent = shlex.join(map(str, peer[1:]))
        if self.peer.client == "goose":
            stand_in = self.dir / "bin/claude-agent-acp"
            stand_in.parent.mkdir()
            stand_in.write_text("#!/bin/sh\nexec %s\n" % agent)
            stand_in.chmod(0o755)
            env = {**env, "PATH": "%s:%s" % (stand_in.parent, env["PATH"]), "GOOSE_PROVIDER": "claude-acp", "GOOSE_MODEL": "current"}
        words = [*(["node"] if program.suffix == ".js" else []), program, *words(agent, self.agent.prompt)]
        done = subprocess.run(words, env=env, cwd=self.workspace, capture_output=True, text=True, timeout=self.limit)
        (self.dir / "client.stdout").write_text(done.stdout)
        (self.dir / "client.stderr").write_text(done.stderr)
        if done.returncode or not done.stdout.strip():
            self.wrong.append("the client's exit code is %d: %s" % (done.returncode, done.stderr))

    def judge(self):
        captures = [Capture.load(log.with_suffix(""), "agent") for log in sorted(self.dir.glob("agent-*.log"))]
        if not captures and self.way.theirs != "server":
            raise RunError("no agent was started")
        if self.way.theirs != "client":
            self.client = Capture.load(self.dir / "client", "client")
            captures.append(self.client)
        self.behind = captures[-1]
        for capture in captures:
            self.wrong += validate(capture, self.peer.speaks, self.count, self.spoil)


def validate(capture, agent_speaks, count, spoil=False):
    """What is wrong with the messages that the relay sent at this hop. A peer's own messages are followed only.
    With `spoil` each of them gets an unknown member; those in which that is not found are returned."""
    checker, hop = CHECKER.fresh(), capture.name
    vec = {"name": hop, "topology": "", "agent_version": None, "unstable": True}
    st = {"ver": {"client": 3 - agent_speaks, "agent": agent_speaks}, "open": {}, "states": defaultdict(list), "kinds": {},
          "umsg": {}, "tools": defaultdict(set), "unannounced": set(), "cause": {"error": {"code": -32800}}, "step": None}
    mine = "a2c" if hop == "client" else "c2a"
    messages, announced, missed = [(way, json.loads(body)) for way, body in capture.order], set(), []
    for i, (way, message) in enumerate(messages):
        before = len(checker.problems)
        params, result = message.get("params") or {}, message.get("result") or {}
        st["step"] = {"out": [{"to": "client", "msg": later} for sent, later in messages[i:] if sent == mine]}
        # Extensions and errors have no closed schema.
        spoilt = spoil and way == mine and "error" not in message and not message.get("method", "").startswith("_")
        if spoilt:
            message["params" if "method" in message else "result"]["unknown"] = 1
        if message.get("method") in ("session/load", "session/resume"):
            announced.add(params["sessionId"])
            st["tools"].pop(params["sessionId"], None)
        checker.message(vec, i, hop, "client" if way == "a2c" else "agent", message, way == mine, st)
        if spoilt and len(checker.problems) == before:
            missed.append("not detected: %.150s" % json.dumps(message))
        if way == mine:
            count[kind_of(message).split(" ")[0]] += 1
        else:
            del checker.problems[before:]
        announced.add(result.get("sessionId"))
        if hop == "client" and message.get("method") == "session/update" and params["sessionId"] not in announced:
            checker.bad(vec, i, "an update before the result with its session")
    checker.problems += ["%s: no answer to %s %s" % (hop, method, rid) for (_, towards, rid), method in st["open"].items()
                         if hop == "client" and towards == "agent"]
    return missed if spoil else checker.problems


class Checker(check_v2.Checker):
    def fresh(self):
        """Another one with the same schemas."""
        other = object.__new__(Checker)
        other.__dict__.update(self.__dict__, problems=[], count=Counter(), cover=defaultdict(Counter))
        return other


CHECKER = Checker(argparse.Namespace(repo=None, schemas=None, next=None))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--peer", action="append")
    parser.add_argument("--way", action="append", choices=[way.name for way in BRIDGED])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--prove", action="store_true", help="an unknown member is found in each message of the relay")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    isolation.leave_network()
    if asked.prove:
        VersionsRun.spoil, asked.peer, asked.way = True, ["dual-version", "python-sdk"], ["stdio"]
    root, runs = Path(tempfile.mkdtemp(prefix="acp-versions-")), []
    for peer in [*PEERS_V2, *PEERS_V1]:
        ways = [way for way in BRIDGED if way.name in (asked.way or [way.name]) and peer.agent.name in (asked.peer or [peer.agent.name])
                and not (way.theirs and peer.client or way.name == "their-http" and peer.speaks == 2)
                and (way.theirs != "server" or peer.agent.server)
                and (asked.all or asked.peer or asked.way or (peer.agent.name, way.name) in SHORT)]
        if ways and not (peer.agent.installed() and (not peer.client or ONE_PROMPT[peer.client][0].exists())):
            print("skip  %s  not installed, see install.sh" % peer.agent.name)
            continue
        runs += [VersionsRun(peer, way, [asked.relay], root) for way in ways]
    good, count = True, Counter()
    with ThreadPoolExecutor(asked.jobs) as pool:
        for run in pool.map(VersionsRun.go, runs):
            good &= run.report()
            count += run.count
    print("%d runs, %d messages of the relay validated" % (len(runs), count.total()))
    if good and not asked.keep:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("captures: %s" % root)
    return 0 if good and runs else 1


if __name__ == "__main__":
    sys.exit(main())

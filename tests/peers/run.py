#!/usr/bin/env python3
"""run.py: a real client talks to real agents through acp-relay, and nobody may notice.

    run.py [--relay BINARY] [--agent NAME]... [--way NAME]... [--jobs N] [--keep]
    run.py --prove        the harness against a stand-in with known faults, without a relay

Every agent of AGENTS is driven through every way of WAYS by client.mjs, the official SDK's
client. A tee stands before and behind the relay. A run passes when
  - the conversation is complete: nothing the agent is known to do is missing,
  - both tees hold the same messages byte for byte, in both directions,
  - the conversation went as it goes without a relay (see capture.py for what is tolerated),
  - `connect` exits as the agent did,
  - no process of the run is left, not even a zombie, and `serve` stops when told.
One line per run, `N passed, N failed` at the end, exit 1 when one failed.

Peers are installed by install.sh; a run needs no network, and has none where the kernel lets
us take it away. What is not here: how to speak ACP (client.mjs, the agents), how captures are
judged (capture.py).
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import isolation
from capture import Capture, same_bytes, same_talk
from framing import CONTENT_LENGTH, NDJSON
from stand_in import FAULTS

HERE = Path(__file__).resolve().parent
PEERS = Path(os.environ.get("ACP_RELAY_PEERS") or HERE.parent.parent / "target" / "peers")
SDK = PEERS / "npm/node_modules/@agentclientprotocol/sdk"
GOOSE = PEERS / "goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose"
TEE = [sys.executable, str(HERE / "tee.py")]
STAND_IN = [sys.executable, str(HERE / "stand_in.py")]

# Non-ASCII, an astral character, escapes, and a line separator that is legal inside a JSON
# string and a trap for whoever splits lines by Unicode's rules.
WORDS = "za\u017c\u00f3\u0142\u0107 \U0001f980 \"quoted\" \\ tab\there\nline \u2028 end"

# Until the agent and all it started must be gone: the relay's ladder of close, TERM and KILL.
PATIENCE = 15.0


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
    env: dict = field(default_factory=dict)
    home: dict = field(default_factory=dict)


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
    it one `connect` starts the agent itself, and `direct` has no relay at all."""

    name: str
    listen: str | None = None
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
]


class Run:
    """One agent, one way. `wrong` is empty when it passed."""

    def __init__(self, agent, way, relay, root, patience=PATIENCE):
        self.agent, self.way, self.relay, self.patience = agent, way, relay, patience
        self.dir = Path(root) / ("%s-%s" % (agent.name, way.name))
        # One length in every run: goose cuts long paths in what it shows.
        self.workspace = Path(root) / ("w%d%d" % (AGENTS.index(agent), WAYS.index(way)))
        self.mark = isolation.Mark()
        self.wrong = []
        self.summary = {}
        self.client = self.behind = None
        self.seconds = 0.0

    def go(self):
        started = time.monotonic()
        self.dir.mkdir(parents=True)
        self.workspace.mkdir()
        (self.workspace / "seed.txt").write_text("hello seed\n")
        llm = serve = None
        try:
            env = self.environment()
            if self.agent.llm:
                llm, url = self.start_llm()
                env.update({k: v.format(llm=url) for k, v in self.agent.env.items()})
            behind = [*TEE, "--out", str(self.dir / "agent"), *self.framed("outside", self.way.agent_framing),
                      "--", *self.agent.command]
            command = behind
            if self.way.listen:
                serve, endpoint = self.start_serve(env, behind)
                command = [*self.relay, "connect", endpoint]
            elif self.way.name != "direct":
                command = [*self.relay, "connect", "--", *behind]
            self.converse(env, [*TEE, "--out", str(self.dir / "client"),
                                *self.framed("inside", self.way.client_framing), "--", *command])
            self.no_process_left(serve)
            self.stop(serve)
            self.judge()
        except RunError as error:
            self.wrong.append(str(error))
        finally:
            for process in (llm, serve):
                if process and process.poll() is None:
                    process.kill()
                    process.wait()
            self.mark.kill_rest()
        self.seconds = time.monotonic() - started
        return self

    def framed(self, side, framing):
        return [] if framing == NDJSON else ["--" + side, framing, "--pretty"]

    def environment(self):
        home = self.dir / "home"
        for name, value in self.agent.home.items():
            (home / name).parent.mkdir(parents=True)
            (home / name).write_text(json.dumps(value))
        home.mkdir(exist_ok=True)
        return {**isolation.environment(home), **self.mark.env}

    def start_llm(self):
        process = subprocess.Popen(
            [sys.executable, str(HERE / "mock_llm.py"), "--port", "0", "--cwd", str(self.workspace)],
            stdout=subprocess.PIPE, text=True)
        return process, "http://" + process.stdout.readline().split()[-1]

    def start_serve(self, env, behind):
        """`serve` in front of the agent, and the endpoint it says it listens on."""
        framing = [] if self.way.agent_framing == NDJSON else ["--agent-framing", self.way.agent_framing]
        process = subprocess.Popen(
            [*self.relay, "serve", "--listen", self.way.listen.format(dir=self.dir), *framing, "--", *behind],
            env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        said, endpoint, bound = open(self.dir / "serve.stderr", "w"), [], threading.Event()

        def listen():
            for line in process.stderr:
                said.write(line)
                said.flush()
                if found := re.search(r"acp-relay: listening on (\S+)", line):
                    endpoint.append(found[1])
                    bound.set()
            bound.set()
        threading.Thread(target=listen, daemon=True).start()
        bound.wait(10)
        if not endpoint:
            process.kill()
            process.wait()
            raise RunError("serve did not say where it listens, see %s" % said.name)
        return process, endpoint[0]

    def converse(self, env, command):
        options = ["--sdk", SDK, "--cwd", self.workspace, "--prompt", self.agent.prompt,
                   "--cancel-prompt", self.agent.cancel_prompt, "--cancel-after", self.agent.cancel_after,
                   "--expect", self.agent.expect, "--file", "seed.txt"]
        if self.agent.auth:
            options += ["--auth", self.agent.auth]
        with open(self.dir / "client.stderr", "wb") as errors:
            done = subprocess.run(["node", HERE / "client.mjs", *map(str, options), "--", *command],
                                  env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                  timeout=120)
        try:
            self.summary = json.loads(done.stdout)
        except ValueError:
            raise RunError("the client said nothing, see %s" % errors.name) from None
        for key in ("error", "missing"):
            if self.summary.get(key):
                self.wrong.append("conversation: %s %s" % (key, self.summary[key]))
        if "write" in self.agent.expect and self.summary["file"] != "goodbye seed\n":
            self.wrong.append("conversation: the file holds %r" % self.summary["file"])

    def no_process_left(self, serve):
        """All that this run started is gone, `serve` apart, which is also not left with zombies."""
        left = self.mark.wait_until_gone({serve.pid} if serve else set(), self.patience)
        if left:
            self.wrong.append("left behind after %.0f s: %s" % (self.patience, "; ".join(left)))

    def stop(self, serve):
        if not serve:
            return
        serve.send_signal(signal.SIGTERM)
        try:
            serve.wait(self.patience)
        except subprocess.TimeoutExpired:
            self.wrong.append("serve ignores SIGTERM")

    def judge(self):
        try:
            self.client = Capture.load(self.dir / "client", "the client side")
            self.behind = Capture.load(self.dir / "agent", "the agent side")
        except FileNotFoundError as error:
            raise RunError("nothing was recorded: %s" % error) from None
        self.wrong += same_bytes(self.client, self.behind)
        allowed = {self.behind.exit}
        if self.way.listen and (self.behind.exit or 0) > 128:
            # Ended by a signal because the client left: `serve` did that, and no word of it
            # needs to reach the client over a network.
            allowed.add(0)
        if self.client.exit not in allowed:
            self.wrong.append("exit: the agent's is %s, the client saw %s" % (self.behind.exit, self.client.exit))

    def against(self, direct):
        if self.client and direct.client:
            self.wrong += same_talk(direct.client, self.client, self.agent)
        return self

    def report(self):
        messages = len(self.client.order) if self.client else 0
        code = self.client.exit if self.client else "?"
        print("%-4s  %-10s  %-21s  %5.1f s  %3d messages  exit %s" % (
            "FAIL" if self.wrong else "ok", self.agent.name, self.way.name, self.seconds, messages, code))
        for reason in self.wrong:
            print("      " + reason)
        if self.wrong:
            print("      see %s" % self.dir)
        sys.stdout.flush()
        return not self.wrong


class RunError(Exception):
    """The run could not be held; the rest of its checks would say nothing."""


def matrix(agents, ways, relay, root, jobs, patience=PATIENCE):
    """Runs all, prints a line for each as it ends, returns (passed, failed)."""
    direct, results, lock = {}, [], threading.Lock()

    def one(agent, way):
        run = Run(agent, way, relay, root, patience).go()
        if way.name == "direct":
            direct[agent.name] = run
        if agent.name in direct:
            run.against(direct[agent.name])
        with lock:
            results.append(run.report())

    with ThreadPoolExecutor(jobs) as pool:
        # The direct runs are the measure of the others, so they come first.
        for first in (True, False):
            todo = [(a, w) for w in ways for a in agents if (w.name == "direct") == first]
            for future in [pool.submit(one, *pair) for pair in todo]:
                future.result()
    return results.count(True), results.count(False)


def prove(agents, root, jobs):
    """The harness passes a clean copier, and sees every fault of a bad one."""
    passed, failed = matrix(agents, WAYS, STAND_IN, root / "clean", jobs)
    wrong = [] if not failed else ["the clean stand-in failed %d runs" % failed]
    for fault in FAULTS:
        print("-- fault: %s" % fault)
        os.environ["STAND_IN_FAULT"] = fault
        chosen = [way for way in WAYS if way.name in ("direct", "connect")]
        _, failed = matrix(agents[:1], chosen, STAND_IN, root / fault, jobs, patience=2.0)
        if failed != 1:
            wrong.append("the fault %r was not seen" % fault)
    del os.environ["STAND_IN_FAULT"]
    print("\n".join(["the harness proves nothing:", *wrong]) if wrong else "every fault was seen")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent.parent / "target")
    parser.add_argument("--relay", default=os.environ.get("ACP_RELAY_BIN") or str(target / "debug/acp-relay"))
    parser.add_argument("--agent", action="append", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--way", action="append", choices=[way.name for way in WAYS])
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the captures of passing runs too")
    parser.add_argument("--prove", action="store_true")
    args = parser.parse_args()

    agents = [agent for agent in AGENTS if not args.agent or agent.name in args.agent]
    ways = [way for way in WAYS if not args.way or way.name in (*args.way, "direct")]
    if not SDK.is_dir():
        sys.exit("no peers in %s; run tests/peers/install.sh" % PEERS)
    if not isolation.leave_network():
        print("note: the runs could not be cut off from the network; agents are only asked not to use it")
    # Short, for the path of a Unix socket is limited to 107 bytes.
    root = Path(tempfile.mkdtemp(prefix="acp-peers-"))
    if args.prove:
        fast = [agent for agent in AGENTS if agent.name == "python-sdk"]
        good = prove(fast if not args.agent else agents, root, args.jobs)
    else:
        if not os.access(args.relay, os.X_OK) and {way.name for way in ways} != {"direct"}:
            sys.exit("no relay at %s; build it, or name it with --relay" % args.relay)
        passed, failed = matrix(agents, ways, [args.relay], root, args.jobs)
        print("%d passed, %d failed" % (passed, failed))
        good = not failed
    if good and not args.keep:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("captures: %s" % root)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

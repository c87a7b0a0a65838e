#!/usr/bin/env python3
"""http_server.py: the official SDKs as remote clients of `acp-relay serve`, in front of real agents.

    http_server.py [--relay BINARY] [--agent NAME]... [--client NAME]... [--jobs N] [--keep]

Each client connects to each agent through one `http://` listener, over HTTP and over WebSocket, and
runs a conversation with two sessions at once (see http_client.mjs). A run passes when the
conversation is complete, the client exits with 0, no process and no zombie is left, and `serve`
stops on its signal. Peers are installed by install.sh. Not here: the HTTP statuses (tests/it).
"""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import isolation
import run
from paths import PEERS, RELAY
from peers import AGENTS, SDK, WAYS, Way

HERE = Path(__file__).resolve().parent
SDK_2 = PEERS / "npm2/node_modules/@agentclientprotocol/sdk"
PYTHON = PEERS / "python/bin/python"
RUST = PEERS / "rust/debug/rust-sdk-client"


@dataclass
class Client(Way):
    """An external client: its program, and the scheme and flags of its command line."""

    program: tuple = ()
    scheme: str = "http"
    flags: tuple = ()


def client(name, program, scheme="http", *flags):
    return Client(name, "http://127.0.0.1:0/acp", "client", program=program, scheme=scheme, flags=flags)


TS = ("node", HERE / "http_client.mjs")
PY = (PYTHON, HERE / "http_client.py")
CLIENTS = [
    client("ts-1.9-http", TS, "http", "--sdk", SDK),
    client("ts-1.9-ws", TS, "ws", "--sdk", SDK),
    client("ts-2.4-http", TS, "http", "--sdk", SDK_2),
    client("ts-2.4-ws", TS, "ws", "--sdk", SDK_2),
    client("python-http", PY),
    client("python-h2", PY, "http", "--http2"),
    client("python-ws", PY, "ws"),
    client("rust-http", (RUST,)),
    client("rust-ws", (RUST,), "ws"),
]
# Agents that replay their own sessions; Gemini CLI supports it, but does not find its second one.
LOADS = {"goose": ",load"}
# The position of a client in this list determines the workspace of its runs.
WAYS.extend(CLIENTS)


class ClientRun(run.Run):
    """A run of one client with one agent."""

    def converse(self, env, peer):
        url = peer[1].replace("http://", self.way.scheme + "://", 1)
        words = [*self.way.program, "--url", url, "--cwd", self.workspace, "--prompt", self.agent.prompt,
                 "--cancel-prompt", self.agent.cancel_prompt, "--cancel-after", self.agent.cancel_after,
                 "--expect", self.agent.expect + LOADS.get(self.agent.name, ""), "--file", "seed.txt", *self.way.flags]
        if self.way.program != (RUST,):
            # A given token is checked, even of the same user. The Rust client cannot send one.
            token = subprocess.run([*self.relay, "token", "show"], env=env, capture_output=True, check=True)
            words += ["--token", token.stdout.decode().strip()]
        if self.agent.auth:
            words += ["--auth", self.agent.auth]
        with open(self.dir / "client.stderr", "wb") as errors:
            done = subprocess.run([str(word) for word in words], env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=errors, timeout=120)
        try:
            self.summary = json.loads(done.stdout)
        except ValueError:
            raise run.RunError("the client printed no summary, see %s" % errors.name) from None
        for key in ("error", "missing"):
            if self.summary.get(key):
                self.wrong.append("conversation: %s %s" % (key, self.summary[key]))
        if done.returncode:
            self.wrong.append("the client exited with %d" % done.returncode)
        if "write" in self.agent.expect and self.summary["file"] != "goodbye seed\n":
            self.wrong.append("conversation: the file holds %r" % self.summary["file"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--agent", action="append", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--client", action="append", choices=[one.name for one in CLIENTS])
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    agents = [agent for agent in AGENTS if not args.agent or agent.name in args.agent]
    agents = [agent for agent in agents if agent.installed()]
    clients = [one for one in CLIENTS if not args.client or one.name in args.client]
    for one in clients:
        needed = [word for word in (*one.program, *one.flags) if str(word).startswith(str(PEERS))]
        one.missing = [word for word in needed if not Path(word).exists()]
        if one.missing:
            print("skip  %-12s  %s is not installed, see install.sh" % (one.name, one.missing[0]))
    clients = [one for one in clients if not one.missing]
    if not clients or not agents:
        sys.exit("no peers in %s; run tests/peers/install.sh" % PEERS)
    if not isolation.leave_network():
        print("note: the runs could not be isolated from the network")
    root = Path(tempfile.mkdtemp(prefix="acp-http-"))
    with ThreadPoolExecutor(args.jobs) as pool:
        todo = [(agent, one) for one in clients for agent in agents if agent.goes(one)]
        good = list(pool.map(lambda pair: ClientRun(*pair, [args.relay], root).go().report(), todo))
    print("%d passed, %d failed" % (good.count(True), good.count(False)))
    if all(good) and not args.keep:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("captures: %s" % root)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()

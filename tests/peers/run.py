#!/usr/bin/env python3
"""run.py: a real client and real agents connected by acp-relay, which must be transparent.

    run.py [--relay BINARY] [--agent NAME]... [--way NAME]... [--jobs N] [--keep]
    run.py --prove        the harness against a stand-in with known faults, without a relay

client.mjs, the official SDK's client, runs every agent over every way. A tee captures the bytes on
both sides of the relay. A run passes when
  - the conversation is complete: every step expected of the agent happened,
  - both tees hold the same messages byte for byte, in both directions,
  - the conversation is the same as without a relay (capture.py lists the tolerated differences),
  - `connect` exits with the agent's exit code,
  - no process of the run is left, not even a zombie, and `serve` stops on SIGTERM.
One line per run, `N passed, N failed` at the end, exit 1 when one failed.

Peers are installed by install.sh; a run needs no network, and has none where the kernel allows it.
Not here: the agents and ways (peers.py), the ACP client and agents (client.mjs, the agents), the
comparison of captures (capture.py).
"""
import argparse
import contextlib
import io
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
from pathlib import Path

import isolation
from capture import Capture, same_bytes, same_talk
from framing import NDJSON
from paths import PEERS, RELAY
from peers import AGENTS, SDK, WAYS
from stand_in import FAULTS

HERE = Path(__file__).resolve().parent
TEE = [sys.executable, str(HERE / "tee.py")]
STAND_IN = [sys.executable, str(HERE / "stand_in.py")]

# No translation: the relay must be transparent.
PLAIN = ["--client-dialect", "canonical", "--agent-dialect", "canonical"]
# Limit for the agent's process tree to exit: the relay closes stdin, then sends TERM, then KILL.
PATIENCE = 15.0


class Run:
    """One agent over one way. `wrong` is empty when it passed."""

    # The client, options of every relay, and the prefix of the capture behind it.
    CLIENT, DIALECTS, BEHIND = "client.mjs", PLAIN, "agent"

    def __init__(self, agent, way, relay, root, patience=PATIENCE):
        self.agent, self.way, self.relay, self.patience = agent, way, relay, patience
        self.dir = Path(root) / ("%s-%s" % (agent.name, way.name))
        # The same length in every run: goose truncates long paths in its output.
        self.workspace = Path(root) / ("w%d%d" % (AGENTS.index(agent), WAYS.index(way)))
        self.mark = isolation.Mark()
        self.wrong = []
        self.summary = {}
        self.client = self.behind = None
        self.seconds = 0.0
        # Further options of the client, and its limit in seconds; and of `connect` to `serve`.
        self.options, self.limit, self.connect_options = [], 120, []

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
                env.update(self.agent.variables(url))
            behind = [*TEE, "--out", str(self.dir / self.BEHIND), *self.framed("outside", self.way.agent_framing),
                      "--", *self.agent.command]
            command = behind
            if self.way.theirs == "server":
                serve, endpoint = self.start_their_server(env)
                command = [*self.relay, "connect", "--allow", "*", *self.DIALECTS, *self.agent.server_options, endpoint]
            elif self.way.listen:
                serve, endpoint = self.start_serve(env, behind)
                # The bytes of both sides are compared, and over TCP the agent would not be told of the files here.
                command = [*self.relay, "connect", "--guard", "never", "--allow", "*", *self.DIALECTS, *self.connect_options, endpoint]
            elif self.way.name != "direct":
                command = [*self.relay, "connect", *self.DIALECTS, "--", *behind]
            if self.way.theirs == "client":
                self.converse(env, ["--url", endpoint])
            else:
                self.converse(env, ["--", *TEE, "--out", str(self.dir / "client"),
                                    *self.framed("inside", self.way.client_framing), "--", *command])
            self.no_process_left(serve)
            self.stop(serve)
            self.judge()
        except (RunError, OSError, subprocess.TimeoutExpired) as error:
            self.wrong.append("the run failed: %s" % error)
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
        """Starts `serve` in front of the agent; returns it and the endpoint that it reports."""
        framing = [] if self.way.agent_framing == NDJSON else ["--agent-framing", self.way.agent_framing]
        process = subprocess.Popen(
            [*self.relay, "serve", *self.DIALECTS, "--listen", self.way.listen.format(dir=self.dir), *framing, "--", *behind],
            env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        output, endpoint, bound = open(self.dir / "serve.stderr", "w"), [], threading.Event()

        def listen():
            for line in process.stderr:
                output.write(line)
                output.flush()
                if found := re.search(r"acp-relay: listening on (\S+)", line):
                    endpoint.append(found[1])
                    bound.set()
            bound.set()
        threading.Thread(target=listen, daemon=True).start()
        bound.wait(10)
        if not endpoint:
            process.kill()
            process.wait()
            raise RunError("serve did not report its endpoint, see %s" % output.name)
        return process, endpoint[0]

    def start_their_server(self, env):
        """Starts the agent's own WebSocket server; returns it once its port is open."""
        port = isolation.free_port()
        with open(self.dir / "server.stderr", "wb") as output:
            process = subprocess.Popen([word.format(port=port) for word in self.agent.server], env=env,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        if not isolation.wait_for_port(port, process, 20):
            process.kill()
            process.wait()
            raise RunError("the agent's server did not start, see %s" % output.name)
        return process, "ws://127.0.0.1:%d/acp" % port

    def converse(self, env, peer):
        options = ["--sdk", SDK, "--cwd", self.workspace, "--prompt", self.agent.prompt,
                   "--cancel-prompt", self.agent.cancel_prompt, "--cancel-after", self.agent.cancel_after,
                   "--expect", self.agent.expect, "--file", "seed.txt", *self.options]
        if self.agent.auth:
            options += ["--auth", self.agent.auth]
        with open(self.dir / "client.stderr", "wb") as errors:
            done = subprocess.run(["node", HERE / self.CLIENT, *map(str, options), *peer],
                                  env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                  timeout=self.limit)
        try:
            self.summary = json.loads(done.stdout)
        except ValueError:
            raise RunError("the client printed nothing, see %s" % errors.name) from None
        for key in ("error", "missing"):
            if self.summary.get(key):
                self.wrong.append("conversation: %s %s" % (key, self.summary[key]))
        if "write" in self.agent.expect and self.summary["file"] != "goodbye seed\n":
            self.wrong.append("conversation: the file contains %r" % self.summary["file"])

    def no_process_left(self, serve):
        """Checks that no process of this run but `serve` is left, and `serve` has no zombies."""
        left = self.mark.wait_until_gone({serve.pid} if serve else set(), self.patience)
        if left:
            self.wrong.append("processes left after %.0f s: %s" % (self.patience, "; ".join(left)))

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
            if self.way.theirs != "client":
                self.client = Capture.load(self.dir / "client", "the client side")
            if self.way.theirs != "server":
                self.behind = Capture.load(self.dir / "agent", "the agent side")
        except FileNotFoundError as error:
            raise RunError("nothing was recorded: %s" % error) from None
        if not self.way.theirs:
            self.wrong += same_bytes(self.client, self.behind)
            self.same_exit()

    def same_exit(self):
        allowed = {self.behind.exit}
        if self.way.listen and (self.behind.exit or 0) > 128:
            # `serve` ended the agent by a signal because the client disconnected; the client over a
            # network need not receive that exit code.
            allowed.add(0)
        if self.client.exit not in allowed:
            self.wrong.append("exit: the agent's is %s, the client's is %s" % (self.behind.exit, self.client.exit))

    def against(self, direct):
        mine = self.client or self.behind
        if mine and direct.client:
            self.wrong += same_talk(direct.client, mine, self.agent)
        if self.behind and direct.behind and self.behind.exit != direct.behind.exit:
            self.wrong.append("the agent exited with %s, direct with %s" % (self.behind.exit, direct.behind.exit))
        return self

    def report(self):
        seen = self.client or self.behind
        messages = len(seen.order) if seen else 0
        code = seen.exit if seen else "?"
        print("%-4s  %-10s  %-21s  %5.1f s  %3d messages  exit %s" % (
            "FAIL" if self.wrong else "ok", self.agent.name, self.way.name, self.seconds, messages, code))
        for reason in self.wrong:
            print("      " + reason)
        if self.wrong:
            print("      see %s" % self.dir)
        sys.stdout.flush()
        return not self.wrong


class RunError(Exception):
    """The run could not be completed; its other checks are meaningless."""


def compared(run, direct, again):
    """The run, compared with the direct one. Some agents divide a text otherwise on a busy machine: where
    only that comparison fails, so that the relay has changed nothing, it is made once more, with the two
    runs, the direct one first, that `again()` returns."""
    transparent = not run.wrong
    run.against(direct)
    if run.wrong and transparent:
        print("once more: %s, %s: %s" % (run.agent.name, run.way.name, run.wrong[0]), flush=True)
        direct, run = again()
        run.against(direct).wrong += direct.wrong
    return run


def matrix(agents, ways, relay, root, jobs, patience=PATIENCE):
    """Runs all, prints a line for each when it ends, returns (passed, failed)."""
    direct, results, lock = {}, [], threading.Lock()

    def one(agent, way):
        run = Run(agent, way, relay, root, patience).go()
        if way.name == "direct":
            direct[agent.name] = run
        if agent.name in direct:
            folder = root / ("again-" + way.name)
            run = compared(run, direct[agent.name],
                           lambda: [Run(agent, other, relay, folder, patience).go() for other in (WAYS[0], way)])
        with lock:
            results.append(run.report())

    with ThreadPoolExecutor(jobs) as pool:
        # The direct runs are the reference for the others, so they run first.
        for first in (True, False):
            todo = [(a, w) for w in ways for a in agents
                    if (w.name == "direct") == first and a.goes(w)]
            for future in [pool.submit(one, *pair) for pair in todo]:
                future.result()
    return results.count(True), results.count(False)


def prove(agents, root, jobs):
    """The harness passes a correct copier, and detects every fault of a faulty one."""
    ours = [way for way in WAYS if not way.theirs]
    passed, failed = matrix(agents, ours, STAND_IN, root / "clean", jobs)
    wrong = [] if not failed else ["the clean stand-in failed %d runs" % failed]
    for fault in FAULTS:
        os.environ["STAND_IN_FAULT"] = fault
        chosen = [way for way in WAYS if way.name in ("direct", "connect")]
        # Hide this expected failure from the output.
        with contextlib.redirect_stdout(io.StringIO()) as output:
            _, failed = matrix(agents[:1], chosen, STAND_IN, root / fault, jobs, patience=2.0)
        print("%s: %s" % (fault, "detected" if failed == 1 else "not detected"), flush=True)
        if failed != 1:
            wrong.append("the fault %r was not detected:\n%s" % (fault, output.getvalue()))
    del os.environ["STAND_IN_FAULT"]
    print("\n".join(["the harness proves nothing:", *wrong]) if wrong else "every fault was detected")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--agent", action="append", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--way", action="append", choices=[way.name for way in WAYS])
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the captures of passing runs too")
    parser.add_argument("--prove", action="store_true")
    args = parser.parse_args()

    agents = [agent for agent in AGENTS if not args.agent or agent.name in args.agent]
    for agent in agents:
        if not agent.installed():
            print("skip  %-10s  not installed, see install.sh" % agent.name)
    agents = [agent for agent in agents if agent.installed()]
    ways = [way for way in WAYS if not args.way or way.name in (*args.way, "direct")]
    if not SDK.is_dir():
        sys.exit("no peers in %s; run tests/peers/install.sh" % PEERS)
    if not isolation.leave_network():
        print("note: the runs could not be isolated from the network; agents are only configured not to use it")
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

#!/usr/bin/env python3
"""run.py: peers with older and current dialects hold a conversation through acp-relay.

    run.py [--relay BINARY] [--jobs N] [--keep] [PLAY...]
    run.py --prove        plays with one word changed must fail; needs a relay

Each play of plays/ (format: play.py) is run in every kind:
  - the permission is granted, or refused (`allow`, `refuse`),
  - the relay gets the dialects as options, or detects them (`named`, `auto`); with `auto` a
    `connect` in front detects them, too, and two relays send the same messages as one,
through `serve` on WebSocket, TCP or a Unix socket with `connect` in front, or one `connect`.
A peer with an older dialect is scripted.py; the other one, if current, is the official SDK.
A run passes when both peers received exactly the messages of the play, in its order, the SDK
reported no error, all exit codes are 0, and no process is left.

One line per play, `N passed, N failed` at the end, exit 1 when one failed. Peers are installed by
../install.sh. Not here: the messages (plays/), and the peers (scripted.py, sdk.mjs).
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

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import isolation  # noqa: E402
from paths import RELAY  # noqa: E402
from peers import AGENTS, SDK  # noqa: E402
from play import Play  # noqa: E402

SCRIPTED = [sys.executable, str(HERE / "scripted.py")]
LISTEN = {"ws": "ws://127.0.0.1:0/acp", "tcp": "tcp://127.0.0.1:0", "unix": "unix:{dir}/r.sock", "connect": None}

# Every kind of run, and its way: each way is used once.
KINDS = [(("named", "allow"), "ws"), (("named", "refuse"), "connect"), (("auto", "allow"), "tcp"), (("auto", "refuse"), "unix")]
PATIENCE = 40

PLAIN = ["--client-dialect", "canonical", "--agent-dialect", "canonical"]

# Agents of other projects that need no language model.
REAL = {agent.name: agent for agent in AGENTS if not agent.llm}


@dataclass
class Run:
    play: Play
    kind: tuple
    way: str
    dir: Path
    relay: str
    faults: list = field(default_factory=list)
    mark: isolation.Mark = field(default_factory=isolation.Mark)

    def go(self):
        self.dir.mkdir(parents=True)
        self.env = {**isolation.environment(self.dir), **self.mark.env}
        started = []
        try:
            self.hold(started)
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            self.faults.append(str(error))
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        for left in self.mark.wait_until_gone(set(), 8.0):
            self.faults.append("process left: %s" % left)
        self.mark.kill_rest()
        for role in ("client", "agent"):
            self.judge(role)
        return self

    def hold(self, started):
        """Starts the processes, the agent first, and waits for the client's exit."""
        setup = self.play.setup
        behind = ["--", *self.peer("agent")]
        if setup.get("agent.wire") == "tcp":
            agent = self.start(started, [*self.peer("agent"), "--listen"], stdout=subprocess.PIPE)
            behind = [self.read_output(agent.stdout, r"listening on (\S+)")]
            behind[0] = "tcp://" + behind[0]
        words = [*self.dialects(), *self.framings()]
        listen = LISTEN["tcp" if setup.get("client.wire") == "tcp" else self.way]
        if listen:
            if behind[0] == "--":
                # The folders of the plays do not exist.
                config = self.dir / "relay.toml"
                config.write_text("[agents.play]\ncommand = %s\ncheck-folder = false\n" % json.dumps(behind[1:]))
                behind = ["--config", str(config)]
            else:
                behind = ["--agent", *behind]
            serve = self.start(started, [self.relay, "serve", "--listen", listen.format(dir=self.dir), *words, *behind],
                               stderr=subprocess.PIPE)
            endpoint = self.read_output(serve.stderr, r"acp-relay: listening on (\S+)", self.dir / "serve.stderr")
            # `connect` in front detects dialects by default, so with `named` this is switched off.
            front = PLAIN if "named" in self.kind else []
            command = [self.relay, "connect", *unguarded(endpoint), *front, endpoint]
        else:
            command = [self.relay, "connect", *unguarded(behind[0]), *words, *behind]
        client = self.peer("client")
        if setup.get("client.wire") == "tcp":
            client += ["--connect", endpoint.removeprefix("tcp://")]
        else:
            client += ["--", *command]
        done = self.start(started, client)
        done.wait(PATIENCE)
        if listen:
            # The agent exits with its conversation; `serve` gets SIGTERM only after that.
            alone = {process.pid for process in started if process.poll() is None}
            self.faults += ["process left beside serve: %s" % left for left in self.mark.wait_until_gone(alone, 8.0)]
            serve.send_signal(signal.SIGTERM)
            if serve.wait(PATIENCE) != 0:
                self.faults.append("serve exited with %d" % serve.returncode)

    def peer(self, role):
        part, verdict = self.dir / (role + ".json"), self.dir / (role + ".verdict")
        part.write_text(json.dumps({**self.play.part(role, set(self.kind)), "known": {"$here": str(self.dir)}}))
        agent = REAL.get(self.play.setup[role])
        if agent:
            verdict.write_text('{"fault": null}')
            return agent.command
        if self.play.setup[role] == "sdk":
            return ["node", str(HERE / "sdk.mjs"), str(SDK), str(part), str(verdict)]
        return [*SCRIPTED, str(part), str(verdict)]

    def dialects(self):
        words = []
        for role in ("client", "agent"):
            dialect = self.play.setup[role]
            named = "canonical" if dialect == "sdk" or dialect in REAL else dialect
            word = "auto" if "auto" in self.kind else named
            words += ["--%s-dialect" % role, word]
        return words

    def framings(self):
        """For an agent that waits for a framing, the relay gets the framing to use as an option."""
        return ["--agent-framing", "content-length"] if self.play.setup.get("agent.shown") else []

    def start(self, started, command, **pipes):
        errors = open(self.dir / ("%d.stderr" % len(started)), "w")
        process = subprocess.Popen(command, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, text=True,
                                   **{"stdout": subprocess.DEVNULL, "stderr": errors, **pipes})
        started.append(process)
        return process

    def read_output(self, pipe, pattern, kept=os.devnull):
        """Waits for output that matches `pattern`; the output is written to `kept`."""
        found, ready, keep = [], threading.Event(), open(kept, "w")

        def read():
            for line in pipe:
                keep.write(line)
                keep.flush()
                if match := re.search(pattern, line):
                    found.append(match[1])
                    ready.set()
            ready.set()
        threading.Thread(target=read, daemon=True).start()
        ready.wait(10)
        if not found:
            raise RuntimeError("no listener, see %s" % self.dir)
        return found[0]

    def judge(self, role):
        verdict = self.dir / (role + ".verdict")
        try:
            fault = json.loads(verdict.read_text())["fault"]
        except (OSError, ValueError):
            fault = "it left no verdict"
        if fault:
            self.faults.append("%s (%s): %s" % (role, self.play.setup[role], fault))


def unguarded(endpoint):
    """Over TCP the capabilities and paths that the play expects would be removed."""
    return ["--guard", "never", "--allow", "*"] if endpoint.startswith("tcp://") else []


def plays(names):
    every = sorted((HERE / "plays").glob("*.play"))
    chosen = [Play(path) for path in every if not names or path.stem in names]
    for play in chosen:
        if play.setup["agent"] in REAL and not REAL[play.setup["agent"]].installed():
            print("skip  %-34s  %s is not installed, see install.sh" % (play.name, play.setup["agent"]))
            chosen = [other for other in chosen if other is not play]
    return chosen


def kinds(play):
    return [(kind, way) for kind, way in KINDS if "auto" not in kind or play.setup.get("auto") != "no"]


def matrix(chosen, relay, root, jobs):
    """Runs all plays, prints a line for each; returns (passed, failed)."""
    def one(job):
        play, kind, way = job
        directory = root / ("%s.%s" % (play.name, ".".join(kind)))
        return Run(play, kind, way, directory, relay).go()

    jobs_of = [(play, kind, way) for play in chosen for kind, way in kinds(play)]
    passed = failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        runs = list(pool.map(one, jobs_of))
    for play in chosen:
        mine = [run for run in runs if run.play is play]
        good = sum(not run.faults for run in mine)
        passed, failed = passed + good, failed + len(mine) - good
        print("%-4s  %-34s  %-18s → %-18s  %d of %d" % (
            "ok" if good == len(mine) else "FAIL", play.name, play.setup["client"], play.setup["agent"], good, len(mine)))
        for run in mine:
            for fault in run.faults:
                print("      %s, %s: %s" % ("/".join(run.kind), run.way, fault))
    return passed, failed


def prove(chosen, relay, root, jobs):
    """One changed word in the expected messages of each side: every run must fail."""
    for play in chosen:
        for role, wire in (("client", "<"), ("agent", ">")):
            at = next(at for at, line in enumerate(play.lines) if line[2] != role and line[3] in ("=", wire)
                      and "method" in line[4] and line[1] <= {"named", "allow", "refuse"})
            number, words, sender, _, message = play.lines[at]
            altered = {**message, "params": {**(message.get("params") or {}), "surprise": 1}}
            other = {"<": ">", ">": "<"}[wire]
            changed = [(number, words, sender, wire, altered)]
            if play.lines[at][3] == "=":
                changed.append((number, words, sender, other, message))
            broken = Play.__new__(Play)
            broken.name, broken.setup = "%s-%s" % (play.name, role), play.setup
            broken.lines = [*play.lines[:at], *changed, *play.lines[at + 1:]]
            run = Run(broken, ("named", "allow"), "connect", root / broken.name, relay).go()
            if not any(fault.startswith(role) and "surprise" in fault for fault in run.faults):
                print("the harness proves nothing: %s did not detect the change in %s" % (role, play.name))
                return False
    print("every change was detected")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="keep the files of passing runs, too")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("plays", nargs="*")
    args = parser.parse_args()
    if not SDK.is_dir():
        sys.exit("no SDK at %s; run tests/peers/install.sh" % SDK)
    isolation.leave_network()
    # Short, for the path of a Unix socket is limited to 107 bytes.
    root = Path(tempfile.mkdtemp(prefix="acp-plays-"))
    chosen = plays(args.plays)
    started_at = time.monotonic()
    if args.prove:
        good = prove(chosen[:3], args.relay, root, args.jobs)
    else:
        passed, failed = matrix(chosen, args.relay, root, args.jobs)
        print("%d passed, %d failed, in %.0f s" % (passed, failed, time.monotonic() - started_at))
        good = not failed and passed > 0
    if good and not args.keep:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("files of the runs: %s" % root)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

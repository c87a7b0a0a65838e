#!/usr/bin/env python3
"""replay.py: recordings of real agents, played to a real client and to the real agents.

    replay.py [--relay BINARY] [--agent NAME]... [--keep]

For every agent of peers.py that is installed:
  record   client.mjs (the official SDK's client) talks to the agent through `connect --record`;
  bytes    what the recording holds of either edge is byte for byte what a tee outside has seen
           there, in both directions, and `inspect verify` finds it intact;
  agent    the same client talks to `replay agent RECORDING` in another directory, through a relay
           that records again: the conversation is complete, with files read and written;
  again    the second recording is the same conversation as the first;
  client   `replay client RECORDING` talks to the real agent: it answers as it did. What an agent
           does differently by itself is named in `VOLATILE`, with the reason;
  other    `replay client RECORDING` against another real agent says that it is another, and
           `bisect` that the handshake already is.
No process of a run is left. One line per step, `N passed, N failed`, exit 1 when one failed.

Not here: the agents (peers.py), how one is run (run.py).
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import isolation
from paths import PEERS, RELAY
from peers import AGENTS, SDK, WAYS
from run import TEE, Run

# What a table would mend is recorded as it was said, for the agent is asked directly afterwards.
PLAIN = ["--client-dialect", "canonical", "--agent-dialect", "canonical"]

# Options of `replay client` for what is different in any two runs of an agent.
VOLATILE = {
    # It asks the model for titles beside the turn, and tells them when they are there.
    # It fetches its list of models beside the session, and lists extensions as they are ready.
    "goose": ["--ignore", "/result/configOptions/*/options", "--ignore", "/result/_meta/extensionResults",
              "--ignore-message", "session_info_update",
              "--ignore-message", '"title":"Hello from the mock model."'],
}

PATIENCE = 120


class Replayed(Run):
    """One agent: recorded, and played back."""

    def __init__(self, agent, other, relay, root):
        super().__init__(agent, WAYS[0], relay, root)
        self.other = other
        self.results = []

    def play(self):
        self.dir.mkdir(parents=True)
        llm = None
        try:
            env = self.environment()
            if self.agent.llm:
                self.fresh("home-of-tools")
                llm, url = self.start_llm()
                env.update(self.agent.variables(url))
            self.steps(env)
        finally:
            if llm and llm.poll() is None:
                llm.kill()
                llm.wait()
            self.mark.kill_rest()
        return self

    def steps(self, env):
        first, second = self.dir / "first", self.dir / "second"
        # The model names paths in the directory it was started for, so the live agents work there.
        self.fresh("home-of-tools")
        outside = {edge: self.dir / ("outside-" + edge) for edge in ("client", "agent")}
        if not self.step("record", lambda: self.converse(
                env, ["--", *TEE, "--out", outside["client"], "--",
                      *self.relay, "connect", *PLAIN, "--record", first, "--record-redact", "full",
                      "--", *TEE, "--out", outside["agent"], "--", *self.agent.command])):
            return
        recording = only(first)
        self.step("bytes", lambda: self.same_bytes(recording, outside))
        # Another directory of another length: what is read and written there is what was recorded.
        self.fresh("another-place")
        self.step("agent", lambda: self.converse(
            env, ["--", *self.relay, "replay", "agent", recording, "--record", second,
                  "--record-redact", "full"]))
        self.step("again", lambda: self.ask(
            env, recording, [*self.relay, "replay", "agent", only(second)], 0))
        self.fresh("home-of-tools")
        volatile = VOLATILE.get(self.agent.name, [])
        self.step("client", lambda: self.ask(
            env, recording, self.agent.command, 0, "--cwd", self.workspace, *volatile))
        self.step("other", lambda: self.another(env, recording))

    def same_bytes(self, recording, outside):
        """What was recorded at each edge is what went over the wire there."""
        if (verified := self.inspect("verify", recording)) and b"intact" not in verified:
            self.wrong.append("verify: %s" % verified.decode())
        for edge, prefix in outside.items():
            for way, direction in (("c2a", ">"), ("a2c", "<")):
                wire = Path("%s.%s" % (prefix, way)).read_bytes()
                kept = self.inspect("export", recording, "dir:" + direction, "--to", "ndjson", "--at", edge)
                if not wire:
                    self.wrong.append("the tee at the %s has seen nothing" % edge)
                if kept != wire:
                    at = next((i for i, (a, b) in enumerate(zip(kept, wire)) if a != b), min(len(kept), len(wire)))
                    self.wrong.append("%s of the %s: %d bytes are kept, %d were said; other from %d: %r %r" % (
                        way, edge, len(kept), len(wire), at, kept[at:at + 80], wire[at:at + 80]))

    def inspect(self, *words):
        done = subprocess.run([*map(str, [*self.relay, "inspect", *words])], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        if done.returncode != 0:
            self.wrong.append("inspect %s: %s" % (words[0], (done.stdout + done.stderr)[-1000:]))
        return done.stdout

    def fresh(self, name):
        self.workspace = self.dir / name
        shutil.rmtree(self.workspace, ignore_errors=True)
        self.workspace.mkdir()
        (self.workspace / "seed.txt").write_text("hello seed\n")

    def ask(self, env, recording, command, expected, *options, subcommand=("replay", "client")):
        """What `replay client` prints; wrong when its exit code is not the expected one."""
        done = subprocess.run([*map(str, [*self.relay, *subcommand, recording, *options, "--", *command])],
                              env=env, cwd=self.workspace, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != expected:
            self.wrong.append("exit code %d: %s" % (done.returncode, (done.stdout + done.stderr)[-3000:]))
        return done.stdout

    def another(self, env, recording):
        said = self.ask(env, recording, self.other.command, 1, "--settle", "200ms", "--response-timeout", "5s")
        if "result of initialize" not in said:
            self.wrong.append("the handshake is another, and nobody says so: %s" % said[-2000:])
        said = self.ask(env, recording, self.other.command, 1, "--settle", "200ms", "--response-timeout", "5s",
                           subcommand=("bisect",))
        if "smallest failing prefix: the handshake alone" not in said:
            self.wrong.append("bisect does not find it: %s" % said[-2000:])

    def step(self, name, do):
        self.wrong = []
        try:
            do()
            left = self.mark.wait_until_gone(set(), self.patience)
            if left:
                self.wrong.append("left behind: %s" % "; ".join(left))
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            self.wrong.append("could not be held: %s" % error)
        except Exception as error:  # RunError is run.py's own
            if type(error).__name__ != "RunError":
                raise
            self.wrong.append(str(error))
        good = not self.wrong
        self.results.append(good)
        print("%-4s  %-10s  %s" % ("ok" if good else "FAIL", self.agent.name, name))
        for reason in self.wrong:
            print("      " + str(reason).replace("\n", "\n      "))
        sys.stdout.flush()
        return good


def only(folder):
    """The recording in a folder, which has to be one."""
    files = sorted(Path(folder).glob("*.acpr*"))
    if len(files) != 1:
        raise RuntimeError("%d recordings in %s" % (len(files), folder))
    return files[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--agent", action="append", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--keep", action="store_true", help="keep the recordings")
    args = parser.parse_args()
    if not SDK.is_dir():
        sys.exit("no peers in %s; run tests/peers/install.sh" % PEERS)
    if not isolation.leave_network():
        print("note: the runs could not be cut off from the network")
    root, runs = Path(tempfile.mkdtemp(prefix="acp-replay-")), []
    for at, agent in enumerate(AGENTS):
        if args.agent and agent.name not in args.agent:
            continue
        if not agent.installed():
            print("skip  %-10s  not installed, see install.sh" % agent.name)
            continue
        # The two example agents are each other's other.
        other = AGENTS[1] if at == 0 else AGENTS[0]
        runs.append(Replayed(agent, other, [args.relay], root))
    # Side by side, for what is played again goes at the pace it went at, and waits most of the time.
    with ThreadPoolExecutor(len(runs) or 1) as pool:
        results = [good for run in pool.map(Replayed.play, runs) for good in run.results]
    failed = results.count(False)
    print("%d passed, %d failed" % (len(results) - failed, failed))
    if args.keep or failed:
        print("recordings: %s" % root)
    else:
        shutil.rmtree(root, ignore_errors=True)
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())

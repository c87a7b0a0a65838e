#!/usr/bin/env python3
"""replay.py: recordings of real agents, replayed to a real client and to the real agents.

    replay.py [--relay BINARY] [--agent NAME]... [--keep]

For every agent of peers.py that is installed:
  record   client.mjs (the official SDK's client) is connected to the agent by `connect --record`;
  bytes    the recording of each edge equals the capture of a tee at that edge byte for byte, in
           both directions, and `inspect verify` reports it intact;
  agent    the same client is connected to `replay agent RECORDING` in another directory, through a
           relay that records again: the conversation is complete, with files read and written;
  again    the second recording is the same conversation as the first;
  client   `replay client RECORDING` against the real agent: the same answers. Differences between
           any two runs of an agent are listed in `VOLATILE`, with the reason;
  test     `acp-relay test` of a folder with the recording and the real agent: it passes at each level;
           an agent whose tool calls are changed fails at `tools`, and passes at `stop-reason`;
  other    `replay client RECORDING` against another real agent reports a difference, and `bisect`
           reports that the handshake differs.
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

# Recorded without translation: afterwards `replay client` runs the agent directly.
PLAIN = ["--client-dialect", "canonical", "--agent-dialect", "canonical"]

# Options of `replay client` for differences between any two runs of an agent.
VOLATILE = {
    # It requests titles from the model during the turn, and sends them when they arrive.
    # It loads its list of models during the session, and lists extensions as they are ready.
    "goose": ["--ignore", "/result/configOptions/*/options", "--ignore", "/result/_meta/extensionResults",
              "--ignore-message", "session_info_update",
              "--ignore-message", '"title":"Hello from the mock model."'],
}

PATIENCE = 120

# An agent whose tool calls have other names, titles and kinds.
CHANGED = '''
import subprocess, sys
agent = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
for line in agent.stdout:
    if b'"toolCallId"' in line and b'"session/update"' in line:
        for member in (b'name', b'title', b'kind'):
            line = line.replace(b'"%s":"' % member, b'"%s":"other ' % member)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
sys.exit(agent.wait())
'''


class Replayed(Run):
    """One agent: recorded, and replayed."""

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
        # The mock model uses paths in the directory it was started with, so the live agents run there.
        self.fresh("home-of-tools")
        captures = {edge: self.dir / ("outside-" + edge) for edge in ("client", "agent")}
        if not self.step("record", lambda: self.converse(
                env, ["--", *TEE, "--out", captures["client"], "--",
                      *self.relay, "connect", *PLAIN, "--record", first, "--record-redact", "full",
                      "--", *TEE, "--out", captures["agent"], "--", *self.agent.command])):
            return
        recording = only(first)
        self.step("bytes", lambda: self.same_bytes(recording, captures))
        # Another directory with another length: the recorded file contents are read and written there.
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
        self.step("test", lambda: self.test(env, recording, volatile))
        self.step("other", lambda: self.another(env, recording))

    def same_bytes(self, recording, captures):
        """The recording of each edge equals the bytes on the wire there."""
        if (verified := self.inspect("verify", recording)) and b"intact" not in verified:
            self.wrong.append("verify: %s" % verified.decode())
        for edge, prefix in captures.items():
            for way, direction in (("c2a", ">"), ("a2c", "<")):
                wire = Path("%s.%s" % (prefix, way)).read_bytes()
                recorded = self.inspect("export", recording, "dir:" + direction, "--to", "ndjson", "--at", edge)
                if not wire:
                    self.wrong.append("the tee at the %s has captured nothing" % edge)
                if recorded != wire:
                    at = next((i for i, (a, b) in enumerate(zip(recorded, wire)) if a != b), min(len(recorded), len(wire)))
                    self.wrong.append("%s of the %s: %d bytes are recorded, %d were sent; they differ at %d: %r %r" % (
                        way, edge, len(recorded), len(wire), at, recorded[at:at + 80], wire[at:at + 80]))

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
        """Returns the output of `replay client`; adds a failure if the exit code is not the expected one."""
        done = subprocess.run([*map(str, [*self.relay, *subcommand, recording, *options, "--", *command])],
                              env=env, cwd=self.workspace, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != expected:
            self.wrong.append("exit code %d: %s" % (done.returncode, (done.stdout + done.stderr)[-3000:]))
        return done.stdout

    def test(self, env, recording, volatile):
        folder = self.dir / "tests"
        folder.mkdir()
        shutil.copy(recording, folder)
        (folder / "notes.txt").write_text("no recording\n")
        def run(level, command, expected):
            self.fresh("home-of-tools")
            return self.ask(env, folder, command, expected, "--compare", level, "--cwd", self.workspace,
                            *volatile, subcommand=("test",))
        for level in ("exact", "shape", "tools", "stop-reason"):
            output = run(level, self.agent.command, 0)
            if "1 passed; 0 failed; 1 skipped" not in output or "turn 1 of " not in output:
                self.wrong.append("%s: %s" % (level, output[-2000:]))
        if "tool_call" in self.agent.expect:
            changed = [sys.executable, "-c", CHANGED, *self.agent.command]
            if "+ /update/kind" not in run("tools", changed, 1):
                self.wrong.append("the report does not state the other kind of tool call")
            run("stop-reason", changed, 0)

    def another(self, env, recording):
        output = self.ask(env, recording, self.other.command, 1, "--settle", "200ms", "--response-timeout", "5s")
        if "result of initialize" not in output:
            self.wrong.append("the handshake differs, and the report does not state it: %s" % output[-2000:])
        output = self.ask(env, recording, self.other.command, 1, "--settle", "200ms", "--response-timeout", "5s",
                           subcommand=("bisect",))
        if "smallest failing prefix: the handshake alone" not in output:
            self.wrong.append("bisect does not find it: %s" % output[-2000:])

    def step(self, name, do):
        self.wrong = []
        try:
            do()
            left = self.mark.wait_until_gone(set(), self.patience)
            if left:
                self.wrong.append("left behind: %s" % "; ".join(left))
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            self.wrong.append("could not be run: %s" % error)
        except Exception as error:  # RunError is defined in run.py
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
    """The recording in a folder, which must be exactly one."""
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
        print("note: the runs could not be isolated from the network")
    root, runs = Path(tempfile.mkdtemp(prefix="acp-replay-")), []
    for at, agent in enumerate(AGENTS):
        if args.agent and agent.name not in args.agent:
            continue
        if not agent.installed():
            print("skip  %-10s  not installed, see install.sh" % agent.name)
            continue
        # Each of the two example agents is the other agent of the other one.
        other = AGENTS[1] if at == 0 else AGENTS[0]
        runs.append(Replayed(agent, other, [args.relay], root))
    # In parallel: a replay keeps the recorded pace, and waits most of the time.
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

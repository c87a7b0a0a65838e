#!/usr/bin/env python3
"""ssh.py: `connect ssh://…` over a real sshd on loopback.

    ssh.py [--relay BINARY]

A conversation begins a turn; then the connection breaks, once on this side (ssh is killed) and once on the
other (the process of sshd). The turn has to go on in the same `connect`, with one question. With `--no-link` it
has to answer the open request and exit with 69, and the agent has to finish its work meanwhile; a second
`connect` has to get the same agent, what it has sent, its question and the end of the turn. After the last client the agent and, when it was idle, the relay have to end. Each installed
shell has to run the command line that ssh sends. Without sshd it is skipped, with a notice.
"""
import argparse
import itertools
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation
import sshd
from paths import RELAY
from returns import AGENT, Fault, wait_for

PATIENCE = 30
# Seconds after which the relay of the other machine stops.
IDLE = 2
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh")
PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}


class Editor:
    """An editor that has started `connect`."""

    def __init__(self, words, env):
        self.process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None)
        self.texts, self.questions, self.answers, self.rest = [], [], {}, b""

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, done):
        while not done():
            while b"\n" not in self.rest:
                if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
                    raise Fault("`connect` sends nothing")
                read = os.read(self.process.stdout.fileno(), 1 << 16)
                if not read:
                    raise Fault("`connect` has ended its output")
                self.rest += read
            line, self.rest = self.rest.split(b"\n", 1)
            message = json.loads(line)
            if "method" not in message:
                self.answers[message["id"]] = message
            elif "id" in message:
                self.questions.append(message["id"])
            elif message["method"] == "session/update":
                self.texts.append(message["params"]["update"]["content"]["text"])

    def ask(self, number, method, **params):
        self.send(id=number, method=method, params=params)
        self.until(lambda: number in self.answers)
        return self.answers[number]

    def end(self, code):
        self.process.stdin.close()
        if self.process.wait(PATIENCE) != code:
            raise Fault("`connect` exits with %d instead of %d" % (self.process.returncode, code))


def until(what, holds):
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > PATIENCE:
            raise Fault("not in time: %s" % what)
        time.sleep(0.02)


def processes(mark, words):
    return [pid for pid, line in mark.programs() if all(word in line for word in words)]


def agents(mark):
    return processes(mark, [" -uc "])


def joined(mark):
    """The processes that have joined the streams of ssh to the relay."""
    return [pid for pid, line in mark.programs() if line.startswith("acp-relay over-ssh ")]


def relays(mark):
    return processes(mark, [" serve ", "/ssh/test.link"])


def broken(first, mark, side):
    """Begins a turn and breaks its connection on that side; returns the agent and the relay."""
    first.ask(0, "initialize", protocolVersion=1, clientCapabilities={})
    first.ask(1, "session/new", cwd="/", mcpServers=[])
    first.send(id=2, method="session/prompt", params=PROMPT)
    first.until(lambda: first.questions)
    [agent], [relay] = agents(mark), relays(mark)
    if side == "here":
        victims = processes(mark, ["/usr/bin/ssh "])
    else:
        # The process with the connection is the parent.
        [process] = joined(mark)
        victims = [int(Path("/proc/%d/stat" % process).read_text().rpartition(")")[2].split()[1])]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    return agent, relay


def resumed(start, mark, folder, side):
    """A turn whose connection breaks on that side, and that goes on over the next one."""
    editor = start()
    agent, relay = broken(editor, mark, side)
    (folder / "go").touch()
    wait_for(folder / "went")
    editor.send(id=editor.questions[0], result={"outcome": {"outcome": "selected", "optionId": "yes"}})
    editor.until(lambda: 2 in editor.answers)
    editor.until(lambda: editor.texts[-1:] == ["answered yes"])
    stop = editor.ask(3, "session/prompt", **PROMPT)["result"]["stopReason"]
    expected = ["one of %d" % agent, "two", "answered yes", "again %d" % agent]
    if stop != "end_turn" or editor.texts != expected or len(editor.questions) != 1:
        raise Fault("the client received %s and %d questions" % (editor.texts, len(editor.questions)))
    editor.end(0)
    until("the agent ends", lambda: not agents(mark))
    return relay


def conversation(start, mark, folder, side):
    """The same without a resumable link: the turn is given up, and its session is loaded again."""
    first = start("--no-link", "--agent-restart", "never")
    agent, relay = broken(first, mark, side)
    first.until(lambda: 2 in first.answers)
    if "error" not in first.answers[2]:
        raise Fault("the open request is answered with %s" % first.answers[2])
    first.end(69)
    until("the other side notices", lambda: not joined(mark))
    (folder / "go").touch()
    wait_for(folder / "went")
    if not (agents(mark) == [agent] and relays(mark) == [relay]):
        raise Fault("the agent or the relay is not the same: %s" % mark.programs())

    second = start("--no-link", "--agent-restart", "never")
    second.ask(0, "initialize", protocolVersion=1, clientCapabilities={})
    second.ask(1, "session/load", sessionId="s", cwd="/", mcpServers=[])
    second.until(lambda: second.questions)
    second.send(id=second.questions[0], result={"outcome": {"outcome": "selected", "optionId": "yes"}})
    second.until(lambda: second.texts[-1:] == ["answered yes"])
    stop = second.ask(2, "session/prompt", **PROMPT)["result"]["stopReason"]
    expected = ["go", "one of %d" % agent, "two", "answered yes", "again %d" % agent]
    if stop != "end_turn" or second.texts != expected:
        raise Fault("the second client received %s" % second.texts)
    second.end(0)
    until("the agent ends", lambda: not agents(mark))
    return relay


def shells(command, env):
    """Each shell runs the command line; yields the names of those that are installed."""
    for shell in filter(shutil.which, SHELLS):
        done = subprocess.run([shell, "-c", command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE)
        if b"acp-relay over-ssh 2\n" not in done.stdout:
            raise Fault("%s: %r" % (shell, done.stdout + done.stderr))
        yield shell


def run(relay, folder):
    mark = isolation.Mark()
    home, programs = folder / "home", folder / "bin"
    (home / "config/acp-relay").mkdir(parents=True)
    (home / ".local/bin").mkdir(parents=True)
    programs.mkdir()
    (home / ".local/bin/acp-relay").symlink_to(relay)
    words = json.dumps([sys.executable, "-uc", AGENT, str(folder)])
    (home / "config/acp-relay/acp-relay.toml").write_text("[agents.test]\ncommand = %s\n" % words)
    env = {**isolation.environment(home), **mark.env, "ACP_RELAY_OVER_SSH_IDLE": "%ds" % IDLE}
    there = {name: env[name] for name in env if name == "HOME" or name.startswith(("XDG_", "ACP_RELAY_"))}
    daemon, options = sshd.start(folder / "keys", "agents.example", isolation.free_port(), there)
    (programs / "ssh").write_text('#!/bin/sh\nprintf "%%s" "${10}" >%s/command\nexec /usr/bin/ssh %s "$@"\n'
                                  % (folder, shlex.join(options)))
    (programs / "ssh").chmod(0o755)
    # The state directory of this side is another one.
    here = {**env, "PATH": "%s:%s" % (programs, env["PATH"]), "ACP_RELAY_STATE_DIR": str(folder / "state")}
    editors = []

    def start(*options):
        editors.append(Editor([relay, "connect", *options, "ssh://agents.example/test"], here))
        return editors[-1]
    try:
        ways = {conversation: "the same agent goes on", resumed: "the same turn goes on"}
        for way, side in itertools.product(ways, ("here", "there")):
            process = way(start, mark, folder, side)
            for name in ("go", "went"):
                (folder / name).unlink()
            print("ok    a connection that breaks %s: %s, its relay is %d" % (side, ways[way], process))
        until("the idle relay ends", lambda: not relays(mark))
        print("ok    the relay has ended")
        names = list(shells((folder / "command").read_text(), env))
        print("ok    the command line in %s" % ", ".join(names))
        until("the idle relay ends", lambda: not relays(mark))
    finally:
        for editor in editors:
            if editor.process.poll() is None:
                editor.process.kill()
                editor.process.wait()
        daemon.terminate()
        daemon.wait()
        left = mark.wait_until_gone(set(), 5)
        mark.kill_rest()
        if sys.exc_info()[0] is None and left:
            raise Fault("left behind: %s" % left)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    asked = parser.parse_args()
    if not sshd.PROGRAM.exists():
        print("skip  sshd is not installed")
        return 0
    # A long path would be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="acp-ssh-") as folder:
        try:
            run(asked.relay, Path(folder))
        except (Fault, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as fault:
            print("FAIL  %s: %s" % (type(fault).__name__, fault))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

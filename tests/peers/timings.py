#!/usr/bin/env python3
"""timings.py: how long the relay takes to see that a peer is gone, with default limits, once each.

    timings.py [--relay BINARY] [--only TEXT]

Prints a row for each case: what, the limit in seconds, the seconds measured. The exit code is 1
when a row exceeds its limit. All rows run at the same time, so the longest decides how long it
takes: two minutes. A path goes silent in a forwarder that goes on reading, so that the system on
either side sees its bytes acknowledged. Not here: whether anything is lost (network_cuts.py).
"""
import argparse
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from paths import RELAY

# How long a row is waited for.
PATIENCE = 120
# A turn with updates and without an end.
AGENT = r"""
import json, sys
say = lambda **m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        say(id=m["id"], result={"protocolVersion": 1})
    elif m.get("method") == "session/new":
        say(id=m["id"], result={"sessionId": "s"})
    elif m.get("method") == "session/prompt":
        for n in range(m["params"].get("updates", 1)):
            say(method="session/update", params={"sessionId": "s", "update": {"n": n, "pad": "x" * m["params"].get("pad", 0)}})
"""


class Program:
    """A relay; each line that it prints is kept with its time."""

    def __init__(self, *words, state):
        env = dict(os.environ, ACP_RELAY_STATE_DIR=state)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.lines, self.changed = [], threading.Condition()
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        for line in stream:
            with self.changed:
                self.lines.append((time.monotonic(), line[:400].decode(errors="replace")))
                self.changed.notify_all()

    def wait_line(self, *texts, within=PATIENCE):
        """The first line that has one of the texts: (its time, the line)."""
        def found():
            return next((one for one in self.lines if any(text in one[1] for text in texts)), None)
        with self.changed:
            if not self.changed.wait_for(found, within):
                raise TimeoutError("no %s within %d s" % (texts, within))
            return found()

    def wait_end(self):
        self.process.wait(PATIENCE)
        return time.monotonic()

    def say(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def stop(self):
        for number in (signal.SIGCONT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
        self.process.wait()


class Forwarder:
    """Passes bytes on until `hush`; from then on it reads all and passes on nothing."""

    def __init__(self, port):
        self.target, self.silent, self.made = port, 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ended = queue.Queue()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.target))
            number = len(self.made)
            self.made.append(time.monotonic())
            for who, one, other in (("client", near, far), ("server", far, near)):
                threading.Thread(target=self.copy, args=(number, who, one, other), daemon=True).start()

    def copy(self, number, who, one, other):
        try:
            while chunk := one.recv(1 << 16):
                if number >= self.silent:
                    other.sendall(chunk)
        except OSError:
            pass  # It was reset, which is an end as well.
        # What ends after the silence has begun is the end that has noticed it.
        self.ended.put((time.monotonic(), who, number))

    def hush(self):
        self.silent = len(self.made)
        return time.monotonic()

    def wait_end(self, who):
        """When that end gave up a silent connection."""
        deadline = time.monotonic() + PATIENCE
        while True:
            at, ended, number = self.ended.get(timeout=max(0.01, deadline - time.monotonic()))
            if ended == who and number < self.silent:
                return at


class Case:
    """A `serve`, and what a row starts beside it."""

    def __init__(self, relay, state):
        self.relay, self.state, self.programs = relay, state, []
        self.serve = self.start("serve", "--listen", "http://127.0.0.1:0", "--allow-host", "127.0.0.1", "--", sys.executable, "-uc", AGENT)
        line = self.serve.wait_line("listening on ")[1]
        self.port = int(line.split()[-1].rsplit(":", 1)[1].split("/")[0])

    def start(self, *words):
        program = Program(self.relay, *words, state=self.state)
        self.programs.append(program)
        return program

    def connect(self, scheme, port, **prompt):
        """A `connect` in mid-turn."""
        program = self.start("connect", "%s://127.0.0.1:%d" % (scheme, port))
        program.say(id=0, method="initialize", params={"protocolVersion": 1})
        program.wait_line('"id":0', '"id": 0')
        program.say(id=1, method="session/new", params={"cwd": "/", "mcpServers": []})
        program.wait_line('"id":1', '"id": 1')
        program.say(id=2, method="session/prompt", params={"sessionId": "s", "prompt": [], **prompt})
        program.wait_line("session/update")
        return program

    def half_open(self, scheme, who):
        forwarder = Forwarder(self.port)
        connect = self.connect(scheme, forwarder.port)
        # The streams of sessions are open by then.
        time.sleep(1)
        since = forwarder.hush()
        if scheme == "http":
            # Connections without a stream end sooner, because they are not used.
            return {"": connect.wait_line("nothing came for")[0] - since}
        return {"": forwarder.wait_end(who) - since}

    def stopped(self, scheme):
        connect = self.connect(scheme, self.port)
        self.serve.process.send_signal(signal.SIGSTOP)
        since = time.monotonic()
        at, _ = connect.wait_line("nothing came for", '"error"')
        return {"": at - since}

    def killed(self):
        connect = self.connect("http", self.port)
        self.serve.process.kill()
        since = time.monotonic()
        told, _ = connect.wait_line("waiting for the server")
        return {", warning": told - since, "": connect.wait_end() - since}

    def terminated(self, scheme, **prompt):
        """SIGTERM while a client is gone (killed over HTTP) or does not read (stopped)."""
        connect = self.connect(scheme, self.port, **prompt)
        connect.process.send_signal(signal.SIGKILL if scheme == "http" else signal.SIGSTOP)
        time.sleep(1)
        self.serve.process.send_signal(signal.SIGTERM)
        since = time.monotonic()
        return {"": self.serve.wait_end() - since}

    def stop(self):
        for program in self.programs:
            program.stop()


# What, the limit of each part in seconds, how it is measured. Of SIGTERM it is less than the 30 s after
# which Kubernetes kills.
ROWS = [
    ("half-open, WebSocket, client's role", {"": 21}, lambda case: case.half_open("ws", "client")),
    ("half-open, WebSocket, server's role", {"": 21}, lambda case: case.half_open("ws", "server")),
    ("half-open, HTTP, client's role", {"": 21}, lambda case: case.half_open("http", "client")),
    ("stopped serve, WebSocket", {"": 21}, lambda case: case.stopped("ws")),
    ("stopped serve, HTTP", {"": 21}, lambda case: case.stopped("http")),
    ("killed serve, HTTP", {", warning": 4, "": 32}, lambda case: case.killed()),
    ("SIGTERM, HTTP client vanished in mid-turn", {"": 28}, lambda case: case.terminated("http")),
    ("SIGTERM, WebSocket client does not read", {"": 28}, lambda case: case.terminated("ws", updates=20_000, pad=50_000)),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--only", default="", help="the rows with this text")
    asked = parser.parse_args()
    told = {}

    def measure(what, limits, way):
        case = None
        try:
            with tempfile.TemporaryDirectory(prefix="acp-relay-timings-") as state:
                case = Case(asked.relay, state)
                told[what] = way(case)
        except Exception as fault:
            told[what] = fault
        finally:
            if case:
                case.stop()
    rows = [row for row in ROWS if asked.only in row[0]]
    threads = [threading.Thread(target=measure, args=row) for row in rows]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    good = True
    print("%-46s %6s %9s" % ("what", "limit", "measured"))
    for what, limits, _ in rows:
        for part, limit in limits.items():
            took = told[what]
            if isinstance(took, Exception):
                well, shown = False, "%s: %s" % (type(took).__name__, took)
            else:
                well, shown = took[part] <= limit, "%.1f" % took[part]
            good &= well
            print("%-46s %6d %9s%s" % (what + part, limit, shown, "" if well else "  TOO LONG"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""timings.py: the time until the relay detects the loss of a peer, with default limits, once each.

    timings.py [--relay BINARY] [--only TEXT]

Prints a row for each case: what, the limit in seconds, the seconds measured. The exit code is 1
when a row exceeds its limit. All rows run at the same time, so the longest decides the total:
two minutes. A path is silenced by a forwarder that continues to read, so that the kernel on either
side gets its bytes acknowledged. Not here: lost messages (network_cuts.py).
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

# Limit for one row, in seconds.
PATIENCE = 120
# A turn with updates that never ends.
AGENT = r"""
import json, sys
send = lambda **m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        send(id=m["id"], result={"protocolVersion": 1})
    elif m.get("method") == "session/new":
        send(id=m["id"], result={"sessionId": "s"})
    elif m.get("method") == "session/prompt":
        for n in range(m["params"].get("updates", 1)):
            send(method="session/update", params={"sessionId": "s", "update": {"n": n, "pad": "x" * m["params"].get("pad", 0)}})
"""


class Program:
    """A relay; each line that it prints is stored with its time."""

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
        """Waits for the first line with one of the texts: (its time, the line)."""
        def found():
            return next((one for one in self.lines if any(text in one[1] for text in texts)), None)
        with self.changed:
            if not self.changed.wait_for(found, within):
                raise TimeoutError("no %s within %d s" % (texts, within))
            return found()

    def wait_end(self):
        self.process.wait(PATIENCE)
        return time.monotonic()

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def stop(self):
        for number in (signal.SIGCONT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
        self.process.wait()


class Forwarder:
    """Forwards bytes until `silence`; from then on it reads everything and forwards nothing."""

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
            for side, one, other in (("client", near, far), ("server", far, near)):
                threading.Thread(target=self.copy, args=(number, side, one, other), daemon=True).start()

    def copy(self, number, side, one, other):
        try:
            while chunk := one.recv(1 << 16):
                if number >= self.silent:
                    other.sendall(chunk)
        except OSError:
            pass  # A reset is an end as well.
        # The side that closes after `silence` is the one that detected it.
        self.ended.put((time.monotonic(), side, number))

    def silence(self):
        self.silent = len(self.made)
        return time.monotonic()

    def wait_end(self, side):
        """The time when that side closed a silent connection."""
        deadline = time.monotonic() + PATIENCE
        while True:
            at, ended, number = self.ended.get(timeout=max(0.01, deadline - time.monotonic()))
            if ended == side and number < self.silent:
                return at


class Case:
    """A `serve`, and the other programs of a row."""

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
        """Starts a `connect` without a resumable link, and leaves it in mid-turn."""
        program = self.start("connect", "--no-link", "%s://127.0.0.1:%d" % (scheme, port))
        program.send(id=0, method="initialize", params={"protocolVersion": 1})
        program.wait_line('"id":0', '"id": 0')
        program.send(id=1, method="session/new", params={"cwd": "/", "mcpServers": []})
        program.wait_line('"id":1', '"id": 1')
        program.send(id=2, method="session/prompt", params={"sessionId": "s", "prompt": [], **prompt})
        program.wait_line("session/update")
        return program

    def half_open(self, scheme, side):
        forwarder = Forwarder(self.port)
        connect = self.connect(scheme, forwarder.port)
        # Wait until the session streams are open.
        time.sleep(1)
        since = forwarder.silence()
        if scheme == "http":
            # Connections without a stream close earlier, because they are idle.
            return {"": connect.wait_line("nothing came for")[0] - since}
        return {"": forwarder.wait_end(side) - since}

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
        warned, _ = connect.wait_line("waiting for the server")
        return {", warning": warned - since, "": connect.wait_end() - since}

    def terminated(self, scheme, **prompt):
        """SIGTERM while a client is lost (killed, over HTTP) or does not read (stopped)."""
        connect = self.connect(scheme, self.port, **prompt)
        connect.process.send_signal(signal.SIGKILL if scheme == "http" else signal.SIGSTOP)
        time.sleep(1)
        self.serve.process.send_signal(signal.SIGTERM)
        since = time.monotonic()
        return {"": self.serve.wait_end() - since}

    def stop(self):
        for program in self.programs:
            program.stop()


# What, the limit of each part in seconds, the measurement. For SIGTERM the limit is below the 30 s
# after which Kubernetes kills.
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
    args = parser.parse_args()
    results = {}

    def measure(what, limits, way):
        case = None
        try:
            with tempfile.TemporaryDirectory(prefix="acp-relay-timings-") as state:
                case = Case(args.relay, state)
                results[what] = way(case)
        except Exception as fault:
            results[what] = fault
        finally:
            if case:
                case.stop()
    rows = [row for row in ROWS if args.only in row[0]]
    threads = [threading.Thread(target=measure, args=row) for row in rows]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    good = True
    print("%-46s %6s %9s" % ("what", "limit", "measured"))
    for what, limits, _ in rows:
        for part, limit in limits.items():
            took = results[what]
            if isinstance(took, Exception):
                well, shown = False, "%s: %s" % (type(took).__name__, took)
            else:
                well, shown = took[part] <= limit, "%.1f" % took[part]
            good &= well
            print("%-46s %6d %9s%s" % (what + part, limit, shown, "" if well else "  TOO LONG"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

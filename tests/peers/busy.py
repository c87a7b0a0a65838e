#!/usr/bin/env python3
"""busy.py: a client and an agent that send requests to each other all the time, for kill.py.

    busy.py client REPORT SEED -- COMMAND...    starts COMMAND and communicates with it
    busy.py agent REPORT SEED HABIT...          uses stdin and stdout

Both keep several requests open, answer requests after a moment, and send notifications. Every
64th request of the client is never answered. REPORT gets a line per event, with the monotonic
time in ns: `pid N`, `sent ID`, `answer ID CODE` (0 for a result), `eof`, `broken` (the pipe is
closed for writing), `exit CODE` (of COMMAND).
Habits of an agent: `child` (a grandchild that holds its stdout open), `helper` (one in its own
session), `daemon` (one without a parent), `stubborn` (ignores the end of its input, SIGTERM and
SIGHUP). The moment of the kill is chosen by kill.py.
"""
import heapq
import json
import os
import random
import select
import signal
import subprocess
import sys
import time

from framing import NDJSON, Splitter

# The number of open requests of a side, and of those that are never answered.
OPEN, UNANSWERED = 6, 60
SLEEP = ["sleep", "600"]


class Report:
    """Events, written at once: the process may be killed before a later write."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, *words):
        line = "%d %s\n" % (time.monotonic_ns(), " ".join(map(str, words)))
        os.write(self.fd, line.encode())


class Side:
    """One end of the conversation, on two descriptors, until the end of its input."""

    def __init__(self, name, reads, writes, report, seed, never_every=0):
        self.name, self.reads, self.writes, self.report = name, reads, writes, report
        self.chance = random.Random(seed)
        self.never_every = never_every
        self.count, self.open, self.unanswered = 0, set(), set()
        self.due, self.count_due = [], 0
        self.requests = self.writable = True

    def run(self):
        splitter = Splitter(NDJSON)
        while True:
            while self.requests and len(self.open - self.unanswered) < OPEN and len(self.unanswered) < UNANSWERED:
                self.request()
            pause = max(0.0, self.due[0][0] - time.monotonic()) if self.due else 0.01
            if select.select([self.reads], [], [], min(pause, 0.01))[0]:
                chunk = os.read(self.reads, 1 << 16)
                if not chunk:
                    self.report.add("eof")
                    return
                for body in splitter.feed(chunk):
                    self.receive(json.loads(body))
            while self.due and self.due[0][0] <= time.monotonic():
                self.send(heapq.heappop(self.due)[2])
            if self.chance.random() < 0.3:
                self.send({"jsonrpc": "2.0", "method": "update", "params": {"text": "\u017c" * 100}})

    def request(self):
        self.count += 1
        ident = "%s%d" % (self.name, self.count)
        never = self.never_every and self.count % self.never_every == 0
        self.open.add(ident)
        if never:
            self.unanswered.add(ident)
        if self.send({"jsonrpc": "2.0", "id": ident, "method": "never" if never else "soon", "params": {}}):
            self.report.add("sent", ident)

    def receive(self, message):
        if "method" not in message:
            error = message.get("error", {"code": 0})
            self.report.add("answer", message["id"], error["code"])
            self.open.discard(message["id"])
            # An error of the relay: it is closing, and further requests may be lost.
            self.requests &= error["code"] == 0
        elif "id" in message and message["method"] == "soon":
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
            self.count_due += 1
            # The number prevents the heap from comparing messages.
            when = time.monotonic() + self.chance.random() * 0.02
            heapq.heappush(self.due, (when, self.count_due, answer))

    def send(self, message):
        if not self.writable:
            return False
        try:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[os.write(self.writes, data):]
        except BrokenPipeError:
            self.report.add("broken")
            self.writable = self.requests = False
        return self.writable


def client(report, seed, command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    report.add("pid", process.pid)
    Side("c", process.stdout.fileno(), process.stdin.fileno(), report, seed, never_every=64).run()
    process.stdin.close()
    report.add("exit", process.wait())


def agent(report, seed, habits):
    apart = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if "child" in habits:
        subprocess.Popen(SLEEP, **apart)
    if "helper" in habits:
        subprocess.Popen(SLEEP, **apart, stdout=subprocess.DEVNULL, start_new_session=True)
    if "daemon" in habits:
        # The shell ends at once.
        subprocess.run(["setsid", "sh", "-c", "sleep 600 &"], **apart, stdout=subprocess.DEVNULL)
    if "stubborn" in habits:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    report.add("pid", os.getpid())
    Side("a", 0, 1, report, seed).run()
    if "stubborn" in habits:
        time.sleep(600)


def main():
    role, path, seed, *rest = sys.argv[1:]
    report = Report(path)
    if role == "client":
        client(report, int(seed), rest[1:])
    else:
        agent(report, int(seed), rest)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""busy.py: a client and an agent that never stop asking each other, for kill.py to interrupt.

    busy.py client REPORT SEED -- COMMAND...    starts COMMAND and talks to it
    busy.py agent REPORT SEED HABIT...          talks on stdin and stdout

Both keep several requests open, answer the other's after a moment, and send notifications. Every
64th request of the client is never answered. REPORT gets a line per event, with the monotonic
time in ns: `pid N`, `sent ID`, `answer ID CODE` (0 for a result), `eof`, `broken` (nothing can be
said any more), `exit CODE` (of COMMAND).
Habits of an agent: `child` (a grandchild that holds its stdout open), `helper` (one in a session
of its own), `daemon` (one that is nobody's child), `stubborn` (ignores the end of its input,
SIGTERM and SIGHUP). The moment to be killed is not chosen here.
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

# So many requests of a side wait for an answer, and so many more wait in vain.
OPEN, HOPELESS = 6, 60
SLEEP = ["sleep", "600"]


class Report:
    """What happened, written at once: the process may not live to write it later."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def say(self, *words):
        line = "%d %s\n" % (time.monotonic_ns(), " ".join(map(str, words)))
        os.write(self.fd, line.encode())


class Side:
    """One end of the talk, on two descriptors, until it hears the end."""

    def __init__(self, name, reads, writes, report, seed, keeps=0):
        self.name, self.reads, self.writes, self.report = name, reads, writes, report
        self.chance = random.Random(seed)
        self.keeps = keeps
        self.count, self.open, self.hopeless = 0, set(), set()
        self.due, self.count_due = [], 0
        self.asks = self.speaks = True

    def talk(self):
        splitter = Splitter(NDJSON)
        while True:
            while self.asks and len(self.open - self.hopeless) < OPEN and len(self.hopeless) < HOPELESS:
                self.ask()
            pause = max(0.0, self.due[0][0] - time.monotonic()) if self.due else 0.01
            if select.select([self.reads], [], [], min(pause, 0.01))[0]:
                chunk = os.read(self.reads, 1 << 16)
                if not chunk:
                    self.report.say("eof")
                    return
                for body in splitter.feed(chunk):
                    self.hear(json.loads(body))
            while self.due and self.due[0][0] <= time.monotonic():
                self.say(heapq.heappop(self.due)[2])
            if self.chance.random() < 0.3:
                self.say({"jsonrpc": "2.0", "method": "update", "params": {"text": "\u017c" * 100}})

    def ask(self):
        self.count += 1
        ident = "%s%d" % (self.name, self.count)
        never = self.keeps and self.count % self.keeps == 0
        self.open.add(ident)
        if never:
            self.hopeless.add(ident)
        if self.say({"jsonrpc": "2.0", "id": ident, "method": "never" if never else "soon", "params": {}}):
            self.report.say("sent", ident)

    def hear(self, message):
        if "method" not in message:
            error = message.get("error", {"code": 0})
            self.report.say("answer", message["id"], error["code"])
            self.open.discard(message["id"])
            # A relay has spoken: the end is near, and what is asked now may not be heard.
            self.asks &= error["code"] == 0
        elif "id" in message and message["method"] == "soon":
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
            self.count_due += 1
            # The number keeps the heap from comparing messages.
            when = time.monotonic() + self.chance.random() * 0.02
            heapq.heappush(self.due, (when, self.count_due, answer))

    def say(self, message):
        if not self.speaks:
            return False
        try:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[os.write(self.writes, data):]
        except BrokenPipeError:
            self.report.say("broken")
            self.speaks = self.asks = False
        return self.speaks


def client(report, seed, command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    report.say("pid", process.pid)
    Side("c", process.stdout.fileno(), process.stdin.fileno(), report, seed, keeps=64).talk()
    process.stdin.close()
    report.say("exit", process.wait())


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
    report.say("pid", os.getpid())
    Side("a", 0, 1, report, seed).talk()
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

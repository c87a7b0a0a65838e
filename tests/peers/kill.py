#!/usr/bin/env python3
"""kill.py: one process is killed during a busy conversation, at random moments.

    kill.py [--relay BINARY] [--moments N] [--only K]... [--seed N] [--jobs N] [--keep]

    busy.py client - acp-relay connect = tcp, unix or ws = acp-relay serve - busy.py agent + children

Each moment draws the transport, the victim, the signal, the agent's habits (a grandchild on its
stdout, a helper in its own session, a daemon, ignoring SIGTERM, SIGHUP and the end of input) and
the time from the seed. Required of every moment, within a few seconds:
  - no process and no zombie of the run is left, except `serve`, if it was not the victim;
  - `serve` then serves another client, exits with 0 on SIGTERM, and leaves no process either;
  - no request of either side is answered twice.
And by victim, for each request that was sent before the kill:
  agent    the client gets one answer, the agent's or -32051, then the end of the stream;
           `connect` exits with 128 + the signal;
  client   the agent, if it still reads, gets one answer;
  connect  SIGKILL: its client gets the end of the stream and no answer; the agent gets one answer.
           SIGTERM, SIGHUP: the client gets one answer as well, the agent's, -32050, -32051 or
           -32054, then the end;
  serve    SIGKILL: the client gets one answer, the agent's or -32050, then the end; `connect` exits
           with 69 if a request was open. SIGTERM, SIGHUP: the client gets one answer, the agent's,
           -32050, -32051 or -32054, then the end; `serve` exits with 0, or with 75 because of the
           second signal.
Two requirements apply only with --strict, because they do not always hold yet:
  - a request that was sent within 50 ms before the kill is answered. It may still be in the pipe or
    socket to a relay whose other side is gone; that relay answers the requests it has read and closes.
  - after SIGKILL of `serve`, helpers and daemons end that were started just before. Without
    --strict the kill comes a second later.
One line per moment; the same seed draws the same moments (--only repeats one of them).
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import isolation
import websocket
from paths import RELAY
from wires import Relay, dial, listen_at

HERE = Path(__file__).resolve().parent
BUSY = [sys.executable, str(HERE / "busy.py")]
# Stopping an agent takes two of these; the default is too long for 200 runs.
GRACE = "300ms"
PATIENCE = 8.0
# Seconds before SIGKILL of a `serve` whose agent has a helper or a daemon; none with --strict.
WATCHDOG_DELAY = 1.0
SECOND_SIGNAL = 0.3
UNREAD_NS = 50_000_000
CLOSING_CODES = {-32050, -32051, -32054}
HABITS = ("child", "helper", "daemon", "stubborn")
WORK = b'{"jsonrpc":"2.0","id":"z","method":"soon","params":{}}'


@dataclass
class Moment:
    """The parameters of one run, drawn from the seed."""

    number: int
    wire: str
    victim: str
    signal: signal.Signals
    habits: list
    delay: float
    seed: int

    @classmethod
    def draw(cls, number, seed, strict=True):
        chance = random.Random("%d %d" % (seed, number))
        victim = chance.choice(("agent", "client", "connect", "serve"))
        habits = [habit for habit in HABITS if chance.random() < 0.4]
        how = chance.choices((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP), (70, 20, 10))[0]
        if victim == "agent" and "stubborn" in habits:
            how = signal.SIGKILL
        wire, delay = chance.choice(("tcp", "unix", "ws")), chance.random() ** 2 * 0.6
        if (victim, how) == ("serve", signal.SIGKILL) and not strict and {"helper", "daemon"} & set(habits):
            delay += WATCHDOG_DELAY
        return cls(number, wire, victim, how, habits, delay, chance.randrange(1 << 32))

    def __str__(self):
        return "%3d  %-4s  %-7s  %-7s  %4.0f ms  %s" % (
            self.number, self.wire, self.victim, self.signal.name, self.delay * 1000, ",".join(self.habits))


class Report:
    """The report of one side of busy.py."""

    def __init__(self, path):
        self.pid = self.exit = None
        self.sent, self.answers, self.ended = {}, {}, False
        for line in path.read_text().splitlines() if path.exists() else ():
            when, what, *rest = line.split()
            if what == "sent":
                self.sent[rest[0]] = int(when)
            elif what == "answer":
                self.answers.setdefault(rest[0], []).append(int(rest[1]))
            elif what == "eof":
                self.ended = True
            elif what in ("pid", "exit"):
                setattr(self, what, int(rest[0]))

    def busy(self):
        return len(self.answers) >= 8

    def faults(self, side, before, allowed):
        """The faults of the answers. `before`: requests sent before that time need one; with None, no
        request does. `allowed`: the error codes, besides an answer of the peer."""
        wrong = []
        for ident, codes in self.answers.items():
            if len(codes) > 1:
                wrong.append("%s: %s was answered %s" % (side, ident, codes))
            wrong += ["%s: %s was answered %d" % (side, ident, code) for code in codes if code and code not in allowed]
        if before:
            silent = [ident for ident, when in self.sent.items() if when < before and ident not in self.answers]
            if silent:
                wrong.append("%s: never answered: %s" % (side, " ".join(
                    "%s (sent %.1f ms before)" % (ident, (before - self.sent[ident]) / 1e6) for ident in silent[:8])))
        return wrong


class Run:
    """One moment."""

    def __init__(self, moment, relay, root, strict):
        self.moment, self.binary, self.strict = moment, relay, strict
        self.dir = Path(tempfile.mkdtemp(prefix="k%d-" % moment.number, dir=root))
        self.mark = isolation.Mark()
        self.env = {**os.environ, **self.mark.env}
        self.wrong = []
        self.serve = self.client = None
        self.open = 0

    def go(self):
        started = time.monotonic()
        try:
            self.start()
            before = self.kill()
            self.check(before)
            if self.moment.victim != "serve":
                self.serve_again()
        except (OSError, TimeoutError, websocket.Broken, subprocess.TimeoutExpired) as error:
            self.wrong.append("the run was aborted: %r" % error)
        finally:
            for process in (self.client, self.serve and self.serve.process):
                if process and process.poll() is None:
                    process.kill()
                    process.wait()
            self.mark.kill_rest()
        self.seconds = time.monotonic() - started
        return self

    def report(self, side):
        return Report(self.dir / side)

    def start(self):
        moment = self.moment
        agent = [*BUSY, "agent", self.dir / "agent", str(moment.seed), *moment.habits]
        self.serve = Relay([self.binary, "serve", "--listen", listen_at(moment.wire, self.dir),
                            "--limit", "stop-grace=" + GRACE, "--", *agent], self.env)
        with open(self.dir / "client.stderr", "wb") as stderr:
            self.client = subprocess.Popen(
                [*BUSY, "client", self.dir / "client", str(moment.seed + 1), "--",
                 self.binary, "connect", "--no-link", "--guard", "never", "--files", "editor", "--limit", "stop-grace=" + GRACE, self.serve.endpoint],
                env=self.env, stdin=subprocess.DEVNULL, stderr=stderr)
        deadline = time.monotonic() + PATIENCE
        while not (self.report("client").busy() and self.report("agent").busy()):
            if time.monotonic() > deadline:
                raise TimeoutError("the conversation did not begin")
            time.sleep(0.02)

    def kill(self):
        """Kills the victim; returns the monotonic time of the kill, in ns."""
        time.sleep(self.moment.delay)
        victim = {"client": self.client.pid, "serve": self.serve.process.pid,
                  "connect": self.report("client").pid, "agent": self.report("agent").pid}[self.moment.victim]
        before = time.monotonic_ns()
        os.kill(victim, self.moment.signal)
        if self.moment.victim in ("serve", "connect") and self.moment.signal != signal.SIGKILL:
            # A relay waits for open turns, and some never end here: the second signal ends the wait.
            until = time.monotonic() + SECOND_SIGNAL
            while time.monotonic() < until and self.report("client").exit is None:
                time.sleep(0.02)
            try:
                os.kill(victim, self.moment.signal)
            except ProcessLookupError:
                pass
        return before

    def check(self, before):
        victim, how = self.moment.victim, self.moment.signal
        killed = how == signal.SIGKILL
        if victim == "serve":
            code = self.serve.process.wait(PATIENCE)
            if code not in ({-how} if killed else {0, 75}):
                self.wrong.append("serve exited with %d: %s" % (code, self.serve.output[-3:]))
        self.client.wait(PATIENCE)
        self.all_gone()
        before -= 0 if self.strict else UNREAD_NS
        client, agent = self.report("client"), self.report("agent")
        self.open = sum(1 for ident, when in client.sent.items() if when < before and client.answers.get(ident) != [0])
        client_allowed = {("agent", True): {-32051}, ("agent", False): {-32051}, ("serve", True): {-32050},
                          ("connect", True): set()}.get((victim, killed), CLOSING_CODES)
        if victim != "client":
            silent = victim == "connect" and killed
            self.wrong += client.faults("client", None if silent else before, client_allowed)
            if not client.ended:
                self.wrong.append("the client did not get the end of its stream")
            exits = {("agent", True): {128 + how}, ("agent", False): {128 + how},
                     # 69: a request was open.
                     ("serve", True): {69} if self.open else {0, 69}, ("connect", True): {-how}}.get((victim, killed))
            if exits and client.exit not in exits:
                self.wrong.append("connect exited with %s, not %s" % (client.exit, exits))
        # An agent that is stopped gets the end of its input, not the answers of a connected client.
        ended = victim in ("client", "connect") and agent.ended
        self.wrong += agent.faults("agent", before if ended else None, CLOSING_CODES)

    def all_gone(self):
        """No process of the run is left, except `serve` if it runs."""
        running = {self.serve.process.pid} if self.serve.process.poll() is None else set()
        left = self.mark.wait_until_gone(running, PATIENCE)
        if left:
            self.wrong.append("left behind after %.0f s: %s" % (PATIENCE, "; ".join(left)))

    def serve_again(self):
        wire = dial(self.serve.endpoint)
        wire.send(WORK)
        while (body := wire.receive(PATIENCE)) is not None and b'"result":' not in body.replace(b" ", b""):
            pass
        if body is None:
            self.wrong.append("serve does not serve another client")
        wire.close()
        self.all_gone()
        code = self.serve.stop(seconds=PATIENCE)
        if code != 0:
            self.wrong.append("serve exited with %s after SIGTERM" % code)
        self.all_gone()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--only", type=int, action="append", help="this moment of the seed")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--strict", action="store_true", help="see above")
    args = parser.parse_args()

    print("seed %d" % args.seed)
    # On SIGTERM (a timeout): clean up before the exit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    root = Path(tempfile.mkdtemp(prefix="acp-kill-"))
    moments = [Moment.draw(number, args.seed, args.strict) for number in args.only or range(args.moments)]
    failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for run in pool.map(lambda moment: Run(moment, args.relay, root, args.strict).go(), moments):
            print("%-4s  %-60s  %3d open  %4.1f s" % ("FAIL" if run.wrong else "ok", run.moment, run.open, run.seconds))
            for reason in run.wrong:
                print("      " + reason)
            sys.stdout.flush()
            failed += bool(run.wrong)
    if failed or args.keep:
        print("reports: %s" % root)
    else:
        shutil.rmtree(root, ignore_errors=True)
    print("%d passed, %d failed" % (len(moments) - failed, failed))
    return 1 if failed or not moments else 0


if __name__ == "__main__":
    sys.exit(main())

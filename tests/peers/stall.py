#!/usr/bin/env python3
"""stall.py: one side stops reading while the other streams; the relay's memory must stay bounded.

    stall.py [--relay BINARY] [--way NAME]... [--big MIB] [--small MIB] [--stall SECONDS] [--seed N]

`down`: an agent streams numbered updates of 1 KiB to 64 KiB as fast as it can; the client reads
an eighth, stops until the stream stands still and for some seconds more, then reads the rest.
`up`: the client streams, and the agent does not read until the gate file exists. `down` over
connect-ws carries --big (2 GiB), the others --small. Required of every relay process:
  - from idle to the end its memory grows by at most 32 MiB (VmRSS sampled, and VmHWM);
  - backpressure: while one side does not read, the other is stopped and the stream stands still;
  - afterwards nothing is missing, out of order or altered: both ends make the same stream from
    the seed and compare each byte.
One line per run, `N passed, N failed`, exit 1 when one failed.

Not here: stalls of either side within one Rust process (tests/it), other limits.
"""
import argparse
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import isolation
import websocket
from paths import RELAY
from wires import ByteWire, Relay, dial, listen_at

MIB = 1 << 20
ALLOWED = 32 * MIB
PATIENCE = 30
WIRES = ("tcp", "unix", "ws")
WAYS = [("%s%s" % (kind, wire), wire, kind) for kind in ("", "connect-") for wire in WIRES]
DIGITS = 12
HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":{"n":'
# The text varies: a repeated text would hide duplicated parts.
MIDDLE = b',"text":"'
TAIL = b'"}}'
VERDICT = b'{"jsonrpc":"2.0","method":"verdict","params":["%s"]}'


class Flood:
    """The stream: one block of messages, repeated, with consecutive numbers.

    `blocks()` yields (lines, ends): about a MiB of messages with their line ends, and the offsets
    of these ends. The buffer is reused for the next block."""

    def __init__(self, seed, size):
        chance = random.Random(seed)
        letters = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz \u0105\u4e2d\U0001f980", k=1 << 16)).encode()
        self.left = size
        self.block, self.numbers, self.ends = bytearray(), [], []
        while len(self.block) < MIB:
            length = chance.choice((1 << 10, 1 << 12, 1 << 14, 1 << 16))
            start = chance.randrange(len(letters) - 1)
            text = (letters + letters)[start:start + length].decode(errors="ignore").encode()
            self.numbers.append(len(self.block) + len(HEAD))
            self.block += HEAD + b"1" * DIGITS + MIDDLE + text + TAIL + b"\n"
            self.ends.append(len(self.block))
        self.count = 10 ** (DIGITS - 1)

    def blocks(self):
        while self.left > 0:
            for at in self.numbers:
                self.block[at:at + DIGITS] = b"%d" % self.count
                self.count += 1
            self.left -= len(self.block)
            yield memoryview(self.block).toreadonly(), self.ends


def agent(seed, mib, gate):
    """On `flood`, streams; on `sink`, reads once the gate file exists."""
    wire = ByteWire(sys.stdin.buffer, sys.stdout.buffer)
    while (asked := wire.receive(None)) is not None:
        if b'"flood"' in asked:
            for block, _ in Flood(seed, mib * MIB).blocks():
                write_all(1, block)
            wire.send(b'{"jsonrpc":"2.0","id":2,"result":{}}')
        elif b'"sink"' in asked:
            wire.send(b'{"jsonrpc":"2.0","id":2,"result":{}}')
            while not os.path.exists(gate):
                time.sleep(0.02)
            verdict = compare(os.fdopen(os.dup(0), "rb", buffering=0), Flood(seed, mib * MIB))
            wire.send(VERDICT % verdict.encode())
        else:
            wire.send(b'{"jsonrpc":"2.0","id":1,"result":{}}')


def write_all(fd, view):
    while view:
        view = view[os.write(fd, view):]


def compare(file, flood):
    """Reads the flood from a file of lines; returns the difference, or `same`."""
    buffer = bytearray(len(flood.block))
    for block, _ in flood.blocks():
        view = memoryview(buffer)
        while view:
            read = file.readinto(view)
            if not read:
                return "it ended early"
            view = view[read:]
        if buffer != block:
            at = next(i for i in range(len(buffer)) if buffer[i] != block[i])
            return "altered near %s" % block[max(0, at - 20):at + 20].tobytes().hex()
    return "same"


class Memory:
    """Samples processes from idle on. `growth` returns the largest growth in bytes."""

    def __init__(self, pids):
        self.idle = {pid: self.read(pid) for pid in pids}
        self.peak = {pid: 0 for pid in pids}
        self.over = threading.Event()
        threading.Thread(target=self.sample, daemon=True).start()

    @staticmethod
    def read(pid):
        with open("/proc/%d/status" % pid) as status:
            fields = dict(line.split(":", 1) for line in status)
        return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))

    def sample(self):
        while not self.over.wait(0.05):
            self.look()

    def look(self):
        for pid, (idle, _) in self.idle.items():
            try:
                now, high = self.read(pid)
            except (OSError, KeyError):
                continue  # It has exited; its growth was sampled before.
            # The high-water mark counts if it rose after idle.
            if high > self.idle[pid][1]:
                now = max(now, high)
            self.peak[pid] = max(self.peak[pid], now - idle)

    def growth(self):
        self.over.set()
        self.look()
        return max(self.peak.values())


class Run:
    """One stream over one way."""

    def __init__(self, way, direction, mib, args, root):
        self.name, self.wire_kind, self.kind = way
        self.direction, self.mib, self.args = direction, mib, args
        self.dir = Path(tempfile.mkdtemp(prefix="s", dir=root))
        self.gate = self.dir / "gate"
        self.mark = isolation.Mark()
        self.wrong, self.relays = [], []
        self.grown, self.stalled_at = 0, 0

    def go(self):
        started = time.monotonic()
        try:
            wire = self.open()
            self.ask(wire, 1, b"hello")
            memory = Memory([relay.process.pid for relay in self.relays])
            {"down": self.down, "up": self.up}[self.direction](wire)
            self.grown = memory.growth()
            if self.grown > ALLOWED:
                self.wrong.append("a relay has grown by %.1f MiB" % (self.grown / MIB))
            wire.end()
        except (OSError, TimeoutError, websocket.Broken) as error:
            self.wrong.append("the run failed: %r %s" % (error, [relay.output[-2:] for relay in self.relays]))
        finally:
            for relay in self.relays:
                relay.stop(signal.SIGKILL)
            self.mark.kill_rest()
        self.seconds = time.monotonic() - started
        return self

    def open(self):
        env = {**os.environ, **self.mark.env}
        behind = ["--", sys.executable, __file__, "--agent", str(self.args.seed), str(self.mib), self.gate]
        self.relays.append(Relay([self.args.relay, "serve", "--listen", listen_at(self.wire_kind, self.dir), *behind], env))
        if not self.kind:
            return dial(self.relays[0].endpoint)
        self.relays.append(Relay([self.args.relay, "connect", "--guard", "never", "--files", "editor", self.relays[0].endpoint], env, listens=False))
        return self.relays[1].stdio()

    def ask(self, wire, ident, method):
        wire.send(b'{"jsonrpc":"2.0","id":%d,"method":"%s"}' % (ident, method))
        if method != b"flood" and wire.receive(PATIENCE) != b'{"jsonrpc":"2.0","id":%d,"result":{}}' % ident:
            raise OSError("no answer to %s" % method)

    def down(self, wire):
        self.ask(wire, 2, b"flood")
        flood, read = Flood(self.args.seed, self.mib * MIB), 0
        matches = match_messages if isinstance(wire, websocket.WebSocket) else match_lines
        stalled = False
        for block, ends in flood.blocks():
            if not matches(wire, block, ends):
                self.wrong.append("altered, missing or out of order after %d MiB" % (read >> 20))
                return
            read += len(block)
            if not stalled and read >= self.mib * MIB // 8:
                stalled = True
                self.stand_still(lambda: written_by(self.agents()))
        if wire.receive(PATIENCE) != b'{"jsonrpc":"2.0","id":2,"result":{}}':
            self.wrong.append("the message after the stream is not the answer")

    def up(self, wire):
        self.ask(wire, 2, b"sink")
        sent = [0]
        masked = isinstance(wire, websocket.WebSocket)
        failures = []

        def flood():
            fd = wire.sock.fileno() if masked else wire.writes.fileno()
            try:
                for block, ends in Flood(self.args.seed, self.mib * MIB).blocks():
                    data, begin = block, 0
                    if masked:
                        frames = []
                        for end in ends:
                            frames.append(websocket.frame(bytes(block[begin:end - 1])))
                            begin = end
                        data = memoryview(b"".join(frames))
                    while data:
                        count = os.write(fd, data)
                        data = data[count:]
                        sent[0] += count
            except OSError as error:
                failures.append(error)
        writer = threading.Thread(target=flood, daemon=True)
        writer.start()
        self.stand_still(lambda: sent[0])
        self.gate.touch()
        answer = wire.receive(PATIENCE + self.mib / 8)
        writer.join(PATIENCE)
        if failures or answer != VERDICT % b"same":
            self.wrong.append("the agent answers %s %s" % (answer, failures))

    def stand_still(self, position):
        """Waits until the stream has stood still for `--stall` seconds."""
        deadline = time.monotonic() + PATIENCE
        before, since = position(), time.monotonic()
        while time.monotonic() - since < self.args.stall:
            time.sleep(0.1)
            now = position()
            if now != before:
                before, since = now, time.monotonic()
            if time.monotonic() > deadline:
                self.wrong.append("the stream continues although the receiver does not read")
                return
        self.stalled_at = before
        # Otherwise the whole stream was buffered somewhere, and the run proves nothing.
        if before >= self.mib * MIB:
            self.wrong.append("the whole stream was buffered although the receiver did not read")

    def agents(self):
        return [pid for pid, line in self.mark.programs() if "--agent" in line and __file__ in line
                and "acp-relay" not in line.split()[0]]


def match_lines(wire, block, ends):
    """Reads the next bytes of a byte stream; whether they equal the block."""
    rest = wire.splitter.rest
    if rest or wire.bodies:
        raise OSError("unexpected bytes before the stream")
    buffer = bytearray(len(block))
    view, fd = memoryview(buffer), wire.reads.fileno()
    while view:
        if not select.select([fd], [], [], PATIENCE)[0]:
            raise TimeoutError("the stream has stalled")
        read = os.readv(fd, [view])
        if not read:
            raise OSError("the stream has ended")
        view = view[read:]
    return buffer == block


def match_messages(wire, block, ends):
    """Reads the next messages of a WebSocket; whether they equal those of the block."""
    start = 0
    for end in ends:
        if wire.receive(PATIENCE) != block[start:end - 1]:
            return False
        start = end
    return True


def written_by(pids):
    """The number of bytes the processes have written since their start."""
    total = 0
    for pid in pids:
        with open("/proc/%d/io" % pid) as io:
            total += next(int(line.split()[1]) for line in io if line.startswith("wchar"))
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--way", action="append", choices=[way[0] for way in WAYS])
    parser.add_argument("--direction", choices=("down", "up"))
    parser.add_argument("--big", type=int, default=2048, help="MiB of the longest stream, over connect-ws")
    parser.add_argument("--small", type=int, default=256, help="MiB of the others")
    parser.add_argument("--stall", type=float, default=2.0, help="seconds")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--agent", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.agent:
        return agent(int(args.agent[0]), int(args.agent[1]), args.agent[2])

    print("seed %d" % args.seed)
    root, failed, runs = Path(tempfile.mkdtemp(prefix="acp-stall-")), 0, 0
    for direction in ("down", "up"):
        for way in WAYS:
            if args.way and way[0] not in args.way or args.direction not in (None, direction):
                continue
            big = direction == "down" and way[0] == "connect-ws"
            run = Run(way, direction, args.big if big else args.small, args, root).go()
            print("%-4s  %-4s  %-12s  %5d MiB  stalled at %6.1f MiB  grown by %5.1f MiB  %5.1f s" % (
                "FAIL" if run.wrong else "ok", direction, run.name, run.mib, run.stalled_at / MIB,
                run.grown / MIB, run.seconds))
            for reason in run.wrong:
                print("      " + reason)
            sys.stdout.flush()
            runs, failed = runs + 1, failed + bool(run.wrong)
    shutil.rmtree(root, ignore_errors=True)
    print("%d passed, %d failed" % (runs - failed, failed))
    return 1 if failed or not runs else 0


if __name__ == "__main__":
    sys.exit(main())

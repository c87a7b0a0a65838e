#!/usr/bin/env python3
"""slow.py: the memory of the tee and of the recorder is bounded, also with a slow reader or disk.

    slow.py [--relay BINARY] [--mib N]

An agent streams N MiB (256) of updates as fast as it can, once through tee.py and once through
`acp-relay connect --record`. The reader reads an eighth, stops until the stream stands still, and
reads the rest. Required: every byte arrives, and from its first message to its end the process
grows by no more than a bound (VmHWM): 8 MiB for the tee, which has one buffer per direction,
48 MiB for the relay, whose recorder may queue 8 MiB and encode as much again at the same time.
Not here: readers that stop without a recorder (see stall.py).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
MIB = 1 << 20
LINE = b'{"jsonrpc":"2.0","method":"session/update","params":{"n":1,"text":"%s"}}\n' % (b"some words " * 90)
AGENT = """
import os, sys
line = %r
block, left = line * 64, int(sys.argv[1])
view = memoryview(line)
while view: view = view[os.write(1, view):]
sys.stdin.buffer.readline()
for _ in range(left):
    view = memoryview(block)
    while view: view = view[os.write(1, view):]
sys.stdin.buffer.read()
""" % LINE


def status(pid, field):
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise KeyError(field)


def still(files):
    """Waits until no file grows any more."""
    sizes = lambda: [file.stat().st_size for file in files()]
    before, quiet = sizes(), 0
    while quiet < 5:
        time.sleep(0.1)
        now = sizes()
        quiet, before = (quiet + 1 if now == before else 0), now


def run(name, words, files, blocks, bound):
    process = subprocess.Popen(words + [sys.executable, "-c", AGENT, str(blocks)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    try:
        out, expected = process.stdout.fileno(), LINE * 64
        receive = lambda size: read(out, size)
        assert receive(len(LINE)) == LINE, "the first message differs"
        idle = status(process.pid, "VmRSS")
        process.stdin.write(b'{"jsonrpc":"2.0","method":"go"}\n')
        for at in range(blocks):
            if at == blocks // 8:
                still(files)
            if receive(len(expected)) != expected:
                return "FAIL %s: block %d of %d differs" % (name, at, blocks)
        grown = status(process.pid, "VmHWM") - idle
        process.stdin.close()
        process.wait(30)
    finally:
        if process.poll() is None:
            process.kill()
    verdict = "ok  " if grown <= bound else "FAIL"
    return "%s %s: grew by %.1f MiB of %d allowed" % (verdict, name, grown / MIB, bound // MIB)


def read(fd, size):
    parts = []
    while size and (part := os.read(fd, min(size, 1 << 16))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main():
    parser = argparse.ArgumentParser(description="memory of the tee and of the recorder")
    parser.add_argument("--relay", default=str(HERE.parent.parent / "target/debug/acp-relay"))
    parser.add_argument("--mib", type=int, default=256)
    args = parser.parse_args()
    blocks = args.mib * MIB // (len(LINE) * 64)
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        tee = [sys.executable, str(HERE / "tee.py"), "--out", str(place / "t"), "--"]
        relay = [args.relay, "connect", "--record", str(place / "r"), "--"]
        results = [
            run("tee", tee, lambda: [place / "t.a2c"], blocks, 8 * MIB),
            run("recorder", relay, lambda: list((place / "r").glob("*.acpr")), blocks, 48 * MIB),
        ]
    print("\n".join(results))
    return any(line.startswith("FAIL") for line in results)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""torn.py: a recording relay is killed with SIGKILL at random moments; its recording is checked.

    torn.py [--relay BINARY] [--moments N] [--only K]... [--seed N] [--jobs N]
    torn.py --prove       recordings damaged on purpose must be detected

Each moment draws from the seed the agent's output (short messages, floods, long messages, stderr,
bytes that are no text, more than one segment), the redaction, the policy, and the time of the kill,
from before the first file to the middle of a flood. Required of all files that a moment leaves:
  - every complete line is JSON, has the checksum of its bytes (computed here for the last lines of
    each file, by `inspect verify` for all) and a number one above the previous one;
  - after the last complete line there is at most one incomplete line, and only in the last segment;
  - `inspect verify` reports nothing else, and `inspect ls` can read the folder.
Prints the totals, `N passed, N failed`; exit 1 when one failed. The same seed draws the same moments;
the timing of the machine still varies.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import isolation
from paths import RELAY

UPDATE = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","t":"%s"}}'
AGENTS = {
    "drops": 'while :; do printf "%s\\n" "$LINE" || exit; done',
    "flood": 'exec yes "$LINE"',
    "long": 'exec yes "$LONG"',
    "stderr": 'yes "warn: $LINE" >&2 & exec yes "$LINE"',
    "bytes": 'while :; do printf "%s \\377\\n%s\\n" "$LINE" "$LINE" || exit; done',
    # About 64 MiB, after which the next segment starts.
    "segments": 'exec yes "$LONG"',
}
LINE = UPDATE % "a few words, among them sk-abcdefgh0123456789abcdefgh"
LONG = UPDATE % ("words " * 10_000)
ASK = b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}\n'
# One moment in so many reaches a second segment, which takes seconds.
SEGMENTS = 100
# Checksums are computed here for so many lines at the end of a file, if they are short.
TAIL, SHORT = 40, 4096


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Moment:
    """The parameters drawn from the seed."""

    def __init__(self, number, seed):
        chance = random.Random("%d %d" % (seed, number))
        self.number = number
        self.agent = chance.choice([name for name in AGENTS if name != "segments"])
        self.redact = chance.choice(("default", "full", "structure", "meta"))
        self.policy = chance.choice(("lossless", "lossy"))
        # The delay counts from the first file; for a tenth from the start of the program.
        self.from_start = chance.random() < 0.1
        self.delay = chance.random() ** 2 * 0.25
        if number % SEGMENTS == SEGMENTS - 1:
            self.agent, self.policy, self.redact, self.from_start = "segments", "lossless", "full", False
            self.delay = 1 + chance.random() * 4

    def __str__(self):
        return "%4d  %-8s  %-9s  %-8s  %4.0f ms after %s" % (
            self.number, self.agent, self.redact, self.policy, self.delay * 1000,
            "the start" if self.from_start else "its first file")


def kill(moment, relay, folder, mark):
    """Records, and kills the relay at the moment."""
    env = {**isolation.environment(folder.parent), **mark.env, "LINE": LINE, "LONG": LONG}
    process = subprocess.Popen(
        [relay, "connect", "--record", folder, "--record-redact", moment.redact,
         "--record-policy", moment.policy, "--log", "error",
         "--", "sh", "-c", AGENTS[moment.agent]],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    asked, patience = 0, time.monotonic() + 20
    while not moment.from_start and not any(folder.glob("*.acpr")) and time.monotonic() < patience:
        time.sleep(0.002)
    until = time.monotonic() + moment.delay
    try:
        while (left := until - time.monotonic()) > 0:
            asked += 1
            os.write(process.stdin.fileno(), ASK % asked)
            time.sleep(min(left, 0.02))
    except BrokenPipeError:
        return ["the relay exited by itself"]
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
    return [] if process.returncode == -9 else ["exit code %d, not killed" % process.returncode]


def read(folder, figures):
    """Returns the faults of the files, by this script's own reader."""
    wrong, number = [], 0
    files = sorted(folder.glob("*.acpr")) if folder.exists() else []
    stray = [path.name for path in folder.glob("*") if path not in files] if files else []
    if stray:
        wrong.append("there are other files than recordings: %s" % stray)
    figures["files"] += len(files)
    figures["none"] += not files
    for at, path in enumerate(files):
        *lines, rest = path.read_bytes().split(b"\n")
        figures["lines"] += len(lines)
        figures["torn"] += bool(rest)
        if rest and path != files[-1]:
            wrong.append("%s is torn and not the last segment" % path.name)
        for index, line in enumerate(lines):
            try:
                event = json.loads(line)
            except ValueError as error:
                wrong.append("%s:%d is not JSON: %s" % (path.name, index + 1, error))
                break
            if index >= len(lines) - TAIL and len(line) < SHORT:
                if b'"crc":"%08x"}' % crc32c(line[:-18]) != line[-17:]:
                    wrong.append("%s:%d has a wrong checksum" % (path.name, index + 1))
            if index == 0:
                if event.get("acpr") != 1 or event.get("seg") != at:
                    wrong.append("%s does not begin with its header" % path.name)
                number = number or event.get("first", 1) - 1
                continue
            if event["n"] != number + 1:
                wrong.append("%s:%d has number %d after %d" % (path.name, index + 1, event["n"], number))
            number = event["n"]
    return wrong


def verify(folder, relay):
    """Returns the findings of the relay's own reader other than one torn line."""
    files = sorted(folder.glob("*.acpr")) if folder.exists() else []
    if not files:
        return []
    done = subprocess.run([relay, "inspect", "verify", "--json", files[-1]],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60)
    findings = [found for line in done.stdout.splitlines() for found in json.loads(line)["findings"]]
    wrong = ["verify: %s" % found for found in findings if found["id"] != "torn" and not is_empty(found)]
    if len(findings) > 1:
        wrong.append("verify has more than one finding: %s" % findings)
    return wrong


def is_empty(found):
    """Killed between the creation of the file and its first line."""
    return found["id"] == "header" and "empty" in found["what"]


def one(moment, relay, root, mark):
    folder = root / ("m%d" % moment.number)
    figures = dict.fromkeys(("files", "none", "lines", "torn"), 0)
    wrong = kill(moment, relay, folder, mark)
    wrong += read(folder, figures) + verify(folder, relay)
    if wrong:
        print("FAIL  %s\n      %s\n      see %s" % (moment, "\n      ".join(wrong[:5]), folder))
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return not wrong, figures


def prove(relay, root, mark):
    """Damages a recording in every way that is checked; returns the undetected ones."""
    folder = root / "intact"
    moment = Moment(0, 0)
    moment.agent, moment.redact, moment.delay = "drops", "full", 0.6
    if kill(moment, relay, folder, mark):
        return ["the intact recording could not be made"]
    [path] = folder.glob("*.acpr")
    lines = path.read_bytes().split(b"\n")[:-1]
    middle = len(lines) // 2
    damaged = {
        "a line in the middle is torn": [*lines[:middle], lines[middle][:50], *lines[middle + 1:], b""],
        "two lines at the end are torn": [*lines, lines[-1][:30], lines[-1][:40], b""],
        "a line is missing": [*lines[:middle], *lines[middle + 1:], b""],
        "a bit at the end differs": [*lines[:-1], lines[-1].replace(b'"t":0.', b'"t":1.'), b""],
        "the header is missing": [*lines[1:], b""],
    }
    missed = []
    for what, text in damaged.items():
        for other in folder.glob("*"):
            other.unlink()
        path.write_bytes(b"\n".join(text))
        figures = dict.fromkeys(("files", "none", "lines", "torn"), 0)
        if not read(folder, figures) or not verify(folder, relay):
            missed.append(what)
    path.write_bytes(b"\n".join([*lines, lines[-1][:30]]))
    if read(folder, figures) + verify(folder, relay):
        missed.append("one torn line is reported as a fault")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--moments", type=int, default=1000)
    parser.add_argument("--only", type=int, action="append")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=4 * (os.cpu_count() or 1))
    parser.add_argument("--prove", action="store_true")
    args = parser.parse_args()
    root, mark = Path(tempfile.mkdtemp(prefix="acp-torn-")), isolation.Mark()
    try:
        if args.prove:
            missed = prove(args.relay, root, mark)
            print("\n".join(["not detected:", *missed]) if missed else "every fault was detected")
            return 1 if missed else 0
        moments = [Moment(number, args.seed) for number in args.only or range(args.moments)]
        started = time.monotonic()
        with ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(lambda moment: one(moment, args.relay, root, mark), moments))
        sums = {name: sum(figures[name] for _, figures in results) for name in results[0][1]}
        print("%d kills in %.0f s left %d files with %d whole lines and %d torn ones; %d times no file yet" % (
            len(results), time.monotonic() - started, sums["files"], sums["lines"], sums["torn"], sums["none"]))
        failed = sum(not good for good, _ in results)
        print("%d passed, %d failed" % (len(results) - failed, failed))
        # If all kills were too early, the run proves nothing.
        return 1 if failed or sums["lines"] < len(results) else 0
    finally:
        mark.kill_rest()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

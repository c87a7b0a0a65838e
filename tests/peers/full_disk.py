#!/usr/bin/env python3
"""full_disk.py: the disk on which a relay records is full, at every write; the talk goes on.

    full_disk.py [--relay BINARY] [--pages N] [--jobs N]

Each run records on a disk of its own: a tmpfs of 1, 2, … N pages in a mount namespace, so that
the writing fails ever later, from the header to the last line; one without room for a file, and
one without room for a second segment. Client and agent number what they say. Demanded:
  - both hear all that the other one said, in order, each message once;
  - the relay ends as the agent did, has said that the recording stops, and counts it in its summary;
  - all complete lines on the disk are whole, and `inspect verify` finds at most one that is torn;
  - with --record-strict nothing that was said is lost up to where the talk is ended, with code 73,
    and what was open is answered with that reason.
Where namespaces cannot be had, it says so and proves nothing (exit 0).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paths import RELAY
from torn import read, verify

# In a namespace of its own: mounts the disk and runs the relay on it, then copies what is there.
STAGE = """
mount -t tmpfs -o "$1" none "$2" || exit 125
chmod 700 "$2"; keep=$3; disk=$2; shift 3
"$@"; code=$?
mkdir -p "$keep" && cp "$disk"/* "$keep" 2>/dev/null
exit $code
"""

# Counts what it hears, and says as much of its own; `long` makes its messages long.
AGENT = r"""
import json, sys
pad = "words " * int(sys.argv[1])
wanted = 0
for line in sys.stdin:
    said = json.loads(line)
    if said["params"]["n"] != wanted:
        sys.exit("heard %d instead of %d" % (said["params"]["n"], wanted))
    wanted += 1
    print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "n": said["params"]["n"], "t": pad}}))
    print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": {"n": said["params"]["n"]}}), flush=True)
"""
ROUNDS, LONG_ROUNDS = 120, 1300
PATIENCE = 120


def converse(command, rounds):
    """Speaks through the relay; (what was wrong, stderr, exit code)."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = []
    collect = threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True)
    collect.start()
    alarm = threading.Timer(PATIENCE, process.kill)
    alarm.start()
    wrong = []

    def ask():
        try:
            for n in range(rounds):
                process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": "session/prompt",
                                                "params": {"sessionId": "s", "n": n}}) + "\n")
                process.stdin.flush()
            process.stdin.close()
        except OSError:
            pass  # what was not heard is found missing below
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    heard = []
    for line in process.stdout:
        said = json.loads(line)
        heard.append(("answer" if "id" in said else "update",
                      said.get("result", said.get("params", {})).get("n", said.get("error"))))
    asking.join()
    code = process.wait()
    alarm.cancel()
    collect.join()
    expected = [(kind, n) for n in range(rounds) for kind in ("update", "answer")]
    if heard != expected:
        at = next((i for i, pair in enumerate(zip(heard, expected)) if pair[0] != pair[1]), len(heard))
        wrong.append("%d of %d messages came; the first other one is %d: %s" % (
            len(heard), len(expected), at, heard[at:at + 2]))
    return wrong, "".join(errors), code, heard


def one(name, options, relay, root, rounds=ROUNDS, pad=20, strict=False, can_begin=True, must_fail=False):
    disk, keep = root / name / "disk", root / name / "kept"
    disk.mkdir(parents=True)
    command = ["unshare", "-rm", "sh", "-c", STAGE, "sh", options, str(disk), str(keep),
               relay, "connect", "--log", "info", "--record", str(disk), *(["--record-strict"] if strict else []),
               "--", sys.executable, "-c", AGENT, str(pad)]
    wrong, said, code, heard = converse(command, rounds)
    figures = dict.fromkeys(("files", "none", "lines", "torn"), 0)
    fits = "the recording stops here" not in said and "not recorded:" not in said
    if strict:
        # What came is what was said, as far as it goes; requests that were open have been answered.
        whole = [pair for pair in heard if not isinstance(pair[1], dict)]
        if whole != [(kind, n) for n in range(rounds) for kind in ("update", "answer")][:len(whole)]:
            wrong.append("what came before the end is not what was said")
        else:
            wrong = []
        blamed = [what for kind, what in heard if isinstance(what, dict)]
        if any(what.get("data", {}).get("relay", {}).get("reason") != "unrecorded" for what in blamed):
            wrong.append("not all that was open is told why: %s" % blamed[:2])
        if (code == 73) == fits:
            wrong.append("exit code %s, and %s" % (code, "all is recorded" if fits else "not all is recorded"))
    elif code != 0:
        wrong.append("exit code %s: %s" % (code, said[-500:]))
    if not fits and '("unrecorded", 1)' not in said:
        wrong.append("it is not counted: %s" % said[-800:])
    if fits and "unrecorded" in said:
        wrong.append("it is counted, but not told")
    if can_begin:
        wrong += read(keep, figures) + verify(keep, relay)
    if fits and must_fail:
        wrong.append("there was room for all of it")
    if wrong:
        print("FAIL  %s\n      %s" % (name, "\n      ".join(wrong)))
    return not wrong, fits, figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="acp-full-"))
    relay = str(Path(args.relay).resolve())
    try:
        probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(root)], stderr=subprocess.DEVNULL)
        if probe.returncode != 0:
            print("note: a disk of our own cannot be had here; nothing was proven")
            return 0
        runs = [lambda pages=pages, strict=strict: one(
                    "%d-pages%s" % (pages, "-strict" if strict else ""), "size=%dk" % (4 * pages), relay, root, strict=strict)
                for pages in range(1, args.pages + 1) for strict in ((False, True) if pages % 8 == 1 else (False,))]
        runs.append(lambda: one("no-file", "size=1m,nr_inodes=1", relay, root, can_begin=False, must_fail=True))
        runs.append(lambda: one("no-second-segment", "size=200m,nr_inodes=2", relay, root, rounds=LONG_ROUNDS, pad=10_000,
                                must_fail=True))
        with ThreadPoolExecutor(args.jobs) as pool:
            results = [future.result() for future in [pool.submit(run) for run in runs]]
        failed = sum(not good for good, _, _ in results)
        full = sum(not fits for _, fits, _ in results)
        print("%d disks, %d of them too small, with %d whole lines and %d torn ones" % (
            len(results), full, sum(f["lines"] for *_, f in results), sum(f["torn"] for *_, f in results)))
        print("%d passed, %d failed" % (len(results) - failed, failed))
        # Disks that are all large enough prove nothing, nor do those that are all too small.
        return 1 if failed or not 0 < full < len(results) else 0
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

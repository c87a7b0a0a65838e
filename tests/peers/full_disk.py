#!/usr/bin/env python3
"""full_disk.py: the disk of a recording is full, at each write; the conversation continues.

    full_disk.py [--relay BINARY] [--pages N] [--jobs N]

Each run records on its own disk: a tmpfs of 1, 2, … N pages in a mount namespace, so that a later
write fails in each, from the header to the last line; one without room for a file, and one without
room for a second segment. Client and agent number their messages. Required:
  - both receive all messages of the other, in order, each once;
  - the relay exits with the agent's code, reports that the recording stops, and counts it in its summary;
  - all complete lines on the disk are valid, and `inspect verify` finds at most one torn line;
  - with --record-strict no message is lost until the conversation is ended, with code 73,
    and open requests are answered with that reason.
Without namespaces it prints a note and checks nothing (exit 0).
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

# In its own namespace: mounts the disk, runs the relay on it, then copies the files.
STAGE = """
mount -t tmpfs -o "$1" none "$2" || exit 125
chmod 700 "$2"; keep=$3; disk=$2; shift 3
"$@"; code=$?
mkdir -p "$keep" && cp "$disk"/* "$keep" 2>/dev/null
exit $code
"""

# Checks the numbers of its input, and sends an update and an answer for each request.
AGENT = r"""
import json, sys
pad = "words " * int(sys.argv[1])
wanted = 0
for line in sys.stdin:
    request = json.loads(line)
    if request["params"]["n"] != wanted:
        sys.exit("received %d instead of %d" % (request["params"]["n"], wanted))
    wanted += 1
    print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "n": request["params"]["n"], "t": pad}}))
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"n": request["params"]["n"]}}), flush=True)
"""
ROUNDS, LONG_ROUNDS = 120, 1300
PATIENCE = 120


def converse(command, rounds):
    """Sends requests through the relay; returns (failures, stderr, exit code, received messages)."""
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
            pass  # missing messages are found below
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    received = []
    for line in process.stdout:
        message = json.loads(line)
        received.append(("answer" if "id" in message else "update",
                         message.get("result", message.get("params", {})).get("n", message.get("error"))))
    asking.join()
    code = process.wait()
    alarm.cancel()
    collect.join()
    expected = [(kind, n) for n in range(rounds) for kind in ("update", "answer")]
    if received != expected:
        at = next((i for i, pair in enumerate(zip(received, expected)) if pair[0] != pair[1]), len(received))
        wrong.append("%d of %d messages arrived; the first difference is at %d: %s" % (
            len(received), len(expected), at, received[at:at + 2]))
    return wrong, "".join(errors), code, received


def one(name, options, relay, root, rounds=ROUNDS, pad=20, strict=False, can_begin=True, must_fail=False):
    disk, keep = root / name / "disk", root / name / "kept"
    disk.mkdir(parents=True)
    command = ["unshare", "-rm", "sh", "-c", STAGE, "sh", options, str(disk), str(keep),
               relay, "connect", "--log", "info", "--record", str(disk), *(["--record-strict"] if strict else []),
               "--", sys.executable, "-c", AGENT, str(pad)]
    wrong, stderr, code, received = converse(command, rounds)
    figures = dict.fromkeys(("files", "none", "lines", "torn"), 0)
    fits = "the recording stops here" not in stderr and "not recorded:" not in stderr
    if strict:
        # The received messages are the first ones that were sent; open requests have been answered.
        whole = [pair for pair in received if not isinstance(pair[1], dict)]
        if whole != [(kind, n) for n in range(rounds) for kind in ("update", "answer")][:len(whole)]:
            wrong.append("the messages before the end are not those that were sent")
        else:
            wrong = []
        errors = [error for kind, error in received if isinstance(error, dict)]
        if any(error.get("data", {}).get("relay", {}).get("reason") != "unrecorded" for error in errors):
            wrong.append("an open request was answered without the reason: %s" % errors[:2])
        if (code == 73) == fits:
            wrong.append("exit code %s, and %s" % (code, "all is recorded" if fits else "not all is recorded"))
    elif code != 0:
        wrong.append("exit code %s: %s" % (code, stderr[-500:]))
    if not fits and '("unrecorded", 1)' not in stderr:
        wrong.append("it is not counted: %s" % stderr[-800:])
    if fits and "unrecorded" in stderr:
        wrong.append("it is counted, but not reported")
    if can_begin:
        wrong += read(keep, figures) + verify(keep, relay)
    if fits and must_fail:
        wrong.append("the disk had room for the whole recording")
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
            print("note: a tmpfs cannot be mounted here; nothing was checked")
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
        print("%d disks, %d of them too small, with %d valid lines and %d torn ones" % (
            len(results), full, sum(f["lines"] for *_, f in results), sum(f["torn"] for *_, f in results)))
        print("%d passed, %d failed" % (len(results) - failed, failed))
        # Some disks have to be large enough, and some too small.
        return 1 if failed or not 0 < full < len(results) else 0
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

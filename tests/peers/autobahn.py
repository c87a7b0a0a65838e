#!/usr/bin/env python3
"""autobahn.py: the relay's WebSocket with the Autobahn test suite, as server and as client.

    autobahn.py [--role server|client] [--cases PATTERN]... -- ECHO...
    autobahn.py --prove        tests the runner with echoes of another library, correct and faulty

ECHO is a command that echoes messages through the transport under test:
    ECHO server          prints `listening on ws://127.0.0.1:PORT/` (stdout or stderr), serves
                         until killed
    ECHO client URL      asks URL/getCaseCount, runs URL/runCase?case=N&agent=acp-relay for each,
                         then URL/updateReports?agent=acp-relay, and exits 0

One line per role: the number of cases, and of each verdict. Exit 1 when a verdict on behaviour or
on closing is FAILED, or when a case did not run. Compression (12.*, 13.*) is excluded: the relay
does not offer it. The suite is installed by install.sh; without it (no Python 2.7 on the machine)
one line reports that this was skipped, exit 0, or 69 with --required.
"""
import argparse
import collections
import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import isolation
from paths import PEERS

HERE = Path(__file__).resolve().parent
PYTHON2 = PEERS / "autobahn/python2/bin/python"
WSTEST = [str(PYTHON2), str(PYTHON2.parent / "wstest")]
ECHO_MJS = ["node", str(HERE / "echo.mjs"), str(PEERS / "npm/node_modules/ws/wrapper.mjs")]

AGENT = "acp-relay"
ALL = ["*"]
EXCLUDED = ["12.*", "13.*"]
# The cases of the pinned version without compression; fewer means that some did not run.
ALL_COUNT = 301
# Both roles take some 20 s on two cores; a stuck peer must not block the run.
DEADLINE = 300
VERDICTS = ("OK", "NON-STRICT", "INFORMATIONAL", "UNIMPLEMENTED", "FAILED")


def as_server(echo, cases, out):
    """wstest as the client that fuzzes `ECHO server`."""
    server = subprocess.Popen([*echo, "server"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        url = next((found[1] for line in server.stdout
                    if (found := re.search(r"listening on (ws://\S+)", line))), None)
        if url is None:
            sys.exit("autobahn: `%s server` did not print where it listens" % " ".join(echo))
        # Its further output must not fill the pipe.
        threading.Thread(target=collections.deque, args=(server.stdout, 0), daemon=True).start()
        spec = {"outdir": str(out), "cases": cases, "exclude-cases": EXCLUDED,
                "servers": [{"agent": AGENT, "url": url}]}
        fuzzer = subprocess.run([*WSTEST, "--mode", "fuzzingclient", "--spec", written(out, spec)],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
        if fuzzer.returncode:
            sys.exit("autobahn: wstest failed: %s" % fuzzer.stdout.decode(errors="replace")[-2000:])
    finally:
        # The process group, because ECHO may be a `cargo test` that runs the echo.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def as_client(echo, cases, out):
    """wstest as the server that fuzzes `ECHO client`."""
    port = isolation.free_port()
    url = "ws://127.0.0.1:%d" % port
    spec = {"outdir": str(out), "cases": cases, "exclude-cases": EXCLUDED, "url": url}
    fuzzer = subprocess.Popen(
        [*WSTEST, "--mode", "fuzzingserver", "--webport", "0", "--spec", written(out, spec)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        if not isolation.wait_for_port(port, fuzzer, 30):
            sys.exit("autobahn: the fuzzing server did not start")
        client = subprocess.run([*echo, "client", url], timeout=DEADLINE)
        if client.returncode:
            sys.exit("autobahn: `%s client` exited with %d" % (" ".join(echo), client.returncode))
    finally:
        fuzzer.kill()
        fuzzer.wait()


def written(out, spec):
    path = out.parent / (out.name + ".json")
    path.write_text(json.dumps(spec))
    return str(path)


def verdict(role, out, expected):
    """Prints the line of a role; true when no case failed and none is missing."""
    index = out / "index.json"
    cases = json.loads(index.read_text()).get(AGENT, {}) if index.is_file() else {}
    counts = collections.Counter(case["behavior"] for case in cases.values())
    closes = collections.Counter(case["behaviorClose"] for case in cases.values())
    print("autobahn, as %s: %d cases: %s; closing: %s" % (role, len(cases), summary(counts), summary(closes)))
    failed = sorted(name for name, case in cases.items()
                    if "FAILED" in (case["behavior"], case["behaviorClose"]))
    if failed:
        print("      FAILED: " + ", ".join(failed))
    unknown = (set(counts) | set(closes)) - set(VERDICTS)
    if unknown:
        print("      unknown verdicts: " + ", ".join(sorted(unknown)))
    if not cases or (expected and len(cases) != expected):
        print("      expected %s cases" % (expected or "some"))
        return False
    return not failed and not unknown


def summary(counts):
    return ", ".join("%d %s" % (counts[name], name) for name in VERDICTS if counts[name] or name == "FAILED")


def run(echo, roles, cases, root):
    good = True
    for role in roles:
        out = root / role
        out.mkdir(parents=True)
        {"server": as_server, "client": as_client}[role](echo, cases, out)
        good &= verdict(role, out, ALL_COUNT if cases == ALL else None)
    return good


def prove(roles, root):
    """Text and UTF-8 cases: a correct echo passes, one that does not check UTF-8 fails."""
    cases = ["1.1.*", "6.3.*"]
    sound = run([*ECHO_MJS, "sound"], roles, cases, root / "sound")
    # The expected failures are not printed.
    with contextlib.redirect_stdout(io.StringIO()):
        spoilt = [run([*ECHO_MJS, "spoilt"], [role], cases, root / "spoilt") for role in roles]
    good = sound and not any(spoilt)
    print("the correct echo passed and the faulty one failed" if good else "the runner does not find the fault")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", choices=("server", "client"))
    parser.add_argument("--cases", action="append", help="for example 6.*; default: all")
    parser.add_argument("--required", action="store_true", help="fail when the suite is not installed")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("echo", nargs="*")
    args = parser.parse_args()
    if not PYTHON2.exists():
        print("autobahn: skipped: the suite is not installed (it needs Python 2.7, see install.sh)")
        sys.exit(69 if args.required else 0)
    if not args.prove and not args.echo:
        parser.error("an ECHO command is needed")
    isolation.leave_network()
    root = Path(tempfile.mkdtemp(prefix="acp-autobahn-"))
    roles = [args.role] if args.role else ["server", "client"]
    good = prove(roles, root) if args.prove else run(args.echo, roles, args.cases or ALL, root)
    if good:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("reports: %s" % root)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""replays.py: conversations of peers of old, recorded, played again and recorded again.

    replays.py [--relay BINARY] [--keep] [PLAY...]

Each play of plays/ is held as run.py holds it, its dialects named, the permission given, through a
relay that records. Then the recording, which `inspect verify` has to find intact with all its
translations repeated, is played
  - at the client's edge: the agent is what the client heard, and nothing is translated;
  - at the agent's edge: the agent is what it said itself, translated once more;
each time to the recorded client, through a relay that records again. `replay client` finds nothing
different, and the recordings hold the same conversation, as the client saw it and, where it is
translated again, as the agent did. Recordings of two plays differ, or the comparison proves nothing.

One line per play, `N passed, N failed` at the end, exit 1 when one failed. Not here: the plays (see
run.py).
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import run
from paths import RELAY
from run import PLAIN, Run

PATIENCE = 120
RECORD = ["--record-redact", "full", "--record"]


class Recorded(Run):
    """A run whose relay records."""

    def dialects(self):
        return [*super().dialects(), *RECORD, str(self.dir / "tape")]

    def tape(self):
        return only(self.dir / "tape")

    def replays(self):
        """What is different, a line each; none where all went as it did."""
        named, tape = super().dialects(), self.tape()
        verified = self.ask("inspect", "verify", tape)
        faults = [] if verified.returncode == 0 else ["verify: " + verified.stdout]
        if "were not repeated" in verified.stdout:
            faults.append("verify: " + verified.stdout)
        for name, words, agent, edges in (
                ("client-edge", PLAIN, ["--", self.relay, "replay", "agent", tape], ["client"]),
                ("agent-edge", named, ["replay:%s?edge=agent" % tape], ["client", "agent"])):
            into = self.dir / name
            played = self.ask("replay", "client", tape, "--edge", "client", "--settle", "200ms", "--",
                              self.relay, "connect", *words, *RECORD, into, *agent)
            if played.returncode != 0:
                faults.append("%s: %s" % (name, played.stdout + played.stderr))
            for edge in edges:
                faults += self.differ(tape, only(into), edge, name)
        return faults

    def differ(self, one, other, edge, name):
        done = self.ask("inspect", "diff", "--at", edge, one, other)
        return [] if done.returncode == 0 else ["%s, at the %s: %s" % (name, edge, done.stdout)]

    def ask(self, *words):
        return subprocess.run([self.relay, *words], capture_output=True, text=True, timeout=PATIENCE)


def only(folder):
    tapes = list(folder.glob("*.acpr"))
    if len(tapes) != 1:
        raise RuntimeError("%d recordings in %s" % (len(tapes), folder))
    return tapes[0]


def held(play, relay, root):
    """The run, and what was wrong with it."""
    one = Recorded(play, ("named", "allow"), "connect", root / play.name, relay).go()
    try:
        return one, one.faults or one.replays()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return one, [str(error)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("plays", nargs="*")
    args = parser.parse_args()
    relay = os.path.abspath(args.relay)
    run.isolation.leave_network()
    root = Path(tempfile.mkdtemp(prefix="acp-replays-"))
    before, passed, failed = None, 0, 0
    for play in run.plays(args.plays):
        # A client on a socket takes a listener; the conversation is the same as over stdio.
        if play.setup.get("client.wire") == "tcp":
            print("skip  %-24s its client connects" % play.name)
            continue
        one, faults = held(play, relay, root)
        if before and not faults and not one.differ(before, one.tape(), "client", "another play"):
            faults = ["it is the same as another play"]
        before = None if faults else one.tape()
        passed, failed = passed + (not faults), failed + bool(faults)
        print("%-4s  %s" % ("FAIL" if faults else "ok", play.name), flush=True)
        for fault in faults:
            print("      " + "\n      ".join(fault.splitlines()[:8]))
    print("%d passed, %d failed" % (passed, failed))
    if failed or args.keep:
        print("what the runs left: %s" % root)
    else:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

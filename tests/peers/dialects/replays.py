#!/usr/bin/env python3
"""replays.py: conversations of peers with older dialects, recorded, replayed and recorded again.

    replays.py [--relay BINARY] [--keep] [PLAY...]

Each play of plays/ is run as in run.py, with its dialects named and the permission granted, through a
recording relay. The recording, which `inspect verify` must report intact with all its translations
repeated, is then replayed
  - at the client's edge: the agent sends what the client received, without translation;
  - at the agent's edge: the agent sends what it sent itself, translated again;
each time to the recorded client, through a relay that records again. `replay client` must report no
difference, and the recordings must have the same conversation at the client's edge and, where it is
translated again, at the agent's. Recordings of two plays must differ, or the comparison proves nothing.

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
        return [*super().dialects(), *RECORD, str(self.dir / "recording")]

    def recording(self):
        return only(self.dir / "recording")

    def replays(self):
        """Returns the differences of the replays, one text each."""
        named, recording = super().dialects(), self.recording()
        verified = self.ask("inspect", "verify", recording)
        faults = [] if verified.returncode == 0 else ["verify: " + verified.stdout]
        if "were not repeated" in verified.stdout:
            faults.append("verify: " + verified.stdout)
        for name, words, agent, edges in (
                ("client-edge", PLAIN, ["--", self.relay, "replay", "agent", recording], ["client"]),
                ("agent-edge", named, ["replay:%s?edge=agent" % recording], ["client", "agent"])):
            into = self.dir / name
            played = self.ask("replay", "client", recording, "--edge", "client", "--cwd", "/w", "--settle", "200ms", "--",
                              self.relay, "connect", *words, *RECORD, into, *agent)
            if played.returncode != 0:
                faults.append("%s: %s" % (name, played.stdout + played.stderr))
            for edge in edges:
                faults += self.differ(recording, only(into), edge, name)
        return faults

    def differ(self, one, other, edge, name):
        done = self.ask("inspect", "diff", "--at", edge, one, other)
        return [] if done.returncode == 0 else ["%s, at the %s: %s" % (name, edge, done.stdout)]

    def ask(self, *words):
        return subprocess.run([self.relay, *words], capture_output=True, text=True, timeout=PATIENCE)


def only(folder):
    recordings = list(folder.glob("*.acpr"))
    if len(recordings) != 1:
        raise RuntimeError("%d recordings in %s" % (len(recordings), folder))
    return recordings[0]


def run_play(play, relay, root):
    """The run, and its faults."""
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
        # A client on a socket needs a listener; the conversation is the same as over stdio.
        if play.setup.get("client.wire") == "tcp":
            print("skip  %-24s its client uses a socket" % play.name)
            continue
        one, faults = run_play(play, relay, root)
        if before and not faults and not one.differ(before, one.recording(), "client", "another play"):
            faults = ["it is the same as another play"]
        before = None if faults else one.recording()
        passed, failed = passed + (not faults), failed + bool(faults)
        print("%-4s  %s" % ("FAIL" if faults else "ok", play.name), flush=True)
        for fault in faults:
            print("      " + "\n      ".join(fault.splitlines()[:8]))
    print("%d passed, %d failed" % (passed, failed))
    if failed or args.keep:
        print("files of the runs: %s" % root)
    else:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

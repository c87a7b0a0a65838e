#!/usr/bin/env python3
"""instructions.py: instructions for each message, against the bounds in instructions.txt.

    instructions.py [--write]

Counts with callgrind (Debian: valgrind), so neither the machine's load nor its clock matters, only
its instruction set and the compiler. Two runs of each case are subtracted, so what it takes to
begin does not count. Fails when a case takes more than its bound; --write sets the bounds to what
was counted and 3 % more. Not here: times (see `cargo bench`).
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
BOUNDS = HERE / "instructions.txt"
# Case, and messages in a round.
CASES = [(speech, message, each) for speech in ("canonical", "auto")
         for message, each in (("100", 300), ("1024", 300), ("asked", 200))]
FEW, MANY = 20, 120


def build():
    words = ["cargo", "build", "--release", "--locked", "--bench", "instructions", "--message-format=json"]
    done = subprocess.run(words, cwd=HERE, stdout=subprocess.PIPE, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return next(one["executable"] for one in found
                if one.get("executable") and one["target"]["name"] == "instructions")


def count(program, speech, message, rounds):
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, speech, message, str(rounds)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode:
        sys.exit(done.stderr)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def main():
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind here")
        return 0
    program = sys.argv[sys.argv.index("--program") + 1] if "--program" in sys.argv else build()
    bounds = dict(line.rsplit(" ", 1) for line in BOUNDS.read_text().splitlines()) if BOUNDS.exists() else {}
    good, lines = True, []
    for speech, message, each in CASES:
        few, many = (count(program, speech, message, rounds) for rounds in (FEW, MANY))
        took = (many - few) / ((MANY - FEW) * each)
        name = "%s %s" % (speech, message)
        lines.append("%s %d" % (name, took * 1.03))
        bound = int(bounds.get(name, 0))
        fits = took <= bound
        good &= fits
        print("%-4s %-15s %6.0f instructions a message, at most %d" % ("ok" if fits else "FAIL", name, took, bound))
    if "--write" in sys.argv:
        BOUNDS.write_text("\n".join(lines) + "\n")
        return 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""formats.py: Mermaid's own parser reads the diagrams of `inspect export`.

For each capture in tests/vectors/transcripts, and one whose texts contain syntax of the format.
install.sh installs npm `mermaid`.

`--prove` breaks each diagram first; the parser has to report an error.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from paths import PEERS, RELAY, ROOT

PACKAGES = PEERS / "formats"
PATIENCE = 120

HOSTILE = 'end; A->>B: x # % %% ; note over\n```\n<b>"\\"</b> \u202e \u001b[31m \u2028 par and else'


def relay(*args):
    subprocess.run([RELAY, "inspect", *map(str, args)], check=True, timeout=PATIENCE,
                   stdout=subprocess.DEVNULL)


def hostile(folder):
    """A capture whose texts contain syntax of the formats."""
    update = {"sessionUpdate": "tool_call", "toolCallId": HOSTILE, "title": HOSTILE, "kind": HOSTILE}
    messages = [
        ("c2a", {"id": HOSTILE, "method": HOSTILE, "params": {"sessionId": HOSTILE}}),
        ("c2a", {"id": 1, "method": "session/prompt",
                 "params": {"sessionId": "s", "prompt": [{"type": "text", "text": HOSTILE}]}}),
        ("a2c", {"method": "session/update", "params": {"sessionId": "s", "update": update}}),
        ("a2c", {"id": 1, "error": {"code": -1, "message": HOSTILE}}),
    ]
    path = folder / "hostile.jsonl"
    lines = [{"dir": way, "ts": at, "msg": {"jsonrpc": "2.0", **message}}
             for at, (way, message) in enumerate(messages)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def main():
    prove = "--prove" in sys.argv
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        captures = sorted((ROOT / "tests/vectors/transcripts").glob("*.jsonl"))
        diagrams = []
        for capture in [*captures, hostile(folder)]:
            recording = folder / f"{capture.stem}.acpr"
            diagram = folder / f"{capture.stem}.mermaid"
            relay("import", "--redact", "full", capture, recording)
            relay("export", recording, "--to", "mermaid", "--out", diagram)
            if prove:
                diagram.write_text(diagram.read_text() + "  C->>\n")
            diagrams.append(diagram)
        script = Path(__file__).with_name("formats.mjs")
        done = subprocess.run(["node", script, PACKAGES, *diagrams], check=True, timeout=PATIENCE,
                              capture_output=True, text=True)
        for line in map(json.loads, done.stdout.splitlines()):
            fault = line["fault"]
            wrong = bool(fault) != prove
            failed += wrong
            print(f"{'FAILED' if wrong else 'ok':<7} {Path(line['file']).name}" + (f": {fault}" if wrong else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

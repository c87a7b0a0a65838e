#!/usr/bin/env python3
"""formats.py: other programs read the output of `inspect export`.

For each capture in tests/vectors/transcripts, and one whose texts contain syntax of the formats: HAR
is validated with its published schema (npm har-validator), Mermaid is parsed by Mermaid (npm
mermaid), and Wireshark's tshark dissects the packets of pcapng down to the messages, which must be
those of the capture, in order. What is not installed is reported and skipped: install.sh installs
the npm packages, and tshark is Debian's.

`--prove` breaks each file first; every reader has to report an error.
"""

import json
import shutil
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


def messages_of(capture):
    """The messages of a capture as JSON."""
    lines = map(json.loads, capture.read_text().splitlines())
    return [line["msg"] for line in lines if "msg" in line]


def dissected(path):
    """The messages that tshark finds in the packets."""
    command = ["tshark", "-r", path, "-Y", "websocket", "-T", "ek", "-e", "websocket.payload.text"]
    done = subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True, text=True)
    packets = [json.loads(line) for line in done.stdout.splitlines() if '"layers"' in line]
    texts = [text for packet in packets for text in packet["layers"].get("websocket_payload_text", [])]
    return [json.loads(text) for text in texts]


def packets(capture, path):
    """The first error in the packets of a capture, or None."""
    try:
        got = dissected(path)
    except (subprocess.CalledProcessError, ValueError) as error:
        return str(error)[:300]
    wanted = messages_of(capture)
    if len(got) != len(wanted):
        return f"{len(wanted)} messages, {len(got)} in the packets"
    wrong = next(((a, b) for a, b in zip(wanted, got) if a != b), None)
    return wrong and f"{wrong[0]} became {wrong[1]}"


def corrupt(path):
    """Breaks a file so that its reader has to report an error."""
    if path.suffix == ".har":
        path.write_text(path.read_text().replace('"startedDateTime"', '"startedDate"'))
    elif path.suffix == ".mermaid":
        path.write_text(path.read_text() + "  C->>\n")
    else:
        path.write_bytes(path.read_bytes().replace(b"session/prompt", b"session/tpmorp", 1))


def main():
    prove = "--prove" in sys.argv
    forms = []
    if PACKAGES.is_dir():
        forms += ["har", "mermaid"]
    else:
        print("formats: skipped: HAR and Mermaid: their packages are not installed: run install.sh")
    if shutil.which("tshark"):
        forms.append("pcapng")
    else:
        print("formats: skipped: pcapng: there is no tshark")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        captures = sorted((ROOT / "tests/vectors/transcripts").glob("*.jsonl"))
        faults = {}
        for capture in [*captures, hostile(folder)]:
            recording = folder / f"{capture.stem}.acpr"
            relay("import", "--redact", "full", capture, recording)
            for form in forms:
                path = folder / f"{capture.stem}.{form}"
                relay("export", recording, "--to", form, "--out", path)
                if prove:
                    corrupt(path)
                if form == "pcapng":
                    faults[path] = packets(capture, path)
        texts = [path for path in sorted(folder.iterdir()) if path.suffix in (".har", ".mermaid")]
        if texts:
            script = Path(__file__).with_name("formats.mjs")
            done = subprocess.run(["node", script, PACKAGES, *texts], check=True, timeout=PATIENCE,
                                  capture_output=True, text=True)
            for line in map(json.loads, done.stdout.splitlines()):
                faults[Path(line["file"])] = line["fault"]
        for path, fault in sorted(faults.items()):
            wrong = bool(fault) != prove
            failed += wrong
            print(f"{'FAILED' if wrong else 'ok':<7} {path.name}" + (f": {fault}" if wrong else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

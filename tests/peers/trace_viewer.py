#!/usr/bin/env python3
"""trace_viewer.py: the official trace viewer opens the output of `inspect export --to jsons`.

For each capture in tests/vectors/transcripts: import it, export it as a trace, serve that with
the crate agent-client-protocol-trace-viewer (install.sh puts it into target/peers/viewer), and
compare its page's data from /events with the capture: all messages, in their order, with the members
that the page's script reads. `--prove` checks that the comparison can fail.
"""

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from paths import PEERS, RELAY, ROOT

VIEWER = PEERS / "viewer" / "bin" / "agent-client-protocol-trace-viewer"
PATIENCE = 60


def events(trace):
    """The data that the viewer's page gets for the trace."""
    with subprocess.Popen(
        [VIEWER, "--no-open", str(trace)], stderr=subprocess.PIPE, text=True
    ) as viewer:
        try:
            address = re.search(r"http://\S+", viewer.stderr.readline()).group()
            with urllib.request.urlopen(address + "/events", timeout=PATIENCE) as answer:
                return json.load(answer)
        finally:
            viewer.kill()


def message(event):
    """The message of a trace event."""
    if event["type"] == "response":
        name = "error" if event["is_error"] else "result"
        return (event["from"], {"id": event["id"], name: event["payload"]})
    parts = {"method": event["method"], "params": event["params"]}
    if event["type"] == "request":
        parts["id"] = event["id"]
    return (event["from"], parts)


def messages(capture):
    """The messages of a capture."""
    for line in capture.read_text().splitlines():
        line = json.loads(line)
        if "msg" in line:
            body = {name: value for name, value in line["msg"].items() if name != "jsonrpc"}
            if "method" in body:
                body.setdefault("params", None)
            elif "id" not in body:
                # In a trace, an answer without an id has the id `null`.
                body["id"] = None
            yield ("Client" if line["dir"] == "c2a" else "Agent", body)


def differences(capture, shown):
    expected = list(messages(capture))
    got = [message(event) for event in shown]
    found = [f"{len(expected)} messages, {len(got)} shown"] if len(expected) != len(got) else []
    found += [f"{a} is shown as {b}" for a, b in zip(expected, got) if a != b]
    times = [event["ts"] for event in shown]
    if times != sorted(times):
        found.append("times decrease")
    return found


def relay(*args):
    subprocess.run([RELAY, "inspect", *map(str, args)], check=True, timeout=PATIENCE,
                   stdout=subprocess.DEVNULL)


def main():
    prove = "--prove" in sys.argv
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for capture in sorted((ROOT / "tests/vectors/transcripts").glob("*.jsonl")):
            name = Path(folder) / capture.stem.replace(".", "-")
            recording, trace = f"{name}.acpr", f"{name}.jsons"
            relay("import", "--redact", "full", capture, recording)
            relay("export", recording, "--to", "jsons", "--out", trace)
            if prove:
                lines = Path(trace).read_text().splitlines(keepends=True)
                Path(trace).write_text("".join(lines[:-2] + ["not a line of a trace\n"]))
            shown = events(trace)
            found = differences(capture, shown)
            wrong = bool(found) != prove
            failed |= wrong
            print(f"{'FAILED' if wrong else 'ok':<7} {capture.stem}: {len(shown)} events shown",
                  *found[:3], sep="\n        " if wrong else "  ")
    sys.exit(failed)


if __name__ == "__main__":
    main()

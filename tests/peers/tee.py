#!/usr/bin/env python3
"""tee.py: a proxy in front of an agent (or of the relay) that captures the bytes on stdio.

    tee.py --out PREFIX [--outside FRAMING] [--inside FRAMING] [--pretty] -- COMMAND...

Give this whole line to a client, or to the relay, as its agent. The bytes read are written to
    PREFIX.c2a   client to agent, the raw bytes
    PREFIX.a2c   agent to client, the raw bytes
    PREFIX.log   one line per event: monotonic ns, direction, then a byte count or `eof`;
                 last `NS exit CODE`
and then forwarded unchanged, as is the end of either stream. The exit code is the command's,
128 + n when signal n ended it. A read is recorded before it is forwarded, so the effects of a
message follow it in the log. `{pid}` in PREFIX is replaced, for an agent that is started more than once.

`--outside` is the framing of the parent's side, `--inside` that of the command's side (default for
both: ndjson; then no byte is changed). When they differ, messages are re-framed, so that an agent or
a client that supports only NDJSON appears as a Content-Length peer. The capture then has the
Content-Length side, which is the relay's side. `--pretty` first prints the bodies of that side over
many lines, as some peers do.
"""
import argparse
import json
import os
import signal
import subprocess
import threading
import time

from framing import CONTENT_LENGTH, FRAMINGS, NDJSON, Splitter, wrap

CHUNK = 1 << 16


class Record:
    """The three files. Both directions write the log, hence the lock."""

    def __init__(self, prefix):
        self.raw = {way: open("%s.%s" % (prefix, way), "wb", buffering=0) for way in ("c2a", "a2c")}
        self.log = open(prefix + ".log", "w", buffering=1)
        self.lock = threading.Lock()

    def data(self, way, chunk):
        with self.lock:
            self.raw[way].write(chunk)
            self.log.write("%d %s %d\n" % (time.monotonic_ns(), way, len(chunk)))

    def event(self, what):
        with self.lock:
            self.log.write("%d %s\n" % (time.monotonic_ns(), what))


def pretty(body):
    """The body over several lines; the body itself when it is not JSON."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False).encode()
    except ValueError:
        return body


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def pump(source, sink, way, framing_in, framing_out, args, record):
    """One direction: reads in `framing_in`, writes in `framing_out`."""
    splitter = Splitter(framing_in)
    try:
        while chunk := os.read(source, CHUNK):
            if framing_in == framing_out:
                record.data(way, chunk)
                write_all(sink, chunk)
                continue
            if framing_in == CONTENT_LENGTH:
                record.data(way, chunk)
            for body in splitter.feed(chunk):
                if framing_out == CONTENT_LENGTH and args.pretty:
                    body = pretty(body)
                message = wrap(body, framing_out)
                if framing_out == CONTENT_LENGTH:
                    record.data(way, message)
                write_all(sink, message)
        record.event(way + " eof")
    except BrokenPipeError:
        record.event(way + " broken")
    os.close(sink)


def main():
    parser = argparse.ArgumentParser(description="capture the bytes in front of an agent")
    parser.add_argument("--out", required=True, help="prefix of the files written")
    parser.add_argument("--outside", choices=FRAMINGS, default=NDJSON)
    parser.add_argument("--inside", choices=FRAMINGS, default=NDJSON)
    parser.add_argument("--pretty", action="store_true")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()

    record = Record(args.out.replace("{pid}", str(os.getpid())))
    child = subprocess.Popen(args.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    # Forward SIGTERM to the command; its exit ends this process with its code.
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())

    # Each pump owns its raw descriptors, and closes the sink that it writes to.
    to_child, from_child = os.dup(child.stdin.fileno()), child.stdout.fileno()
    child.stdin.close()
    threading.Thread(
        target=pump, daemon=True,
        args=(0, to_child, "c2a", args.outside, args.inside, args, record),
    ).start()
    back = threading.Thread(
        target=pump, daemon=True,
        args=(from_child, 1, "a2c", args.inside, args.outside, args, record),
    )
    back.start()
    code = child.wait()
    back.join(timeout=5)  # a grandchild may hold the pipe open; the exit is recorded anyway
    code = code if code >= 0 else 128 - code
    record.event("exit %d" % code)
    # The thread that reads stdin may still be blocked; nothing is left to flush.
    os._exit(code)


if __name__ == "__main__":
    main()

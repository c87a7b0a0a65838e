#!/usr/bin/env python3
"""What an idle relay takes: its memory at the start, and the memory and descriptors of each further
idle WebSocket connection. The agents' own memory does not count.

    cargo build --release
    tests/bench/idle.py [PROGRAM [link]]

With `link`, each connection carries a resumable link.

Linux only; needs only Python and sed. Memory is the resident set, which includes the mapped part of
the program's file; the difference between two counts of connections does not.
"""

import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/acp-relay")
# Answers every request.
AGENT = ["sed", "-uE", r's/.*"id":([0-9]+).*/{"jsonrpc":"2.0","id":\1,"result":{}}/']
COUNTS = 100, 300
# A link releases a larger buffer after a second.
QUIET = 1.5
LINK = sys.argv[2:] == ["link"]
HELLO = b'{"t":"hello","v":[1],"gen":1,"rx":1,"win":4194304}\n'
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'


def usage(pid):
    """The resident set in KiB, and the open descriptors."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]), len(os.listdir(f"/proc/{pid}/fd"))


def until(end, connection):
    got = b""
    while not got.endswith(end):
        got += connection.recv(1) or sys.exit("the relay has disconnected")


def send(connection, text):
    # One text frame of less than 126 bytes, masked with zeros.
    connection.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(
        b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s\r\n"
        % (port, b"Sec-WebSocket-Protocol: acp-link.v1\r\n" if LINK else b"")
    )
    until(b"\r\n\r\n", connection)
    if LINK:
        send(connection, HELLO)
        until(b'"resumed":false}\n', connection)
    send(connection, (b'{"t":"d","s":1}\n' if LINK else b"") + INITIALIZE)
    until(b'"result":{}}', connection)
    return connection


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options = ["serve", "--listen", "ws://127.0.0.1:0", "--", *AGENT]
    relay = subprocess.Popen([PROGRAM, *options], stderr=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r"listening on .*:(\d+)", relay.stderr.readline())[1])
        time.sleep(QUIET)
        print(f"at the start: {usage(relay.pid)[0] / 1024:.1f} MiB")
        connections, measured = [], []
        for count in COUNTS:
            while len(connections) < count:
                connections.append(connect(port))
            time.sleep(QUIET)
            measured.append(usage(relay.pid))
        (memory, files), (memory_then, files_then) = measured
        more = COUNTS[1] - COUNTS[0]
        print(f"with {COUNTS[1]} connections: {memory_then / 1024:.1f} MiB")
        print(f"each: {(memory_then - memory) / more:.1f} KiB, {(files_then - files) / more:.1f} descriptors")
    finally:
        relay.terminate()
        relay.wait()


main()

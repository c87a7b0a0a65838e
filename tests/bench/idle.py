#!/usr/bin/env python3
"""What an idle relay takes: its memory at the start, and the memory and descriptors of each further
idle WebSocket connection. The agents' own memory does not count.

    cargo build --release
    tests/bench/idle.py [PROGRAM [link]]
    tests/bench/idle.py PROGRAM pings [COUNT]

With `link`, each connection carries a resumable link. With `pings`, what 10,000 of them take for signs of life: the
processor time of the relay while they answer its pings and do nothing else; their agents are sockets of this program.

Linux only; needs only Python and sed. Memory is the resident set, which includes the mapped part of
the program's file; the difference between two counts of connections does not.
"""

import os
import pathlib
import re
import resource
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/acp-relay")
# Answers every request.
AGENT = ["sed", "-uE", r's/.*"id":([0-9]+).*/{"jsonrpc":"2.0","id":\1,"result":{}}/']
COUNTS = 100, 300
# A link releases a larger buffer after a second.
QUIET = 1.5
# A multiple of the interval of pings, which is 10 s.
MEASURED = 30
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


class Answers(threading.Thread):
    """Answers what its sockets receive."""

    def __init__(self, reply):
        super().__init__(daemon=True)
        self.reply, self.sockets, self.poll = reply, {}, select.epoll()
        self.start()

    def add(self, connection):
        self.sockets[connection.fileno()] = connection
        self.poll.register(connection, select.EPOLLIN)

    def accept(self, listener):
        while True:
            self.add(listener.accept()[0])

    def run(self):
        while True:
            for descriptor, _ in self.poll.poll():
                text = self.sockets[descriptor].recv(4096)
                if text:
                    self.sockets[descriptor].sendall(self.reply(text))
                else:
                    self.poll.unregister(descriptor)


def pings(count):
    """Prints what the pings of so many connections take."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Two descriptors each, here and there.
    count = min(count, (most - 200) // 2)
    limits = ["connections", "per-principal", "unauthenticated-sockets", "http-sockets"]
    limits = [word for limit in limits for word in ("--limit", "%s=%d" % (limit, 2 * count))]
    folder = tempfile.TemporaryDirectory()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(folder.name + "/agent")
    listener.listen(100)
    agents = Answers(lambda text: b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    threading.Thread(target=agents.accept, args=(listener,), daemon=True).start()
    options = ["serve", "--listen", "ws://127.0.0.1:0", *limits, "--agent", "unix:" + folder.name + "/agent"]
    relay = subprocess.Popen([PROGRAM, *options], stderr=subprocess.PIPE, text=True)
    port = int(re.search(r"listening on .*:(\d+)", relay.stderr.readline())[1])
    threading.Thread(target=relay.stderr.read, daemon=True).start()
    counted = [0]

    def pong(text):
        counted[0] += text.count(b"\x89\x00")
        return text.count(b"\x89\x00") * b"\x8a\x80\0\0\0\0"

    def used():
        return sum(map(int, pathlib.Path(f"/proc/{relay.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    clients = Answers(pong)
    for _ in range(count):
        clients.add(connect(port))
    time.sleep(MEASURED)
    before, counted[0], begun = used(), 0, time.monotonic()
    time.sleep(MEASURED)
    took = time.monotonic() - begun
    share = (used() - before) / os.sysconf("SC_CLK_TCK") / took
    print(f"{count} connections: {usage(relay.pid)[0] / 1024:.1f} MiB, {counted[0] / took:.0f} pings a second take "
          f"{100 * share:.1f} % of a processor")
    relay.terminate()
    relay.wait()


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


if sys.argv[2:3] == ["pings"]:
    pings(int(sys.argv[3]) if len(sys.argv) > 3 else 10_000)
else:
    main()

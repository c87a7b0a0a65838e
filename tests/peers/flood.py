#!/usr/bin/env python3
"""flood.py: the effect of one client's flood on the latency of another.

    flood.py [--relay BINARY] [--limit 'HOP copier ws 127.0.0.1:{PORT}'] [--seconds 0.25] [--rounds 24]
             [--allow PERCENT] [--tries 3] [--only ws-ws,ws-http,http-ws,http-http]

A bystander sends one request after another, over WebSocket and over HTTP, while another client
floods: WebSocket messages, or POSTs on eight sockets, as fast as they are accepted. Two relays run.
The flood alternates between the bystander's relay and the other one: the machine is equally busy in
both rounds, and the difference is the effect within one relay. The p99 of the answers of all
rounds of a kind is compared. It fails when the flood adds more than --allow percent in each of
--tries tries: other work on the machine makes single results worse at random, a relay without
fairness is worse every time.

--limit does the same, over WebSocket, with a program that only copies (HOP is the program of
`cargo bench --bench hop`; see tests/bench/README.md): the effect of the system itself, a lower bound
for every relay. Everything runs in one session: where the kernel groups processes by session
(sched_autogroup), relays in separate sessions would compare groups. Needs the release build. The
clients and the agent are written here and only measure.
"""
import argparse
import multiprocessing
import os
import re
import select
import signal
import socket
import statistics
import sys
import time

import isolation
from paths import TARGET
from websocket import connect, frame
from wires import Relay

# Answers each message with an id, and discards all others at once.
AGENT = r"""
import os, re
rest = b""
while chunk := os.read(0, 1 << 20):
    if b'"id"' in chunk or rest:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if found := re.search(rb'"id":(\d+)', line):
                os.write(1, b'{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' % found[1])
    else:
        rest = chunk[chunk.rfind(b"\n") + 1:]
"""
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
NOISE = b'{"jsonrpc":"2.0","method":"noise","params":{"text":"' + b"n" * 100 + b'"}}'
ASK = b'{"jsonrpc":"2.0","id":%d,"method":"x","params":{"text":"' + b"a" * 100 + b'"}}'


def dial(port):
    sock = socket.create_connection(("127.0.0.1", port), 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def post(port, connection, body):
    named = b"Acp-Connection-Id: %s\r\n" % connection if connection else b""
    return (b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n%s"
            b"Content-Length: %d\r\n\r\n%s" % (port, named, len(body), body))


def initialize(port):
    """Opens a connection over HTTP; returns its id."""
    with dial(port) as sock:
        sock.sendall(post(port, None, HELLO))
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(1 << 16)
    return re.search(rb"(?i)acp-connection-id: (\S+)", head)[1]


class OverWebSocket:
    def __init__(self, port):
        self.socket = connect(dial(port), "127.0.0.1:%d" % port, "/acp")
        self.socket.send(HELLO)
        self.socket.receive(10)

    def ask(self, number):
        self.socket.send(ASK % number)
        assert b'"id":%d,' % number in self.socket.receive(30)


class OverHttp:
    def __init__(self, port):
        self.port, self.id = port, initialize(port)
        self.posts, self.events, self.rest = dial(port), dial(port), b""
        self.events.sendall(b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n"
                            b"Acp-Connection-Id: %s\r\n\r\n" % (port, self.id))
        self.until(b"retry:")

    def until(self, what):
        while what not in self.rest:
            self.rest += self.events.recv(1 << 16)
        self.rest = self.rest.partition(what)[2]

    def ask(self, number):
        self.posts.sendall(post(self.port, self.id, ASK % number))
        assert self.posts.recv(1 << 16).startswith(b"HTTP/1.1 202")
        self.until(b'"id":%d,' % number)


def flood(how, port, counted):
    """Floods until it is killed."""
    if how == "ws":
        sock = dial(port)
        ws = connect(sock, "127.0.0.1:%d" % port, "/acp")
        ws.send(HELLO)
        ws.receive(10)
        batch = b"".join(frame(NOISE) for _ in range(1000))
        while True:
            sock.sendall(batch)
            counted.value += 1000
    size = 50
    connection = initialize(port)
    batch = post(port, connection, NOISE) * size
    sockets = {dial(port): 0 for _ in range(8)}
    for sock in sockets:
        sock.sendall(batch)
    while True:
        for sock in select.select(list(sockets), [], [])[0]:
            sockets[sock] += sock.recv(1 << 16).count(b"HTTP/1.1 202")
            counted.value += 1
            if sockets[sock] >= size:
                sockets[sock] -= size
                sock.sendall(batch)


def measure(bystander, number, seconds, took):
    """Sends requests of the bystander for `seconds`; adds the latency of each in seconds; returns the last number."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        number += 1
        began = time.perf_counter()
        bystander.ask(number)
        took.append(time.perf_counter() - began)
    return number


def part(took, share):
    took.sort()
    return took[int(len(took) * share)] * 1e6


class Hop:
    """A relay, or another program, which listens on the port {PORT}."""

    def __init__(self, words):
        if any("{PORT}" in word for word in words):
            self.port = isolation.free_port()
            words = [word.replace("{PORT}", str(self.port)) for word in words]
            self.relay = Relay(words, listens=False, apart=False)
            for _ in range(200):
                try:
                    return dial(self.port).close()
                except OSError:
                    time.sleep(0.05)
            raise OSError("%s does not listen" % words[0])
        self.relay = Relay(words, apart=False)
        self.port = self.relay.port


def compare(asked, words, name, way, how):
    """The additional p99 in percent of a flood in the bystander's hop over one in another hop."""
    hops = []
    flooder = None
    try:
        for _ in range(2):
            hops.append(Hop(words))
        bystander = (OverWebSocket if way == "ws" else OverHttp)(hops[0].port)
        number, took, rates = 0, ([], []), ([], [])
        for turn in range(2 * asked.rounds):
            # Other, own, own, other: a machine that becomes busier affects both.
            here = (turn + 1) // 2 % 2
            counted = multiprocessing.Value("Q", 0, lock=False)
            flooder = multiprocessing.Process(target=flood, args=(how, hops[1 - here].port, counted), daemon=True)
            flooder.start()
            time.sleep(0.2)  # The flood has begun.
            before, since = counted.value, time.monotonic()
            number = measure(bystander, number, asked.seconds, took[here])
            rates[here].append((counted.value - before) / (time.monotonic() - since))
            flooder.kill()
            flooder.join()
            flooder = None
        there, here = (part(ones, 0.99) for ones in took)
        worse = (here / there - 1) * 100
        print("%-6s bystander %-4s  flood %-4s  p50 %4.0f, %4.0f µs  p99 %4.0f µs in another relay, %4.0f µs in the same: %+.0f %%  "
              "(%d and %d answers, %.0f/s and %.0f/s of flood)" % (
                  name, way, how, part(took[0], 0.5), part(took[1], 0.5), there, here, worse, len(took[0]), len(took[1]),
                  *map(statistics.median, rates)), flush=True)
        return worse
    finally:
        if flooder:
            flooder.kill()
        for hop in hops:
            hop.relay.stop(signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=os.environ.get("ACP_RELAY_BIN") or str(TARGET / "release/acp-relay"))
    parser.add_argument("--limit", help="a copier to compare with: a command with {PORT}")
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--allow", type=float, default=10)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--only", default="ws-ws,ws-http,http-ws,http-http")
    asked = parser.parse_args()
    agent = [sys.executable, "-c", AGENT]
    if asked.limit:
        compare(asked, [*asked.limit.split(), *agent], "limit", "ws", "ws")
    good = True
    for pair in asked.only.split(","):
        way, how = pair.split("-")
        words = [asked.relay, "serve", "--listen", "http://127.0.0.1:0", "--", *agent]
        good &= any(compare(asked, words, "relay", way, how) <= asked.allow for _ in range(asked.tries))
    print("ok" if good else "FAIL: a flood in the same relay adds more than %g %% to the p99 of a bystander" % asked.allow)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

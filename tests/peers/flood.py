#!/usr/bin/env python3
"""flood.py: whether one client's flood slows another.

    flood.py [--relay BINARY] [--seconds 2] [--rounds 5] [--allow PERCENT] [--within MICROSECONDS]

A bystander asks and waits for its answer, again and again, over WebSocket and over HTTP, while
another client floods: WebSocket messages, or POSTs on eight sockets, as fast as they are taken. Two
relays run. In one round the flood goes to the bystander's relay, in the next to the other one: so
the machine is as busy in both, and what differs is what happens inside of one relay. Of the rounds
of each kind the median of their p99 counts. It fails when the flood costs more than --allow percent
of it and more than --within. Wants the release build and a quiet machine; on a busy one the rounds
differ by more than what is looked for. The clients and the agent are ours and no evidence of anything but numbers.
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

from websocket import connect, frame
from wires import TARGET, Relay

# Answers what has an id with its id, and throws away the rest as fast as it comes.
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
    """Opens a connection over HTTP; its id."""
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


def measure(bystander, start, seconds):
    """The p99 of its answers, in microseconds, and how many there were."""
    took, number, until = [], start, time.monotonic() + seconds
    while time.monotonic() < until:
        number += 1
        began = time.perf_counter()
        bystander.ask(number)
        took.append(time.perf_counter() - began)
    took.sort()
    return took[int(len(took) * 0.99)] * 1e6, number


def compare(asked, way, how):
    relays = [Relay([asked.relay, "serve", "--listen", "http://127.0.0.1:0", "--", sys.executable, "-c", AGENT])
              for _ in range(2)]
    ports = [int(re.search(r":(\d+)/", relay.endpoint)[1]) for relay in relays]
    flooder = None
    try:
        bystander = (OverWebSocket if way == "ws" else OverHttp)(ports[0])
        number, p99 = 0, ([], [])
        rates = []
        for turn in range(2 * asked.rounds):
            here = turn % 2
            counted = multiprocessing.Value("Q", 0, lock=False)
            flooder = multiprocessing.Process(target=flood, args=(how, ports[1 - here], counted), daemon=True)
            flooder.start()
            time.sleep(0.2)  # It has begun, and what it starts is up.
            before = counted.value
            one, number = measure(bystander, number, asked.seconds)
            rates.append((counted.value - before) / asked.seconds)
            p99[here].append(one)
            flooder.kill()
            flooder.join()
            flooder = None
        without, with_it = (statistics.median(ones) for ones in p99)
        worse = (with_it / without - 1) * 100
        good = worse <= asked.allow or with_it - without <= asked.within
        print("%-4s  bystander %-4s  flood %-4s  p99 %4.0f µs beside, %4.0f µs in the same relay: %+.0f %%  "
              "(%d answers, %.0f/s of flood; rounds %s | %s)" % (
                  "ok" if good else "FAIL", way, how, without, with_it, worse, number, statistics.median(rates),
                  " ".join("%.0f" % one for one in p99[0]), " ".join("%.0f" % one for one in p99[1])), flush=True)
        return good
    finally:
        if flooder:
            flooder.kill()
        for relay in relays:
            relay.process.send_signal(signal.SIGTERM)
            relay.stop(signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=os.environ.get("ACP_RELAY_BIN") or str(TARGET / "release/acp-relay"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--allow", type=float, default=10)
    parser.add_argument("--within", type=float, default=0)
    asked = parser.parse_args()
    good = [compare(asked, way, how) for way in ("ws", "http") for how in ("ws", "http")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""red_team.py: all attacks at once, and their effect on a regular client.

    red_team.py [--relay BINARY] [--seconds 8] [--p99 MILLISECONDS] [--slack TIMES] [--memory MIB]
                [--only NAME,NAME]
    red_team.py --prove      a relay that is stopped briefly, and an attack that does nothing

One `serve` listens and requires a token. A regular client sends requests and waits for each answer,
over a WebSocket and over HTTP, and reconnects from time to time. Each attack of ATTACKS runs at the
same time, in its own process and from its own address: outsiders without a token, and insiders with
one. It fails when the p99 of the regular client's answers is above --p99 and above --slack times the
p99 without attacks (so that other load on the machine does not count), when the relay's memory grows
by more than --memory above idle, when the relay has exited or accepts no client afterwards, when an
attack did nothing, and when a rejected attack has increased no metric of METRICS. The clients are ours
and prove only numbers. Use the release build.
"""
import argparse
import multiprocessing
import os
import re
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from paths import TARGET
from websocket import PING, Broken, WebSocket, _head, frame
from wires import Relay

HERE = Path(__file__).resolve().parent
TEXTS = HERE.parent / "vectors" / "json"
# Answers every request with its id.
GOOD = r"""
import os, re
rest = b""
while chunk := os.read(0, 1 << 20):
    *lines, rest = (rest + chunk).split(b"\n")
    for line in lines:
        if found := re.search(rb'"id":(\d+)', line):
            os.write(1, b'{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' % found[1])
"""
# Insiders get an agent that reads everything and sends nothing.
CONFIG = """
default-agent = "good"
[agents.good]
command = ["python3", "-c", '''%s''']
[agents.mute]
command = ["wc", "-c"]
[auth]
require-token = true
[admin]
listen = "127.0.0.1:0"
[[listeners]]
endpoint = "http://127.0.0.1:0"
""" % GOOD
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
ASK = b'{"jsonrpc":"2.0","id":%d,"method":"x","params":{"text":"hello"}}'
JSON = b"Content-Type: application/json\r\n"
DATA, HEADERS, RST, SETTINGS, H2PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Target:
    """The relay under attack, for an attacker at address `source`."""

    def __init__(self, port, token, source, until):
        self.port, self.token, self.source, self.until = port, token, source, until
        self.count = 0

    def running(self):
        return time.monotonic() < self.until

    def dial(self):
        sock = socket.create_connection(("127.0.0.1", self.port), 5, (self.source, 0))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(2)
        return sock

    def head(self, line, fields=b"", token=True):
        shown = b"Authorization: Bearer %s\r\n" % self.token if token else b""
        return b"%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s%s" % (line, self.port, shown, fields)

    def websocket(self, path=b"/agents/mute/acp"):
        sock = self.dial()
        sock.sendall(self.head(b"GET %s" % path, b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
        head, rest = _head(sock)
        if not head.startswith(b"HTTP/1.1 101 "):
            raise Broken("%r" % head[:60])
        sock.settimeout(2)
        return WebSocket(sock, True, rest)

    def http2(self, settings=b""):
        sock = self.dial()
        sock.sendall(PREFACE + h2(SETTINGS, 0, 0, settings))
        return sock

    def request(self, path=b"/acp", method=b"GET", token=True):
        """The header block of a request, without compression."""
        fields = [(b":method", method), (b":path", path), (b":scheme", b"http"),
                  (b":authority", b"127.0.0.1:%d" % self.port), (b"accept", b"text/event-stream")]
        if token:
            fields.append((b"authorization", b"Bearer " + self.token))
        return b"".join(b"\x00" + text(name) + text(value) for name, value in fields)


def text(value):
    """A string literal of HPACK (RFC 7541, 5.2)."""
    size = len(value)
    if size < 127:
        return bytes([size]) + value
    head, size = b"\x7f", size - 127
    while size >= 128:
        head, size = head + bytes([size % 128 + 128]), size // 128
    return head + bytes([size]) + value


def h2(kind, flags, stream, body=b""):
    """A frame of HTTP/2."""
    return struct.pack("!I", len(body))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + body


def pour(at, sock, chunks):
    """Sends chunks until the peer closes, and discards its answers; counts the chunks."""
    sock.setblocking(False)
    pending = b""
    while at.running():
        reads, writes, _ = select.select([sock], [sock], [], 0.1)
        if reads and not sock.recv(1 << 16):
            return
        if writes:
            if not pending:
                pending = next(chunks, b"")
                if not pending:
                    return
                at.count += 1
            pending = pending[sock.send(pending):]


# Outsiders.

def slow_heads(at):
    """Request heads that arrive one byte at a time and never end."""
    begun = at.head(b"GET /acp", token=False) + b"X-Slow: "
    hold(at, 40, begun, b"a")


def holders(at):
    """As many sockets as possible, which send nothing."""
    hold(at, 200, b"", b"")


def hold(at, most, first, more):
    held = []
    while at.running():
        while len(held) < most and at.running():
            try:
                sock = at.dial()
                sock.sendall(first)
                sock.setblocking(False)
                held.append(sock)
                at.count += 1
            except OSError:
                break
        kept = []
        for sock in held:
            try:
                if more:
                    sock.send(more)
                if select.select([sock], [], [], 0)[0] and not sock.recv(4096):
                    raise ConnectionError
                kept.append(sock)
            except OSError:
                sock.close()
        held = kept
        time.sleep(0.2)


def guesses(at):
    """Invalid tokens."""
    wrong = Target(at.port, b"acpr_000000000000_" + b"A" * 43, at.source, at.until)
    while at.running():
        with at.dial() as sock:
            sock.sendall(wrong.head(b"GET /acp") + b"\r\n")
            sock.recv(4096)
            at.count += 1


def outsider_resets(at):
    """HTTP/2 requests without a token, reset immediately."""
    resets(at, False)


def continuations(at):
    """An HTTP/2 header block that never ends."""
    while at.running():
        with at.http2() as sock:
            begin = h2(HEADERS, 0, 1, at.request(token=False))
            more = h2(CONTINUATION, 0, 1, b"\x00" + text(b"x") + text(b"y" * 1000))

            def chunks():
                yield begin
                while True:
                    yield more * 8
            pour(at, sock, chunks())


def settings(at):
    """SETTINGS and PING frames, whose answers are never read."""
    flood = h2(SETTINGS, 0, 0, struct.pack("!HI", 4, 65535)) * 50 + h2(H2PING, 0, 0, b"12345678") * 50
    while at.running():
        with at.http2() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(1)
            while at.running():
                try:
                    sock.sendall(flood)
                    at.count += 1
                except OSError:
                    break


# Insiders.

def resets(at, token=True):
    """HTTP/2 requests, reset immediately."""
    block = at.request(token=token)
    while at.running():
        with at.http2() as sock:
            def chunks():
                for stream in range(1, 1 << 20, 2):
                    yield h2(HEADERS, 5, stream, block) + h2(RST, 0, stream, struct.pack("!I", 8))
            pour(at, sock, chunks())


def windows(at):
    """HTTP/2 streams without a window, windows that overflow, and data beyond the window."""
    none = struct.pack("!HI", 4, 0)
    while at.running():
        with at.http2(none) as sock:
            def chunks():
                for stream in range(1, 400, 2):
                    yield h2(HEADERS, 5, stream, at.request(b"/acp/sse?client_id=w"))
                for stream in range(401, 800, 2):
                    yield h2(HEADERS, 4, stream, at.request(b"/agents/mute/acp", b"POST"))
                    yield h2(DATA, 0, stream, b"{" * 16384)
                    yield h2(WINDOW, 0, stream, struct.pack("!I", 0x7FFFFFFF))
                yield h2(WINDOW, 0, 0, struct.pack("!I", 0x7FFFFFFF)) * 2
            pour(at, sock, chunks())


def slow_bodies(at):
    """Bodies that arrive one byte at a time."""
    hold(at, 40, at.head(b"POST /agents/mute/acp", JSON + b"Content-Length: 1000000\r\n\r\n"), b" ")


def large_bodies(at):
    """Bodies of the maximum length that break off before their end."""
    head = at.head(b"POST /agents/mute/acp", JSON + b"Content-Length: 16000000\r\n\r\n")
    while at.running():
        with at.dial() as sock:
            pour(at, sock, iter([head] + [b" " * (1 << 16)] * 200))


def posted_texts(at):
    """The texts of JSONTestSuite as bodies."""
    texts = [path.read_bytes() for path in sorted(TEXTS.glob("*.json"))]
    while at.running():
        for body in texts:
            if not at.running():
                return
            with at.dial() as sock:
                sock.sendall(at.head(b"POST /acp", JSON + b"Content-Length: %d\r\n\r\n" % len(body)) + body)
                sock.recv(4096)
                at.count += 1


def sent_texts(at):
    """The same as messages; also depth, duplicate members, long ids, and invalid UTF-8."""
    texts = [path.read_bytes() for path in sorted(TEXTS.glob("*.json"))]
    texts += [b"[" * 100_000, b'{"a":' * 100_000, b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}',
              b'{"jsonrpc":"2.0","id":"%s","method":"x"}' % (b"i" * 1_000_000),
              b'{"jsonrpc":"2.0","method":"%s"}' % (b"m" * 1_000_000),
              b'{"jsonrpc":"2.0","id":%s,"method":"x"}' % (b"9" * 100_000)]
    texts += [ASK % number for number in range(2000)]
    while at.running():
        link = at.websocket()
        try:
            for body in texts:
                if not at.running():
                    return
                # A text frame; one that is not valid UTF-8 has to close the link.
                link.send(body)
                at.count += 1
                while select.select([link.sock], [], [], 0)[0]:
                    if not link.sock.recv(1 << 16):
                        raise ConnectionError
        except OSError:
            pass
        finally:
            link.close()


def pings(at):
    """WebSocket pings whose answers are never read."""
    flood = frame(b"p" * 100, PING) * 100
    while at.running():
        link = at.websocket()
        link.sock.settimeout(1)
        try:
            while at.running():
                link.sock.sendall(flood)
                at.count += 1
        except OSError:
            pass
        finally:
            link.close()


def fragments(at):
    """Messages in fragments that are empty, of one byte, and above the size limit."""
    def opened(body, opcode, last=False):
        whole = bytearray(frame(body, opcode))
        if not last:
            whole[0] &= 0x7F
        return bytes(whole)
    kinds = [opened(b"", 0) * 1000, opened(b"x", 0) * 1000, opened(b"x" * 60_000, 0) * 4]
    while at.running():
        for more in kinds:
            link = at.websocket()
            try:
                pour(at, link.sock, iter([opened(b"{", 1)] + [more] * 100))
                # The length of a frame that is never sent.
                link.sock.send(b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff0000")
            except OSError:
                pass
            finally:
                link.close()


OUTSIDERS = [slow_heads, holders, guesses, outsider_resets, continuations, settings]
INSIDERS = [resets, windows, slow_bodies, large_bodies, posted_texts, sent_texts, pings, fragments]
ATTACKS = {attack.__name__: attack for attack in OUTSIDERS + INSIDERS}
REJECTED = 'connections_rejected_total{transport="http",reason="%s"}'
# Metrics of which each attack increases at least one. Attacks that are missing here are slow, large or
# many, and are tolerated; nothing is rejected.
METRICS = {
    "slow_heads": [REJECTED % "limit", REJECTED % "timeout"],
    "holders": [REJECTED % "limit", REJECTED % "timeout"],
    # With so many outsiders some are rejected before they send a request.
    "guesses": ['auth_attempts_total{method="token",outcome="refused"}', REJECTED % "limit"],
    "outsider_resets": ['auth_attempts_total{method="none",outcome="refused"}', REJECTED % "limit",
                        REJECTED % "handshake"],
    "continuations": [REJECTED % "handshake"],
    "settings": [REJECTED % "handshake"],
    "resets": [REJECTED % "handshake"],
    "windows": [REJECTED % "handshake"],
    "posted_texts": [REJECTED % "handshake"],
    "sent_texts": ['parse_errors_total{side="client",reason="not_a_message"}'],
    # --prove: an attack that increases no metric is detected.
    "idler": ["no_figure"],
}


def attack(name, number, port, token, until, results):
    os.nice(15)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    at = Target(port, token, "127.0.0.%d" % (number + 2), until)
    trouble = None
    while at.running():
        try:
            ATTACKS[name](at)
        except (OSError, Broken, ValueError) as fault:
            trouble = fault
            time.sleep(0.05)
    results.put((name, at.count, str(trouble) if trouble and not at.count else ""))


def resident(pid):
    """Memory of a process, in MiB."""
    pages = int(Path("/proc/%d/statm" % pid).read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def post(at, body, connection=None):
    """One request over HTTP; returns status and head."""
    named = b"Acp-Connection-Id: %s\r\n" % connection if connection else b""
    with at.dial() as sock:
        sock.settimeout(30)
        sock.sendall(at.head(b"POST /acp", JSON + named + b"Content-Length: %d\r\n\r\n" % len(body)) + body)
        head, _ = _head(sock)
        return int(head[9:12]), head


def timed(at, link, http, number):
    """One request over each link; returns their times in seconds."""
    times = []
    begun = time.monotonic()
    link.send(ASK % number)
    if b'"id":%d' % number not in link.receive(30):
        raise Broken("the answer has another id")
    times.append(time.monotonic() - begun)
    begun = time.monotonic()
    status, _ = post(at, b'{"jsonrpc":"2.0","method":"n"}', http)
    if status != 202:
        raise Broken("HTTP answered %d" % status)
    times.append(time.monotonic() - begun)
    return times


def connect(at):
    """Opens a WebSocket and an HTTP connection."""
    link = at.websocket(b"/acp")
    link.send(HELLO)
    link.receive(30)
    status, head = post(at, HELLO)
    found = re.search(rb"(?i)acp-connection-id: (\S+)", head)
    if status != 200 or not found:
        raise Broken("initialize over HTTP was answered with status %d" % status)
    return link, found[1]


def measured(relay, at, seconds, stalls=()):
    """Response times for some seconds, and the peak memory."""
    link, http = connect(at)
    times, most, number, until = [], 0.0, 0, time.monotonic() + seconds
    stalls = [until - seconds + at for at in stalls]
    while time.monotonic() < until:
        number += 1
        if stalls and time.monotonic() > stalls[0]:
            # --prove: a relay that stops briefly is detected.
            stalls.pop(0)
            relay.process.send_signal(signal.SIGSTOP)
            subprocess.Popen(["sh", "-c", "sleep 0.4; kill -CONT %d" % relay.process.pid])
        times += timed(at, link, http, number)
        if number % 50 == 0:
            # Until admission only: the start of the agent is not measured.
            fresh = time.monotonic()
            other = at.websocket()
            times.append(time.monotonic() - fresh)
            other.end()
            other.close()
        most = max(most, resident(relay.process.pid))
        time.sleep(0.005)
    link.end()
    link.close()
    return times, most


def figures(relay):
    """All metrics of the relay by name and labels, as scraped."""
    place = next(line for line in relay.output if "admin at http://" in line).split("http://")[1]
    with urllib.request.urlopen("http://%s/metrics" % place, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {series.removeprefix("acp_relay_"): float(value) for series, value in pairs}


def p99(times):
    return statistics.quantiles(times, n=100)[98] * 1000


def run(args, stalls=()):
    """Returns the failures as texts."""
    names = args.only.split(",") if args.only else list(ATTACKS)
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "acp-relay.toml"
        config.write_text(CONFIG)
        config.chmod(0o600)
        env = dict(os.environ, ACP_RELAY_STATE_DIR=folder + "/state")
        token = subprocess.run([args.relay, "token", "show"], env=env, check=True, capture_output=True)
        token = token.stdout.strip()
        relay = Relay([args.relay, "--log", "error", "serve", "--config", config], env=env)
        try:
            port = relay.port
            at = Target(port, token, "127.0.0.1", time.monotonic() + 3600)
            quiet, _ = measured(relay, at, max(1, args.seconds / 8))
            idle = resident(relay.process.pid)
            before = figures(relay)
            until, results = time.monotonic() + args.seconds, multiprocessing.Queue()
            team = [multiprocessing.Process(target=attack, args=(name, number, port, token, until, results))
                    for number, name in enumerate(names)]
            for one in team:
                one.start()
            try:
                times, most = measured(relay, at, args.seconds, stalls)
            finally:
                counts = [results.get(timeout=30) for _ in team]
                for one in team:
                    one.join(10)
                    one.kill()
            for name, count, trouble in sorted(counts):
                print("  %-16s %9d%s" % (name, count, "  " + trouble if trouble else ""))
                if not count:
                    wrong.append("%s did nothing" % name)
            print("  regular client: %d answers, p50 %.1f ms, p99 %.1f ms (quiet: %.1f and %.1f)" % (
                len(times), statistics.median(times) * 1000, p99(times),
                statistics.median(quiet) * 1000, p99(quiet)))
            print("  memory: %.1f MiB idle, %.1f MiB at most" % (idle, most))
            bound = max(args.p99, args.slack * p99(quiet))
            if p99(times) > bound:
                wrong.append("p99 %.1f ms is above %.1f" % (p99(times), bound))
            if most - idle > args.memory:
                wrong.append("memory grew by %.1f MiB" % (most - idle))
            if relay.process.poll() is not None:
                wrong.append("the relay has exited: %s" % relay.output)
            connect(at)[0].close()
            now = figures(relay)
            grown = {series for series, value in now.items() if value > before.get(series, 0)}
            for name in names:
                if METRICS.get(name) and not grown.intersection(METRICS[name]):
                    wrong.append("%s was rejected, and left none of %s" % (name, ", ".join(METRICS[name])))
        except (OSError, Broken, TimeoutError) as fault:
            wrong.append("the regular client failed: %r; %s" % (fault, relay.output[-3:]))
        finally:
            code = relay.stop(seconds=60)
        if code not in (0, 75):
            wrong.append("the relay exited with %s: %s" % (code, relay.output[-3:]))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--relay", default=str(TARGET / "release" / "acp-relay"))
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--p99", type=float, default=200)
    parser.add_argument("--slack", type=float, default=4)
    parser.add_argument("--memory", type=float, default=64)
    parser.add_argument("--only")
    parser.add_argument("--prove", action="store_true")
    args = parser.parse_args()
    if args.prove:
        ATTACKS["idler"] = lambda at: time.sleep(0.1)
        args.seconds, args.only, args.slack = 2, "idler", 0
        wrong = run(args, stalls=(0.3, 0.9, 1.5))
        if not all(any(word in one for one in wrong) for word in ("p99", "did nothing", "left none")):
            sys.exit("red_team.py cannot fail: %s" % wrong)
        print("red_team.py can fail: %s" % "; ".join(wrong))
        return
    wrong = run(args)
    if wrong:
        sys.exit("\n".join("red_team.py: " + one for one in wrong))


if __name__ == "__main__":
    main()

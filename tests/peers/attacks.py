#!/usr/bin/env python3
"""attacks.py: one attack after the other, each on a relay of its own, with its figures.

    attacks.py [--relay BINARY] [--only NAME,...]

    recordings  recordings that no relay can have written, with valid checksums, in the folder of
                `serve --record DIR --admin` and dropped onto its viewer: its client is served
    admin       1000 sockets at the admin listener with requests whose answers they do not read:
                `acp-relay health` answers
    guard       calls and notifications of a guarded agent that a client could read otherwise than the
                relay: none reaches the client, and what is permitted does
    link        500,000 messages without bytes over each of three links whose client reads nothing
    threads     Agent Connect: 20 threads with 10 MiB of metadata, then as many of 60 KiB as 64 MiB
                have room for, and a search that finds nothing

The memory that the last two may add is GROWTH. red_team.py has attacks at the same time; hosts and
gateways are attacked by cluster.py, and agent_memory.py has an agent's memory.
"""
import argparse
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import websocket
from paths import RELAY
from torn import crc32c
from wires import Relay, dial

MIB = 1 << 20
# What may be added, in MiB: for each link, its window by the weights of messages and what waits for
# the client; for all threads, `agent-connect-bytes` and SQLite's own.
GROWTH = {"link": 24, "threads": 64 + 64}
SECONDS = 60

# Answers every request with its id.
GOOD = r"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1, "sessionId": "s"}}), flush=True)
"""
# Answers the first two requests, then sends the lines of its argument.
EVIL = r"""
import json, sys
for number in range(2):
    asked = json.loads(sys.stdin.readline())
    result = {"protocolVersion": 1} if number == 0 else {"sessionId": "s"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
print(sys.argv[1], flush=True)
sys.stdin.read()
"""
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}}}}


class Failed(Exception):
    """The attack has succeeded."""


def serve(relay, folder, *words, agent=(sys.executable, "-c", GOOD)):
    env = {**os.environ, "ACP_RELAY_STATE_DIR": str(folder)}
    return Relay([relay, "--log", "error", "serve", *words, "--", *agent], env=env)


def said(relay, what):
    """The address in a line of stderr that contains `what`."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for line in relay.output:
            if what in line:
                return line.split(what)[1].strip()
        time.sleep(0.01)
    raise OSError("no %r in %s" % (what, relay.output))


def resident(relay):
    """Its memory, in MiB."""
    pages = int(Path("/proc/%d/statm" % relay.process.pid).read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // MIB


def ask(url, body=None):
    """The status and the body of an answer."""
    request = urllib.request.Request(url, body, {"content-type": "application/json"} if body else {})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def sealed(content):
    """A line with its checksum; `content` is an object without the closing brace."""
    return b'%s,"crc":"%08x"}\n' % (content, crc32c(content))


def hostile():
    """Contents of recordings, by their names."""
    head = (b'{"acpr":1,"id":"abababababababababababababababab","seg":0,"first":1,"began":1795190340.0,"by":"x",'
            b'"client":{},"agent":{},"policy":"lossless","redact":{"mode":"full","rules":"","key":""},"prev":null')
    message = b'{"n":%d,"t":%d.0,"w":1795190340.0,"k":"msg","h":"%s","d":"%s","id":"1","me":"initialize","is":"%s","m":%s'
    late = b'{"n":2,"t":18446744073709.551615,"w":0.0,"k":"resume"'
    first = b'{"n":1,"t":1.0,"w":0.0,"k":"resume"'
    files = {"late": [first, late]}
    for number in (0, 99, (1 << 64) - 1):
        files["passed%d" % number] = [b'{"n":1,"t":1.0,"w":0.0,"k":"passed","h":"client","from":%d,"to":%d,"count":1'
                                      % (number, number)]
    for name, member in (("list", b"[]"), ("number", b"5"), ("text", b'"x"'), ("null", b"null")):
        request = b'{"jsonrpc":"2.0","id":"1","method":"initialize","params":%s}' % member
        result = b'{"jsonrpc":"2.0","id":"1","result":%s}' % member
        files[name] = [message % (n, n, edge, way, kind, body) for n, (edge, way, kind, body) in enumerate((
            (b"client", b">", b"request", request), (b"agent", b">", b"request", request),
            (b"agent", b"<", b"result", result), (b"client", b"<", b"result", result)), 1)]
    return {name: sealed(head) + b"".join(map(sealed, lines)) for name, lines in files.items()}


def recordings(relay, folder):
    tapes = folder / "tapes"
    tapes.mkdir()
    one = serve(relay, folder, "--listen", "tcp://127.0.0.1:0", "--record", tapes, "--admin", "127.0.0.1:0")
    client = dial(one.endpoint)

    def served():
        client.send(json.dumps(HELLO).encode())
        if b'"result"' not in client.receive(SECONDS):
            raise Failed("the client is not served")

    served()
    page = said(one, "recordings at ")
    files = hostile()
    statuses = []
    for name, content in files.items():
        tapes.joinpath(name + ".acpr").write_bytes(content)
        statuses.append(ask("%sapi/dropped?%s.acpr=%d" % (page, name, len(content)), content)[0])
    # Those of the folder, the dropped ones and the client's own.
    count = 2 * len(files) + 1
    statuses.append(ask(page + "api/recordings?now=1")[0])
    for at in range(count):
        for question in ("state", "rows?all=1", "turns", "figures", "findings"):
            statuses.append(ask("%sapi/%d/%s" % (page, at, question))[0])
    served()
    dial(one.endpoint).close()
    code = one.process.poll()
    print("recordings  %d files; answers %s; the client is served, serve %s"
          % (len(files), {status: statuses.count(status) for status in sorted(set(statuses))},
             "runs" if code is None else "has ended with %s" % code))
    one.stop()
    if code is not None:
        raise Failed("the relay has ended: %s" % one.output[-3:])


def admin(relay, folder):
    one = serve(relay, folder, "--listen", "tcp://127.0.0.1:0", "--admin", "127.0.0.1:0")
    place = said(one, "admin at http://")
    host, port = place.rstrip("/").split(":")
    requests = b"GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n" % place.encode() * 500
    unread = []
    for _ in range(1000):
        sock = socket.create_connection((host, int(port)), SECONDS)
        sock.setblocking(False)
        try:
            sock.send(requests)
        except OSError:
            pass  # It was closed for a later one.
        unread.append(sock)
    times = []
    for pause in (0, 1, 5):
        time.sleep(pause)
        begun = time.monotonic()
        done = subprocess.run([relay, "health", "--admin", place], capture_output=True, timeout=SECONDS)
        times.append(time.monotonic() - begun)
        if done.returncode:
            raise Failed("health: %d %s" % (done.returncode, done.stderr))
        if ask("http://%s/healthz" % place)[0] != 200:
            raise Failed("no answer to /healthz")
    print("admin       %d sockets; health answers in %s s; %d MiB"
          % (len(unread), ", ".join("%.2f" % one for one in times), resident(one)))
    one.stop()


def guard(relay, folder):
    path = folder / "a.txt"
    path.write_text("x")
    file = {"sessionId": "s", "path": str(path)}
    web = {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    evil = [
        {"method": "session/update", "METHOD": "terminal/create", "params": {"sessionId": "s", "command": "evil"}},
        {"method": "session/update", "\u017fession": 0, "Method": "terminal/create", "params": {"command": "evil"}},
        {"id": 1, "method": "fs/read_text_file", "params": {**file, "PATH": "/evil"}},
        {"id": 2, "method": "fs/read_text_file", "params": {**file, "\u017fe\u017f\u017fionId": "evil"}},
        {"id": 3, "method": "fs/read_text_file", "params": file, "Params": {**file, "path": "/evil"}},
        {"id": 4, "method": "fs/write_text_file", "params": {**file, "pAth": "/evil", "content": "x"}},
        {"id": 5, "method": "elicitation/create", "params": {**web, "Url": "file:///evil"}},
        {"id": 6, "method": "elicitation/create", "params": {**web, "Mode": "url", "Url": "file:///evil"}},
        {"id": 7, "method": "terminal/create", "params": {"sessionId": "s", "command": "evil"}},
        {"id": 8, "method": "_vendor/evil", "params": {}},
        {"method": "_vendor/evil", "params": {}},
        {"method": "workspace/executeCommand", "params": {"command": "evil"}},
        {"method": "mcp/message", "params": {"evil": 1}},
    ]
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}
    good = [{"id": 9, "method": "fs/read_text_file", "params": file},
            {"method": "session/update", "params": {"sessionId": "s", "update": chunk}}]
    lines = "\n".join(json.dumps({"jsonrpc": "2.0", **one}) for one in evil + good)
    words = [relay, "--log", "error", "connect", "--guard", "always", "--files", "editor", "--",
             sys.executable, "-c", EVIL, lines]
    one = Relay(words, env={**os.environ, "ACP_RELAY_STATE_DIR": str(folder)}, listens=False)
    client = one.stdio()
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": str(folder), "mcpServers": []}}
    for request in (HELLO, new):
        client.send(json.dumps(request).encode())
        client.receive(SECONDS)
    received = [client.receive(SECONDS)]
    while b'"done"' not in received[-1]:
        received.append(client.receive(SECONDS))
    client.end()
    one.stop()
    passed = [line for line in received if b"evil" in line]
    print("guard       %d of %d calls reached the client; %d of %d permitted ones"
          % (len(passed), len(evil), len(received) - len(passed), len(good)))
    if passed or len(received) != len(good):
        raise Failed("received: %s" % received)


def link(relay, folder):
    one = serve(relay, folder, "--listen", "ws://127.0.0.1:0", agent=["sh", "-c", "exec cat >/dev/null"])
    host, _, path = one.endpoint.split("://")[1].partition("/")
    hello = {"t": "hello", "v": [1], "gen": 1, "rx": 1, "win": 4 * MIB}
    before, held, socks = resident(one), [], []
    for _ in range(3):
        sock = socket.create_connection((host.split(":")[0], one.port), SECONDS)
        ws = websocket.connect(sock, host, "/" + path, b"Sec-WebSocket-Protocol: acp, acp-link.v1\r\n")
        ws.send(json.dumps(hello).encode() + b"\n")
        if b'"welcome"' not in ws.receive(SECONDS):
            raise OSError("no link")
        sock.settimeout(5)
        # Masked with zeros.
        bodies = (b'{"t":"d","s":%d,"a":0}\n' % number for number in range(1, 500_001))
        data = memoryview(b"".join(struct.pack("!BBI", 0x82 - 1, 0x80 | len(body), 0) + body for body in bodies))
        sent = 0
        try:
            while sent < len(data):
                sent += sock.send(data[sent:sent + MIB])
        except OSError:
            pass  # The relay does not read on, or has closed.
        socks.append(sock)
        held.append(resident(one))
    print("link        %d MiB, then %s MiB with 1, 2 and 3 links of empty messages"
          % (before, ", ".join(map(str, held))))
    one.stop()
    if held[-1] - before > 3 * GROWTH["link"]:
        raise Failed("%d MiB more" % (held[-1] - before))


def threads(relay, folder):
    one = serve(relay, folder, "--listen", "agent-connect+http://127.0.0.1:0",
                "--limit", "agent-connect-bytes=64MiB")
    base = one.endpoint.removeprefix("agent-connect+").rstrip("/")
    before = resident(one)

    def make(length):
        return ask(base + "/threads", json.dumps({"metadata": {"a": "x" * length}}).encode())[0]

    statuses = [make(10 * MIB) for _ in range(20)]
    large, count = resident(one), 0
    while (status := make(60 << 10)) == 200:
        count += 1
    full = resident(one)
    begun = time.monotonic()
    searched = ask(base + "/threads/search", json.dumps({"metadata": {"a": "none"}}).encode())
    took = time.monotonic() - begun
    print("threads     %d MiB; %d MiB after 20 threads of 10 MiB (%s); %d MiB with %d of 60 KiB, then %d; "
          "a search that finds %s: %.1f s, %d MiB" % (before, large, set(statuses), full, count, status,
                                                     searched[1].decode()[:20], took, resident(one)))
    one.stop()
    if max(large, full) - before > GROWTH["threads"] or 200 in statuses:
        raise Failed("%d and %d MiB more" % (large - before, full - before))


ATTACKS = {attack.__name__: attack for attack in (recordings, admin, guard, link, threads)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--only", default=",".join(ATTACKS))
    args = parser.parse_args()
    failed = []
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            try:
                ATTACKS[name](os.path.abspath(args.relay), Path(folder))
            except (Failed, OSError, TimeoutError, websocket.Broken, AssertionError) as fault:
                failed.append("%s: %r" % (name, fault))
                print("%-11s FAILED: %r" % (name, fault))
        sys.stdout.flush()
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()

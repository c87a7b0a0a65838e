#!/usr/bin/env python3
"""http_load.py: the memory for many clients, and lost messages.

    http_load.py [--relay BINARY] [--idle 9900] [--busy 1000] [--http 1000] [--seconds 60]

1. --idle WebSockets without messages: `serve` may use 300 MiB in all.
2. --busy of them send and receive 200 KiB: within 60 s it is back to at most twice the idle memory.
3. --http connections over HTTP with two streams each send requests for both for --seconds, one per
   second and stream: every answer arrives, once, on its stream.

Needs the release build, and two file descriptors of `serve` for each client: 9900 fit into the
usual 20000. The clients and the agent are written here and only measure. Not here: official
clients (http_server.py).
"""
import argparse
import asyncio
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from paths import TARGET
from websocket import frame

HERE = Path(__file__).resolve().parent
PARALLEL = 200
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'


async def agent(reader, writer):
    """Answers every request with its own params, session/new with the requested session id."""
    try:
        while line := await reader.readline():
            message = json.loads(line)
            if "id" not in message:
                continue
            params = message.get("params") or {}
            result = {"sessionId": params["open"]} if "open" in params else {"echo": params.get("echo")}
            writer.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve_agents(path):
    async with await asyncio.start_unix_server(agent, path, backlog=4096, limit=1 << 20) as server:
        print("ready", flush=True)
        await server.serve_forever()


async def each(count, work):
    """Runs work(number) for each number, PARALLEL at a time."""
    gate = asyncio.Semaphore(PARALLEL)

    async def one(number):
        async with gate:
            return await work(number)
    return await asyncio.gather(*(one(number) for number in range(count)))


def memory(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/%d/status" % pid).read_text())[1]) / 1024


async def open_websocket(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" % port)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 "), head
    return reader, writer


async def burst(socket, size):
    """Sends a message of that size and receives it back."""
    reader, writer = socket
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"echo": "e" * size}}).encode()
    writer.write(frame(body))
    # A long message arrives in fragments; the last one has the FIN bit.
    text, is_last = b"", False
    while not is_last:
        first, second = await reader.readexactly(2)
        is_last = bool(first & 0x80)
        length = second & 0x7F
        if length >= 126:
            length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
        text += await reader.readexactly(length)
    answer = json.loads(text)
    assert len(answer["result"]["echo"]) == size


class Caller:
    """A client over HTTP/1.1 with one socket for requests and one for each stream."""

    def __init__(self, port, number):
        self.port, self.number, self.next, self.received, self.sent = port, number, 1, {}, {}

    async def request(self, method, fields=(), body=b""):
        if not hasattr(self, "socket"):
            self.socket = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.socket
        head = "%s /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" \
               "Content-Length: %d\r\n" % (method, self.port, len(body))
        writer.write((head + "".join("%s: %s\r\n" % pair for pair in fields) + "\r\n").encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"(?i)content-length: (\d+)", head)[1])
        return int(head[9:12]), head, await reader.readexactly(length)

    async def open(self):
        status, head, _ = await self.request("POST", body=HELLO)
        assert status == 200, head
        self.id = re.search(r"(?i)acp-connection-id: (\S+)", head)[1]
        self.streams = [await self.stream(None), await self.stream("s%d" % self.number)]

    async def stream(self, session):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        named = "Acp-Session-Id: %s\r\n" % session if session else ""
        writer.write(("GET /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n"
                      "Acp-Connection-Id: %s\r\n%s\r\n" % (self.port, self.id, named)).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        return asyncio.create_task(self.listen(reader, writer, session))

    async def listen(self, reader, _writer, session):
        while line := await reader.readline():
            if line.startswith(b"data: "):
                number = json.loads(line[6:])["id"]
                self.received.setdefault(number, []).append(session)

    async def send(self, session):
        number, self.next = self.next, self.next + 1
        self.sent[number] = session
        params = {"sessionId": session} if session else {"echo": number}
        method = "session/prompt" if session else "x"
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        fields = [("Acp-Connection-Id", self.id)] + ([("Acp-Session-Id", session)] if session else [])
        status, head, _ = await self.request("POST", fields, body)
        assert status == 202, head

    async def run(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await self.send(None)
            await self.send("s%d" % self.number)
            await asyncio.sleep(1)

    def lost(self):
        return sum(self.received.get(number) != [session] for number, session in self.sent.items())


async def run(args):
    folder = tempfile.mkdtemp(prefix="acp-load-")
    path = folder + "/agent.sock"
    # In its own process, which has its own descriptors.
    agents = await asyncio.create_subprocess_exec(sys.executable, __file__, "--agents", path, stdout=asyncio.subprocess.PIPE)
    await agents.stdout.readline()
    most = max(args.idle, args.http) + 16
    process = await asyncio.create_subprocess_exec(
        args.relay, "serve", "--listen", "http://127.0.0.1:0", "--agent", "unix:" + path,
        "--limit", "connections=%d" % most, "--limit", "http-sockets=%d" % (4 * most), stderr=asyncio.subprocess.PIPE)
    line = (await process.stderr.readline()).decode()
    port = int(re.search(r":(\d+)/acp", line)[1])
    drain = asyncio.create_task(process.stderr.read())
    wrong = []
    try:
        empty = memory(process.pid)
        if args.idle:
            sockets = await each(args.idle, lambda _: open_websocket(port))
            await asyncio.sleep(2)
            idle = memory(process.pid)
            print("%d idle WebSockets: %.0f MiB (%.1f before)" % (args.idle, idle, empty), flush=True)
            if idle > 300:
                wrong.append("more than 300 MiB")
            busy = min(args.busy, args.idle)
            await each(busy, lambda number: burst(sockets[number], 200 << 10))
            peak, began = memory(process.pid), time.monotonic()
            while memory(process.pid) > 2 * idle and time.monotonic() - began < 60:
                await asyncio.sleep(1)
            after = memory(process.pid)
            print("200 KiB through %d of them: %.0f MiB, then %.0f MiB after %.0f s" % (
                busy, peak, after, time.monotonic() - began), flush=True)
            if after > 2 * idle:
                wrong.append("more than twice idle after a burst")
            for _, writer in sockets:
                writer.transport.abort()
            await asyncio.sleep(3)
        if args.http:
            before = memory(process.pid)
            callers = [Caller(port, number) for number in range(args.http)]
            await each(args.http, lambda number: callers[number].open())
            await asyncio.gather(*(caller.run(args.seconds) for caller in callers))
            await asyncio.sleep(2)
            sent, lost = sum(len(one.sent) for one in callers), sum(one.lost() for one in callers)
            print("%d HTTP connections with 2 streams, %d s: %d requests, %d lost or misdirected; %.0f MiB (%.0f before)" % (
                args.http, args.seconds, sent, lost, memory(process.pid), before), flush=True)
            if lost:
                wrong.append("messages were lost")
    finally:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), 30)
        drain.cancel()
        agents.kill()
        await agents.wait()
        os.unlink(path)
        os.rmdir(folder)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=str(TARGET / "release/acp-relay"))
    parser.add_argument("--agents", help=argparse.SUPPRESS)
    parser.add_argument("--idle", type=int, default=9_900)
    parser.add_argument("--busy", type=int, default=1_000)
    parser.add_argument("--http", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    if args.agents:
        return asyncio.run(serve_agents(args.agents))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(2 * args.idle, 4 * args.http) + 100
    if soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, hard)))
        except (ValueError, OSError):
            sys.exit("%d file descriptors are needed, %d are allowed" % (needed, hard))
    wrong = asyncio.run(run(args))
    print("ok" if not wrong else "FAIL: " + "; ".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

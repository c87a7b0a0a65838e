#!/usr/bin/env python3
"""far.py: an agent behind a network that is slow, or that has no way out but a proxy.

    far.py [--relay BINARY] [--old BINARY]

Distance: a proxy delays each direction by 100 ms. Printed is the number of round trips from an open connection
(TCP; for wss:// its handshake comes on top, for ssh:// the login) to the first answer of the agent, and from a
cut to the answer of a request that was sent meanwhile. With `--old`, an older program is tried on each side.

The proxy of a company: `HTTPS_PROXY` and `NO_PROXY`, for a host whose name only the proxy knows. It sees a
CONNECT and TLS, and no token. What it refuses is told in a line.
"""
import argparse
import asyncio
import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import isolation
import sshd
from paths import RELAY
from returns import Fault
from wires import Relay

DELAY = 0.1
PATIENCE = 30
AGENT = r"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"protocolVersion": 1, "agentCapabilities": {}} if message["method"] == "initialize" else {}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
COMMAND = [sys.executable, "-uc", AGENT]
HOST = "agents.example"


class Network(threading.Thread):
    """A loop of asyncio in a thread of its own, with a listener whose port is `port`."""

    def __init__(self, serve):
        super().__init__(daemon=True)
        self.loop, self.serve, self.port, ready = asyncio.new_event_loop(), serve, 0, threading.Event()

        async def listen():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
        self.loop.create_task(listen())
        self.start()
        ready.wait(PATIENCE)

    def run(self):
        self.loop.run_forever()


async def copied(reader, writer, delay, seen):
    """Passes bytes on, each of them late, until one side ends."""
    queue = asyncio.Queue()

    async def send():
        while (piece := await queue.get()) is not None:
            due, data = piece
            await asyncio.sleep(max(0, due - time.monotonic()))
            writer.write(data)
            await writer.drain()
        writer.close()
    sending = asyncio.create_task(send())
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            seen.append(data)
            await queue.put((time.monotonic() + delay, data))
    await queue.put(None)
    with contextlib.suppress(OSError):
        await sending


class Slow(Network):
    """Delays what passes to a port; `cut` breaks all connections."""

    def __init__(self, port):
        self.open, self.opened, self.first = [], 0, 0.0
        super().__init__(self.pass_on)
        self.target = port

    async def pass_on(self, reader, writer):
        self.opened, self.first = self.opened + 1, time.monotonic()
        there, to_there = await asyncio.open_connection("127.0.0.1", self.target)
        self.open = [writer, to_there]
        await asyncio.gather(copied(reader, to_there, DELAY, []), copied(there, writer, DELAY, []))

    def cut(self):
        def abort():
            for writer in self.open:
                writer.transport.abort()
        self.loop.call_soon_threadsafe(abort)


class Editor:
    """An editor that has started `connect`."""

    def __init__(self, words, env):
        self.process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, number, method):
        params = {"protocolVersion": 1, "clientCapabilities": {}} if method == "initialize" else {}
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()

    def answer(self):
        """The next answer, and when it came."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": {"message": self.process.stderr.read()}}, time.monotonic()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        said = self.process.stderr.read()
        self.process.wait(PATIENCE)
        return said


def trips(words, env, slow):
    """Round trips to the first answer and after a cut."""
    editor = Editor(words, env)
    try:
        editor.ask(0, "initialize")
        answer, came = editor.answer()
        if "result" not in answer:
            raise Fault("no agent: %s" % answer)
        first = (came - slow.first) / (2 * DELAY)
        before = slow.opened
        slow.cut()
        editor.ask(1, "_peers/ask")
        answer, came = editor.answer()
        if answer.get("id") != 1 or slow.opened == before:
            raise Fault("no other connection: %s" % answer)
        return first, (came - slow.first) / (2 * DELAY)
    finally:
        editor.end()


class Place:
    """Folders, certificates and a token for relays there."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**isolation.environment(folder / "home"), "ACP_RELAY_STATE_DIR": str(folder / "state"),
                    "NO_PROXY": "", "no_proxy": ""}
        self.keys = isolation.certificates(folder / "tls", "DNS:" + HOST, "IP:127.0.0.1")

    def serve(self, relay, scheme):
        secure = ["--tls-cert", self.keys / "cert.pem", "--tls-key", self.keys / "key.pem"] if scheme in ("wss", "https") else []
        token = self.folder / ("token-%s-%s" % (scheme, len(list(self.folder.iterdir()))))
        subprocess.run([relay, "token", "new", token.name, "--out", token], env=self.env, check=True, stdout=subprocess.DEVNULL)
        served = Relay([relay, "serve", "--listen", "%s://127.0.0.1:0/acp" % scheme, "--allow-host", HOST, "--allow-host",
                        "127.0.0.1", "--require-token", *secure, "--", *COMMAND], self.env)
        options = ["--bearer-file", token]
        return served, options + (["--tls-ca", self.keys / "ca.pem"] if secure else [])


def distance(place, here, there, name):
    for scheme in ("ws", "wss", "https"):
        served, options = place.serve(there, scheme)
        try:
            slow = Slow(served.port)
            at = "%s://127.0.0.1:%d/acp" % (scheme, slow.port)
            figures = trips([here, "connect", *options, at], place.env, slow)
            print("ok    %-5s  %s: %.1f round trips to the first answer, %.1f after a cut" % (scheme, name, *figures), flush=True)
        finally:
            served.stop()
    if not sshd.PROGRAM.exists():
        print("skip  sshd is not installed")
        return
    folder = place.folder / ("ssh-" + name.replace(" ", "-"))
    home, programs = folder / "home", folder / "bin"
    (home / "bin").mkdir(parents=True)
    programs.mkdir()
    (home / "bin/acp-relay").symlink_to(there)
    (home / "relay.toml").write_text("[agents.test]\ncommand = %s\n" % json.dumps(COMMAND))
    port = isolation.free_port()
    daemon, options = sshd.start(folder / "keys", HOST, port, {
        "HOME": home, "PATH": "%s/bin:/usr/bin:/bin" % home, "ACP_RELAY_OVER_SSH_IDLE": "1s", "ACP_RELAY_CONFIG": home / "relay.toml",
        "ACP_RELAY_STATE_DIR": home / "s"})
    slow = Slow(port)
    (programs / "ssh").write_text('#!/bin/sh\nexec /usr/bin/ssh %s -p %d "$@"\n' % (" ".join(options), slow.port))
    (programs / "ssh").chmod(0o755)
    env = {**place.env, "PATH": "%s:%s" % (programs, place.env["PATH"])}
    try:
        # A login is no part of it: the same one without a relay is subtracted.
        slow.first = 0
        subprocess.run(["ssh", HOST, "true"], env=env, check=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        begun = time.monotonic()
        login = (begun - slow.first) / (2 * DELAY)
        first, after = trips([here, "connect", "ssh://%s/test" % HOST], env, slow)
        print("ok    ssh    %s: %.1f round trips to the first answer, %.1f after a cut; `ssh %s true` takes %.1f" % (
            name, first, after, HOST, login), flush=True)
    finally:
        daemon.terminate()
        daemon.wait()


class Company(Network):
    """A proxy: `answer` is what it says to CONNECT; what it saw is in `heads` and `bytes`."""

    def __init__(self, port):
        self.target, self.answer, self.heads, self.bytes = port, b"HTTP/1.1 200 Connection established\r\n\r\n", [], []
        super().__init__(self.pass_on)

    async def pass_on(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.answer)
            if b" 200 " not in self.answer or b"<html" in self.answer:
                writer.close()
                return
            there, to_there = await asyncio.open_connection("127.0.0.1", self.target)
            await asyncio.gather(copied(reader, to_there, 0, self.bytes), copied(there, writer, 0, []))


def proxied(place, relay):
    for scheme in ("wss", "https"):
        served, options = place.serve(relay, scheme)
        company = Company(served.port)
        at = "%s://%s:4443/acp" % (scheme, HOST)
        token = (place.folder / options[1]).read_bytes().strip()

        def connect(to=at, **variables):
            editor = Editor([relay, "connect", *options, to], {**place.env, **variables})
            editor.ask(0, "initialize")
            answer, _ = editor.answer()
            return answer, editor.end()

        def check(what, holds, seen):
            if not holds:
                raise Fault("%s %s: %s" % (scheme, what, seen))
            print("ok    %-5s  %s" % (scheme, what), flush=True)
        try:
            address = "127.0.0.1:%d" % company.port
            answer, said = connect(HTTPS_PROXY="http://" + address)
            check("through the proxy", "result" in answer and company.heads[0].startswith(b"CONNECT agents.example:4443 HTTP/1.1\r\n"),
                  (answer, said, company.heads))
            check("the proxy sees no token", token not in b"".join(company.heads + company.bytes), "")
            answer, said = connect(https_proxy="http://me:pass%%2Fword@%s" % address)
            secret = base64.b64encode(b"me:pass/word")
            check("with user and password", "result" in answer and secret in company.heads[-1], company.heads[-1])
            check("which are printed nowhere", "pass" not in said, said)
            company.answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
            answer, said = connect(HTTPS_PROXY="http://me:wrongpass@%s" % address)
            text = answer["error"]["message"]
            check("a password that is asked for: %s" % text, "a user and a password" in text and "wrongpass" not in text + said, (text, said))
            company.answer = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 20\r\n\r\n<html>no way</html>\n"
            text = connect(HTTPS_PROXY="http://" + address)[0]["error"]["message"]
            check("a refusal in HTML: %s" % text, "403" in text and "<html" not in text, text)
            company.answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>log in first</html>\n"
            text = connect(HTTPS_PROXY="http://" + address)[0]["error"]["message"]
            check("a page in place of a connection: %s" % text, "\n" not in text and "<html" not in text, text)
            company.answer, count = b"", len(company.heads)
            text = connect(HTTPS_PROXY="http://" + address, NO_PROXY="x.example, .example")[0]["error"]["message"]
            check("NO_PROXY: %s" % text, len(company.heads) == count, company.heads)
            text = connect(HTTPS_PROXY="socks5://" + address)[0]["error"]["message"]
            check("another kind of proxy: %s" % text, "http:// is" in text, text)
            port = isolation.free_port()
            text = connect(HTTPS_PROXY="http://127.0.0.1:%d" % port)[0]["error"]["message"]
            check("no proxy there: %s" % text, "the proxy http://127.0.0.1:%d" % port in text, text)
            answer, said = connect("%s://127.0.0.1:%d/acp" % (scheme, served.port), HTTPS_PROXY="http://127.0.0.1:%d" % port)
            check("loopback is never proxied", "result" in answer, (answer, said))
            done = subprocess.run([relay, "doctor", "--no-probe"], capture_output=True, text=True,
                                  env={**place.env, "HTTPS_PROXY": "http://me:secret@" + address, "NO_PROXY": "x.example"})
            check("doctor names it", address in done.stdout and "x.example" in done.stdout and "secret" not in done.stdout, done.stdout)
        finally:
            served.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--old", help="an older program, for the other side")
    asked = parser.parse_args()
    relay = str(Path(asked.relay).resolve())
    ways = {"this version": (relay, relay)}
    if asked.old:
        old = str(Path(asked.old).resolve())
        ways.update({"an older one there": (relay, old), "an older one here": (old, relay), "older ones": (old, old)})
    with tempfile.TemporaryDirectory(prefix="acp-far-") as folder:
        place = Place(Path(folder))
        try:
            for name, (here, there) in ways.items():
                distance(place, here, there, name)
            proxied(place, relay)
        except (Fault, OSError, ValueError, KeyError, subprocess.SubprocessError) as fault:
            print("FAIL  %s: %s" % (type(fault).__name__, fault))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

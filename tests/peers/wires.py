"""Transports of the harness's own clients and agents, one message at a time.

A wire has `send(body)`, `receive(seconds)` (None at the end), `end()` and `close()` over every
transport. `Relay` starts an acp-relay and reads its endpoint. Not here: the messages.
"""
import os
import re
import select
import signal
import socket
import subprocess
import threading

import websocket
from framing import NDJSON, Splitter


class ByteWire:
    """Messages over two descriptors, or one socket given twice."""

    def __init__(self, reads, writes, framing=NDJSON):
        self.reads, self.writes, self.framing = reads, writes, framing
        self.splitter = Splitter(framing)
        self.bodies = []

    def send(self, body):
        """Sends the body unchanged: the caller must avoid line breaks in NDJSON."""
        if self.framing == NDJSON:
            self.raw(body + b"\n")
        else:
            self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def raw(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.writes.fileno(), view):]

    def receive(self, seconds):
        while not self.bodies:
            if not select.select([self.reads], [], [], seconds)[0]:
                raise TimeoutError("nothing was received for %g s" % seconds)
            try:
                chunk = os.read(self.reads.fileno(), 1 << 18)
            except ConnectionError:
                chunk = b""
            if not chunk:
                return None
            self.bodies = self.splitter.feed(chunk)
        return self.bodies.pop(0)

    def end(self):
        if isinstance(self.writes, socket.socket):
            try:
                self.writes.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The peer has closed already.
        else:
            self.writes.close()

    def close(self):
        for end in (self.reads, self.writes):
            try:
                end.close()
            except OSError:
                pass  # Unwritten data is discarded.


def dial(endpoint, framing=NDJSON):
    """A wire to the listener at `endpoint`."""
    scheme, _, rest = endpoint.partition(":")
    if scheme == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(rest)
        return ByteWire(sock, sock, framing)
    where, _, path = rest.lstrip("/").partition("/")
    host, _, port = where.rpartition(":")
    sock = socket.create_connection((host, int(port)), 10)
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return websocket.connect(sock, where, "/" + path) if scheme == "ws" else ByteWire(sock, sock, framing)


class Listener:
    """Accepts relays at its own endpoint and passes each wire to `talk`, in a thread."""

    def __init__(self, scheme, folder, talk, framing=NDJSON):
        self.scheme, self.talk, self.framing = scheme, talk, framing
        if scheme == "unix":
            path = "%s/agent.sock" % folder
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.bind(path)
            self.sock.listen()
            self.endpoint = "unix:" + path
        else:
            self.sock = socket.create_server(("127.0.0.1", 0))
            at = "127.0.0.1:%d" % self.sock.getsockname()[1]
            self.endpoint = "ws://%s/acp" % at if scheme == "ws" else "tcp://" + at
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock):
        try:
            if self.scheme != "unix":
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire = websocket.accept(sock) if self.scheme == "ws" else ByteWire(sock, sock, self.framing)
            self.talk(wire)
            wire.end()
        except (OSError, websocket.Broken):
            pass  # The relay disconnected; the client side of the run reports it.
        sock.close()

    def close(self):
        # shutdown wakes the thread in accept(); close alone does not.
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


class Relay:
    """A running acp-relay. `endpoint` is its listener's, None on stdio; `output` its last stderr lines."""

    def __init__(self, words, env=None, listens=True, folder=None, apart=True):
        self.endpoint = None
        pipe = subprocess.DEVNULL if listens else subprocess.PIPE
        self.process = subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.PIPE,
                                        bufsize=0, start_new_session=apart)
        self.output, bound = [], threading.Event()

        def read():
            for line in self.process.stderr:
                self.output = [*self.output[-50:], line.decode(errors="replace").rstrip()]
                if found := re.search(r"acp-relay: listening on (\S+)", self.output[-1]):
                    self.endpoint = found[1]
                    bound.set()
            bound.set()
        threading.Thread(target=read, daemon=True).start()
        if listens and not (bound.wait(10) and self.endpoint):
            self.stop(signal.SIGKILL)
            raise OSError("%s did not listen: %s" % (" ".join(map(str, words)), self.output))

    @property
    def port(self):
        return int(re.search(r":(\d+)", self.endpoint)[1])

    def stdio(self, framing=NDJSON):
        return ByteWire(self.process.stdout, self.process.stdin, framing)

    def stop(self, how=signal.SIGTERM, seconds=15):
        """Its exit code; None when it had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def listen_at(scheme, folder):
    """An endpoint to give to `--listen`."""
    return {"unix": "unix:%s/relay.sock" % folder, "ws": "ws://127.0.0.1:0/acp"}.get(
        scheme, "%s://127.0.0.1:0" % scheme)

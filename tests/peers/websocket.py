"""A minimal WebSocket (RFC 6455) for the harness: text in both roles, no TLS.

It uses only the standard library, so that the relay is not tested with the library it is built on.
It checks the peer's masking, fragments and close codes, and answers pings. Not here: conformance to
the rest of the RFC, which Autobahn tests (see autobahn.py).
"""
import base64
import hashlib
import os
import select
import struct

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUE, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
CHUNK = 1 << 18


class Broken(Exception):
    """The peer violates the protocol, or the handshake failed."""


def connect(sock, host, path, fields=b""):
    """The client's handshake over a connected socket; `fields` are further header lines."""
    key = base64.b64encode(os.urandom(16))
    sock.sendall(b"GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n%s\r\n"
                 % (path.encode(), host.encode(), key, fields))
    head, rest = _head(sock)
    if not head.startswith(b"HTTP/1.1 101 ") or _field(head, b"sec-websocket-accept") != _accept(key):
        raise Broken("not opened: %r" % head[:200])
    return WebSocket(sock, True, rest)


def accept(sock):
    """The server's handshake over an accepted socket."""
    head, rest = _head(sock)
    key = _field(head, b"sec-websocket-key")
    if not key:
        raise Broken("no upgrade request: %r" % head[:200])
    sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: %s\r\n\r\n" % _accept(key))
    return WebSocket(sock, False, rest)


def frame(body, opcode=TEXT, masked=True):
    """A whole message in one frame."""
    size, bit = len(body), 0x80 if masked else 0
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, bit | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, bit | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, bit | 127, size)
    if not masked:
        return head + body
    key = os.urandom(4)
    return head + key + _mask(body, key)


class WebSocket:
    """An open WebSocket. `code` is the close code once `receive` has returned None, 1006 without one."""

    def __init__(self, sock, is_client, rest=b""):
        self.sock, self.is_client = sock, is_client
        self.rest = bytearray(rest)
        self.parts = []
        self.code = None

    def send(self, body):
        self.sock.sendall(frame(body, TEXT, self.is_client))

    def receive(self, seconds):
        """The next text; None when the peer has closed."""
        while self.code is None:
            opcode, last, body = self._frame(seconds)
            if opcode is None:
                self.code = 1006
            elif opcode == CLOSE:
                self.code = struct.unpack("!H", body[:2])[0] if body else 1005
                self._reply(CLOSE, body[:2])
            elif opcode == PING:
                self._reply(PONG, body)
            elif opcode in (TEXT, CONTINUE):
                if (opcode == CONTINUE) != bool(self.parts):
                    raise Broken("an unexpected continuation frame")
                self.parts.append(body)
                if last:
                    whole, self.parts = b"".join(self.parts), []
                    return whole
            elif opcode != PONG:
                raise Broken("opcode %d" % opcode)
        return None

    def end(self):
        """Sends a close frame; messages of the peer can still be received."""
        self._reply(CLOSE, struct.pack("!H", 1000))

    def close(self):
        self.sock.close()

    def _reply(self, opcode, body):
        try:
            self.sock.sendall(frame(body, opcode, self.is_client))
        except OSError:
            pass  # The peer has closed already.

    def _frame(self, seconds):
        if not self._have(2, seconds):
            return None, True, b""
        first, second = self.rest[0], self.rest[1]
        if first & 0x70 or bool(second & 0x80) == self.is_client:
            raise Broken("a reserved bit, or wrong masking: %02x%02x" % (first, second))
        size, at = second & 0x7F, 2
        if size > 125:
            at = 4 if size == 126 else 10
            if not self._have(at, seconds):
                return None, True, b""
            size = int.from_bytes(self.rest[2:at], "big")
        start = at if self.is_client else at + 4
        if not self._have(start + size, seconds):
            return None, True, b""
        body = bytes(self.rest[start:start + size])
        if not self.is_client:
            body = _mask(body, bytes(self.rest[at:start]))
        del self.rest[:start + size]
        return first & 0x0F, bool(first & 0x80), body

    def _have(self, size, seconds):
        while len(self.rest) < size:
            # select() takes no descriptor above 1023.
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            if not poll.poll(None if seconds is None else 1000 * seconds):
                raise TimeoutError("nothing was received for %g s" % seconds)
            try:
                chunk = self.sock.recv(CHUNK)
            except ConnectionError:
                chunk = b""
            if not chunk:
                return False
            self.rest += chunk
        return True


def _mask(body, key):
    """XOR with a repeated key, as one integer: a loop over bytes would take seconds."""
    size = len(body)
    pattern = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(body, "little") ^ int.from_bytes(pattern, "little")).to_bytes(size, "little")


def _accept(key):
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def _head(sock):
    data = b""
    while b"\r\n\r\n" not in data:
        sock.settimeout(10)
        chunk = sock.recv(4096)
        if not chunk:
            raise Broken("closed during the handshake: %r" % data[:200])
        data += chunk
    sock.settimeout(None)
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _field(head, name):
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return None

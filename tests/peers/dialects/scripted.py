#!/usr/bin/env python3
"""scripted.py: a peer with an older dialect, which sends and expects exactly the messages of a play.

    scripted.py PART VERDICT [--listen | --connect HOST:PORT | -- COMMAND...]

As the agent it uses its own stdio, or with --listen the first connection to the port that it prints.
As the client it starts COMMAND, or connects. PART has its lines, as written by play.py. Each received
message must equal the next line as a JSON value; a message after the last line is a fault. VERDICT
gets `{"fault": null}` or the fault; the exit code is 0 or 1.

It depends on neither the relay nor a dialect: the messages of a dialect are in its play.
"""
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from framing import NDJSON, Splitter, sniff, wrap  # noqa: E402

# Limit for the whole play, in seconds; generous, for machines under load.
PATIENCE = 25


class Fault(Exception):
    pass


class Wire:
    """Whole messages over two pipes or a socket, each way in its own framing."""

    def __init__(self, read, write, framing):
        self.read, self.write, self.framing = read, write, framing
        self.splitter = None
        self.waiting = []

    def send(self, message):
        data = wrap(json.dumps(message, ensure_ascii=False).encode(), self.framing)
        while data:
            data = data[self.write(data):]

    def receive(self):
        """The next message; None at the end."""
        while not self.waiting:
            chunk = self.read(1 << 16)
            if not chunk:
                return None
            if not self.splitter:
                if self.framing == "as-heard":
                    self.framing = sniff(chunk)
                if sniff(chunk) != self.framing:
                    raise Fault("received a framing that is not %s: %r" % (self.framing, chunk[:40]))
                self.splitter = Splitter(self.framing)
            self.waiting = self.splitter.feed(chunk)
        body = self.waiting.pop(0)
        if self.framing == NDJSON and b"\r" in body:
            raise Fault("a line break inside a line")
        return json.loads(body)


class Peer:
    def __init__(self, part, wire):
        self.part, self.wire = part, wire
        self.ids = {}      # ids of received requests, by the play's
        self.asked = {}    # methods of own requests, by id
        self.known = dict(part["known"])  # values of the play's $words

    def play(self):
        for line in self.part["lines"]:
            try:
                (self.send if line["mine"] else self.receive)(line["message"])
            except Fault as fault:
                raise Fault("%s: %s" % (line["at"], fault)) from None

    def send(self, message):
        message = self.filled(message)
        answers = "method" not in message
        method = message.get("method")
        if answers:
            method, message["id"] = self.ids.pop(key(message["id"]))
        elif "id" in message:
            self.asked[key(message["id"])] = method
        if self.carries_jsonrpc("says", method):
            message = {"jsonrpc": "2.0", **message}
        self.wire.send(message)

    def receive(self, expected):
        received = self.wire.receive()
        if received is None:
            raise Fault("received the end of the stream, expected %s" % short(expected))
        if "method" in expected:
            method = expected["method"]
        else:
            method = self.asked.pop(key(expected["id"]), None)
        if self.carries_jsonrpc("hears", method):
            expected = {"jsonrpc": "2.0", **expected}
        if "method" in expected and "id" in expected:
            if "id" not in received:
                raise Fault("received %s, expected a request: %s" % (short(received), short(expected)))
            self.ids[key(expected["id"])] = (method, received["id"])
            self.known["$id:%s" % expected["id"]] = received["id"]
            narrow = type(received["id"]) is int and -1 << 31 <= received["id"] < 1 << 31
            if self.part["ids"] == "int32" and not narrow:
                raise Fault("received the id %s, which does not fit 32 bits" % short(received["id"]))
            expected = {**expected, "id": received["id"]}
        if place := self.differs(expected, received, ""):
            raise Fault("received %s, expected %s; they differ at %r" % (short(received), short(expected), place))

    def carries_jsonrpc(self, direction, method):
        """Whether a message has the member `jsonrpc`, by its method; an answer, by the method of
        its request."""
        rule = self.part["jsonrpc"][direction]
        return rule == "all" or method in rule.split(",")

    def filled(self, value):
        if isinstance(value, dict):
            return {name: self.filled(own) for name, own in value.items()}
        if isinstance(value, list):
            return [self.filled(own) for own in value]
        return self.known.get(value, value) if isinstance(value, str) else value

    def differs(self, expected, received, place):
        """The place where `received` differs from `expected`; None if they are equal."""
        if isinstance(expected, str) and expected.startswith("$") and not expected.startswith("$/"):
            expected = self.known.setdefault(expected, received)
        if type(expected) is not type(received):
            return place or "/"
        if isinstance(expected, dict):
            for name in sorted(expected.keys() | received.keys()):
                if name not in expected or name not in received:
                    return place + "/" + name
                if found := self.differs(expected[name], received[name], place + "/" + name):
                    return found
            return None
        if isinstance(expected, list):
            if len(expected) != len(received):
                return place or "/"
            pairs = enumerate(zip(expected, received))
            return next((found for at, pair in pairs if (found := self.differs(*pair, "%s/%d" % (place, at)))), None)
        return None if expected == received else place or "/"


def key(value):
    """An id as a dictionary key: 1, "1" and true are different."""
    return json.dumps(value)


def short(message):
    return json.dumps(message, ensure_ascii=False)


def time_out(*_):
    raise Fault("timed out after %d s" % PATIENCE)


def rest(wire):
    """No message may follow the last line."""
    message = wire.receive()
    if message is not None:
        raise Fault("received after the last line: %s" % short(message))


def main():
    part = json.loads(Path(sys.argv[1]).read_text())
    verdict, how = Path(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGALRM, time_out)
    signal.alarm(PATIENCE)
    child = leave = None
    fault = code = None
    try:
        if how[:1] == ["--listen"]:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                print("listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
                sock, _ = listener.accept()
            wire = Wire(sock.recv, sock.send, part["framing"])
        elif how[:1] == ["--connect"]:
            host, port = how[1].split(":")
            sock = socket.create_connection((host, int(port)))
            wire, leave = Wire(sock.recv, sock.send, part["framing"]), lambda: sock.shutdown(socket.SHUT_WR)
        elif how[:1] == ["--"]:
            child = subprocess.Popen(how[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            out, read = child.stdin.fileno(), child.stdout.fileno()
            wire = Wire(lambda n: os.read(read, n), lambda data: os.write(out, data), part["framing"])
            leave = child.stdin.close
        else:
            wire = Wire(lambda n: os.read(0, n), lambda data: os.write(1, data), part["framing"])
        Peer(part, wire).play()
        if leave:
            leave()
        rest(wire)
        if child:
            code = child.wait()
            if code != 0:
                raise Fault("the relay exited with %d" % code)
    except (Fault, OSError, ValueError) as error:
        fault = str(error) or type(error).__name__
        if child:
            child.kill()
            child.wait()
    signal.alarm(0)
    verdict.write_text(json.dumps({"fault": fault}))
    sys.exit(1 if fault else 0)


if __name__ == "__main__":
    main()

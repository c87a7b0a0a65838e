#!/usr/bin/env python3
"""scripted.py: a peer of old, which says and hears what a play has for it, to the letter.

    scripted.py PART VERDICT [--listen | --connect HOST:PORT | -- COMMAND...]

As the agent it speaks over its own stdio, or with --listen to the first who connects to the port
that it prints. As the client it starts COMMAND, or connects. PART is what play.py cut out for it.
What is heard has to be the next line, as JSON values are equal; what is heard beyond the last
line is a fault. VERDICT gets `{"fault": null}` or what was wrong; the exit code is 0 or 1.

Nothing of the relay or of any dialect is known here: whatever a dialect is, stands in its play.
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

# A message that does not come in this time does not come; generous, for machines under load.
PATIENCE = 25


class Fault(Exception):
    pass


class Wire:
    """Whole messages over two pipes or a socket, each way in its own framing."""

    def __init__(self, read, write, framing):
        self.read, self.write, self.framing = read, write, framing
        self.splitter = None
        self.waiting = []

    def say(self, message):
        data = wrap(json.dumps(message, ensure_ascii=False).encode(), self.framing)
        while data:
            data = data[self.write(data):]

    def hear(self):
        """The next message; None at the end."""
        while not self.waiting:
            chunk = self.read(1 << 16)
            if not chunk:
                return None
            if not self.splitter:
                if self.framing == "as-heard":
                    self.framing = sniff(chunk)
                if sniff(chunk) != self.framing:
                    raise Fault("heard a framing that is not %s: %r" % (self.framing, chunk[:40]))
                self.splitter = Splitter(self.framing)
            self.waiting = self.splitter.feed(chunk)
        body = self.waiting.pop(0)
        if self.framing == NDJSON and b"\r" in body:
            raise Fault("a line break inside of a line")
        return json.loads(body)


class Peer:
    def __init__(self, part, wire):
        self.part, self.wire = part, wire
        self.ids = {}      # ids of requests that were heard, by the play's
        self.asked = {}    # methods of our own requests, by id
        self.known = dict(part["known"])  # what stands behind the play's $words

    def play(self):
        for line in self.part["lines"]:
            try:
                (self.say if line["mine"] else self.hear)(line["message"])
            except Fault as fault:
                raise Fault("%s: %s" % (line["at"], fault)) from None

    def say(self, message):
        message = self.filled(message)
        answers = "method" not in message
        method = message.get("method")
        if answers:
            method, message["id"] = self.ids.pop(key(message["id"]))
        elif "id" in message:
            self.asked[key(message["id"])] = method
        if self.carries_jsonrpc("says", method):
            message = {"jsonrpc": "2.0", **message}
        self.wire.say(message)

    def hear(self, wanted):
        heard = self.wire.hear()
        if heard is None:
            raise Fault("heard the end, wanted %s" % short(wanted))
        if "method" in wanted:
            method = wanted["method"]
        else:
            method = self.asked.pop(key(wanted["id"]), None)
        if self.carries_jsonrpc("hears", method):
            wanted = {"jsonrpc": "2.0", **wanted}
        if "method" in wanted and "id" in wanted:
            if "id" not in heard:
                raise Fault("heard %s, wanted a request: %s" % (short(heard), short(wanted)))
            self.ids[key(wanted["id"])] = (method, heard["id"])
            self.known["$id:%s" % wanted["id"]] = heard["id"]
            narrow = type(heard["id"]) is int and -1 << 31 <= heard["id"] < 1 << 31
            if self.part["ids"] == "int32" and not narrow:
                raise Fault("heard the id %s, which has no 32 bits" % short(heard["id"]))
            wanted = {**wanted, "id": heard["id"]}
        if place := self.differs(wanted, heard, ""):
            raise Fault("heard %s, wanted %s; they differ at %r" % (short(heard), short(wanted), place))

    def carries_jsonrpc(self, does, method):
        """Where a dialect leaves the member out, its messages are told by their method, and
        answers by that of what they answer."""
        rule = self.part["jsonrpc"][does]
        return rule == "all" or method in rule.split(",")

    def filled(self, value):
        if isinstance(value, dict):
            return {name: self.filled(own) for name, own in value.items()}
        if isinstance(value, list):
            return [self.filled(own) for own in value]
        return self.known.get(value, value) if isinstance(value, str) else value

    def differs(self, wanted, heard, place):
        """Where `heard` is not what is wanted; None where it is."""
        if isinstance(wanted, str) and wanted.startswith("$") and not wanted.startswith("$/"):
            wanted = self.known.setdefault(wanted, heard)
        if type(wanted) is not type(heard):
            return place or "/"
        if isinstance(wanted, dict):
            for name in sorted(wanted.keys() | heard.keys()):
                if name not in wanted or name not in heard:
                    return place + "/" + name
                if found := self.differs(wanted[name], heard[name], place + "/" + name):
                    return found
            return None
        if isinstance(wanted, list):
            if len(wanted) != len(heard):
                return place or "/"
            pairs = enumerate(zip(wanted, heard))
            return next((found for at, pair in pairs if (found := self.differs(*pair, "%s/%d" % (place, at)))), None)
        return None if wanted == heard else place or "/"


def key(value):
    """An id as it can be looked up: 1, "1" and true are three."""
    return json.dumps(value)


def short(message):
    return json.dumps(message, ensure_ascii=False)


def too_late(*_):
    raise Fault("nothing came for %d s" % PATIENCE)


def rest(wire):
    """Nobody speaks after the last line."""
    heard = wire.hear()
    if heard is not None:
        raise Fault("heard after the last line: %s" % short(heard))


def main():
    part = json.loads(Path(sys.argv[1]).read_text())
    verdict, how = Path(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGALRM, too_late)
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
                raise Fault("the relay ended with %d" % code)
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

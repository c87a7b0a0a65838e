#!/usr/bin/env python3
"""json_suite.py: what is JSON crosses the relay byte for byte, what is not is refused.

    json_suite.py [--relay BINARY] [--client WIRE]... [--agent WIRE]... [--seed N] [--jobs N]

Every text of tests/vectors/json (JSONTestSuite) becomes the `params` of a request, through every
pair of a wire of the client and a wire of the agent, in an order shuffled by the seed. After each
text a good request follows on the same connection. The agent echoes `params` as its `result` and
notes what it heard. Demanded:
  y_  the request arrives byte for byte, and so does the echo;
  n_  exactly one error comes, -32700 with id null or -32600 with the request's id, and nothing
      arrives at the agent;
  i_  either of the two;
  and always: the good request is answered on the same connection, and nothing else comes.
Three rules, where framings and encodings meet:
  - Line breaks in a text cannot travel where a message is a line. From such a client the text is
    sent as it is and its parts are what the relay hears: each part that is not blank gets one
    of the two errors (a part may be JSON by itself, and has no id then), nothing arrives. The same texts travel whole from the clients `.../length` and `ws`.
  - To an agent whose wire has a message a line, a line break of a y_ text is a space.
  - Over a WebSocket, what is not UTF-8 breaks RFC 6455: the relay has to close with 1007. There
    the next request goes over a new connection, and nothing may have arrived at the agent.
One line per pair, one per text that went wrong; `N passed, N failed` counts texts times pairs.
"""
import argparse
import itertools
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import isolation
from framing import CONTENT_LENGTH, NDJSON, one_line
from paths import RELAY
from websocket import Broken
from wires import ByteWire, Listener, Relay, dial, listen_at

VECTORS = Path(__file__).resolve().parent.parent / "vectors/json"
PATIENCE = 10
HEAD = b'{"jsonrpc":"2.0","id":'
ASK = re.compile(rb'\{"jsonrpc":"2.0","id":(\d+),"method":"\w+","params":(.*)\}', re.DOTALL)


@dataclass(frozen=True)
class WireKind:
    """How one side speaks with the relay."""

    name: str
    framing: str = NDJSON

    @property
    def scheme(self):
        return self.name.partition("/")[0]

    @property
    def whole(self):
        """A line break may stand in a message."""
        return self.framing == CONTENT_LENGTH or self.scheme == "ws"


CLIENTS = [WireKind("connect"), WireKind("connect/length", CONTENT_LENGTH), WireKind("stdio"),
           WireKind("tcp"), WireKind("tcp/length", CONTENT_LENGTH), WireKind("unix"),
           WireKind("unix/length", CONTENT_LENGTH), WireKind("ws")]
AGENTS = [WireKind("child"), WireKind("child/length", CONTENT_LENGTH), WireKind("tcp"),
          WireKind("tcp/length", CONTENT_LENGTH), WireKind("unix"), WireKind("ws")]


def echo(wire, note):
    """The agent: notes each message, echoes the params of each request. It parses nothing."""
    while (body := wire.receive(None)) is not None:
        note(body)
        if asked := ASK.fullmatch(body):
            wire.send(HEAD + asked[1] + b',"result":' + asked[2] + b"}")


def echo_on_stdio(framing, notes):
    with open(notes, "ab", buffering=0) as file:
        echo(ByteWire(sys.stdin.buffer, sys.stdout.buffer, framing),
             lambda body: file.write(b"%d\n%s\n" % (len(body), body)))


def read_notes(path):
    """What agents of their own process have heard, in order."""
    heard, data = [], path.read_bytes() if path.exists() else b""
    while data:
        size, _, data = data.partition(b"\n")
        heard.append(data[:int(size)])
        data = data[int(size) + 1:]
    return heard


class Pair:
    """All texts through one pair of wires."""

    def __init__(self, client, agent, relay, texts, root):
        self.client, self.agent, self.binary, self.texts = client, agent, relay, texts
        self.name = "%s - %s" % (client.name, agent.name)
        # Short, for the path of a Unix socket is limited to 107 bytes.
        self.dir = Path(tempfile.mkdtemp(prefix="p", dir=root))
        self.mark = isolation.Mark()
        self.heard, self.arrivals, self.wrong = [], [], []
        self.relay = self.wire = self.listener = None
        self.id = 0

    def go(self):
        started = time.monotonic()
        try:
            self.prepare()
            for name, text in self.texts:
                if problem := self.one(name, text):
                    self.wrong.append("%s: %s" % (name, problem))
            self.leave()
        except (OSError, Broken, TimeoutError) as error:
            self.wrong.append("the run could not be held: %r; %s" % (error, self.relay and self.relay.said[-3:]))
        finally:
            if self.relay:
                self.relay.stop(signal.SIGKILL)
            if self.listener:
                self.listener.close()
            self.mark.kill_rest()
        self.seconds = time.monotonic() - started
        return self

    def prepare(self):
        framing = ["--agent-framing", "content-length"] if self.agent.framing == CONTENT_LENGTH else []
        if self.agent.scheme == "child":
            framing += ["--", sys.executable, __file__, "--echo", self.agent.framing, self.dir / "notes"]
        else:
            self.listener = Listener(self.agent.scheme, self.dir, lambda wire: echo(wire, self.heard.append),
                                     self.agent.framing)
        self.tail = framing
        if self.client.scheme not in ("connect", "stdio"):
            agent = ["--agent", self.listener.endpoint] if self.listener else []
            self.start("serve", "--listen", listen_at(self.client.scheme, self.dir), *agent, *framing)
        self.open()

    def start(self, *words, listens=True):
        self.relay = Relay([self.binary, *words], {**os.environ, **self.mark.env}, listens)

    def open(self):
        if self.client.scheme == "connect":
            self.start("connect", "--guard", "never", *([self.listener.endpoint] if self.listener else []), *self.tail, listens=False)
        elif self.client.scheme == "stdio":
            agent = ["--agent", self.listener.endpoint] if self.listener else []
            self.start("serve", "--listen", "stdio:", *agent, *self.tail, listens=False)
        self.wire = (dial(self.relay.endpoint, self.client.framing) if self.relay.endpoint
                     else self.relay.stdio(self.client.framing))

    def ask(self, params):
        self.id += 1
        return b'%s%d,"method":"case","params":%s}' % (HEAD, self.id, params)

    def one(self, name, text):
        """What is wrong with how one text fared, or None."""
        body, ident = self.ask(text), self.id
        good = self.ask(b'["good"]')
        self.wire.send(body)
        if self.client.scheme == "ws" and not is_utf8(text):
            if self.wire.receive(PATIENCE) is not None or self.wire.code != 1007:
                return "not closed with 1007 but with %s" % self.wire.code
            self.wire.close()
            self.open()
        self.wire.send(good)
        answers = []
        while (answer := self.wire.receive(PATIENCE)) != HEAD + b'%d,"result":["good"]}' % self.id:
            if answer is None:
                self.open()
                return "the connection was closed, after %s" % answers
            answers.append(answer)
        broken = not self.client.whole and (b"\n" in text or b"\r" in text)
        if self.client.scheme == "ws" and not is_utf8(text):
            allowed = name[0] in "ni" and not answers
        elif broken and b"\n" in text:
            parts = [part for part in body.split(b"\n") if part.strip()]
            allowed = len(answers) == len(parts) and all(
                is_refusal(answer, ident) or is_refusal(answer, None) for answer in answers)
        else:
            # The client's wire has made a space of a line break too, if the agent's has.
            seen = body if self.agent.whole else one_line(body)
            back = seen if self.client.whole else one_line(seen)
            result = HEAD + b'%d,"result":%s}' % (ident, ASK.fullmatch(back)[2])
            passed = answers == [result]
            refused = len(answers) == 1 and is_refusal(answers[0], ident)
            allowed = {"y": passed, "n": refused, "i": passed or refused}[name[0]]
            if passed:
                self.arrivals.append(seen)
        self.arrivals.append(good)
        return None if allowed else "answered %s" % [answer[:300] for answer in answers]

    def leave(self):
        """The connection ends in peace, and the agent has heard what it should and no more."""
        self.wire.end()
        while self.wire.receive(PATIENCE) is not None:
            self.wrong.append("something came at the end")
        self.wire.close()
        code = self.relay.process.wait(PATIENCE) if not self.relay.endpoint else self.relay.stop()
        if code != 0:
            self.wrong.append("the relay exited with %s: %s" % (code, self.relay.said[-2:]))
        left = self.mark.wait_until_gone(set(), PATIENCE)
        if left:
            self.wrong.append("left behind: %s" % left)
        heard = self.heard if self.listener else read_notes(self.dir / "notes")
        if heard != self.arrivals:
            at = next((i for i, (a, b) in enumerate(zip(heard, self.arrivals)) if a != b),
                      min(len(heard), len(self.arrivals)))
            self.wrong.append("the agent heard %d messages and should have heard %d; number %d differs: %r, expected %r"
                              % (len(heard), len(self.arrivals), at, heard[at:at + 1], self.arrivals[at:at + 1]))


def is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_refusal(answer, ident):
    """One of the two errors that are defined."""
    try:
        answer = json.loads(answer)
        code, of = answer["error"]["code"], answer["id"]
    except (ValueError, KeyError, TypeError):
        return False
    return (code, of) in ((-32700, None), (-32600, ident))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--client", action="append", choices=[kind.name for kind in CLIENTS])
    parser.add_argument("--agent", action="append", choices=[kind.name for kind in AGENTS])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--echo", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.echo:
        return echo_on_stdio(*args.echo)

    texts = [(path.stem, path.read_bytes()) for path in sorted(VECTORS.glob("[yni]_*.json"))]
    random.Random(args.seed).shuffle(texts)
    print("seed %d, %d texts" % (args.seed, len(texts)))
    # Told to end (a timeout): clean up on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    root = Path(tempfile.mkdtemp(prefix="acp-json-"))
    pairs = [Pair(client, agent, args.relay, texts, root) for client, agent in itertools.product(
        [kind for kind in CLIENTS if not args.client or kind.name in args.client],
        [kind for kind in AGENTS if not args.agent or kind.name in args.agent])]
    failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for pair in pool.map(Pair.go, pairs):
            print("%-4s  %-30s  %4.1f s" % ("FAIL" if pair.wrong else "ok", pair.name, pair.seconds))
            for reason in pair.wrong:
                print("      " + reason)
            sys.stdout.flush()
            failed += min(len(pair.wrong), len(texts))
    shutil.rmtree(root, ignore_errors=True)
    print("%d passed, %d failed" % (len(texts) * len(pairs) - failed, failed))
    return 1 if failed or not texts else 0


if __name__ == "__main__":
    sys.exit(main())

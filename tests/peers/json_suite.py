#!/usr/bin/env python3
"""json_suite.py: JSON passes the relay byte for byte, everything else is rejected.

    json_suite.py [--relay BINARY] [--client WIRE]... [--agent WIRE]... [--seed N] [--jobs N]

Every text of tests/vectors/json (JSONTestSuite) becomes the `params` of a request, through every
pair of a wire of the client and a wire of the agent, in an order shuffled by the seed. After each
text a good request follows on the same connection. The agent echoes `params` as its `result` and
stores what it received. Required:
  y_  the request arrives byte for byte, and so does the echo;
  n_  exactly one error arrives, -32700 with id null or -32600 with the request's id, and nothing
      arrives at the agent;
  i_  either of the two;
  and always: the good request is answered on the same connection, and nothing else arrives.
Three special cases:
  - With NDJSON a text with line breaks is not one frame. Such a client sends the text unchanged, and
    the relay receives its parts: each part that is not blank gets one of the two errors (a part may
    be JSON by itself, and has no id then), nothing arrives at the agent. The clients `.../length`
    and `ws` send the same texts as one frame.
  - To an NDJSON agent, a line break of a y_ text is a space.
  - Over a WebSocket, invalid UTF-8 violates RFC 6455: the relay has to close with 1007. The next
    request uses a new connection, and nothing may have arrived at the agent.
One line per pair, one per failed text; `N passed, N failed` counts texts times pairs.
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
    """The transport and the framing between one side and the relay."""

    name: str
    framing: str = NDJSON

    @property
    def scheme(self):
        return self.name.partition("/")[0]

    @property
    def multiline(self):
        """Whether a message may contain line breaks."""
        return self.framing == CONTENT_LENGTH or self.scheme == "ws"


CLIENTS = [WireKind("connect"), WireKind("connect/length", CONTENT_LENGTH), WireKind("stdio"),
           WireKind("tcp"), WireKind("tcp/length", CONTENT_LENGTH), WireKind("unix"),
           WireKind("unix/length", CONTENT_LENGTH), WireKind("ws")]
AGENTS = [WireKind("child"), WireKind("child/length", CONTENT_LENGTH), WireKind("tcp"),
          WireKind("tcp/length", CONTENT_LENGTH), WireKind("unix"), WireKind("ws")]


def echo(wire, store):
    """The agent: stores each message, echoes the params of each request. It parses no JSON."""
    while (body := wire.receive(None)) is not None:
        store(body)
        if asked := ASK.fullmatch(body):
            wire.send(HEAD + asked[1] + b',"result":' + asked[2] + b"}")


def echo_on_stdio(framing, path):
    with open(path, "ab", buffering=0) as file:
        echo(ByteWire(sys.stdin.buffer, sys.stdout.buffer, framing),
             lambda body: file.write(b"%d\n%s\n" % (len(body), body)))


def read_messages(path):
    """The messages that an agent in its own process has received, in order."""
    received, data = [], path.read_bytes() if path.exists() else b""
    while data:
        size, _, data = data.partition(b"\n")
        received.append(data[:int(size)])
        data = data[int(size) + 1:]
    return received


class Pair:
    """All texts through one pair of wires."""

    def __init__(self, client, agent, relay, texts, root):
        self.client, self.agent, self.binary, self.texts = client, agent, relay, texts
        self.name = "%s - %s" % (client.name, agent.name)
        # Short, because the path of a Unix socket is limited to 107 bytes.
        self.dir = Path(tempfile.mkdtemp(prefix="p", dir=root))
        self.mark = isolation.Mark()
        self.received, self.expected, self.wrong = [], [], []
        self.relay = self.wire = self.listener = None
        self.id = 0

    def go(self):
        started = time.monotonic()
        try:
            self.prepare()
            for name, text in self.texts:
                if problem := self.one(name, text):
                    self.wrong.append("%s: %s" % (name, problem))
            self.finish()
        except (OSError, Broken, TimeoutError) as error:
            self.wrong.append("the run was aborted: %r; %s" % (error, self.relay and self.relay.output[-3:]))
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
            framing += ["--", sys.executable, __file__, "--echo", self.agent.framing, self.dir / "messages"]
        else:
            self.listener = Listener(self.agent.scheme, self.dir, lambda wire: echo(wire, self.received.append),
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
            self.start("connect", "--guard", "never", "--files", "editor", *([self.listener.endpoint] if self.listener else []), *self.tail, listens=False)
        elif self.client.scheme == "stdio":
            agent = ["--agent", self.listener.endpoint] if self.listener else []
            self.start("serve", "--listen", "stdio:", *agent, *self.tail, listens=False)
        self.wire = (dial(self.relay.endpoint, self.client.framing) if self.relay.endpoint
                     else self.relay.stdio(self.client.framing))

    def ask(self, params):
        self.id += 1
        return b'%s%d,"method":"case","params":%s}' % (HEAD, self.id, params)

    def one(self, name, text):
        """The failure of one text, or None."""
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
        broken = not self.client.multiline and (b"\n" in text or b"\r" in text)
        if self.client.scheme == "ws" and not is_utf8(text):
            allowed = name[0] in "ni" and not answers
        elif broken and b"\n" in text:
            parts = [part for part in body.split(b"\n") if part.strip()]
            allowed = len(answers) == len(parts) and all(
                is_refusal(answer, ident) or is_refusal(answer, None) for answer in answers)
        else:
            # A line break that is a space at the agent is a space at the client too.
            seen = body if self.agent.multiline else one_line(body)
            back = seen if self.client.multiline else one_line(seen)
            result = HEAD + b'%d,"result":%s}' % (ident, ASK.fullmatch(back)[2])
            passed = answers == [result]
            refused = len(answers) == 1 and is_refusal(answers[0], ident)
            allowed = {"y": passed, "n": refused, "i": passed or refused}[name[0]]
            if passed:
                self.expected.append(seen)
        self.expected.append(good)
        return None if allowed else "answered %s" % [answer[:300] for answer in answers]

    def finish(self):
        """The connection closes cleanly, and the agent has received exactly the expected messages."""
        self.wire.end()
        while self.wire.receive(PATIENCE) is not None:
            self.wrong.append("a message arrived at the end")
        self.wire.close()
        code = self.relay.process.wait(PATIENCE) if not self.relay.endpoint else self.relay.stop()
        if code != 0:
            self.wrong.append("the relay exited with %s: %s" % (code, self.relay.output[-2:]))
        left = self.mark.wait_until_gone(set(), PATIENCE)
        if left:
            self.wrong.append("left behind: %s" % left)
        received = self.received if self.listener else read_messages(self.dir / "messages")
        if received != self.expected:
            at = next((i for i, (a, b) in enumerate(zip(received, self.expected)) if a != b),
                      min(len(received), len(self.expected)))
            self.wrong.append("the agent received %d messages instead of %d; number %d differs: %r, expected %r"
                              % (len(received), len(self.expected), at, received[at:at + 1], self.expected[at:at + 1]))


def is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_refusal(answer, ident):
    """Whether it is one of the two errors above."""
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
    # On SIGTERM (a timeout): clean up before the exit.
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

#!/usr/bin/env python3
"""remote_cuts.py: the network between `connect` and a remote agent is cut, again and again.

    remote_cuts.py [--relay BINARY] [--server BINARY] [--cuts N] [--seed N]

A proxy stands between `acp-relay connect http://...` and `acp-relay serve --listen http://...`, and
resets all its connections N times: half of them at random moments, half of them while the editor
sends, before or after a POST has reached the server. An editor keeps asking meanwhile. It passes
when every request has exactly one answer, which is a result, and no update came twice or out of
order.
Over WebSocket, where nothing can be resumed, a connect of its own is cut off N / 4 times, and has
to answer all that is open and to end.
Not here: a network that is really gone (network_cuts.py), servers of others (remote_agents.py),
processes that are killed (kill.py).
"""
import argparse
import queue
import random
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

from paths import RELAY
from remote_agents import Editor
from wires import Relay

HERE = Path(__file__).resolve().parent
# An agent whose turn is 20 numbered updates, a millisecond apart.
AGENT = r"""
import json, sys, time
say = lambda **m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "session/prompt":
        for n in range(20):
            say(method="session/update", params={"sessionId": "s", "turn": m["params"]["turn"], "n": n})
            time.sleep(0.001)
    if "id" in m:
        say(id=m["id"], result={"sessionId": "s"} if m["method"] == "session/new" else {"turn": m["params"].get("turn")})
"""


class Proxy:
    """Passes bytes on, and resets every connection when told."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = []
        # Takes a chunk of a POST: whether the connections are cut "before" it is passed on, "after"
        # that, or not at all.
        self.on_post = lambda: None
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.target))
            self.open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    def copy(self, one, other):
        try:
            while chunk := one.recv(1 << 16):
                when = self.on_post() if chunk.startswith(b"POST ") else None
                if when == "before":
                    self.cut()
                    return
                other.sendall(chunk)
                if when:
                    # The server has it by then, or is about to.
                    time.sleep(0.002)
                    self.cut()
                    return
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # It was cut.

    def cut(self):
        gone, self.open = self.open, []
        for one in gone:
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RD)
            except OSError:
                pass  # It has ended by itself.
            one.close()


class Fault(Exception):
    pass


def turns(editor, goes_on):
    """Prompts while `goes_on()`, and judges each turn: (results, errors that say why)."""
    results = errors = turn = 0
    while goes_on():
        turn += 1
        number = editor.ask("session/prompt", sessionId="s", turn=turn)
        told = []
        while "method" in (message := heard(editor)):
            told.append((message["params"]["turn"], message["params"]["n"]))
        if message["id"] != number:
            raise Fault("an answer that nobody waits for: %s" % message)
        if told != sorted(set(told)):
            raise Fault("out of order: %s" % told)
        if "result" in message:
            results += 1
            if [n for of, n in told if of == turn] != list(range(20)):
                raise Fault("updates of turn %d are missing: %s" % (turn, told))
        else:
            errors += 1
            says_why(message)
    return results, errors


def last_answers(editor, open_requests):
    """What is answered until `connect` has ended: (results, errors that say why)."""
    results = errors = 0
    while (message := heard(editor, ends=True)) is not None:
        if "method" in message:
            continue
        open_requests.remove(message["id"])
        if "result" in message:
            results += 1
        else:
            errors += 1
            says_why(message)
    if open_requests:
        raise Fault("connect has ended without an answer to %s" % open_requests)
    editor.process.wait(10)
    return results, errors


def heard(editor, ends=False):
    try:
        message = editor.heard.get(timeout=90)
    except queue.Empty:
        raise Fault("nothing is heard for 90 s") from None
    if message is None and not ends:
        raise Fault("connect has ended, %s; last it said: %s" % (editor.process.wait(10), editor.last))
    editor.last = message
    return message


def says_why(message):
    if "relay" not in message["error"].get("data", {}):
        raise Fault("an error that does not say why: %s" % message)


def stop(editor):
    if editor.process.poll() is None:
        editor.process.kill()
    editor.process.wait()
    editor.process.stdin.close()


def websockets(asked, proxy, chance, log):
    """Every connect answers what is open when it is cut off, and ends."""
    results = errors = 0
    for _ in range(asked.cuts // 4):
        editor = Editor([asked.relay, "connect"], "ws://127.0.0.1:%d" % proxy.port, [], log)
        try:
            editor.until(editor.ask("initialize", protocolVersion=1), editor.ask("session/new"))
            open_requests = {editor.ask("session/prompt", sessionId="s", turn=turn) for turn in range(2)}
            # What is still in the pipe to a relay that ends is not answered (kill.py).
            heard(editor)
            time.sleep(chance.uniform(0, 0.05))
            proxy.cut()
            done, failed = last_answers(editor, open_requests)
            results, errors = results + done, errors + failed
        finally:
            stop(editor)
    print("%d WebSockets cut off: %d results, %d errors that say why" % (asked.cuts // 4, results, errors))


def run(asked, folder):
    server = Relay([asked.server, "serve", "--listen", "http://127.0.0.1:0", "--allow-host", "127.0.0.1", "--",
                    sys.executable, "-c", AGENT])
    editor = None
    try:
        proxy = Proxy(server.port)
        chance = random.Random(asked.seed)
        editor = Editor([asked.relay, "connect"], "http://127.0.0.1:%d" % proxy.port, [], open(folder / "connect.stderr", "wb"))
        editor.until(editor.ask("initialize", protocolVersion=1), editor.ask("session/new"))
        over = threading.Event()
        posts_cut, ended = [], threading.Event()

        def on_post():
            # Every other POST; the repeat of one that was cut may be cut as well.
            if len(posts_cut) < asked.cuts // 2 and chance.random() < 0.5:
                posts_cut.append(chance.choice(("before", "after")))
                return posts_cut[-1]
            return None

        def cutting():
            for _ in range(asked.cuts - asked.cuts // 2):
                time.sleep(chance.uniform(0.02, 0.2))
                proxy.cut()
            while len(posts_cut) < asked.cuts // 2 and not ended.wait(0.05):
                pass
            over.set()
        proxy.on_post = on_post
        threading.Thread(target=cutting, daemon=True).start()
        try:
            results, errors = turns(editor, lambda: not over.is_set())
        finally:
            ended.set()
            proxy.on_post = lambda: None
        editor.end()
        print("%d cuts, %d turns: %d results, %d errors that say why" % (asked.cuts, results + errors, results, errors))
        if errors:
            raise Fault("%d of %d turns were not carried to their end" % (errors, results + errors))
        with open(folder / "connect.stderr", "ab") as log:
            websockets(asked, proxy, chance, log)
        return True
    except Fault as fault:
        print(fault)
        print("-- serve", *server.said, sep="\n", file=sys.stderr)
        return False
    finally:
        if editor:
            stop(editor)
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--server", default=RELAY)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="acp-relay-cuts-") as folder:
        good = run(asked, Path(folder))
        if not good:
            print("-- connect\n%s" % (Path(folder) / "connect.stderr").read_text(errors="replace")[-3000:], file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""remote_cuts.py: the network between `connect` and a remote agent is cut repeatedly.

    remote_cuts.py [--relay BINARY] [--server BINARY] [--cuts N] [--seed N]

A proxy between `acp-relay connect http://...` and `acp-relay serve --listen http://...` resets all its
connections N times: half of them at random moments, half of them while the editor sends, before or
after a POST has reached the server. Meanwhile an editor sends requests. It passes when every request
has exactly one answer, which is a result, and no update is duplicated or out of order.
Over WebSocket, which cannot resume, a separate connect is cut off N / 4 times; it must answer all open
requests and exit.
Not here: packet loss (network_cuts.py), servers of other projects (remote_agents.py), killed processes
(kill.py).
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
# An agent whose turn has 20 numbered updates, a millisecond apart.
AGENT = r"""
import json, sys, time
send = lambda **m: print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "session/prompt":
        for n in range(20):
            send(method="session/update", params={"sessionId": "s", "turn": m["params"]["turn"], "n": n})
            time.sleep(0.001)
    if "id" in m:
        send(id=m["id"], result={"sessionId": "s"} if m["method"] == "session/new" else {"turn": m["params"].get("turn")})
"""


class Proxy:
    """Forwards bytes; `cut` resets every connection."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = []
        # Called for each chunk that starts a POST: cut the connections "before" it is forwarded,
        # "after" that, or (None) not at all.
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
                    # Give the server time to receive it.
                    time.sleep(0.002)
                    self.cut()
                    return
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # Reset by `cut`.

    def cut(self):
        gone, self.open = self.open, []
        for one in gone:
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RD)
            except OSError:
                pass  # Already closed.
            one.close()


class Fault(Exception):
    pass


def turns(editor, goes_on):
    """Prompts while `goes_on()` and checks each turn: (results, errors with a cause)."""
    results = errors = turn = 0
    while goes_on():
        turn += 1
        number = editor.ask("session/prompt", sessionId="s", turn=turn)
        updates = []
        while "method" in (message := receive(editor)):
            updates.append((message["params"]["turn"], message["params"]["n"]))
        if message["id"] != number:
            raise Fault("an answer to no open request: %s" % message)
        if updates != sorted(set(updates)):
            raise Fault("out of order: %s" % updates)
        if "result" in message:
            results += 1
            if [n for of, n in updates if of == turn] != list(range(20)):
                raise Fault("updates of turn %d are missing: %s" % (turn, updates))
        else:
            errors += 1
            require_cause(message)
    return results, errors


def last_answers(editor, open_requests):
    """Counts the answers until `connect` exits: (results, errors with a cause)."""
    results = errors = 0
    while (message := receive(editor, ends=True)) is not None:
        if "method" in message:
            continue
        open_requests.remove(message["id"])
        if "result" in message:
            results += 1
        else:
            errors += 1
            require_cause(message)
    if open_requests:
        raise Fault("connect exited without an answer to %s" % open_requests)
    editor.process.wait(10)
    return results, errors


def receive(editor, ends=False):
    try:
        message = editor.received.get(timeout=90)
    except queue.Empty:
        raise Fault("nothing was received for 90 s") from None
    if message is None and not ends:
        raise Fault("connect exited, %s; its last message: %s" % (editor.process.wait(10), editor.last))
    editor.last = message
    return message


def require_cause(message):
    if "relay" not in message["error"].get("data", {}):
        raise Fault("an error without a cause: %s" % message)


def stop(editor):
    if editor.process.poll() is None:
        editor.process.kill()
    editor.process.wait()
    editor.process.stdin.close()


def websockets(args, proxy, chance, log):
    """When cut off without a resumable link, every connect answers the open requests and exits."""
    results = errors = 0
    for _ in range(args.cuts // 4):
        editor = Editor([args.relay, "connect"], "ws://127.0.0.1:%d" % proxy.port, ["--no-link"], log)
        try:
            editor.until(editor.ask("initialize", protocolVersion=1), editor.ask("session/new"))
            open_requests = {editor.ask("session/prompt", sessionId="s", turn=turn) for turn in range(2)}
            # Requests that an exiting relay has not read are not answered (kill.py).
            receive(editor)
            time.sleep(chance.uniform(0, 0.05))
            proxy.cut()
            done, failed = last_answers(editor, open_requests)
            results, errors = results + done, errors + failed
        finally:
            stop(editor)
    print("%d WebSockets cut off: %d results, %d errors with a cause" % (args.cuts // 4, results, errors))


def run(args, folder):
    server = Relay([args.server, "serve", "--listen", "http://127.0.0.1:0", "--allow-host", "127.0.0.1", "--",
                    sys.executable, "-c", AGENT])
    editor = None
    try:
        proxy = Proxy(server.port)
        chance = random.Random(args.seed)
        editor = Editor([args.relay, "connect"], "http://127.0.0.1:%d" % proxy.port, [], open(folder / "connect.stderr", "wb"))
        editor.until(editor.ask("initialize", protocolVersion=1), editor.ask("session/new"))
        over = threading.Event()
        posts_cut, ended = [], threading.Event()

        def on_post():
            # Every other POST on average; the retry of one that was cut may be cut too.
            if len(posts_cut) < args.cuts // 2 and chance.random() < 0.5:
                posts_cut.append(chance.choice(("before", "after")))
                return posts_cut[-1]
            return None

        def cutting():
            for _ in range(args.cuts - args.cuts // 2):
                time.sleep(chance.uniform(0.02, 0.2))
                proxy.cut()
            while len(posts_cut) < args.cuts // 2 and not ended.wait(0.05):
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
        print("%d cuts, %d turns: %d results, %d errors with a cause" % (args.cuts, results + errors, results, errors))
        if errors:
            raise Fault("%d of %d turns were not completed" % (errors, results + errors))
        with open(folder / "connect.stderr", "ab") as log:
            websockets(args, proxy, chance, log)
        return True
    except Fault as fault:
        print(fault)
        print("-- serve", *server.output, sep="\n", file=sys.stderr)
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
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="acp-relay-cuts-") as folder:
        good = run(args, Path(folder))
        if not good:
            print("-- connect\n%s" % (Path(folder) / "connect.stderr").read_text(errors="replace")[-3000:], file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

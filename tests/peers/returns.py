#!/usr/bin/env python3
"""returns.py: real clients that are disconnected during a turn and reconnect.

    returns.py [--relay BINARY] [--client NAME]...

A client prompts, gets a permission request and is killed (SIGKILL) before it answers. With
`serve --on-disconnect detach` the agent continues; a second client sends session/load and passes when
it is the same agent process, all updates from before and meanwhile are replayed, the permission is
requested again, its answer ends the turn, and a further prompt is answered. It reconnects in two
runs: before the relay can detect the disconnect (over HTTP no socket closes) and after. With
`terminate` the agent's processes exit within a second of their grace period, and none is left. A
client that closes its connection itself does not return: its agent exits immediately, with `detach`
too. The clients are Python's `websockets` and the official TypeScript SDK over HTTP and WebSocket
(returns.mjs); the agent is ours. Not here: the form of each message (tests/it/proxy/resume.rs).
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation
from paths import PEERS, RELAY
from peers import SDK
from wires import Relay

HERE = Path(__file__).resolve().parent
SDK_2 = PEERS / "npm2/node_modules/@agentclientprotocol/sdk"
PYTHON = PEERS / "python/bin/python"
PATIENCE = 20
# Grace period for a lost HTTP client, in seconds; short, for the test.
HTTP_GRACE = 2
# A turn: an update, a permission request; meanwhile, when the file `go` exists, another update; and
# after the permission's answer a last one with that answer.
AGENT = r"""
import json, os, sys, threading, time
from pathlib import Path
here, answered, answer = Path(sys.argv[1]), threading.Event(), []
lock = threading.Lock()
def send(**message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(text):
    send(method="session/update", params={"sessionId": "s", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
def turn(number):
    update("one of %d" % os.getpid())
    send(id="ask", method="session/request_permission", params={"sessionId": "s",
        "toolCall": {"toolCallId": "t", "title": "may I"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]})
    while not (here / "go").exists() and not answered.is_set():
        time.sleep(0.01)
    if not answered.is_set():
        update("two")
        (here / "went").touch()
    answered.wait()
    update("answered " + answer[0])
    send(id=number, result={"stopReason": "end_turn"})
for line in sys.stdin:
    received = json.loads(line)
    method, number = received.get("method"), received.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif method == "session/new":
        send(id=number, result={"sessionId": "s"})
    elif method == "session/prompt" and not answered.is_set():
        threading.Thread(target=turn, args=(number,), daemon=True).start()
    elif method == "session/prompt":
        update("again %d" % os.getpid())
        send(id=number, result={"stopReason": "end_turn"})
    elif number == "ask":
        answer.append(received["result"]["outcome"]["optionId"])
        answered.set()
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "Method not found"})
"""


class Fault(Exception):
    pass


def plain(url, session):
    """The plain WebSocket client; its environment needs `websockets`. See returns.mjs."""
    from websockets.sync.client import connect
    with connect(url) as socket:
        converse(socket, session)


def converse(socket, session):
    received, texts, asked = [], [], []

    def until(done):
        while True:
            message = json.loads(socket.recv(timeout=PATIENCE))
            if "method" in message and "id" not in message:
                texts.append(message["params"]["update"]["content"]["text"])
            elif "method" in message:
                asked.append(message)
            else:
                received.append(message)
            if done():
                return received

    def ask(number, method, wait=True, **params):
        socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        if wait:
            until(lambda: any(one["id"] == number for one in received))
    prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}
    ask(0, "initialize", protocolVersion=1, clientCapabilities={})
    if not session:
        ask(1, "session/new", cwd="/", mcpServers=[])
        ask(2, "session/prompt", wait=False, **prompt)
        until(lambda: asked)
        print(json.dumps({"texts": texts}), flush=True)
        sys.stdin.read()
        return
    ask(1, "session/load", sessionId=session, cwd="/", mcpServers=[])
    if not asked:
        until(lambda: asked)
    loaded = list(texts)
    socket.send(json.dumps({"jsonrpc": "2.0", "id": asked[0]["id"], "result": {
        "outcome": {"outcome": "selected", "optionId": "yes"}}}))
    until(lambda: texts and texts[-1].startswith("answered"))
    ask(2, "session/prompt", **prompt)
    errors = [one["error"] for one in received if "error" in one]
    print(json.dumps({"loaded": loaded, "asked": [one["params"]["toolCall"]["title"] for one in asked],
                      "texts": texts, "stop": received[-1].get("result", {}).get("stopReason"), "errors": errors}))


def typescript(sdk):
    return ["node", HERE / "returns.mjs", "--sdk", sdk, "--url"]


# name, required file, program, scheme
CLIENTS = {
    "websockets": (PYTHON, [PYTHON, Path(__file__).resolve(), "--plain"], "ws"),
    "ts-1.9-http": (SDK, typescript(SDK), "http"),
    "ts-2.4-http": (SDK_2, typescript(SDK_2), "http"),
    "ts-2.4-ws": (SDK_2, typescript(SDK_2), "ws"),
}


def line_of(process, what):
    """The one line that the client prints, as JSON; fails if it exits without."""
    timer = time.monotonic() + PATIENCE
    os.set_blocking(process.stdout.fileno(), False)
    output = b""
    while not output.endswith(b"\n"):
        output += process.stdout.read() or b""
        if process.poll() is not None:
            output += process.stdout.read() or b""
            break
        if time.monotonic() > timer:
            break
        time.sleep(0.01)
    if not output.endswith(b"\n"):
        raise Fault("%s printed only %r" % (what, output))
    return json.loads(output)


def wait_for(path):
    until = time.monotonic() + PATIENCE
    while not path.exists():
        if time.monotonic() > until:
            raise Fault("the agent did not continue: no %s" % path.name)
        time.sleep(0.01)


def agents(mark, folder):
    return [pid for pid, line in mark.programs() if str(folder) in line and "serve" not in line]


def run(relay, name, how, folder):
    """One run; returns a text about its result."""
    _, program, scheme = CLIENTS[name]
    mark = isolation.Mark()
    env = {**isolation.environment(folder), **mark.env}
    serve = Relay([relay, "serve", "--listen", "http://127.0.0.1:0", "--on-disconnect", how.split()[0],
                   "--limit", "http-grace=%d" % HTTP_GRACE, "--", sys.executable, "-uc", AGENT, str(folder)], env)
    url = serve.endpoint.replace("http", scheme, 1)
    clients = []

    def start(*more):
        clients.append(subprocess.Popen([*map(str, program), url, *more], env=isolation.environment(folder),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return clients[-1]
    try:
        first = start()
        started = line_of(first, "the first client")
        first_agents = agents(mark, folder)
        if len(first_agents) != 1 or started["texts"] != ["one of %d" % first_agents[0]]:
            raise Fault("the first client received %s, the agents are %s" % (started, first_agents))
        if how == "detach left":
            first.stdin.close()
            cut = time.monotonic()
            while agents(mark, folder):
                if time.monotonic() - cut > PATIENCE:
                    raise Fault("the agent of a client that has closed still runs")
                time.sleep(0.01)
            if (took := time.monotonic() - cut) > 2:
                raise Fault("the agent exited after %.2f s" % took)
            return "exited after %.2f s" % took
        first.send_signal(signal.SIGKILL)
        first.wait()
        cut = time.monotonic()
        if how == "terminate":
            grace = HTTP_GRACE if scheme == "http" else 0
            while agents(mark, folder):
                if time.monotonic() - cut > grace + PATIENCE:
                    raise Fault("the agent still runs")
                time.sleep(0.01)
            took = time.monotonic() - cut
            if not grace <= took + 0.5 or took > grace + 1:
                raise Fault("the agent exited after %.2f s" % took)
            return "exited after %.2f s, of which %d s grace" % (took, grace)
        if how == "detach late":
            time.sleep(HTTP_GRACE + 1)
        (folder / "go").touch()
        wait_for(folder / "went")
        second = start("s")
        result = line_of(second, "the second client")
        if second.wait(PATIENCE):
            raise Fault("the second client exits with %d" % second.returncode)
        pid = first_agents[0]
        expected = {
            "loaded": ["go", "one of %d" % pid, "two"], "asked": ["may I"],
            "texts": ["go", "one of %d" % pid, "two", "answered yes", "again %d" % pid],
            "stop": "end_turn", "errors": []}
        if result != expected:
            raise Fault("the second client received %s" % json.dumps(result))
        if agents(mark, folder) not in ([], first_agents):
            raise Fault("other agents run: %s" % agents(mark, folder))
        return "the same agent, 2 updates replayed, 1 permission, turn ended, another turn"
    finally:
        for client in clients:
            if client.poll() is None:
                client.kill()
                client.wait()
        code = serve.stop()
        left = mark.wait_until_gone(set(), 5)
        mark.kill_rest()
        if sys.exc_info()[0] is None and (left or code not in (0, 143)):
            raise Fault("serve exits with %s, processes left: %s" % (code, left))


def main():
    if sys.argv[1:2] == ["--plain"]:
        return plain(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--client", action="append", choices=CLIENTS)
    asked = parser.parse_args()
    passed = failed = 0
    for name in asked.client or CLIENTS:
        if not CLIENTS[name][0].exists():
            print("skip  %-12s %s is missing, see install.sh" % (name, CLIENTS[name][0]))
            continue
        for how in ("detach", "detach late", "detach left", "terminate"):
            with tempfile.TemporaryDirectory(prefix="acp-returns-") as folder:
                try:
                    what, good = run(asked.relay, name, how, Path(folder)), True
                except (Fault, OSError, ValueError, subprocess.TimeoutExpired) as fault:
                    what, good = "%s: %s" % (type(fault).__name__, fault), False
            passed, failed = passed + good, failed + (not good)
            print("%-4s  %-12s %-12s %s" % ("ok" if good else "FAIL", name, how, what), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

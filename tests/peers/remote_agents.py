#!/usr/bin/env python3
"""remote_agents.py: remote agents by way of servers that nobody here wrote, and of our own.

    remote_agents.py [--relay BINARY] [--server NAME]... [--list]

`acp-relay connect ENDPOINT` is started as an editor would start it, or `acpremote mirror`, whose
server is `acp-relay serve`. Over each way a server can be
reached: initialize, two sessions, a turn in each at the same time with file reads, permissions
and file writes, a prompt that is cancelled, the end (exit code 0, DELETE over HTTP, where the
server tells), and session/load by a second `connect`. One line per run, `N passed, N failed` at the
end, exit 1 when one failed. Servers are installed by install.sh; one that is not there is skipped,
and named. Not here: how the servers are written (remote_agent.*, rust_sdk, turner.py).
"""
import argparse
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import isolation
from peers import AGENTS, GOOSE, PEERS, SDK
from wires import BINARY

HERE = Path(__file__).resolve().parent
PATIENCE = 30
SDK2 = PEERS / "npm2/node_modules/@agentclientprotocol/sdk"
PYTHON = PEERS / "python/bin/python"
ACPREMOTE = PEERS / "acpremote/bin/acpremote"
RUST = PEERS / "rust/debug/rust-sdk-server"
TURNER = [sys.executable, str(HERE / "turner.py"), "{dir}"]
H2 = ["--http2-prior-knowledge"]

# name, what has to be there, command, ways: (scheme, options)
SERVERS = {
    "ts-sdk-1.9.0": (SDK, ["node", HERE / "remote_agent.mjs", SDK], [("http", []), ("ws", [])]),
    "ts-sdk-2.4.0": (SDK2, ["node", HERE / "remote_agent.mjs", SDK2], [("http", []), ("ws", [])]),
    "python-sdk-0.12.1": (PYTHON, [PYTHON, HERE / "remote_agent.py"], [("http", []), ("http", H2), ("ws", [])]),
    "rust-sdk-5.0.0": (RUST, [RUST, *TURNER], [("http", []), ("http", H2), ("ws", [])]),
    "goose-1.34.0": (GOOSE, None, [("http", []), ("http", H2), ("ws", [])]),
    "acpremote-1.10.0": (ACPREMOTE, [ACPREMOTE, "expose", "--host", "127.0.0.1", "--port", "{port}", "--", *TURNER],
                         [("ws", [])]),
}
# Both of our halves, and our server before a client of others.
OURS = [BINARY, "serve", "--listen", "http://127.0.0.1:{port}", "--", *TURNER]
SERVERS["acp-relay"] = (BINARY, OURS, [("http", []), ("http", H2), ("ws", []), ("elephant+http", [])])
SERVERS["acpremote-mirror"] = (ACPREMOTE, OURS, [("ws", [])])
# Whose client it is where it is not ours.
CLIENTS = {"acpremote-mirror": [ACPREMOTE, "mirror"]}
PATHS = {"acpremote-1.10.0": "/acp/ws"}


class Fault(Exception):
    pass


class Editor:
    """One client program on stdio, and what an editor says to it."""

    def __init__(self, program, endpoint, options, log):
        self.process = subprocess.Popen([*program, endpoint, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log)
        self.heard, self.waiting, self.numbers = queue.Queue(), {}, iter(range(1 << 20))
        self.seen, self.written, self.asked = [], [], []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.heard.put(json.loads(line))
        self.heard.put(None)

    def say(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        number = next(self.numbers)
        self.say(id=number, method=method, params=params)
        return number

    def until(self, *numbers):
        """The answers to these requests; answers the agent's own meanwhile."""
        answers = {}
        while len(answers) < len(numbers):
            try:
                message = self.heard.get(timeout=PATIENCE)
            except queue.Empty:
                raise Fault("no answer to %s within %d s" % (set(numbers) - set(answers), PATIENCE)) from None
            if message is None:
                raise Fault("the client has ended, %s" % self.process.wait(PATIENCE))
            if "method" not in message:
                if "error" in message:
                    raise Fault("error %s" % json.dumps(message["error"]))
                answers[message["id"]] = message["result"]
            elif "id" in message:
                self.serve(message)
            else:
                self.seen.append(message["params"])
        return [answers[number] for number in numbers]

    def until_told(self, session, otherwise):
        """Reads on until something was said about the session's talk."""
        deadline = time.monotonic() + PATIENCE
        while not any(one["sessionId"] == session and "content" in one["update"] for one in self.seen):
            try:
                message = self.heard.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise Fault(otherwise) from None
            if message is None or "params" not in message:
                raise Fault("%s, but %s" % (otherwise, message))
            self.seen.append(message["params"])

    def serve(self, message):
        method, params = message["method"], message["params"]
        self.asked.append(method)
        result = {}
        if method == "fs/read_text_file":
            result = {"content": "hello seed\n"}
        elif method == "fs/write_text_file":
            self.written.append((params["sessionId"], params["content"]))
        elif method == "session/request_permission":
            allow = [one for one in params["options"] if one["kind"] == "allow_once"]
            result = {"outcome": {"outcome": "selected", "optionId": allow[0]["optionId"]}}
        self.say(id=message["id"], result=result)

    def begin(self):
        return self.until(self.ask("initialize", protocolVersion=1, clientCapabilities={
            "fs": {"readTextFile": True, "writeTextFile": True}}))[0]

    def texts(self, session):
        mine = [one["update"] for one in self.seen if one["sessionId"] == session]
        return "".join(one["content"]["text"] for one in mine if one["sessionUpdate"] == "agent_message_chunk")

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        if code != 0:
            raise Fault("the client exits %d" % code)


def conversation(start, cwd, words, cancelled, product):
    """Everything, through editors that `start` starts. Returns what went through."""
    editor = start()
    able = editor.begin()
    asked = [editor.ask("session/new", cwd=cwd, mcpServers=[]) for _ in range(2)]
    sessions = [result["sessionId"] for result in editor.until(*asked)]
    prompt = lambda session, text: editor.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
    turns = [prompt(session, words + " " + name) for session, name in zip(sessions, "ab")]
    for result in editor.until(*turns):
        if result["stopReason"] != "end_turn":
            raise Fault("a turn ended %s" % result)
    need = {"fs/read_text_file", "fs/write_text_file", "session/request_permission"}
    if need - set(editor.asked) or len({session for session, _ in editor.written}) != 2:
        raise Fault("asked only for %s, wrote %s" % (editor.asked, editor.written))
    for session, name in zip(sessions, "ab"):
        told = editor.texts(session)
        if not product and told != "begun: %s %sdone: %s %s" % (words, name, words, name):
            raise Fault("session %s was told %r" % (name, told))
    editor.seen.clear()
    waits = prompt(sessions[0], cancelled)
    editor.until_told(sessions[0], "the turn that waits does not begin")
    editor.say(method="session/cancel", params={"sessionId": sessions[0]})
    stopped = editor.until(waits)[0]["stopReason"]
    editor.end()
    done = ["2 sessions", "permission", "read", "write", "cancel: " + stopped]
    if able.get("agentCapabilities", {}).get("loadSession"):
        second = start()
        second.begin()
        second.until(second.ask("session/load", sessionId=sessions[1], cwd=cwd, mcpServers=[]))
        # The answer and what is replayed come on two streams, and nothing orders those.
        second.until_told(sessions[1], "session/load replayed nothing")
        second.end()
        done.append("load")
    return done


class Server:
    """A server process, and what it says."""

    def __init__(self, command, env, log):
        self.lines = []
        self.port = None
        self.ready = threading.Event()
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True,
                                        start_new_session=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            if line.startswith("listening "):
                self.port = int(line.split()[1])
                self.ready.set()
            self.lines.append(line.strip())

    def stop(self):
        try:
            os.killpg(self.process.pid, 15)
            self.process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()


def wait_for(port):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    raise Fault("nothing listens")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def run(relay, name, root):
    """The lines of one server's runs: (way, what went through or why not, passed)."""
    _, command, ways = SERVERS[name]
    product = command is None
    folder = Path(root) / name
    (folder / "home").mkdir(parents=True)
    (folder / "sessions").mkdir()
    (folder / "seed.txt").write_text("hello seed\n")
    env, llm, port = isolation.environment(folder / "home"), None, free_port()
    words, cancelled = "turn", "wait"
    log = open(folder / "server.stderr", "wb")
    if product:
        goose = next(agent for agent in AGENTS if agent.name == "goose")
        llm = Server([sys.executable, str(HERE / "mock_llm.py"), "--port", "0", "--cwd", str(folder)], env, log)
        deadline = time.monotonic() + PATIENCE
        while not llm.lines and time.monotonic() < deadline:
            time.sleep(0.05)
        url = "http://" + llm.lines[0].split()[-1]
        env.update({key: value.format(llm=url) for key, value in goose.env.items()})
        command, words, cancelled = goose.server, "[[edit]]", "[[slow]]"
    command = [str(word).format(port=port, dir=folder / "sessions") for word in command]
    server = Server(command, env, log)
    try:
        if any("{port}" in str(word) for word in (SERVERS[name][1] or ["{port}"])):
            server.port = port
            wait_for(port)
        elif not server.ready.wait(PATIENCE):
            raise Fault("the server does not start; see %s" % log.name)
        for scheme, options in ways:
            endpoint = "%s://127.0.0.1:%d%s" % (scheme, server.port, PATHS.get(name, "/acp"))
            way = scheme + (" h2" if options else "")
            editors = []

            def start():
                editors.append(Editor(CLIENTS.get(name, [relay, "connect"]), endpoint, options, open(folder / (way + ".stderr"), "ab")))
                return editors[-1]
            before = len(server.lines)
            try:
                done = conversation(start, str(folder), words, cancelled, product)
                said = server.lines[before:]
                if any(line.startswith("asked") for line in said) and scheme == "http":
                    leaves = sum(line.startswith("asked DELETE") for line in said)
                    if leaves != len(editors):
                        raise Fault("%d links took leave with %d DELETE" % (len(editors), leaves))
                    version = "HTTP/2" if options else "HTTP/1.1"
                    if not all(version in line for line in said if line.startswith("asked")):
                        raise Fault("not all requests were %s: %s" % (version, set(said)))
                    done.append("DELETE")
                yield way, ", ".join(done), True
            except (Fault, queue.Empty, OSError, KeyError, subprocess.TimeoutExpired) as fault:
                yield way, "%s: %s" % (type(fault).__name__, fault), False
            finally:
                for editor in editors:
                    if editor.process.poll() is None:
                        editor.process.kill()
                    editor.process.wait()
    except Fault as fault:
        yield "start", str(fault), False
    finally:
        server.stop()
        if llm:
            llm.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=BINARY)
    parser.add_argument("--server", action="append", choices=SERVERS)
    asked = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="acp-relay-remote-") as root:
        for name in asked.server or SERVERS:
            if not Path(SERVERS[name][0]).exists():
                print("skipped: %s is not installed" % name)
                continue
            for way, what, good in run(asked.relay, name, root):
                passed, failed = passed + good, failed + (not good)
                print("%-4s %-18s %-8s %s" % ("ok" if good else "FAIL", name, way, what), flush=True)
        if failed:
            for path in sorted(Path(root).rglob("*.stderr")):
                tail = path.read_text(errors="replace")[-2000:]
                if tail:
                    print("-- %s\n%s" % (path, tail), file=sys.stderr)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

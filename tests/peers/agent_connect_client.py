#!/usr/bin/env python3
"""agent_connect_client.py: an external agent with a REST interface as an ACP agent.

    agent_connect_client.py [--relay BINARY]

The server is LangGraph's own (`langgraph dev`), the origin of Agent Connect's paths; its graph,
in graph/, has no model: it echoes in two steps, requests a review and a value, fails, and runs
long. The messages of the relay are compared with the steps of the graph.
"""
import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import isolation
from paths import PEERS, RELAY

HERE = Path(__file__).resolve().parent
VENV = PEERS / "langgraph"
PATIENCE = 60


class Server:
    """LangGraph's server, with its own folder for its state."""

    def __init__(self, folder):
        shutil.copytree(HERE / "graph", folder, dirs_exist_ok=True)
        self.port = isolation.free_port()
        self.log = open(Path(folder) / "server.log", "w+", errors="replace")
        env = {**os.environ, "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1",
               "PATH": "%s:%s" % (VENV / "bin", os.environ["PATH"])}
        words = [str(VENV / "bin/langgraph"), "dev", "--no-browser", "--no-reload", "--port", str(self.port)]
        self.process = subprocess.Popen(words, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen("http://127.0.0.1:%d/ok" % self.port, timeout=5).read()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.log.seek(0)
                    sys.exit("langgraph dev does not start: %s" % self.log.read()[-2000:])
                time.sleep(0.2)

    def ask(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path), timeout=PATIENCE) as answer:
            return json.load(answer)

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Editor:
    """An ACP client in front of the relay."""

    def __init__(self, relay, port, forms=True):
        to = "agent-connect+http://127.0.0.1:%d/echo" % port
        self.process = subprocess.Popen([relay, "connect", to], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines, self.ids, self.updates = queue.Queue(), 0, []
        threading.Thread(target=self.read, daemon=True).start()
        capabilities = {"elicitation": {"form": {}}} if forms else {}
        self.initialized = self.call("initialize", protocolVersion=1, clientCapabilities=capabilities)

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def write(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def send(self, method, **params):
        self.ids += 1
        self.write(id=self.ids, method=method, params=params)
        return self.ids

    def call(self, method, **params):
        answer = self.answer(self.send(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    def answer(self, wanted, reply=None):
        """Waits for the answer to a request; `reply` answers the agent's requests."""
        while True:
            message = self.lines.get(timeout=PATIENCE)
            assert message is not None, "the relay has exited"
            if "method" not in message:
                if message["id"] == wanted:
                    return message
            elif "id" in message:
                self.asked = message
                self.write(id=message["id"], **reply(message))
            else:
                self.updates.append(message["params"])

    def prompt(self, session, text, reply=None):
        """Runs a turn; returns its answer and its texts."""
        self.updates.clear()
        prompt = [{"type": "text", "text": text}]
        answer = self.answer(self.send("session/prompt", sessionId=session, prompt=prompt), reply)
        return answer, self.texts()

    def texts(self):
        kinds = ("agent_message_chunk", "user_message_chunk")
        return [one["update"]["content"]["text"] for one in self.updates if one["update"]["sessionUpdate"] in kinds]

    def open(self):
        return self.call("session/new", cwd="/work", mcpServers=[])["sessionId"]

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        assert code == 0, "the relay exited with %d" % code


def equal(title, got, wanted):
    if got != wanted:
        sys.exit("%s: got %r, wanted %r" % (title, got, wanted))
    print("ok  %s" % title)


def choose(option):
    return lambda _: {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


def check(relay, server):
    editor = Editor(relay, server.port)
    equal("the agent's name is reported", editor.initialized["agentInfo"]["name"], "echo")
    session, other = editor.open(), editor.open()
    answer, texts = editor.prompt(session, "hello")
    equal("each step is sent once, when it is done", texts, ["1: you said hello. ", "That is all."])
    equal("the turn ends", answer["result"]["stopReason"], "end_turn")
    _, texts = editor.prompt(session, "again")
    equal("a thread keeps its state", texts, ["2: you said again. ", "That is all."])
    _, texts = editor.prompt(other, "hello")
    equal("another thread has its own state", texts, ["1: you said hello. ", "That is all."])
    for option, decided in (("approve", "approve"), ("reject", "reject")):
        answer, texts = editor.prompt(session, "review", choose(option))
        equal("a review is a permission request: %s" % option, editor.asked["method"], "session/request_permission")
        equal("the decision arrives: %s" % option, texts[-1], "Decided: %s" % decided)
    _, texts = editor.prompt(session, "review", lambda _: {"error": {"code": -32601, "message": "no"}})
    equal("a client without permission requests rejects", texts[-1], "Decided: reject")
    _, texts = editor.prompt(session, "form", lambda _: {"result": {"action": "accept", "content": {"json": "Monday"}}})
    equal("a value is a form", editor.asked["params"]["message"], "Which day?")
    equal("the value arrives", texts[-1], "Answered: Monday")
    _, texts = editor.prompt(editor.open(), "words")
    equal("words are streamed", texts[:3] + texts[-1:], ["O", "n", "e", "That is all."])
    equal("each word is sent once", "".join(texts), "One two three. That is all.")
    thoughts = [one["update"]["content"]["text"] for one in editor.updates
                if one["update"]["sessionUpdate"] == "agent_thought_chunk"]
    equal("custom output of the graph is a thought", thoughts, ['{"step":"thinking"}'])
    answer, _ = editor.prompt(other, "fail")
    equal("a failed graph is an error", answer["error"]["code"], -32603)
    third = editor.open()
    slow = editor.send("session/prompt", sessionId=third, prompt=[{"type": "text", "text": "slow"}])
    until = time.monotonic() + PATIENCE
    while not any(run["status"] in ("running", "pending") for run in server.ask("/threads/%s/runs" % third)):
        assert time.monotonic() < until, "the run does not begin"
        time.sleep(0.05)
    since = time.monotonic()
    editor.write(method="session/cancel", params={"sessionId": third})
    equal("a turn is cancelled", editor.answer(slow)["result"]["stopReason"], "cancelled")
    equal("the cancelled turn ends at once", time.monotonic() - since < 10, True)
    while any(run["status"] in ("running", "pending") for run in server.ask("/threads/%s/runs" % third)):
        assert time.monotonic() < until, "the run does not end"
        time.sleep(0.05)
    print("ok  the server's run has ended")
    listed = [one["sessionId"] for one in editor.call("session/list")["sessions"]]
    equal("all sessions are listed", {session, other, third} <= set(listed), True)
    editor.end()

    editor = Editor(relay, server.port, forms=False)
    editor.call("session/load", sessionId=session, cwd="/work", mcpServers=[])
    equal("a session is loaded", editor.texts()[:4], ["hello", "1: you said hello. ", "That is all.", "again"])
    answer, texts = editor.prompt(session, "form")
    equal("a client without forms gets the question as text", texts[-1], "Which day?")
    _, texts = editor.prompt(session, "Tuesday")
    equal("its next prompt is the answer", texts, ["Answered: Tuesday"])
    editor.call("session/delete", sessionId=session)
    answer = editor.answer(editor.send("session/load", sessionId=session, cwd="/work", mcpServers=[]))
    equal("a deleted session is not found", answer["error"]["code"], -32002)
    editor.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    relay = str(Path(parser.parse_args().relay).resolve())
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            check(relay, server)
        finally:
            server.stop()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""agent_connect_client.py: somebody else's agent, behind REST, as an ACP agent.

    agent_connect_client.py [--relay BINARY]

The server is LangGraph's own (`langgraph dev`), whose paths Agent Connect's come from; its graph,
in graph/, has no model: it echoes in two steps, asks for a review and for a value, fails, and takes
long. What the relay's agent says is compared with what the graph does.
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
    """LangGraph's server, with a folder of its own to keep its state in."""

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
        self.said = self.call("initialize", protocolVersion=1, clientCapabilities=capabilities)

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def say(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def send(self, method, **params):
        self.ids += 1
        self.say(id=self.ids, method=method, params=params)
        return self.ids

    def call(self, method, **params):
        answer = self.answer(self.send(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    def answer(self, wanted, reply=None):
        """The answer to a request; `reply` answers the agent's own."""
        while True:
            message = self.lines.get(timeout=PATIENCE)
            assert message is not None, "the relay has ended"
            if "method" not in message:
                if message["id"] == wanted:
                    return message
            elif "id" in message:
                self.asked = message
                self.say(id=message["id"], **reply(message))
            else:
                self.updates.append(message["params"])

    def prompt(self, session, text, reply=None):
        """A turn: its answer, and the texts it told."""
        self.updates.clear()
        prompt = [{"type": "text", "text": text}]
        answer = self.answer(self.send("session/prompt", sessionId=session, prompt=prompt), reply)
        return answer, self.told()

    def told(self):
        kinds = ("agent_message_chunk", "user_message_chunk")
        return [one["update"]["content"]["text"] for one in self.updates if one["update"]["sessionUpdate"] in kinds]

    def open(self):
        return self.call("session/new", cwd="/work", mcpServers=[])["sessionId"]

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        assert code == 0, "the relay ended with %d" % code


def equal(title, got, wanted):
    if got != wanted:
        sys.exit("%s: got %r, wanted %r" % (title, got, wanted))
    print("ok  %s" % title)


def choose(option):
    return lambda _: {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


def check(relay, server):
    editor = Editor(relay, server.port)
    equal("the agent is introduced", editor.said["agentInfo"]["name"], "echo")
    session, other = editor.open(), editor.open()
    answer, told = editor.prompt(session, "hello")
    equal("each step is told once, when it is done", told, ["1: you said hello. ", "That is all."])
    equal("the turn ends", answer["result"]["stopReason"], "end_turn")
    _, told = editor.prompt(session, "again")
    equal("a thread remembers", told, ["2: you said again. ", "That is all."])
    _, told = editor.prompt(other, "hello")
    equal("another does not know of it", told, ["1: you said hello. ", "That is all."])
    for option, decided in (("approve", "approve"), ("reject", "reject")):
        answer, told = editor.prompt(session, "review", choose(option))
        equal("a review is a permission: %s" % option, editor.asked["method"], "session/request_permission")
        equal("what was decided arrives: %s" % option, told[-1], "Decided: %s" % decided)
    _, told = editor.prompt(session, "review", lambda _: {"error": {"code": -32601, "message": "no"}})
    equal("a client that cannot be asked rejects", told[-1], "Decided: reject")
    _, told = editor.prompt(session, "form", lambda _: {"result": {"action": "accept", "content": {"json": "Monday"}}})
    equal("a value is a form", editor.asked["params"]["message"], "Which day?")
    equal("the value arrives", told[-1], "Answered: Monday")
    _, told = editor.prompt(editor.open(), "words")
    equal("words are told as they come", told[:3] + told[-1:], ["O", "n", "e", "That is all."])
    equal("and once", "".join(told), "One two three. That is all.")
    thoughts = [one["update"]["content"]["text"] for one in editor.updates
                if one["update"]["sessionUpdate"] == "agent_thought_chunk"]
    equal("what the graph writes is a thought", thoughts, ['{"step":"thinking"}'])
    answer, _ = editor.prompt(other, "fail")
    equal("a graph that fails is an error", answer["error"]["code"], -32603)
    third = editor.open()
    slow = editor.send("session/prompt", sessionId=third, prompt=[{"type": "text", "text": "slow"}])
    until = time.monotonic() + PATIENCE
    while not any(run["status"] in ("running", "pending") for run in server.ask("/threads/%s/runs" % third)):
        assert time.monotonic() < until, "the run does not begin"
        time.sleep(0.05)
    since = time.monotonic()
    editor.say(method="session/cancel", params={"sessionId": third})
    equal("a turn is cancelled", editor.answer(slow)["result"]["stopReason"], "cancelled")
    equal("at once", time.monotonic() - since < 10, True)
    while any(run["status"] in ("running", "pending") for run in server.ask("/threads/%s/runs" % third)):
        assert time.monotonic() < until, "the run goes on"
        time.sleep(0.05)
    print("ok  the server's run has ended with it")
    listed = [one["sessionId"] for one in editor.call("session/list")["sessions"]]
    equal("all sessions are listed", {session, other, third} <= set(listed), True)
    editor.end()

    editor = Editor(relay, server.port, forms=False)
    editor.call("session/load", sessionId=session, cwd="/work", mcpServers=[])
    equal("a session is loaded", editor.told()[:4], ["hello", "1: you said hello. ", "That is all.", "again"])
    answer, told = editor.prompt(session, "form")
    equal("a client without forms is told", told[-1], "Which day?")
    _, told = editor.prompt(session, "Tuesday")
    equal("and its next prompt answers", told, ["Answered: Tuesday"])
    editor.call("session/delete", sessionId=session)
    answer = editor.answer(editor.send("session/load", sessionId=session, cwd="/work", mcpServers=[]))
    equal("a deleted session is gone", answer["error"]["code"], -32002)
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

#!/usr/bin/env python3
"""turner.py: an agent on stdio whose turns use every kind of message that a transport must carry.

For servers that expose a program over the network and have no agent of their own. A prompt `turn`:
update, file read, permission, file write, update, end_turn. `wait`: an update, then nothing until
it is cancelled. session/load replays the session's prompts. Sessions are stored in DIR, the
argument, so another process can load them. No dialect, no faults.
"""
import json
import sys
import threading
import uuid
from pathlib import Path

STORE = Path(sys.argv[1])
lock, answers, cancelled = threading.Lock(), {}, {}


def send(**message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(method, params):
    number = str(uuid.uuid4())
    answers[number] = [threading.Event(), None]
    send(id=number, method=method, params=params)
    answers[number][0].wait()
    return answers.pop(number)[1]


def update(session, text, kind="agent_message_chunk"):
    send(method="session/update", params={"sessionId": session, "update": {
        "sessionUpdate": kind, "content": {"type": "text", "text": text}}})


def turn(number, session, text):
    with open(STORE / session, "a") as file:
        file.write(json.dumps(text) + "\n")
    update(session, "begun: " + text)
    if "wait" in text:
        cancelled[session].wait()
        return send(id=number, result={"stopReason": "cancelled"})
    read = ask("fs/read_text_file", {"sessionId": session, "path": "/seed.txt"})
    choice = ask("session/request_permission", {
        "sessionId": session, "toolCall": {"toolCallId": "t1", "title": "write"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "no", "name": "No", "kind": "reject_once"}]})
    if choice["outcome"].get("optionId") == "yes":
        ask("fs/write_text_file", {"sessionId": session, "path": "/out.txt", "content": read["content"].upper()})
    update(session, "done: " + text)
    send(id=number, result={"stopReason": "end_turn"})


def receive(message):
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    session = params.get("sessionId")
    if method is None:
        answers[number][1] = message.get("result")
        answers[number][0].set()
    elif method == "initialize":
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif method == "session/new":
        session = uuid.uuid4().hex
        (STORE / session).touch()
        send(id=number, result={"sessionId": session})
    elif method == "session/load":
        for line in (STORE / session).read_text().splitlines():
            update(session, json.loads(line), "user_message_chunk")
        send(id=number, result={})
    elif method == "session/prompt":
        cancelled[session] = threading.Event()
        text = "".join(block.get("text", "") for block in params["prompt"])
        threading.Thread(target=turn, args=(number, session, text), daemon=True).start()
    elif method == "session/cancel":
        cancelled[session].set()
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "Method not found"})


for line in sys.stdin:
    receive(json.loads(line))

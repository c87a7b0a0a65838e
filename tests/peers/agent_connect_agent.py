#!/usr/bin/env python3
"""agent_connect_agent.py [--delay SECONDS]: a small ACP agent that remembers what it was told.

It answers a prompt with the words it has had in that session so far; `ask` in the prompt has it ask
for permission first, `slow` has it wait until it is cancelled, `fail` has it answer with an error.
Sessions are kept in files below $ACP_AGENT_HOME, so that another process can load them.
"""
import json
import os
import sys
import threading
import time
import uuid
from pathlib import Path

HOME = Path(os.environ.get("ACP_AGENT_HOME") or "/tmp")
DELAY = float(sys.argv[2]) if sys.argv[1:2] == ["--delay"] else 0
LOCK = threading.Lock()
sessions, cancelled, answers = {}, {}, {}


def say(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def chunk(session, text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    say({"method": "session/update", "params": {"sessionId": session, "update": update}})


def prompt(ident, params):
    session = params["sessionId"]
    text = " ".join(block.get("text", "") for block in params["prompt"])
    sessions[session].append(text)
    if "fail" in text:
        return say({"id": ident, "error": {"code": -32001, "message": "told to fail"}})
    if "ask" in text:
        answers[session] = threading.Event()
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        say({"id": session, "method": "session/request_permission",
             "params": {"sessionId": session, "toolCall": {"toolCallId": "t"}, "options": options}})
        answers[session].wait()
        chunk(session, "You said %s. " % answers[session].outcome)
    if "slow" in text:
        cancelled[session].wait(60)
    time.sleep(DELAY)
    for word in sessions[session]:
        chunk(session, word + " ")
    (HOME / session).write_text(json.dumps(sessions[session]))
    reason = "cancelled" if cancelled[session].is_set() else "end_turn"
    say({"id": ident, "result": {"stopReason": reason}})


def hear(message):
    method, ident, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        say({"id": ident, "result": {
            "protocolVersion": 1, "agentInfo": {"name": "memory", "version": "1"}, "authMethods": [],
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"close": {}, "fork": {}}}}})
    elif method in ("session/new", "session/fork", "session/load"):
        session = params.get("sessionId") if method == "session/load" else uuid.uuid4().hex
        told = []
        if method == "session/fork":
            told = list(sessions[params["sessionId"]])
        elif method == "session/load" and (HOME / session).exists():
            told = json.loads((HOME / session).read_text())
        sessions[session], cancelled[session] = told, threading.Event()
        say({"id": ident, "result": {} if method == "session/load" else {"sessionId": session}})
    elif method == "session/prompt":
        cancelled[params["sessionId"]].clear()
        threading.Thread(target=prompt, args=(ident, params), daemon=True).start()
    elif method == "session/cancel":
        cancelled[params["sessionId"]].set()
    elif method == "session/close":
        sessions.pop(params["sessionId"], None)
        say({"id": ident, "result": {}})
    elif method is None and ident in answers:
        outcome = message.get("result", {}).get("outcome", {})
        answers[ident].outcome = outcome.get("optionId") or outcome.get("outcome")
        answers[ident].set()
    elif method is not None and ident is not None:
        say({"id": ident, "error": {"code": -32601, "message": "no " + method}})


for line in sys.stdin:
    hear(json.loads(line))

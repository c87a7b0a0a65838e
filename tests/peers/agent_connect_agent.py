#!/usr/bin/env python3
"""agent_connect_agent.py [--delay SECONDS]: a small ACP agent that stores its prompts.

It answers a prompt with all prompts of the session so far. `ask` in the prompt: it requests
a permission first; `slow`: it waits until it is cancelled; `fail`: it answers with an error.
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


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def chunk(session, text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def prompt(ident, params):
    session = params["sessionId"]
    text = " ".join(block.get("text", "") for block in params["prompt"])
    sessions[session].append(text)
    if "fail" in text:
        return send({"id": ident, "error": {"code": -32001, "message": "failure requested"}})
    if "ask" in text:
        answers[session] = threading.Event()
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        send({"id": session, "method": "session/request_permission",
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
    send({"id": ident, "result": {"stopReason": reason}})


def receive(message):
    method, ident, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        send({"id": ident, "result": {
            "protocolVersion": 1, "agentInfo": {"name": "memory", "version": "1"}, "authMethods": [],
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"close": {}, "fork": {}}}}})
    elif method in ("session/new", "session/fork", "session/load"):
        session = params.get("sessionId") if method == "session/load" else uuid.uuid4().hex
        prompts = []
        if method == "session/fork":
            prompts = list(sessions[params["sessionId"]])
        elif method == "session/load" and (HOME / session).exists():
            prompts = json.loads((HOME / session).read_text())
        sessions[session], cancelled[session] = prompts, threading.Event()
        send({"id": ident, "result": {} if method == "session/load" else {"sessionId": session}})
    elif method == "session/prompt":
        cancelled[params["sessionId"]].clear()
        threading.Thread(target=prompt, args=(ident, params), daemon=True).start()
    elif method == "session/cancel":
        cancelled[params["sessionId"]].set()
    elif method == "session/close":
        sessions.pop(params["sessionId"], None)
        send({"id": ident, "result": {}})
    elif method is None and ident in answers:
        outcome = message.get("result", {}).get("outcome", {})
        answers[ident].outcome = outcome.get("optionId") or outcome.get("outcome")
        answers[ident].set()
    elif method is not None and ident is not None:
        send({"id": ident, "error": {"code": -32601, "message": "no " + method}})


for line in sys.stdin:
    receive(json.loads(line))

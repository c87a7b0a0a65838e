#!/usr/bin/env python3
"""cluster_agent.py NAME FOLDER: the scripted agent of cluster.py.

A session's id names the agent and its process. It keeps sessions as empty files in FOLDER, so that any
process with that folder can load one. A prompt "COUNT SIZE PAUSE" is answered after COUNT updates, each
with its number and SIZE characters, PAUSE seconds apart. In FOLDER, "running" names the processes.
"""
import json
import os
import sys
import time
import uuid
from pathlib import Path

NAME, FOLDER = sys.argv[1], Path(sys.argv[2])


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session, text):
    content = {"type": "text", "text": text}
    send(method="session/update", params={"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": content}})


def main():
    (FOLDER / ("pid-%d" % os.getpid())).touch()
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message or method is None:
            continue
        result = None
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "authMethods": [],
                      "agentInfo": {"name": NAME, "version": str(os.getpid())}}
        elif method == "session/new":
            session = "%s-%d-%s" % (NAME, os.getpid(), uuid.uuid4().hex)
            (FOLDER / session).touch()
            result = {"sessionId": session}
        elif method == "session/load":
            if (FOLDER / params["sessionId"]).exists():
                update(params["sessionId"], "loaded by %d" % os.getpid())
                result = {}
        elif method == "session/prompt":
            count, size, pause = params["prompt"][0]["text"].split()
            for number in range(int(count)):
                update(params["sessionId"], "%d %s" % (number, "x" * int(size)))
                if float(pause):
                    time.sleep(float(pause))
            result = {"stopReason": "end_turn"}
        if result is None:
            send(id=message["id"], error={"code": -32602, "message": "not known here"})
        else:
            send(id=message["id"], result=result)


main()

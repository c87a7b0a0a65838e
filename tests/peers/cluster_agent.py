#!/usr/bin/env python3
"""cluster_agent.py NAME FOLDER [HOW]: the scripted agent of cluster.py and cluster_faults.py.

A session's id names the agent and its process. It keeps sessions as empty files in FOLDER, so that any
process with that folder can load one. A prompt "COUNT SIZE PAUSE [TEXT]" is answered after COUNT updates,
each with its number and TEXT or SIZE characters, PAUSE seconds apart. The answer names the notes `_peers/note`
that came since the last answer. `_peers/hold` is not answered.

In FOLDER, "SESSION@NAME" is locked while a process of the agent NAME has the session, and names it; "overlaps" names
the sessions that two agents had at once. HOW is a fault that it makes at random (lost, doubled, reordered),
or "stays": it does not exit when its input ends.
"""
import fcntl
import json
import os
import random
import signal
import sys
import time
import uuid
from pathlib import Path

NAME, FOLDER, HOW = sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None
# What becomes of two numbers.
FAULTS = {"lost": lambda a, b: [a], "doubled": lambda a, b: [a, a, b], "reordered": lambda a, b: [b, a]}
LOCKS = {}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session, text):
    content = {"type": "text", "text": text}
    send(method="session/update", params={"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": content}})


def own(session):
    """Marks a session as this agent's, and looks whether another agent has it."""
    if session in LOCKS:
        return
    LOCKS[session] = open(FOLDER / ("%s@%s" % (session, NAME)), "a")
    fcntl.flock(LOCKS[session], fcntl.LOCK_SH)
    LOCKS[session].write("%d\n" % os.getpid())
    LOCKS[session].flush()
    for other in FOLDER.glob(session + "@*"):
        if other.name != "%s@%s" % (session, NAME):
            with open(other) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    with open(FOLDER / "overlaps", "a") as overlaps:
                        overlaps.write("%s, and %s\n" % (other.name, NAME))


def turn(session, count, size, pause, text=None):
    numbers = list(range(int(count)))
    if HOW in FAULTS and len(numbers) > 1 and random.random() < 0.1:
        at = random.randrange(len(numbers) - 1)
        numbers[at:at + 2] = FAULTS[HOW](*numbers[at:at + 2])
    for number in numbers:
        update(session, "%d %s" % (number, text or "x" * int(size)))
        if float(pause):
            time.sleep(float(pause))


def main():
    notes = []
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if method == "_peers/note":
            notes.append(params["number"])
        if "id" not in message or method in (None, "_peers/hold"):
            continue
        result = None
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "authMethods": [],
                      "agentInfo": {"name": NAME, "version": str(os.getpid())}}
        elif method == "session/new":
            session = "%s-%d-%s" % (NAME, os.getpid(), uuid.uuid4().hex)
            (FOLDER / session).touch()
            own(session)
            result = {"sessionId": session}
        elif method == "session/load":
            if (FOLDER / params["sessionId"]).exists():
                own(params["sessionId"])
                update(params["sessionId"], "loaded by %d" % os.getpid())
                result = {}
        elif method == "session/prompt":
            turn(params["sessionId"], *params["prompt"][0]["text"].split())
            result = {"stopReason": "end_turn", "_meta": {"notes": notes}}
            notes = []
        if result is None:
            send(id=message["id"], error={"code": -32602, "message": "not known here"})
        else:
            send(id=message["id"], result=result)


main()
while HOW == "stays":
    signal.pause()

#!/usr/bin/env python3
"""versions_played.py: recorded conversations with agents of one version of ACP, played to a client of the other.

    versions_played.py [--relay BINARY] [FILE]...       default: vectors/transcripts
    versions_played.py --compare V2 V1                  two recordings of the same turns

A recording has every message of a conversation in its order. This program is the agent and the client: it sends the
agent's messages as they are, and the client's in the other version. The relay between them converts. Every message
that it sends must be valid (versions.py: `validate`), and every request must be answered. With --compare the v2
recording is played to a v1 client, and what that gets is compared with the v1 recording; the differences are printed.
"""
import argparse
import json
import queue
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import isolation
from capture import Capture, kind_of
from paths import RELAY, ROOT
from versions import validate
from wires import Listener, Relay

# What a recording of an agent of this version has, and the client of the other version does not send: the other
# version's methods, which were refused.
SKIPPED = {1: ("session/set_model", "auth/login", "auth/logout"), 2: ("session/load", "session/set_mode", "authenticate", "logout")}
RENAMED = {1: {"auth/login": "authenticate", "auth/logout": "logout"}, 2: {"authenticate": "auth/login", "logout": "auth/logout"}}


def read(path):
    """(way, message), without what is not one message, and null ids; the version of the agent."""
    lines = [json.loads(line) for line in open(path)]
    messages = [(line["dir"], line["msg"]) for line in lines if isinstance(line.get("msg"), dict) and line["msg"].get("id", 0) is not None]
    hello = next(message["result"] for way, message in messages if way == "a2c" and "result" in message)
    return messages, 2 if "info" in hello else 1


def in_version(version, message, mode):
    """A client's message as a client of `version` sends it. `mode` is the id of the option for the mode."""
    message, params = dict(message), message.get("params")
    method = message.get("method")
    if method == "initialize" and version == 1:
        capabilities = {"auth": {"terminal": True}, "elicitation": {"form": {}, "url": {}}, "_meta": {"terminal_output": True}}
        message["params"] = {"protocolVersion": 1, "clientInfo": params["info"], "clientCapabilities": capabilities}
    elif method == "initialize":
        message["params"] = {"protocolVersion": 2, "info": params["clientInfo"], "capabilities": {}}
    elif method == "session/set_config_option" and isinstance(params.get("value"), str):
        message["params"] = {**params, "type": "id"} if version == 2 else {k: params[k] for k in params if k != "type"}
    elif method == "session/resume" and params.get("replayFrom"):
        message["method"], message["params"] = "session/load", {k: params[k] for k in params if k != "replayFrom"}
    elif method == "session/load":
        message["method"], message["params"] = "session/resume", {**params, "replayFrom": {"type": "start"}}
    elif method == "session/set_mode" and mode:
        message["method"] = "session/set_config_option"
        message["params"] = {"sessionId": params["sessionId"], "configId": mode, "type": "id", "value": params["modeId"]}
    elif method in RENAMED[version]:
        message["method"] = RENAMED[version][method]
    return message


def known(seen, way, message):
    """Whether a request with the id of the message came this way."""
    return any(w == way and "method" in m and m.get("id") == message.get("id") for w, m in list(seen) if "id" in m)


class Play:
    """A recording that is played through a relay. `client` and `agent` are (way, message) at its two sides."""

    def __init__(self, messages, speaks, relay):
        self.speaks, self.client, self.agent = speaks, [], []
        self.wires, self.over, self.marks = queue.Queue(), threading.Event(), queue.Queue()
        self.mode = None
        listener = Listener("tcp", None, lambda wire: (self.wires.put(wire), self.over.wait()))
        options = ["--agent-protocol", "2"] if speaks == 2 else []
        process = Relay([relay, "connect", "--guard", "never", "--allow", "*", "--limit", "stop-grace=2s", *options, listener.endpoint], listens=False)
        self.upper, self.lower = process.stdio(), None
        self.follow(self.upper, "a2c", self.client)
        for way, message in messages:
            self.act(way, message)
        self.upper.end()
        self.over.set()
        process.stop()
        listener.close()

    def follow(self, wire, way, seen):
        def bodies():
            try:
                while body := wire.receive(60):
                    yield body
            except OSError:
                pass  # The wire is closed.

        def run():
            for body in bodies():
                message = json.loads(body)
                if message.get("method") == "_mark":
                    self.marks.put(message)
                    continue
                seen.append((way, message))
                for option in (message.get("result") or {}).get("configOptions") or []:
                    self.mode = option.get("configId") if option.get("category") == "mode" else self.mode
        threading.Thread(target=run, daemon=True).start()

    def act(self, way, message):
        if way == "a2c":
            if "method" not in message and not known(self.agent, "c2a", message):
                return  # The relay did not ask it.
            self.agent.append((way, message))
            self.lower.send(json.dumps(message).encode())
            # The relay has handled it when this has arrived.
            self.lower.send(b'{"jsonrpc":"2.0","method":"_mark"}')
            self.marks.get(timeout=10)
            return
        method = message.get("method")
        if method in SKIPPED[self.speaks] or method == "session/set_mode" and not self.mode or method == "initialize" and self.lower:
            return
        if not method and not known(self.client, "a2c", message):
            return  # The client was not asked.
        message = in_version(3 - self.speaks, message, self.mode)
        before = len(self.agent)
        self.client.append(("c2a", message))
        self.upper.send(json.dumps(message).encode())
        if not self.lower:
            self.lower = self.wires.get(timeout=10)
            self.follow(self.lower, "c2a", self.agent)
        # The relay has passed it on; or it answers it, or holds it back.
        for _ in range(100):
            if known(self.agent, "c2a", message) if method and "id" in message else len(self.agent) > before:
                break
            time.sleep(0.01)

    def wrong(self, count):
        found = []
        for name, seen in (("client", self.client), ("agent", self.agent)):
            order = [(way, json.dumps(message)) for way, message in seen]
            found += validate(Capture(name, {}, order), self.speaks, count)
        return found


def by_turn(messages):
    """{(prompt or method, how often it was there before): the agent's text that follows}."""
    turns, count = [["", ""]], Counter()
    for _, message in messages:
        params = message.get("params") or {}
        if message.get("method") in ("session/prompt", "session/load"):
            turns.append(["".join(block.get("text", "") for block in params.get("prompt", [])) or message["method"], ""])
        if message.get("method") == "session/update" and params["update"]["sessionUpdate"] == "agent_message_chunk":
            turns[-1][1] += params["update"]["content"].get("text", "")
    return {(name, count.update([name]) or count[name]): text for name, text in turns}


def compare(mine, theirs):
    """Prints the differences between what a v1 client got and a recording."""
    def kinds(messages):
        return Counter(kind_of(message) if "method" in message else kind_of(message).split(" ")[0]
                       for way, message in messages if way == "a2c")
    ours, other = kinds(mine), kinds(theirs)
    print("%-45s %9s %9s" % ("messages to the client", "converted", "v1"))
    for kind in sorted(ours | other):
        print("%-45s %9d %9d%s" % (kind, ours[kind], other[kind], "" if ours[kind] == other[kind] else "  differs"))
    texts = by_turn(theirs)
    for turn, text in by_turn(mine).items():
        if texts.get(turn) != text:
            print("text of %r: converted %r, v1 %r" % (turn, text, texts.get(turn)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    asked = parser.parse_args()
    files = asked.files or sorted((ROOT / "tests/vectors/transcripts").glob("*.jsonl"))
    isolation.leave_network()
    good, count = True, Counter()
    for file in files[:1] if asked.compare else files:
        play = Play(*read(file), asked.relay)
        wrong = play.wrong(count)
        print("%-4s  %s: %d messages to the client, %d to the agent" % (
            "FAIL" if wrong else "ok", file.name, *(sum(way == w for way, _ in seen) for seen, w in ((play.client, "a2c"), (play.agent, "c2a")))))
        for reason in wrong:
            print("      " + reason)
        good &= not wrong
        if asked.compare:
            compare(play.client, read(files[1])[0])
    print("%d messages of the relay validated" % count.total())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

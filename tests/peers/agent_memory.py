#!/usr/bin/env python3
"""agent_memory.py: one agent cannot take the memory of its relay, whatever it has it remember.

    agent_memory.py [--relay BINARY] [--only WAY,...]

In each way an agent of `acp-relay connect` makes the relay remember as much as it can: texts that are
streamed, terminals, the tool calls, plans and messages of many sessions, permissions that stay open,
options. The client receives all of it at once. Printed are the memory when the agent has sent all (0
when the relay has ended the conversation before), and the most that was ever used (ru_maxrss).
It fails when that is above 128 MiB with the release build; a build for debugging takes 50 MiB more.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from paths import RELAY

MIB = 1 << 20
FRAME = 8 * MIB
BOUND = 128 * MIB

# Sends its welcome, what WAY says, and an update that says `done`.
AGENT = r"""
import base64, json, sys
way, size = sys.argv[1], int(sys.argv[2])
out = sys.stdout
def send(method, params, id=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    json.dump(message if id is None else message | {"id": id}, out)
    out.write("\n")
def update(session, **what):
    send("session/update", {"sessionId": session, "update": what})
hello = json.loads(sys.stdin.readline())
welcome = {"protocolVersion": 1, "agentInfo": {"name": "goose", "version": "1"}}
if way in ("terminals", "sessions", "options"):
    welcome = {"protocolVersion": 2, "info": {"name": "a", "version": "1"},
               "capabilities": {"session": {}}, "authMethods": []}
json.dump({"jsonrpc": "2.0", "id": hello["id"], "result": welcome}, out)
out.write("\n")
text = {"type": "text", "text": "x" * size}
if way == "streamed":
    for session in range(30):
        update("s%d" % session, sessionUpdate="agent_message_chunk", content=text)
elif way == "terminals":
    data = base64.b64encode(b"x" * (size * 3 // 4)).decode()
    for terminal in range(64):
        update("s", sessionUpdate="terminal_output_chunk", terminalId="t%d" % terminal, data=data)
elif way == "sessions":
    items = [{"type": "content", "content": {"type": "text", "text": "x"}}] * 100
    entries = [{"content": "x", "priority": "low", "status": "pending"}] * 40
    for number in range(256):
        session = "s%d" % number
        for part in range(12):
            update(session, sessionUpdate="tool_call_update", toolCallId="c%d" % part, content=items)
            update(session, sessionUpdate="plan_update",
                   plan={"type": "items", "planId": "p%d" % part, "entries": entries})
            update(session, sessionUpdate="agent_message_chunk", messageId="m" * 4000 + str(part),
                   content={"type": "text", "text": "x"})
elif way == "permissions":
    for number in range(30):
        option = {"optionId": "%d" % number + "x" * size, "name": "n", "kind": "allow_once"}
        send("session/request_permission", {"sessionId": "s", "options": [option],
             "toolCall": {"toolCallId": "c", "title": "t"}}, "p%d" % number)
elif way == "options":
    option = {"id": "o", "name": "x" * size, "type": "select", "currentValue": "x", "options": []}
    for session in range(30):
        update("s%d" % session, sessionUpdate="config_option_update", configOptions=[option])
update("s", sessionUpdate="agent_message_chunk", content={"type": "text", "text": "done"})
out.flush()
sys.stdin.read()
"""
WAYS = ["streamed", "terminals", "sessions", "permissions", "options"]
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": 1, "clientInfo": {"name": "c", "version": "1"}}}


def run(relay, way):
    """Returns the memory at the end, and the most that was used."""
    words = [relay, "connect", "--", sys.executable, "-c", AGENT, way, str(FRAME - 1024)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    memory, tail = 0, b""
    while chunk := os.read(process.stdout.fileno(), 1 << 16):
        tail = tail[-200:] + chunk
        if b'"done"' in tail:
            status = pathlib.Path("/proc/%d/status" % process.pid).read_text()
            memory = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))
            break
    process.stdin.close()
    while os.read(process.stdout.fileno(), 1 << 16):
        pass
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return memory, usage.ru_maxrss << 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--only", default=",".join(WAYS))
    args = parser.parse_args()
    is_above = False
    for way in args.only.split(","):
        memory, most = run(args.relay, way)
        is_above |= most > BOUND
        print("%-12s %4d MiB at the end, %4d MiB at most (%d allowed)"
              % (way, memory // MIB, most // MIB, BOUND // MIB), flush=True)
    sys.exit("one agent has taken more" if is_above else 0)


main()

#!/usr/bin/env python3
"""instructions.py: instructions that acp-relay takes for each message, against instructions.txt.

    instructions.py [--write] [CASE…]

Counts with callgrind (Debian: valgrind) the instructions that the release build, or $ACP_RELAY_BIN,
takes to forward messages between a client and an agent of this script, with metrics. The machine's
load and clock hardly matter, only its instruction set and the compiler. Two runs of each case are
subtracted, so the start of the program does not count. Fails when a case takes more than its bound.
--write sets the bounds to the counts plus 12 %, because the bytes of a stream arrive in other pieces
each time, and plus 60 % for requests with answers, where the scheduling of threads varies. Not here:
times, and the work of the kernel (see `hop`).
"""
import base64
import concurrent.futures
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
BOUNDS = HERE / "instructions.txt"
RELAY = os.environ.get("ACP_RELAY_BIN") or str(HERE.parent.parent / "target/release/acp-relay")
CANONICAL = ["--client-dialect", "canonical", "--agent-dialect", "canonical"]
# Name: the client's transport, options of the relay, what is sent, and how often in the two runs.
CASES = {
    "stdio canonical 100": ("stdio", CANONICAL, "100", 1000, 9000),
    "stdio canonical 1024": ("stdio", CANONICAL, "1024", 1000, 5000),
    "stdio canonical asked": ("stdio", CANONICAL, "asked", 50, 450),
    "stdio auto 100": ("stdio", [], "100", 1000, 9000),
    "stdio auto 1024": ("stdio", [], "1024", 1000, 5000),
    "stdio auto chunk": ("stdio", [], "chunk", 1000, 9000),
    "stdio auto asked": ("stdio", [], "asked", 50, 450),
    "stdio canonical tool": ("stdio", CANONICAL, "tool", 1000, 5000),
    "stdio elephant tool": ("stdio", CANONICAL[:2] + ["--agent-dialect", "elephant"], "tool", 1000, 5000),
    "stdio elephant calls": ("stdio", CANONICAL[:2] + ["--agent-dialect", "elephant"], "calls", 1000, 5000),
    "stdio draft chunk": ("stdio", CANONICAL[:2] + ["--agent-dialect", "draft-v0.0.17"], "draft", 1000, 5000),
    "stdio acpex chunk": ("stdio", CANONICAL[:2] + ["--agent-dialect", "acpex"], "acpex", 1000, 5000),
    "stdio recorded 100": ("stdio", CANONICAL + ["--record", "{FOLDER}"], "100", 1000, 9000),
    "stdio recorded 1024": ("stdio", CANONICAL + ["--record", "{FOLDER}"], "1024", 1000, 5000),
    "stdio recorded varied": ("stdio", CANONICAL + ["--record", "{FOLDER}"], "varied", 1000, 9000),
    "ws canonical 100": ("ws", CANONICAL, "100", 1000, 9000),
    "ws canonical 1024": ("ws", CANONICAL, "1024", 1000, 5000),
    "ws auto 100": ("ws", [], "100", 1000, 9000),
}
UPDATE = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}'
CHUNK = '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}'
# A chunk in a draft before v1, and in `acpex`.
DRAFT = '{"sessionUpdate":"agentMessageChunk","content":{"type":"text","text":"%s"}}'
ACPEX = '{"kind":"agent_message_chunk","content":{"role":"assistant","content":[{"type":"text","text":"%s"}]}}'
# A tool call of a kind that `elephant` has and v1 has not.
TOOL = '{"sessionUpdate":"tool_call","toolCallId":"t","title":"Send","kind":"channel","rawOutput":"%s"}'
CODE = r"    let value = table.get(\"name\").map(|found| found.len());\n"
# Parts of the `varied` stream: updates of some 300 bytes, of which no two are the same.
PARTS = ["Now I will look ", r"at the \"table\" in\n", "src/main.rs, which ", r"über 12 files names.\n",
         "and then the tests of", r" let x = map.get(y);\n"]
REQUEST = '{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}'
ANSWER = '{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}'


def update(what, number):
    """One update of the case `what`: of that size, of about 1 KiB, or different for each number."""
    if what == "varied":
        text = "%010d" % (number * 7919) + PARTS[number % 6] * (1 + number % 5)
        return UPDATE.replace('"s"', '"sess_0191f3a2-77c1-7d2e-9a55-b1d2c3e4f506"') % CHUNK % text
    if what == "100":
        return UPDATE % '{"text":"abcdefg"}'
    if what == "chunk":
        return UPDATE % CHUNK % ("%06d" % number)
    if what == "tool":
        return UPDATE % TOOL % (CODE * 14)
    if what == "calls":
        return UPDATE % TOOL.replace('"t"', '"%010d"' % (number * 7919)) % (CODE * 14)
    chunk, size = {"draft": (DRAFT, 1024), "acpex": (ACPEX, 1024)}.get(what) or (CHUNK, int(what))
    return UPDATE % chunk % ("word " * ((size - len(UPDATE % chunk)) // 5))


def agent(what, count):
    """Sends its updates and reads to the end, or answers each request."""
    if what == "asked":
        for number, _ in enumerate(sys.stdin):
            print(ANSWER % number, flush=True)
        return
    sys.stdout.write("".join(update(what, number) + "\n" for number in range(count)))
    sys.stdout.flush()
    sys.stdin.read()


class Client:
    """Reads lines, or WebSocket text frames whose length takes two bytes at most; sends bytes."""

    def __init__(self, read, send, ws):
        self.read, self.send, self.ws, self.rest = read, send, ws, b""

    def receive(self):
        """The next message."""
        while True:
            if not self.ws and b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                return line
            short = len(self.rest) > 4 and self.rest[1] < 126
            size = self.rest[1] if short else int.from_bytes(self.rest[2:4], "big")
            begin = 2 if short else 4
            if self.ws and len(self.rest) > 4 and len(self.rest) >= begin + size:
                message, self.rest = self.rest[begin:begin + size], self.rest[begin + size:]
                return message
            more = self.read()
            if not more:
                sys.exit("the relay has disconnected")
            self.rest += more


def converse(client, what, count, rewritten=False):
    """The whole conversation, checked."""
    if what == "asked":
        for number in range(count):
            client.send((REQUEST % number + "\n").encode())
            assert client.receive() == (ANSWER % number).encode()
        return
    for number in range(count):
        received, sent = client.receive(), update(what, number).encode()
        assert (received == sent) != rewritten, received


def dial(relay):
    """A WebSocket to a relay, which prints its address."""
    for line in relay.stderr:
        found = re.search(rb"listening on ws://([0-9.]+):(\d+)(\S*)", line)
        if found:
            break
    host, port, path = found[1].decode(), int(found[2]), found[3].decode()
    wire = socket.create_connection((host, port), timeout=120)
    key = base64.b64encode(os.urandom(16)).decode()
    wire.sendall(("GET %s HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (path, host, port, key)).encode())
    client = Client(lambda: wire.recv(1 << 20), wire.sendall, False)
    while client.receive() != b"\r":
        pass
    client.ws = True
    return wire, client


def count(transport, options, what, times):
    """Instructions of one run."""
    own = [sys.executable, __file__, "agent", what, str(times)]
    rewritten = options[3:4] not in ([], ["canonical"])
    command = ["connect"] if transport == "stdio" else ["serve", "--listen", "ws://127.0.0.1:0"]
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        relay = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=%s.%%p" % log,
             RELAY] + command + [option.replace("{FOLDER}", folder) for option in options] + ["--"] + own,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # It would re-execute itself with another setting, and valgrind does not follow.
            env=dict(os.environ, ACP_RELAY_STATE_DIR=folder, ACP_RELAY_ALLOCATOR="again"))
        if transport == "stdio":
            output = relay.stdout.fileno()
            client = Client(lambda: os.read(output, 1 << 20), lambda sent: os.write(relay.stdin.fileno(), sent), False)
            converse(client, what, times, rewritten)
            relay.stdin.close()
        else:
            wire, client = dial(relay)
            converse(client, what, times)
            wire.close()
            relay.terminate()
        relay.wait(timeout=120)
        text = pathlib.Path("%s.%d" % (log, relay.pid)).read_text()
        return int(re.search(r"Collected : (\d+)", text)[1])


def measure(case):
    """Instructions for each message of a case."""
    transport, options, what, few, many = CASES[case]
    return (count(transport, options, what, many) - count(transport, options, what, few)) / (many - few)


def main():
    if sys.argv[1:2] == ["agent"]:
        return agent(sys.argv[2], int(sys.argv[3]))
    writes = "--write" in sys.argv
    cases = [word for word in sys.argv[1:] if word != "--write"] or list(CASES)
    bounds = dict(line.rsplit(" ", 1) for line in BOUNDS.read_text().splitlines())
    good = True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, counted in zip(cases, pool.map(measure, cases)):
            if writes:
                bounds[case] = "%d" % (counted * (1.6 if case.endswith("asked") else 1.12))
            fits = counted <= int(bounds.get(case, 0))
            good &= fits
            print("%-4s %-22s %6.0f instructions a message, at most %s"
                  % ("ok" if fits else "FAIL", case, counted, bounds.get(case)), flush=True)
    if writes:
        BOUNDS.write_text("".join("%s %s\n" % bound for bound in bounds.items() if bound[0] in CASES))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""instructions.py: instructions that acp-relay takes for each message, against instructions.txt.

    instructions.py [--write] [CASE…]

Counts with callgrind (Debian: valgrind) what the program as it is shipped, or $ACP_RELAY_BIN, takes
to carry messages between a client here and an agent here, metrics and all. Neither the machine's
load nor its clock matters much, only its instruction set and the compiler. Two runs of each case are
subtracted, so what it takes to begin does not count. Fails when a case takes more than its bound;
--write sets the bounds to what was counted and 12 % more, for in which pieces the bytes of a stream
come is never quite the same; 60 % for what is asked and answered, where threads are woken for each
message, and look for work, as the machine pleases. Not here: times, and what only the kernel does
(see `hop`).
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
# Name: the client's side, words for the relay, what is said, and how often in the two runs.
CASES = {
    "stdio canonical 100": ("stdio", CANONICAL, "100", 1000, 9000),
    "stdio canonical 1024": ("stdio", CANONICAL, "1024", 1000, 5000),
    "stdio canonical asked": ("stdio", CANONICAL, "asked", 50, 450),
    "stdio auto 100": ("stdio", [], "100", 1000, 9000),
    "stdio auto 1024": ("stdio", [], "1024", 1000, 5000),
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
# What a chunk was before v1, and what it is in `acpex`.
DRAFT = '{"sessionUpdate":"agentMessageChunk","content":{"type":"text","text":"%s"}}'
ACPEX = '{"kind":"agent_message_chunk","content":{"role":"assistant","content":[{"type":"text","text":"%s"}]}}'
# Its kind is in `elephant` and not in v1.
TOOL = '{"sessionUpdate":"tool_call","toolCallId":"t","title":"Send","kind":"channel","rawOutput":"%s"}'
CODE = r"    let value = table.get(\"name\").map(|found| found.len());\n"
# Of these, what streams is put together: updates of some 300 bytes, of which no two are the same.
SAYS = ["Now I will look ", r"at the \"table\" in\n", "src/main.rs, which ", r"über 12 files names.\n",
        "and then the tests of", r" let x = map.get(y);\n"]
ASKS = '{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}'
ANSWERS = '{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}'


def update(what, number):
    """One update, of that many bytes or about 1 KiB, or the one of that number."""
    if what == "varied":
        text = "%010d" % (number * 7919) + SAYS[number % 6] * (1 + number % 5)
        return UPDATE.replace('"s"', '"sess_0191f3a2-77c1-7d2e-9a55-b1d2c3e4f506"') % CHUNK % text
    if what == "100":
        return UPDATE % '{"text":"abcdefg"}'
    if what == "tool":
        return UPDATE % TOOL % (CODE * 14)
    if what == "calls":
        return UPDATE % TOOL.replace('"t"', '"%010d"' % (number * 7919)) % (CODE * 14)
    chunk, size = {"draft": (DRAFT, 1024), "acpex": (ACPEX, 1024)}.get(what) or (CHUNK, int(what))
    return UPDATE % chunk % ("word " * ((size - len(UPDATE % chunk)) // 5))


def agent(what, count):
    """Says its updates and listens to the end, or answers what it is asked."""
    if what == "asked":
        for number, _ in enumerate(sys.stdin):
            print(ANSWERS % number, flush=True)
        return
    sys.stdout.write("".join(update(what, number) + "\n" for number in range(count)))
    sys.stdout.flush()
    sys.stdin.read()


class Client:
    """Hears and says lines, or text frames of a WebSocket whose length takes two bytes at most."""

    def __init__(self, hear, say, ws):
        self.hear, self.say, self.ws, self.rest = hear, say, ws, b""

    def take(self):
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
            more = self.hear()
            if not more:
                sys.exit("the relay hung up")
            self.rest += more


def converse(client, what, count, rewritten=False):
    """The whole conversation, checked."""
    if what == "asked":
        for number in range(count):
            client.say((ASKS % number + "\n").encode())
            assert client.take() == (ANSWERS % number).encode()
        return
    for number in range(count):
        heard, wanted = client.take(), update(what, number).encode()
        assert (heard == wanted) != rewritten, heard


def dial(relay):
    """A WebSocket to a relay that says where it listens."""
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
    while client.take() != b"\r":
        pass
    client.ws = True
    return wire, client


def count(side, words, what, times):
    """Instructions of one run."""
    own = [sys.executable, __file__, "agent", what, str(times)]
    rewritten = words[3:4] not in ([], ["canonical"])
    begins = ["connect"] if side == "stdio" else ["serve", "--listen", "ws://127.0.0.1:0"]
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        relay = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=%s.%%p" % log,
             RELAY] + begins + [word.replace("{FOLDER}", folder) for word in words] + ["--"] + own,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, ACP_RELAY_STATE_DIR=folder))
        if side == "stdio":
            hear = relay.stdout.fileno()
            client = Client(lambda: os.read(hear, 1 << 20), lambda said: os.write(relay.stdin.fileno(), said), False)
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


def took(case):
    """Instructions for each message of a case."""
    side, words, what, few, many = CASES[case]
    return (count(side, words, what, many) - count(side, words, what, few)) / (many - few)


def main():
    if sys.argv[1:2] == ["agent"]:
        return agent(sys.argv[2], int(sys.argv[3]))
    writes = "--write" in sys.argv
    cases = [word for word in sys.argv[1:] if word != "--write"] or list(CASES)
    bounds = dict(line.rsplit(" ", 1) for line in BOUNDS.read_text().splitlines())
    good = True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, counted in zip(cases, pool.map(took, cases)):
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

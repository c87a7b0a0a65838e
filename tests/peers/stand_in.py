#!/usr/bin/env python3
"""stand_in.py: a minimal replacement for acp-relay, with faults that the harness must detect.

    stand_in.py serve --listen ENDPOINT [--agent-framing F] -- COMMAND...
    stand_in.py connect ENDPOINT | connect [--agent-framing F] -- COMMAND...

It only copies. `run.py --prove` runs the matrix with it once without a fault and once per fault of
STAND_IN_FAULT, to prove that the harness can fail:
    reprint   messages are parsed and serialised again
    drop      one notification of the agent is lost
    swap      two messages of the agent are swapped
    orphan    a process is left running
    exit      the exit code is wrong
    open      the agent's stdin stays open after the client's EOF
WebSocket is raw TCP here: both ends are this script.
"""
import json
import os
import socket
import subprocess
import sys
import threading

from framing import NDJSON, Splitter, sniff, wrap

FAULTS = ("reprint", "drop", "swap", "orphan", "exit", "open")
FAULT = os.environ.get("STAND_IN_FAULT", "")


class Fault:
    """Applies FAULT to the agent's messages."""

    def __init__(self):
        self.count = 0
        self.held = []

    def pass_on(self, bodies):
        for body in bodies:
            self.count += 1
            if FAULT == "reprint":
                body = json.dumps(json.loads(body)).encode()
            if FAULT == "drop" and self.count == 4:
                continue
            if FAULT == "swap" and self.count == 3:
                self.held = [body]
                continue
            yield body
            yield from self.held
            self.held = []


def copy(read, write, done, framing_in, framing_out, faulty):
    """One direction. `framing_in` None is sniffed; `framing_out` is called with the framing that was read."""
    splitter, fault = None, Fault()
    while chunk := read(1 << 16):
        splitter = splitter or Splitter(framing_in or sniff(chunk))
        bodies = splitter.feed(chunk)
        for body in fault.pass_on(bodies) if faulty else bodies:
            data = wrap(body, framing_out(splitter.framing))
            while data:
                data = data[write(data):]
    done()


def bridge(near, far, far_framing):
    """near and far: (read, write, close the write half). The near side's framing is sniffed."""
    framing = []

    def forward(mine):
        framing.append(mine)
        return far_framing

    there = threading.Thread(target=copy, args=(*near[:1], *far[1:], None, forward, False), daemon=True)
    there.start()
    copy(far[0], near[1], near[2], far_framing, lambda _: framing[0], True)


def of_process(child):
    def close():
        if FAULT != "open":
            child.stdin.close()
        # Some agents ignore EOF on stdin.
        stop = threading.Timer(2, child.terminate)
        stop.daemon = True
        stop.start()
    out = child.stdin.fileno()
    return lambda n: os.read(child.stdout.fileno(), n), lambda data: os.write(out, data), close


def of_socket(sock):
    def close():
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    return sock.recv, sock.send, close


def of_stdio():
    return (lambda n: os.read(0, n), lambda data: os.write(1, data), lambda: os.close(1))


def address(endpoint):
    scheme, _, rest = endpoint.partition(":")
    if scheme == "unix":
        return socket.AF_UNIX, rest
    host, _, port = rest.strip("/").split("/")[0].partition(":")
    return socket.AF_INET, (host, int(port))


def spawn(command):
    if FAULT == "orphan":
        subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, start_new_session=True)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def serve(endpoint, framing, command):
    family, where = address(endpoint)
    listener = socket.socket(family)
    listener.bind(where)
    listener.listen()
    scheme, _, rest = endpoint.partition(":")
    if family == socket.AF_INET:
        path = "/" + rest.strip("/").partition("/")[2] if scheme == "ws" else ""
        rest = "//127.0.0.1:%d%s" % (listener.getsockname()[1], path)
    print("acp-relay: listening on %s:%s" % (scheme, rest), file=sys.stderr, flush=True)
    while True:
        sock, _ = listener.accept()

        def one(sock=sock):
            child = spawn(command)
            bridge(of_socket(sock), of_process(child), framing)
            child.wait()
        threading.Thread(target=one, daemon=True).start()


def main():
    role, *rest = sys.argv[1:]
    command = None
    if "--" in rest:
        cut = rest.index("--")
        rest, command = rest[:cut], rest[cut + 1:]
    named = {rest[i]: rest[i + 1] for i in range(len(rest) - 1) if rest[i].startswith("--")}
    framing = named.get("--agent-framing", NDJSON)
    if role == "serve":
        serve(named["--listen"], framing, command)
    code = 0
    if command:
        child = spawn(command)
        bridge(of_stdio(), of_process(child), framing)
        code = child.wait()
    else:
        family, where = address(rest[-1])
        sock = socket.socket(family)
        sock.connect(where)
        bridge(of_stdio(), of_socket(sock), NDJSON)
    # The thread that reads stdin may still be blocked.
    os._exit(3 if FAULT == "exit" else code)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Other users of the machine at the door of a relay: refused without a token, let in with one.

Starts the relay as root (or whoever runs this) and asks as another user: over WebSocket, over HTTP,
over TCP and over the Unix socket. Needs root, to become that user. Bounded in time.

    other_user.py path/to/acp-relay
"""

import os
import socket
import subprocess
import sys
import tempfile
import time

NOBODY = 65533
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
AGENT = ["--", "sh", "-c", "read l; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}'; cat >/dev/null"]
TIMEOUT = 10


def as_user(uid, question):
    """What `question` returns in a process of that user."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            said = question()
        except Exception as fault:
            said = type(fault).__name__
        finally:
            # Nothing of the parent's is to be cleaned up here.
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def first_line(stream):
    stream.settimeout(TIMEOUT)
    said = b""
    while b"\n" not in said:
        more = stream.recv(4096)
        if not more:
            break
        said += more
    return said.decode().split("\n")[0].strip()


def tcp(port, text):
    def ask():
        with socket.create_connection(("127.0.0.1", port), TIMEOUT) as stream:
            stream.sendall(text)
            return first_line(stream)

    return ask


def unix(path, text):
    def ask():
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(TIMEOUT)
            stream.connect(path)
            try:
                stream.sendall(text)
            except BrokenPipeError:
                pass  # It has been refused already; why, can still be read.
            return first_line(stream)

    return ask


def main():
    if os.geteuid() != 0:
        sys.exit("has to be root, to become another user")
    # The other user may not be able to read what Python would load for it later.
    "localhost".encode("idna")
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "socket")
        env = dict(os.environ, ACP_RELAY_STATE_DIR=os.path.join(directory, "state"))
        listen = ["ws://127.0.0.1:0", "http://127.0.0.1:0", "tcp://127.0.0.1:0", f"unix:{path}"]
        options = [word for at in listen for word in ("--listen", at)]
        relay = subprocess.Popen(
            [program, "serve", *options, *AGENT], env=env, stderr=subprocess.PIPE, text=True
        )
        try:
            ports = []
            while len(ports) < 4:
                line = relay.stderr.readline()
                if not line:
                    sys.exit("the relay has ended")
                if " listening on " in line:
                    at = line.split(" on ")[1].strip()
                    ports.append(at if at.startswith("unix") else int(at.split(":")[2].split("/")[0]))
            token = subprocess.run(
                [program, "token", "new", "guest"], env=env, capture_output=True, text=True,
                timeout=TIMEOUT, check=True,
            ).stdout.strip()
            ok = judge(ports, path, token)
        finally:
            relay.terminate()
            relay.wait(30)
    sys.exit(0 if ok else 1)


def head(verb, port, *fields):
    lines = [f"{verb} /acp HTTP/1.1", f"Host: 127.0.0.1:{port}", *fields, "", ""]
    return "\r\n".join(lines).encode()


def judge(ports, path, token):
    ws, http, bare = (port for port in ports if isinstance(port, int))
    upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    bearer = f"Authorization: Bearer {token}"
    body = [f"Content-Length: {len(HELLO)}", "Content-Type: application/json"]
    post = head("POST", http, *body) + HELLO
    post_with = head("POST", http, *body, bearer) + HELLO
    line = HELLO + b"\n"
    cases = [
        ("WebSocket, the relay's user", None, tcp(ws, head("GET", ws, *upgrade)), "101"),
        ("WebSocket, another", NOBODY, tcp(ws, head("GET", ws, *upgrade)), "401"),
        ("HTTP, the relay's user", None, tcp(http, post), "200"),
        ("HTTP, another", NOBODY, tcp(http, post), "401"),
        ("TCP, the relay's user", None, tcp(bare, line), '"result"'),
        ("TCP, another", NOBODY, tcp(bare, line), "-32057"),
        ("Unix socket, the relay's user", None, unix(path, line), '"result"'),
        ("Unix socket, another", NOBODY, unix(path, line), "PermissionError"),
    ]
    ok = True
    with_token = None
    for name, uid, question, expected in cases:
        said = as_user(uid, question)
        good = expected in said
        ok &= good
        print(f"{'ok' if good else 'NOT OK'}: {name}: {said}")
    # The relay looks at the file of tokens once a second.
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        with_token = as_user(NOBODY, tcp(http, post_with))
        if "200" in with_token:
            break
    good = "200" in with_token
    print(f"{'ok' if good else 'NOT OK'}: HTTP, another, with a token: {with_token}")
    # Opened to all by hand: the kernel says whose the client is.
    os.chmod(path, 0o666)
    said = as_user(NOBODY, unix(path, line))
    refused = "-32057" in said
    print(f"{'ok' if refused else 'NOT OK'}: Unix socket of mode 0666, another: {said}")
    return ok and good and refused


if __name__ == "__main__":
    main()

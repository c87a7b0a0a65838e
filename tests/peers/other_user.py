#!/usr/bin/env python3
"""Connections of another local user to a relay: rejected without a token, admitted with one.

Starts the relay as root and sends requests as another user: over WebSocket, HTTP, TCP and the Unix
socket. Must run as root, to change the user. Bounded in time.

    other_user.py path/to/acp-relay
"""

import os
import socket
import subprocess
import sys
import tempfile
import time

OTHER_UID = 65533
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
AGENT = ["--", "sh", "-c", "read l; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}'; cat >/dev/null"]
TIMEOUT = 10


def as_user(uid, request):
    """The result of `request` in a process of that user."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            answer = request()
        except Exception as fault:
            answer = type(fault).__name__
        finally:
            # Skip the parent's cleanup.
            os.write(write, answer.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def first_line(stream):
    stream.settimeout(TIMEOUT)
    answer = b""
    while b"\n" not in answer:
        more = stream.recv(4096)
        if not more:
            break
        answer += more
    return answer.decode().split("\n")[0].strip()


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
                pass  # Already rejected; the reason can still be read.
            return first_line(stream)

    return ask


def main():
    if os.geteuid() != 0:
        sys.exit("must run as root, to change the user")
    # Load the codec now: the other user may not be able to read Python's files.
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
                    sys.exit("the relay has exited")
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
        ("WebSocket, another", OTHER_UID, tcp(ws, head("GET", ws, *upgrade)), "401"),
        ("HTTP, the relay's user", None, tcp(http, post), "200"),
        ("HTTP, another", OTHER_UID, tcp(http, post), "401"),
        ("TCP, the relay's user", None, tcp(bare, line), '"result"'),
        ("TCP, another", OTHER_UID, tcp(bare, line), "-32057"),
        ("Unix socket, the relay's user", None, unix(path, line), '"result"'),
        ("Unix socket, another", OTHER_UID, unix(path, line), "PermissionError"),
    ]
    ok = True
    with_token = None
    for name, uid, request, expected in cases:
        answer = as_user(uid, request)
        good = expected in answer
        ok &= good
        print(f"{'ok' if good else 'NOT OK'}: {name}: {answer}")
    # The relay checks the token file once per second.
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        with_token = as_user(OTHER_UID, tcp(http, post_with))
        if "200" in with_token:
            break
    good = "200" in with_token
    print(f"{'ok' if good else 'NOT OK'}: HTTP, another, with a token: {with_token}")
    # Mode 0666 admits every user to the file; the kernel reports the client's uid.
    os.chmod(path, 0o666)
    answer = as_user(OTHER_UID, unix(path, line))
    refused = "-32057" in answer
    print(f"{'ok' if refused else 'NOT OK'}: Unix socket of mode 0666, another: {answer}")
    return ok and good and refused


if __name__ == "__main__":
    main()

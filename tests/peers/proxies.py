#!/usr/bin/env python3
"""proxies.py: nginx and Caddy in front of a relay, configured as in the manual.

    proxies.py [--relay BINARY]

The two snippets are copied from src/docs/operations.md, with other names and ports. Behind each, over
WebSocket and over HTTP: a request without a token is rejected although the proxy runs as this user,
a token for one agent admits to that agent only, and events are forwarded as they are sent. A proxy
that is not installed is skipped, with a notice.
"""
import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation
from paths import RELAY
from websocket import WebSocket, _head
from wires import Relay

MANUAL = Path(__file__).resolve().parents[2] / "src/docs/operations.md"
# Sends a notification 0.3 s after the answer to `initialize`.
AGENT = """
import sys, time
for line in sys.stdin:
    print('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}', flush=True)
    time.sleep(0.3)
    print('{"jsonrpc":"2.0","method":"later"}', flush=True)
"""
CONFIG = """
[agents.goose]
command = ["python3", "-c", '''%s''']
[agents.claude]
command = ["cat"]
[[listeners]]
endpoint = "http://127.0.0.1:0"
allow-host = ["agents.example"]
""" % AGENT
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
UPGRADE = ("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")


def snippet(kind):
    return re.search(r"```%s\n(.*?)```" % kind, MANUAL.read_text(), re.S)[1]


def nginx(folder, port, behind):
    inside = snippet("nginx").replace("127.0.0.1:9000", "127.0.0.1:%d" % behind)
    (folder / "nginx.conf").write_text("""
        daemon off; master_process off; pid %(folder)s/pid; error_log %(folder)s/log; events {}
        http { access_log off; client_body_temp_path %(folder)s/b; proxy_temp_path %(folder)s/p;
               fastcgi_temp_path %(folder)s/f; uwsgi_temp_path %(folder)s/u; scgi_temp_path %(folder)s/s;
               server { listen 127.0.0.1:%(port)d; %(inside)s } }
    """ % {"folder": folder, "port": port, "inside": inside})
    return ["nginx", "-p", folder, "-c", folder / "nginx.conf"]


def caddy(folder, port, behind):
    inside = snippet("caddy").replace("127.0.0.1:9000", "127.0.0.1:%d" % behind)
    inside = inside.replace("agents.example", "http://agents.example:%d" % port)
    (folder / "Caddyfile").write_text("{\n admin off\n auto_https off\n}\n" + inside)
    return ["caddy", "run", "--config", folder / "Caddyfile"]


def ask(port, line, fields="", body=b"", token=None):
    """A request as the proxy's clients send it: returns socket, status, head and the bytes after it."""
    shown = "Authorization: Bearer %s\r\n" % token if token else ""
    head = "%s HTTP/1.1\r\nHost: agents.example:%d\r\n%s%s" % (line, port, shown, fields)
    head += "Content-Length: %d\r\n\r\n" % len(body) if body else "\r\n"
    sock = socket.create_connection(("127.0.0.1", port), 10)
    sock.settimeout(10)
    sock.sendall(head.encode() + body)
    head, rest = _head(sock)
    sock.settimeout(10)
    return sock, int(head[9:12]), head, rest


def check(port, token):
    """Yields the differences from the manual."""
    goose, claude = "/agents/goose/acp", "/agents/claude/acp"
    json = "Content-Type: application/json\r\n"
    for name, line, fields, body in (("WebSocket", "GET %s", UPGRADE, b""), ("HTTP", "POST %s", json, HELLO)):
        for path, shown, expected in ((goose, None, 401), (goose, token + "x", 401), (claude, token, 403),
                                    (goose, token, 101 if name == "WebSocket" else 200)):
            sock, status, head, rest = ask(port, line % path, fields, body, shown)
            if status != expected:
                yield "%s %s: %d instead of %d" % (name, path, status, expected)
                return
            if status == 101:
                link = WebSocket(sock, True, rest)
                link.send(HELLO)
                received = [link.receive(10), link.receive(10)]
                if b"later" not in received[1]:
                    yield "the WebSocket sent %r" % received
            if status == 200:
                found = re.search(rb"(?i)acp-connection-id: (\S+)", head)[1].decode()
                events, status, _, received = ask(port, "GET " + goose, "Accept: text/event-stream\r\n"
                                              "Acp-Connection-Id: %s\r\n" % found, b"", token)
                while b"later" not in received:
                    more = events.recv(4096)
                    if not more:
                        yield "the stream ended: %d %r" % (status, received)
                        return
                    received += more
            sock.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--relay", default=RELAY)
    relay = str(Path(parser.parse_args().relay).resolve())
    wrong = []
    for proxy in (nginx, caddy):
        name = proxy.__name__
        if not shutil.which(name):
            print("%s is not installed; skipped" % name)
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "team.toml").write_text(CONFIG)
            (folder / "team.toml").chmod(0o600)
            env = dict(os.environ, ACP_RELAY_STATE_DIR=str(folder / "state"), HOME=str(folder),
                       XDG_DATA_HOME=str(folder), XDG_CONFIG_HOME=str(folder))
            made = subprocess.run([relay, "token", "new", "alice", "--agents", "goose"], env=env, check=True,
                                  capture_output=True, text=True)
            serve = Relay([relay, "serve", "--config", folder / "team.toml"], env=env)
            port = isolation.free_port()
            words = proxy(folder, port, serve.port)
            front = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            try:
                until = time.monotonic() + 15
                while time.monotonic() < until:
                    try:
                        socket.create_connection(("127.0.0.1", port), 1).close()
                        break
                    except OSError:
                        time.sleep(0.05)
                faults = list(check(port, made.stdout.strip()))
            finally:
                # Caddy would wait until the streams end.
                front.kill()
                front.wait(10)
                serve.stop()
            wrong += ["%s: %s" % (name, fault) for fault in faults]
            print("%s: %s" % (name, "as in the manual" if not faults else "not as in the manual"))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()

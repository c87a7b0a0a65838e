#!/usr/bin/env python3
"""remote_agents.py: remote agents behind servers of other projects, and behind our own.

    remote_agents.py [--relay BINARY] [--server NAME]... [--list]

Starts `acp-relay connect ENDPOINT` as an editor would, or `acpremote mirror`, whose server is
`acp-relay serve`. Over each transport of a server: initialize, two sessions, a turn in each at the
same time with file reads, permissions and file writes, a prompt that is cancelled, the shutdown (exit
code 0, DELETE over HTTP where the server reports it), and session/load by a second `connect`. Over
TLS an untrusted server must be rejected first. One line per run, `N passed, N failed` at the end,
exit 1 when one failed. Servers are installed by install.sh; a missing one is skipped, with a notice.
Not here: the servers themselves (remote_agent.*, rust_sdk, turner.py).
"""
import argparse
import hashlib
import json
import os
import queue
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import isolation
from paths import PEERS, RELAY
from peers import AGENTS, GOOSE, SDK

HERE = Path(__file__).resolve().parent
PATIENCE = 30
SDK2 = PEERS / "npm2/node_modules/@agentclientprotocol/sdk"
PYTHON = PEERS / "python/bin/python"
ACPREMOTE = PEERS / "acpremote/bin/acpremote"
RUST = PEERS / "rust/debug/rust-sdk-server"
TURNER = [sys.executable, str(HERE / "turner.py"), "{dir}"]
H2 = ["--http2-prior-knowledge"]

# name, required file, command, ways: (scheme, options)
SERVERS = {
    "ts-sdk-1.9.0": (SDK, ["node", HERE / "remote_agent.mjs", SDK], [("http", []), ("ws", [])]),
    "ts-sdk-2.4.0": (SDK2, ["node", HERE / "remote_agent.mjs", SDK2], [("http", []), ("ws", [])]),
    "python-sdk-0.12.1": (PYTHON, [PYTHON, HERE / "remote_agent.py"], [("http", []), ("http", H2), ("ws", [])]),
    "rust-sdk-5.2.0": (RUST, [RUST, *TURNER], [("http", []), ("http", H2), ("ws", [])]),
    "goose-1.52.0": (GOOSE, None, [("http", []), ("http", H2), ("ws", [])]),
    "acpremote-1.10.0": (ACPREMOTE, [ACPREMOTE, "expose", "--host", "127.0.0.1", "--port", "{port}", "--", *TURNER],
                         [("ws", [])]),
}
# Both our client and our server, and our server with another project's client.
OURS = [RELAY, "serve", "--listen", "http://127.0.0.1:{port}", "--", *TURNER]
SERVERS["acp-relay"] = (RELAY, OURS, [("http", []), ("http", H2), ("ws", []), ("elephant+http", [])])
SERVERS["acpremote-mirror"] = (ACPREMOTE, OURS, [("ws", [])])
# The agents use the editor's files, and the scripted ones read and write at the root.
CONNECT = lambda relay: [relay, "connect", "--files", "editor", "--root", "/"]
# The client where it is not ours.
CLIENTS = {"acpremote-mirror": [ACPREMOTE, "mirror"]}
PATHS = {"acpremote-1.10.0": "/acp/ws"}

# Over TLS, trusted by our certificate authority or by the certificate's hash: Node's and hypercorn's
# own TLS, the latter with HTTP/2, and nginx in front of the Rust SDK's server.
CA, PINNED = ["--tls-ca", "{tls}/ca.pem"], ["--pin-sha256", "{pin}"]
TLS_WAYS = [("https", CA), ("https", PINNED), ("wss", CA), ("wss", PINNED)]
NGINX = Path(shutil.which("nginx") or "/usr/sbin/nginx")
for name, command in (("ts-sdk-1.9.0", [*SERVERS["ts-sdk-1.9.0"][1], "{tls}"]),
                      ("ts-sdk-2.4.0", [*SERVERS["ts-sdk-2.4.0"][1], "{tls}"]),
                      ("python-sdk-0.12.1", [PYTHON, HERE / "remote_agent.py", "{tls}"]),
                      ("rust-sdk-5.2.0", [RUST, *TURNER])):
    SERVERS[name + "-tls"] = (SERVERS[name][0], command, TLS_WAYS)
# nginx keeps all streams open until the server closes them, and buffers nothing.
NGINX_CONF = """
daemon off; worker_processes 1; pid %(folder)s/nginx.pid; error_log stderr warn;
events { worker_connections 256; }
http {
    access_log off; proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 1h;
    proxy_temp_path %(folder)s/t1; client_body_temp_path %(folder)s/t2; fastcgi_temp_path %(folder)s/t3;
    uwsgi_temp_path %(folder)s/t4; scgi_temp_path %(folder)s/t5;
    map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
    server {
        listen 127.0.0.1:%(port)d ssl http2; ssl_certificate %(tls)s/cert.pem; ssl_certificate_key %(tls)s/key.pem;
        location / {
            proxy_pass http://127.0.0.1:%(to)d; proxy_http_version 1.1; proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
        }
    }
}
"""


class Fault(Exception):
    pass


class Editor:
    """One client program on stdio, and the editor's side of its conversation."""

    def __init__(self, program, endpoint, options, log):
        self.process = subprocess.Popen([*program, endpoint, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log)
        self.received, self.waiting, self.numbers = queue.Queue(), {}, iter(range(1 << 20))
        self.seen, self.written, self.asked = [], [], []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.received.put(json.loads(line))
        self.received.put(None)

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        number = next(self.numbers)
        self.send(id=number, method=method, params=params)
        return number

    def until(self, *numbers):
        """Returns the answers to these requests; answers the agent's requests meanwhile."""
        answers = {}
        while len(answers) < len(numbers):
            try:
                message = self.received.get(timeout=PATIENCE)
            except queue.Empty:
                raise Fault("no answer to %s within %d s" % (set(numbers) - set(answers), PATIENCE)) from None
            if message is None:
                raise Fault("the client has exited, %s" % self.process.wait(PATIENCE))
            if "method" not in message:
                if "error" in message:
                    raise Fault("error %s" % json.dumps(message["error"]))
                answers[message["id"]] = message["result"]
            elif "id" in message:
                self.serve(message)
            else:
                self.seen.append(message["params"])
        return [answers[number] for number in numbers]

    def until_update(self, session, otherwise):
        """Reads until an update with content has arrived for the session."""
        deadline = time.monotonic() + PATIENCE
        while not any(one["sessionId"] == session and "content" in one["update"] for one in self.seen):
            try:
                message = self.received.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise Fault(otherwise) from None
            if message is None or "params" not in message:
                raise Fault("%s, but %s" % (otherwise, message))
            self.seen.append(message["params"])

    def serve(self, message):
        method, params = message["method"], message["params"]
        self.asked.append(method)
        result = {}
        if method == "fs/read_text_file":
            result = {"content": "hello seed\n"}
        elif method == "fs/write_text_file":
            self.written.append((params["sessionId"], params["content"]))
        elif method == "session/request_permission":
            allow = [one for one in params["options"] if one["kind"] == "allow_once"]
            result = {"outcome": {"outcome": "selected", "optionId": allow[0]["optionId"]}}
        self.send(id=message["id"], result=result)

    def begin(self):
        return self.until(self.ask("initialize", protocolVersion=1, clientCapabilities={
            "fs": {"readTextFile": True, "writeTextFile": True}}))[0]

    def texts(self, session):
        mine = [one["update"] for one in self.seen if one["sessionId"] == session]
        return "".join(one["content"]["text"] for one in mine if one["sessionUpdate"] == "agent_message_chunk")

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        if code != 0:
            raise Fault("the client exits %d" % code)


def conversation(start, cwd, words, cancelled, product):
    """The whole conversation, through editors that `start` starts. Returns the parts that passed."""
    editor = start()
    able = editor.begin()
    asked = [editor.ask("session/new", cwd=cwd, mcpServers=[]) for _ in range(2)]
    sessions = [result["sessionId"] for result in editor.until(*asked)]
    prompt = lambda session, text: editor.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
    turns = [prompt(session, words + " " + name) for session, name in zip(sessions, "ab")]
    for result in editor.until(*turns):
        if result["stopReason"] != "end_turn":
            raise Fault("a turn ended %s" % result)
    required = {"fs/read_text_file", "fs/write_text_file", "session/request_permission"}
    if required - set(editor.asked) or len({session for session, _ in editor.written}) != 2:
        raise Fault("requested only %s, wrote %s" % (editor.asked, editor.written))
    for session, name in zip(sessions, "ab"):
        text = editor.texts(session)
        if not product and text != "begun: %s %sdone: %s %s" % (words, name, words, name):
            raise Fault("session %s received %r" % (name, text))
    editor.seen.clear()
    waits = prompt(sessions[0], cancelled)
    editor.until_update(sessions[0], "the waiting turn does not start")
    editor.send(method="session/cancel", params={"sessionId": sessions[0]})
    stopped = editor.until(waits)[0]["stopReason"]
    editor.end()
    done = ["2 sessions", "permission", "read", "write", "cancel: " + stopped]
    if able.get("agentCapabilities", {}).get("loadSession"):
        second = start()
        second.begin()
        second.until(second.ask("session/load", sessionId=sessions[1], cwd=cwd, mcpServers=[]))
        # The answer and the replay use two streams, in no fixed order.
        second.until_update(sessions[1], "session/load replayed nothing")
        second.end()
        done.append("load")
    return done


class Server:
    """A server process, and its output."""

    def __init__(self, command, env, log):
        self.lines = []
        self.port = None
        self.ready = threading.Event()
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True,
                                        start_new_session=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            if line.startswith("listening "):
                self.port = int(line.split()[1])
                self.ready.set()
            self.lines.append(line.strip())

    def deletes(self, before, expected):
        """The number of DELETE requests, and all output since `before`; another thread reads it."""
        deadline = time.monotonic() + 3
        while True:
            lines = self.lines[before:]
            count = sum(line.startswith("asked DELETE") for line in lines)
            if count >= expected or time.monotonic() > deadline:
                return count, lines
            time.sleep(0.05)

    def stop(self):
        try:
            os.killpg(self.process.pid, 15)
            self.process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()


def wait_for(port):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    raise Fault("no server listens")


def refuses(relay, endpoint, log):
    """An untrusted server is rejected: by the authority, and by the hash of another certificate."""
    for options in ([], ["--pin-sha256", "00" * 32]):
        done = subprocess.run([relay, "connect", endpoint, *options], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE)
        log.write(done.stderr)
        if done.returncode == 0 or b"ertificate" not in done.stderr:
            raise Fault("an untrusted server is accepted with %s: %s" % (options, done))


def run(relay, name, root):
    """The lines of one server's runs: (way, the parts that passed or the error, passed)."""
    _, command, ways = SERVERS[name]
    product = command is None
    folder = Path(root) / name
    (folder / "home").mkdir(parents=True)
    (folder / "sessions").mkdir()
    (folder / "seed.txt").write_text("hello seed\n")
    env, llm, port = isolation.environment(folder / "home"), None, isolation.free_port()
    words, cancelled, shown = "turn", "wait", []
    log = open(folder / "server.stderr", "wb")
    if product:
        goose = next(agent for agent in AGENTS if agent.name == "goose")
        llm = Server([sys.executable, str(HERE / "mock_llm.py"), "--port", "0", "--cwd", str(folder)], env, log)
        deadline = time.monotonic() + PATIENCE
        while not llm.lines and time.monotonic() < deadline:
            time.sleep(0.05)
        url = "http://" + llm.lines[0].split()[-1]
        env.update(goose.variables(url))
        command, words, cancelled = goose.server, "[[edit]]", "[[slow]]"
        shown = goose.server_options
    tls, pin = folder / "tls", ""
    if name.endswith("-tls"):
        isolation.certificates(tls, "IP:127.0.0.1")
        pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert((tls / "cert.pem").read_text())).hexdigest()
    command = [str(word).format(port=port, dir=folder / "sessions", tls=tls) for word in command]
    server, nginx = Server(command, env, log), None
    try:
        if any("{port}" in str(word) for word in (SERVERS[name][1] or ["{port}"])):
            server.port = port
            wait_for(port)
        elif not server.ready.wait(PATIENCE):
            raise Fault("the server does not start; see %s" % log.name)
        if name == "rust-sdk-5.2.0-tls":
            conf = folder / "nginx.conf"
            conf.write_text(NGINX_CONF % {"folder": folder, "port": port, "tls": tls, "to": server.port})
            nginx = Server([str(NGINX), "-c", str(conf), "-p", str(folder), "-e", "stderr"], env, log)
            wait_for(port)
        for scheme, options in ways:
            endpoint = "%s://127.0.0.1:%d%s" % (scheme, port if nginx else server.port, PATHS.get(name, "/acp"))
            way = scheme + {tuple(H2): " h2", tuple(PINNED): " pin"}.get(tuple(options), "")
            h2 = options == H2 or scheme == "https" and name.startswith("python")
            options = [*(word.format(tls=tls, pin=pin) for word in options), *shown]
            editors = []

            def start():
                editors.append(Editor(CLIENTS.get(name, CONNECT(relay)), endpoint, options, open(folder / (way + ".stderr"), "ab")))
                return editors[-1]
            before = len(server.lines)
            try:
                if scheme in ("https", "wss"):
                    refuses(relay, endpoint, log)
                done = conversation(start, str(folder), words, cancelled, product)
                lines = server.lines[before:]
                if any(line.startswith("asked") for line in lines) and scheme in ("http", "https"):
                    deletes, lines = server.deletes(before, len(editors))
                    if deletes != len(editors):
                        raise Fault("%d links were closed with %d DELETE" % (len(editors), deletes))
                    version = "HTTP/2" if h2 else "HTTP/1.1"
                    if not all(version in line for line in lines if line.startswith("asked")):
                        raise Fault("not all requests were %s: %s" % (version, set(lines)))
                    done.append("DELETE")
                yield way, ", ".join(done), True
            except (Fault, queue.Empty, OSError, KeyError, subprocess.TimeoutExpired) as fault:
                yield way, "%s: %s" % (type(fault).__name__, fault), False
            finally:
                for editor in editors:
                    if editor.process.poll() is None:
                        editor.process.kill()
                    editor.process.wait()
    except Fault as fault:
        yield "start", str(fault), False
    finally:
        server.stop()
        if nginx:
            nginx.stop()
        if llm:
            llm.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--server", action="append", choices=SERVERS)
    asked = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="acp-relay-remote-") as root:
        for name in asked.server or SERVERS:
            if not Path(SERVERS[name][0]).exists():
                print("skipped: %s is not installed" % name)
                continue
            if name == "rust-sdk-5.2.0-tls" and not NGINX.exists():
                print("skipped: nginx is not installed")
                continue
            for way, what, good in run(asked.relay, name, root):
                passed, failed = passed + good, failed + (not good)
                print("%-4s %-21s %-9s %s" % ("ok" if good else "FAIL", name, way, what), flush=True)
        if failed:
            for path in sorted(Path(root).rglob("*.stderr")):
                tail = path.read_text(errors="replace")[-2000:]
                if tail:
                    print("-- %s\n%s" % (path, tail), file=sys.stderr)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""login.py: an agent on another machine that logs in with a browser on this one, over ssh and over wss.

    login.py [--relay BINARY]

The agent does OAuth with a redirect to loopback (RFC 8252): in `authenticate` it starts what `BROWSER` names, and
waits at a port of its own. "Here" and "there" are two network namespaces, so that nothing but the relays connects
their loopbacks. The identity provider is a page of Chromium's: the browser resolves its name to a server here, and
follows the redirect. Without Chromium a client that does the same takes its place. Then everything hostile: redirects
elsewhere, ports of others, wrong states, second callbacks, pages that are no https.
"""
import argparse
import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import isolation
import sshd
from paths import RELAY
from returns import Fault

PATIENCE = 40
# `authenticate` has the address of the page as its methodId; PORT is where the agent waits.
AGENT = r"""
import json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
seen = []
class Door(BaseHTTPRequestHandler):
    def do_GET(self):
        seen.append({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the agent's own page")
    def log_message(self, *_): pass
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
door = None
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": [{"id": "oauth", "name": "OAuth"}],
             "_meta": {"got": params.get("_meta")}})
    elif method == "authenticate":
        address = params["methodId"]
        if params.get("_meta", {}).get("listens"):
            door = HTTPServer(("127.0.0.1", params["_meta"]["listens"]), Door)
        opened = None
        if params.get("_meta", {}).get("elicits"):
            send(id="e", method="elicitation/create", params={"mode": "url", "url": address, "message": "log in", "elicitationId": "x",
                 "requestId": message["id"]})
        else:
            opened = subprocess.run([os.environ["BROWSER"], address], stdin=subprocess.DEVNULL).returncode
        wait = params.get("_meta", {}).get("waits", 0)
        if door:
            door.timeout = wait
            door.handle_request()
            door.server_close()
            door = None
        elif wait:
            time.sleep(wait)
        send(id=message["id"], result={"_meta": {"seen": seen, "opened": opened}})
        seen = []
    elif "id" in message and method:
        send(id=message["id"], result={})
"""


# Has a port and answers nothing.
HOLDER = "import socket,time;s=socket.create_server(('127.0.0.1',%d));print(1,flush=True);time.sleep(1000)"


class Editor:
    """An editor that has started `connect`."""

    def __init__(self, words, env):
        self.process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.said, self.answers, self.questions = [], {}, []
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()
        threading.Thread(target=self.read, daemon=True).start()
        self.number = 0

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message:
                self.questions.append(message)
            else:
                self.answers[message["id"]] = message

    def send(self, method, **params):
        self.number += 1
        self.write(id=self.number, method=method, params=params)
        return self.number

    def write(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def answer(self, number):
        until("an answer: %s" % self.said, lambda: number in self.answers)
        return self.answers[number]

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


def until(what, holds):
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > PATIENCE:
            raise Fault("not in time: %s" % what)
        time.sleep(0.02)


def expect(what, holds, seen=""):
    if not holds:
        raise Fault("%s: %s" % (what, seen))


def page(port, state="s~1", host="127.0.0.1", path="/cb", scheme="http", **more):
    query = {"client_id": "x", "redirect_uri": "%s://%s:%s%s" % (scheme, host, port, path), "state": state, **more}
    return "https://login.example/authorize?" + urllib.parse.urlencode({key: value for key, value in query.items() if value is not None})


class Place:
    """Both machines: the browser here notes what it is started with, and where."""

    def __init__(self, relay, folder, here_ns):
        self.relay, self.folder, self.ns = relay, folder, here_ns
        self.env = {**isolation.environment(folder / "home"), "ACP_RELAY_STATE_DIR": str(folder / "state")}
        self.opened = folder / "opened"
        browser = folder / "browser"
        browser.write_text("#!/bin/sh\nprintf '%%s\\n' \"$1\" >>%s\n" % self.opened)
        browser.chmod(0o755)
        self.env["BROWSER"] = str(browser)
        self.editors, self.usual = [], []

    def pages(self):
        return self.opened.read_text().splitlines() if self.opened.exists() else []

    def connect(self, *options):
        usual = [] if {"--login", "--guard"} & set(options) else self.usual
        editor = Editor([*self.ns, self.relay, "connect", *usual, *options, *self.way], self.env)
        self.editors.append(editor)
        got = editor.answer(editor.send("initialize", protocolVersion=1, clientCapabilities={"elicitation": {"url": {}}}))
        expect("the agent", "result" in got, got)
        expect("the agent is told nothing", not (got["result"]["_meta"]["got"] or {}).get("acp-relay", {}).get("login"), got)
        return editor

    def get(self, target, port, method="GET", headers=()):
        """What a browser here gets."""
        script = ("import sys,http.client;c=http.client.HTTPConnection('127.0.0.1',%d,timeout=20);c.request(%r,%r,headers=%r);"
                  "r=c.getresponse();print(r.status);print(r.getheader('location'));print(r.read().decode())" % (port, method, target, dict(headers)))
        done = subprocess.run([*self.ns, sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
        status, _, rest = done.stdout.partition("\n")
        location, _, body = rest.partition("\n")
        return int(status or 0), location, body

    def listens(self, port):
        done = subprocess.run([*self.ns, "cat", "/proc/net/tcp"], capture_output=True, text=True)
        return (":%04X 00000000:0000 0A" % port) in done.stdout


def login(place, port, **more):
    """A login that succeeds; what the agent has seen, and the page that was opened."""
    editor, before = place.connect(*more.pop("options", ())), len(place.pages())
    address = page(port, **more)
    number = editor.send("authenticate", methodId=address, _meta={"listens": port, "waits": PATIENCE})
    try:
        until("the page opens", lambda: len(place.pages()) > before)
    except Fault as fault:
        raise Fault("%s: %s" % (fault, editor.said)) from fault
    return editor, number, place.pages()[-1], address


def works(place):
    port = isolation.free_port()
    editor, number, opened, address = login(place, port)
    expect("the page is the agent's", opened == address, opened)
    status, _, body = place.get("/favicon.ico", port)
    expect("another path", status == 404, (status, body))
    status, _, body = place.get("/cb?code=SECRETCODE&state=wrong", port)
    expect("another state", status == 404, (status, body))
    status, _, body = place.get("/cb?code=SECRETCODE&state=s~1", port, method="POST")
    expect("another method", status == 405, (status, body))
    status, _, body = place.get("/cb?code=SECRETCODE&state=s~1", port, headers={"Cookie": "a=b", "X-Secret": "c", "User-Agent": "browser"}.items())
    expect("the redirect gets a page of ours", status == 200 and "passed on" in body and "agent's own" not in body, (status, body))
    result = editor.answer(number)["result"]["_meta"]
    expect("the agent gets it", [one["path"] for one in result["seen"]] == ["/cb?code=SECRETCODE&state=s~1"], result)
    headers = result["seen"][0]["headers"]
    expect("and no header of the browser", set(headers) == {"host", "connection"} and headers["host"] == "127.0.0.1:%d" % port, headers)
    expect("the browser was started in order", result["opened"] == 0, result)
    until("the port is closed", lambda: not place.listens(port))
    said = "".join(editor.said)
    expect("it is told, without code and state", "login.example" in said and "SECRETCODE" not in said and "s~1" not in said, said)
    editor.end()
    return "path and query arrive, and nothing else"


def recorded(place):
    port, folder = isolation.free_port(), place.folder / ("recordings-%d" % time.time_ns())
    editor, number, _, _ = login(place, port, options=["--record", str(folder)])
    place.get("/cb?code=SECRETCODE&state=s~1", port)
    editor.answer(number)
    editor.end()
    text = "".join(path.read_text() for path in folder.rglob("*.acpr"))
    # The editor's own request has the page in a member of the test's choice.
    lines = [line for line in text.splitlines() if "_acp-relay/login" in line or "acp-relay-login" in line]
    expect("the recording has the login", len(lines) >= 2 and any("login.example" in line for line in lines), text[-2000:])
    expect("without code and state", not any(word in line for line in lines for word in ("SECRETCODE", "s~1", "s%7E1")), lines)
    return "%d events, without code and state" % len(lines)


def elicited(place):
    port, before = isolation.free_port(), len(place.pages())
    editor = place.connect()
    number = editor.send("authenticate", methodId=page(port), _meta={"listens": port, "waits": PATIENCE, "elicits": True})
    until("the elicitation", lambda: editor.questions)
    expect("the editor gets it and nothing else", [one["method"] for one in editor.questions] == ["elicitation/create"], editor.questions)
    until("the port is open", lambda: place.listens(port))
    place.get("/cb?code=1&state=s~1", port)
    result = editor.answer(number)["result"]["_meta"]
    expect("the agent gets the redirect", [one["path"] for one in result["seen"]] == ["/cb?code=1&state=s~1"], result)
    expect("the editor opens the page itself", len(place.pages()) == before, place.pages())
    editor.end()
    return "the redirect of an elicitation arrives"


def asked(place):
    port, before = isolation.free_port(), len(place.pages())
    editor = place.connect("--login", "ask")
    editor.send("authenticate", methodId="https://login.example/device", _meta={"listens": port, "waits": 5})
    until("a question", lambda: len(place.pages()) > before)
    parts = urllib.parse.urlsplit(place.pages()[-1])
    expect("a page without a redirect", place.get(parts.path, parts.port)[0] == 200, place.pages())
    editor.end()
    with_holder = subprocess.Popen([*place.ns, sys.executable, "-c", HOLDER % port], stdout=subprocess.PIPE)
    with_holder.stdout.readline()
    editor, opened = place.connect("--login", "ask"), place.pages()
    editor.answer(editor.send("authenticate", methodId=page(port), _meta={"waits": 2}))
    expect("no question for a port in use", place.pages() == opened, place.pages())
    editor.end()
    with_holder.kill()
    with_holder.wait()
    port = isolation.free_port()
    editor, number, opened, address = login(place, port, options=["--login", "ask"])
    parts = urllib.parse.urlsplit(opened)
    expect("a question first", parts.hostname == "127.0.0.1" and "login.example" not in opened, opened)
    status, _, body = place.get(parts.path, parts.port)
    expect("which names the host", status == 200 and "login.example" in body, body)
    expect("other pages are not there", place.get("/", parts.port)[0] == 404)
    status, location, _ = place.get(parts.path + "/open", parts.port)
    expect("then the page", (status, location) == (303, address), (status, location))
    place.get("/cb?code=1&state=s~1", port)
    expect("the agent gets the redirect", editor.answer(number)["result"]["_meta"]["seen"], "")
    editor.end()
    return "a page asks first"


def refused(place):
    """Nothing opens, and nothing is carried."""
    port = isolation.free_port()
    cases = {
        "another host": page(port, host="10.1.2.3"), "a name like ours": page(port, host="127.0.0.1.evil.example"),
        "https": page(port, scheme="https"), "a privileged port": page(80), "no state": page(port, state=None),
        "no https page": page(port).replace("https://login", "http://login"), "a file": "file:///etc/passwd",
        "an option": "--no-such", "a user": "https://me@login.example/", "two redirects": page(port) + "&redirect_uri=http://127.0.0.1:9/",
    }
    for name, address in cases.items():
        before = place.pages()
        editor = place.connect()
        result = editor.answer(editor.send("authenticate", methodId=address))["result"]["_meta"]
        expect("%s: the browser there says so" % name, result["opened"] != 0, result)
        expect("%s: nothing opens" % name, place.pages() == before and not place.listens(port), place.pages())
        editor.end()
    before = place.pages()
    for options in (["--login", "never"], ["--guard", "always"]):
        editor = place.connect(*options)
        result = editor.answer(editor.send("authenticate", methodId=page(port)))["result"]["_meta"]
        expect("%s: nothing opens" % options, result["opened"] != 0 and place.pages() == before, result)
        editor.end()
    return "%d pages, never and guard" % len(cases)


def busy(place):
    """The port here belongs to another program; and there, to a process that is not the agent's."""
    port = isolation.free_port()
    holder = subprocess.Popen([*place.ns, sys.executable, "-c", HOLDER % port], stdout=subprocess.PIPE)
    holder.stdout.readline()
    try:
        before, editor = place.pages(), place.connect()
        number = editor.send("authenticate", methodId=page(port), _meta={"listens": port, "waits": 3})
        result = editor.answer(number)["result"]["_meta"]
        until("it is told", lambda: any("port %d" % port in line for line in editor.said))
        expect("nothing opens, nothing is carried", place.pages() == before and not result["seen"], result)
        editor.end()
    finally:
        holder.kill()
        holder.wait()
    port = isolation.free_port()
    with socket.create_server(("127.0.0.1", port)) as foreign:
        foreign.settimeout(1)
        before, editor = len(place.pages()), place.connect()
        # The process that listens there is this test's.
        number = editor.send("authenticate", methodId=page(port), _meta={"waits": 4})
        until("the page opens", lambda: len(place.pages()) > before)
        expect("the redirect is taken here", place.get("/cb?code=1&state=s~1", port)[0] == 200)
        editor.answer(number)
        got = None
        with contextlib.suppress(TimeoutError):
            got = foreign.accept()
        expect("nothing is delivered to a foreign process", got is None)
        editor.end()
    return "a port in use here, and one of another process there"


def late(place):
    """The client's login is over: the port closes, and a second callback finds nothing."""
    port = isolation.free_port()
    editor, before = place.connect(), len(place.pages())
    number = editor.send("authenticate", methodId=page(port), _meta={"listens": port, "waits": 2})
    until("the page opens", lambda: len(place.pages()) > before)
    editor.answer(number)
    until("the port is closed", lambda: not place.listens(port))
    expect("nothing answers", place.get("/cb?code=1&state=s~1", port)[0] == 0)
    before = len(place.pages())
    expect("no page without a login", editor.answer(editor.send("_peers/nothing"))["result"] == {} and len(place.pages()) == before)
    editor.end()
    return "after the login the port is closed"


def tried(place):
    """`try --authenticate`: its page has no redirect, so that nothing is awaited."""
    before, address = len(place.pages()), "https://login.example/device"
    done = subprocess.run([*place.ns, place.relay, "try", "--authenticate", address, *place.usual, *place.way], env=place.env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    until("the page opens: %s" % done.stderr, lambda: place.pages()[before:] == [address])
    return "`try --authenticate` opens the page"


CASES = (works, recorded, elicited, asked, refused, busy, late, tried)


def chromium(place):
    """A browser that follows a redirect of a page, whose name leads to a server here."""
    program = shutil.which("chromium")
    if not program:
        return None
    port, web = isolation.free_port(), isolation.free_port()
    keys = isolation.certificates(place.folder / "tls-idp", "DNS:login.example")
    server = place.folder / "idp.py"
    server.write_text(r"""
import http.server, ssl, sys, urllib.parse
class Idp(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        to = query["redirect_uri"][0] + "?" + urllib.parse.urlencode({"code": "from-chromium", "state": query["state"][0]})
        self.send_response(302)
        self.send_header("Location", to)
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Idp)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + "/cert.pem", sys.argv[2] + "/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(1, flush=True)
server.serve_forever()
""")
    idp = subprocess.Popen([*place.ns, sys.executable, server, str(web), keys], stdout=subprocess.PIPE)
    idp.stdout.readline()
    browser = place.folder / "chromium.sh"
    browser.write_text("#!/bin/sh\nexec %s --headless --no-sandbox --disable-gpu --user-data-dir=%s --ignore-certificate-errors "
                       "--host-resolver-rules='MAP login.example:443 127.0.0.1:%d' --virtual-time-budget=20000 --dump-dom \"$1\" >%s 2>/dev/null\n"
                       % (program, place.folder / "profile", web, place.folder / "dom"))
    browser.chmod(0o755)
    own, place.env["BROWSER"] = place.env["BROWSER"], str(browser)
    try:
        editor = place.connect()
        number = editor.send("authenticate", methodId=page(port), _meta={"listens": port, "waits": PATIENCE})
        result = editor.answer(number)["result"]["_meta"]
        expect("the agent gets the redirect", [one["path"] for one in result["seen"]] == ["/cb?code=from-chromium&state=s~1"], (result, editor.said))
        until("the browser has shown our page", lambda: "passed on" in (place.folder / "dom").read_text())
        editor.end()
    finally:
        place.env["BROWSER"] = own
        idp.kill()
        idp.wait()
    return "Chromium follows the redirect"


def over_ssh(relay, folder, ns):
    place = Place(relay, folder, ns)
    home, programs = folder / "there", folder / "bin"
    home.mkdir()
    programs.mkdir()
    (home / "bin").mkdir()
    (home / "bin/acp-relay").symlink_to(relay)
    (home / "relay.toml").write_text("[agents.test]\ncommand = %s\n" % json.dumps([sys.executable, "-uc", AGENT]))
    port = isolation.free_port()
    daemon, options = sshd.start(folder / "keys", "agents.example", port, {
        "HOME": home, "PATH": "%s/bin:/usr/bin:/bin" % home, "ACP_RELAY_OVER_SSH_IDLE": "1s", "ACP_RELAY_CONFIG": home / "relay.toml",
        "ACP_RELAY_STATE_DIR": home / "s"})
    # ssh leaves the network of the editor's machine through a socket.
    (programs / "ssh").write_text('#!/bin/sh\nexec /usr/bin/ssh %s -o ProxyCommand="%s" "$@"\n' % (shlex.join(options), through(folder, port)))
    (programs / "ssh").chmod(0o755)
    place.env["PATH"] = "%s:%s" % (programs, place.env["PATH"])
    place.way = ["ssh://agents.example/test"]
    return place, daemon


def through(folder, port):
    """A command that connects to a port of the other network, through a Unix socket."""
    path = str(folder / ("door-%d" % port))
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)

    def pump(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 16):
                b.sendall(data)
        with contextlib.suppress(OSError):
            b.shutdown(socket.SHUT_WR)

    def accept():
        while True:
            one, _ = server.accept()
            try:
                other = socket.create_connection(("127.0.0.1", port))
            except OSError:
                return
            for pair in ((one, other), (other, one)):
                threading.Thread(target=pump, args=pair, daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    script = folder / ("through-%d.py" % port)
    script.write_text("import os,socket,sys,threading\nsys.stderr=open(os.devnull,'w')\ns=socket.socket(socket.AF_UNIX)\ns.connect(%r)\n"
                      "def up():\n    while d:=os.read(0,65536): s.sendall(d)\n    s.shutdown(1)\n"
                      "threading.Thread(target=up,daemon=True).start()\nwhile d:=s.recv(65536): os.write(1,d)\n" % path)
    return "%s %s" % (sys.executable, script)


def over_wss(relay, folder, ns):
    """The door of this network in the other one is a port of its loopback."""
    from wires import Relay
    place = Place(relay, folder, ns)
    keys = isolation.certificates(folder / "tls", "DNS:agents.example", "IP:127.0.0.1")
    there = {**place.env, "ACP_RELAY_STATE_DIR": str(folder / "there")}
    there.pop("BROWSER")
    subprocess.run([relay, "token", "new", "me", "--out", folder / "token"], env=there, check=True, stdout=subprocess.DEVNULL)
    served = Relay([relay, "serve", "--listen", "wss://127.0.0.1:0/acp", "--tls-cert", keys / "cert.pem", "--tls-key", keys / "key.pem",
                    "--require-token", "--limit", "agent-starts=1000", "--allow-host", "127.0.0.1", "--", sys.executable, "-uc", AGENT], there)
    command, port = through(folder, served.port), isolation.free_port()
    door = folder / "door.py"
    door.write_text("import shlex,socket,subprocess,sys\ns=socket.create_server(('127.0.0.1',%d))\nprint(1,flush=True)\n"
                    "while True:\n    c,_=s.accept()\n    subprocess.Popen(%r,stdin=c,stdout=c)\n    c.close()\n" % (port, shlex.split(command)))
    process = subprocess.Popen([*ns, sys.executable, door], stdout=subprocess.PIPE)
    process.stdout.readline()
    place.way = ["--bearer-file", str(folder / "token"), "--tls-ca", str(keys / "ca.pem"), "wss://127.0.0.1:%d/acp" % port]
    served.door, place.usual = process, ["--login", "always"]
    return place, served


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    asked_for = parser.parse_args()
    relay, good = str(Path(asked_for.relay).resolve()), True
    isolation.leave_network()
    # The editor's machine: a network namespace that a sleeping process holds.
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up; echo up; exec sleep 10000"], stdout=subprocess.PIPE)
    if holder.stdout.readline() != b"up\n":
        print("skip  no network namespaces here")
        return 0
    ns = ["nsenter", "--net=/proc/%d/ns/net" % holder.pid]
    with tempfile.TemporaryDirectory(prefix="acp-login-") as folder:
        for name, start in {"ssh": over_ssh, "wss": over_wss}.items():
            if name == "ssh" and not sshd.PROGRAM.exists():
                print("skip  sshd is not installed")
                continue
            own = Path(folder) / name
            own.mkdir()
            place, server = start(relay, own, ns)
            for case in [*CASES, chromium]:
                try:
                    shown = case(place)
                    print("ok    %s  %s" % (name, shown) if shown else "skip  there is no Chromium", flush=True)
                except (Fault, OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as fault:
                    good = False
                    print("FAIL  %s %s: %s: %s" % (name, case.__name__, type(fault).__name__, fault), flush=True)
                for editor in place.editors:
                    if editor.process.poll() is None:
                        editor.process.kill()
                        editor.process.wait()
            if name == "ssh":
                server.terminate()
                server.wait()
            else:
                server.stop()
                server.door.kill()
                server.door.wait()
    holder.kill()
    holder.wait()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""readme.py: runs the commands of the README and of the manual as they are written there.

    readme.py [--relay BINARY] [--keep] [NAME...]
    readme.py --prove     a page with one word changed has to fail

Each situation begins in an empty folder with an empty home, the relay on PATH, and goose there with
a model of ours; `claude` is the official Python SDK's example agent. Where a line is for an editor,
the official TypeScript SDK's client is that editor. A line of the parts in WHOLE that no situation
runs is a fault, so a new line there needs a situation here.

The lines name ports and hosts, so all of it needs a network and an /etc/hosts of its own: without
root nothing is tried, and said so. Not here: nginx and Caddy over their own ways (proxies.py), and
what is not typed into a shell.
"""
import argparse
import contextlib
import ctypes
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import isolation
from paths import PEERS, RELAY
from peers import AGENTS, SDK

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = [ROOT / "README.md"] + [ROOT / "src/docs" / (name + ".md")
                               for name in ("editors", "operations", "agent-connect", "troubleshooting")]
sys.path.insert(0, str(HERE / "dialects"))
from play import Play  # noqa: E402

# Sections of which every line has to be run.
WHOLE = ("Five ways to use it", "A team server", "Monitoring", "Traces", "As a server", "As a client",
         "Troubleshooting")
PATIENCE = 60
# A slow typist, in characters a minute.
TYPING = 200
GOOSE, PYTHON, TYPESCRIPT = (next(agent for agent in AGENTS if agent.name == name)
                             for name in ("goose", "python-sdk", "ts-sdk"))


class Wrong(Exception):
    """It does not go as the pages say."""


class Book:
    """The pages: their blocks, and the lines of their shell blocks that were not run yet."""

    def __init__(self, text):
        # What stands in a person's home there is in the situation's own folder here.
        text = text.replace("/home/me/recordings", "recordings")
        self.text, self.blocks, self.left = text, [], []
        section = kind = None
        for line in text.split("\n"):
            if line.startswith("```"):
                kind = None if kind is not None else line[3:]
                if kind is not None:
                    self.blocks.append([section, kind, ""])
            elif kind is not None:
                self.blocks[-1][2] += line + "\n"
            elif line.startswith(("# ", "## ")):
                section = line.lstrip("# ")
        for section, kind, inside in self.blocks:
            if kind == "sh" and section in WHOLE:
                self.left += filter(None, inside.replace("\\\n", " ").split("\n"))

    def block(self, kind, holds):
        """The block of that kind that holds a text."""
        return next(inside for _, of, inside in self.blocks if of == kind and holds in inside)

    def line(self, holds, again=False):
        """The next shell line that holds this; it is taken, unless `again` is set."""
        for line in self.left:
            if holds in line:
                if not again:
                    self.left.remove(line)
                return line
        raise Wrong("no page has another line with `%s`" % holds)


class Place:
    """An empty folder, a home, and the programs that a line names."""

    def __init__(self, root, name, relay):
        self.dir = root / name
        self.here, programs = self.dir / "project", self.dir / "bin"
        for folder in (self.here, programs, self.dir / "home"):
            folder.mkdir(parents=True)
        self.mark, self.started, self.programs = isolation.Mark(), [], programs
        (programs / "acp-relay").symlink_to(relay)
        self.env = {**isolation.environment(self.dir / "home"), **self.mark.env,
                    "PATH": "%s:%s" % (programs, os.environ["PATH"])}
        self.fresh()
        llm = subprocess.Popen([sys.executable, str(HERE / "mock_llm.py"), "--port", "0", "--cwd", str(self.here)],
                               env=self.env, stdout=subprocess.PIPE, text=True)
        self.started.append(llm)
        self.llm = "http://" + llm.stdout.readline().split()[-1]
        self.program("goose", [str(GOOSE.command[0]), '"$@"', *GOOSE.command[2:]],
                     GOOSE.variables(self.llm))
        self.program("claude-agent-acp", PYTHON.command)

    def fresh(self):
        (self.here / "seed.txt").write_text("hello seed\n")

    def program(self, name, words, env=()):
        file = self.programs / name
        says = "".join("export %s=%s\n" % (key, shlex.quote(value)) for key, value in dict(env).items())
        file.write_text("#!/bin/sh\n%sexec %s\n" % (says, " ".join(words)))
        file.chmod(0o755)

    def type(self, line, wanted=0):
        """Types a line and waits for its end; what it printed."""
        done = subprocess.run(["bash", "-c", line], cwd=self.here, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        if done.returncode not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            raise Wrong("`%s` ended with %d: %s" % (line, done.returncode, (done.stdout + done.stderr)[-2000:]))
        return done.stdout

    def start(self, line, until):
        """Types a line that goes on, and waits until it has said something."""
        process = subprocess.Popen(["bash", "-c", line], cwd=self.here, env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.started.append(process)
        said, ready = [], threading.Event()

        def read():
            for one in process.stdout:
                said.append(one)
                if re.search(until, one):
                    ready.set()
            ready.set()
        threading.Thread(target=read, daemon=True).start()
        ready.wait(20)
        found = re.search(until, "".join(said))
        if not found:
            raise Wrong("`%s` does not say %s: %s" % (line, until, "".join(said)[-2000:]))
        process.found = found
        return process

    def stop(self, process):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)

    def edit(self, words, agent=GOOSE, good=True):
        """An editor whose agent's command is `words` holds the conversation the agent is known for."""
        self.fresh()
        options = ["--sdk", SDK, "--cwd", self.here, "--prompt", agent.prompt, "--cancel-prompt", agent.cancel_prompt,
                   "--cancel-after", agent.cancel_after, "--expect", agent.expect, "--file", "seed.txt"]
        done = subprocess.run(["node", HERE / "client.mjs", *map(str, options), "--", *words], cwd=self.here,
                              env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=2 * PATIENCE)
        said = "%s%s" % (done.stdout[-1500:], done.stderr[-1500:])
        if (done.returncode == 0) != good:
            raise Wrong("an editor with `%s`: %s" % (shlex.join(map(str, words)), said))
        if good and "write" in agent.expect and json.loads(done.stdout)["file"] != "goodbye seed\n":
            raise Wrong("the file was not written: %s" % said)
        return said

    def close(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        left = self.mark.wait_until_gone(set(), 10)
        self.mark.kill_rest()
        if left:
            raise Wrong("left behind: %s" % "; ".join(left))


def shell(line):
    """A line of the shell as an editor's command, for those that a shell has to look at."""
    return ["bash", "-c", "exec " + line]


def elsewhere(book, place):
    """An agent on another machine: in Zed's settings, in CodeCompanion's, and over ssh."""
    place.start(book.line("acp-relay serve --listen ws://127.0.0.1:9000"), r"listening on ws://127\.0\.0\.1:9000/acp")
    settings = json.loads(book.block("json", "agent_servers"))
    for server in settings["agent_servers"].values():
        place.edit([server["command"], *server["args"]])
    words = re.search(r"commands = \{ default = \{(.*?)\}", book.block("lua", "codecompanion"))[1]
    place.edit(re.findall(r'"([^"]*)"', words))
    line = re.search(r"`(acp-relay connect -- ssh HOST [^`]*)`", book.text)[1]
    server = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(server).exists():
        print("      no sshd is installed; `%s` is not tried" % line)
        return
    # Behind it is the machine that we are on, with a PATH and a home of its own.
    Path("/run/sshd").mkdir(exist_ok=True)
    keys = place.dir / "keys"
    keys.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
    (keys / "user.pub").rename(keys / "authorized")
    env = " ".join("%s=%s" % (name, place.env[name]) for name in ("PATH", "HOME", *place.mark.env))
    (keys / "sshd").write_text("ListenAddress 127.0.0.1:22\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\n"
                               "StrictModes no\nPidFile none\nPermitRootLogin yes\nUsePAM no\nSetEnv %s\n"
                               % (keys, keys, env))
    (keys / "ssh").write_text("Host agents.example\nIdentityFile %s/user\nStrictHostKeyChecking accept-new\n"
                              "UserKnownHostsFile %s/known\nLogLevel ERROR\n" % (keys, keys))
    daemon = subprocess.Popen([server, "-D", "-e", "-f", keys / "sshd"], env=place.env, stderr=subprocess.DEVNULL)
    place.started.append(daemon)
    if not isolation.wait_for_port(22, daemon, 10):
        raise Wrong("sshd does not start")
    place.program("ssh", ["/usr/bin/ssh", "-F", str(keys / "ssh"), '"$@"'])
    place.edit(shlex.split(line.replace("HOST", "agents.example")))


def old(book, place):
    """Agents of old in an editor of today: recognised, and named."""
    for program, play, words in (("an-agent-of-last-year", "copilot-agent", {"auto", "allow"}),
                                 ("an-agent", "goref-agent", {"named", "allow"})):
        part = Play(HERE / "dialects" / "plays" / (play + ".play"))
        files = {}
        for role in ("client", "agent"):
            files[role] = [place.dir / ("%s.%s.%s" % (program, role, kind)) for kind in ("json", "verdict")]
            files[role][0].write_text(json.dumps({**part.part(role, words), "known": {"$here": str(place.here)}}))
        place.program(program, [sys.executable, str(HERE / "dialects/scripted.py"), *map(str, files["agent"])])
        command = shlex.split(book.line(" -- %s " % program), comments=True)
        subprocess.run(["node", HERE / "dialects/sdk.mjs", SDK, *files["client"], "--", *command], cwd=place.here,
                       env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=PATIENCE)
        for role, (_, verdict) in files.items():
            fault = json.loads(verdict.read_text())["fault"]
            if fault:
                raise Wrong("`%s`: %s: %s" % (shlex.join(command), role, fault))


def ci(book, place):
    """A conversation is recorded, and played in CI: to the same agent, to another, and as the agent."""
    # goose tells titles when its model has found them, another time in each run.
    place.program("goose", PYTHON.command)
    record = book.line("acp-relay connect --record recordings")
    place.edit(shlex.split(record, comments=True), PYTHON)
    # The pages give one of them a name.
    [recording] = (place.here / "recordings").glob("*.acpr")
    recording.rename(place.here / "recordings/talk.acpr")
    replay = book.line("acp-relay replay client recordings/*.acpr --junit report.xml")
    view(book, place)
    place.fresh()
    place.type(replay)
    if "<testsuite" not in (place.here / "report.xml").read_text():
        raise Wrong("there is no report")
    place.edit(shell(book.line("acp-relay replay agent recordings/talk.acpr")), PYTHON)
    place.program("goose", TYPESCRIPT.command)
    place.type(replay, wanted=1)


def view(book, place):
    """The recordings in a browser."""
    opened = place.start(book.line("acp-relay inspect open recordings"), r"http://\S+")
    with urllib.request.urlopen(opened.found[0], timeout=10) as page:
        if b"<html" not in page.read(4096).lower():
            raise Wrong("no page is at %s" % opened.found[0])
    place.stop(opened)


def debug(book, place):
    """Between an editor and its agent: the recording in a browser, linted, and checked."""
    place.edit(shlex.split(book.line("acp-relay connect --record recordings"), comments=True))
    view(book, place)
    place.type(book.line("acp-relay inspect lint recordings/*.acpr"), wanted=(0, 1))
    if "/" not in place.type(book.line("acp-relay check recordings/*.acpr"), wanted=(0, 1)):
        raise Wrong("check says nothing")


def team(book, place):
    """Two agents in one file, behind nginx with TLS, and a token for a member."""
    (place.here / "team.toml").write_text(book.block("toml", "# team.toml"))
    # The README's line and the manual's.
    for _ in range(2):
        place.type(book.line("acp-relay config check team.toml"))
    place.type(book.line("acp-relay config example"))
    if "agents.example" not in place.type(book.line("acp-relay config show --config team.toml")):
        raise Wrong("config show shows no listener")
    place.type(book.line("acp-relay token new alice"))
    place.start(book.line("acp-relay serve --config team.toml"), r"listening on http://127\.0\.0\.1:9000/acp")
    wanted = "acp-relay connect --bearer-file alice.token https://agents.example/agents/goose/acp"
    line, other = book.line(wanted), book.line(wanted)
    if not shutil.which("nginx"):
        print("      nginx is not installed; `%s` is not tried" % line)
        return
    tls = certificates(place.dir / "tls")
    (place.dir / "nginx.conf").write_text("""
        daemon off; master_process off; pid %(dir)s/pid; error_log %(dir)s/log; events {}
        http { access_log off; client_body_temp_path %(dir)s/b; proxy_temp_path %(dir)s/p;
               fastcgi_temp_path %(dir)s/f; uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
               server { listen 127.0.0.1:443 ssl; server_name agents.example;
                        ssl_certificate %(tls)s/cert.pem; ssl_certificate_key %(tls)s/key.pem; %(inside)s } }
    """ % {"dir": place.dir, "tls": tls, "inside": book.block("nginx", "location")})
    nginx = subprocess.Popen(["nginx", "-p", place.dir, "-c", place.dir / "nginx.conf", "-e", place.dir / "log"],
                             env=place.env, stderr=subprocess.DEVNULL)
    place.started.append(nginx)
    if not isolation.wait_for_port(443, nginx, 10):
        raise Wrong("nginx does not start: %s" % (place.dir / "log").read_text())
    place.env["SSL_CERT_FILE"] = str(tls / "ca.pem")
    words = shlex.split(line, comments=True)
    if "401" not in place.edit([word for word in words if word not in ("--bearer-file", "alice.token")], good=False):
        raise Wrong("without a token the editor is not told so")
    place.edit(words)
    place.edit(shlex.split(other, comments=True))
    # Before streams end nginx would wait for them.
    nginx.kill()


def certificates(folder):
    """An authority, and a certificate of its for agents.example, as a public server has one."""
    folder.mkdir()
    fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=30)
    (folder / "names").write_text("subjectAltName=DNS:agents.example\n")
    openssl("req", "-x509", *fresh, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *fresh, "-subj", "/CN=agents.example", "-keyout", "key.pem", "-out", "cert.csr")
    openssl("x509", "-req", "-in", "cert.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-extfile", "names", "-out", "cert.pem")
    return folder


def walk(book, place):
    """From an empty folder to a server with TLS, two agents and a token, and to an editor that uses it."""
    agents = book.block("toml", "# team.toml").split("[[listeners]]")[0]
    file = agents + book.block("toml", "tls-cert =")
    certificate, token = book.line("openssl req"), book.line("acp-relay token new alice")
    serve = book.line("acp-relay serve --config team.toml")
    connect = book.line("acp-relay connect --pin-sha256")
    (place.here / "team.toml").write_text(file)
    place.type(certificate)
    place.type(token)
    # For another member, who is not counted.
    place.type(token.replace("alice", "bob").replace(" --agents goose", ""))
    place.start(serve, r"listening on https://0\.0\.0\.0:9443/acp")
    place.edit(shell(connect))
    other = connect.replace("/agents/goose/", "/agents/claude/")
    place.edit(shell(other), PYTHON, good=False)
    place.edit(shell(other.replace("alice", "bob")), PYTHON)
    for without in (r"--pin-sha256 \"\$\(.*?\)\"", r"--bearer-file \S+"):
        place.edit(shell(re.sub(without, "", connect)), good=False)
    typed = sum(len(" ".join(line.split())) + 1 for line in (certificate, token, serve, connect)) + len(file)
    minutes = typed / TYPING
    print("      %d characters are typed: %.1f minutes at %d a minute" % (typed, minutes, TYPING))
    if minutes > 5:
        raise Wrong("that is more than five minutes of typing")


def watched(book, place):
    """The admin listener, and those who ask it."""
    serve = place.start(book.line("acp-relay serve --admin 127.0.0.1:9464"), r"listening on ws://")
    wanted = {"status": "ws://127.0.0.1:9000", "top": "ws://127.0.0.1:9000", "health": ""}
    for word, says in wanted.items():
        if says not in place.type(book.line("acp-relay %s " % word)):
            raise Wrong("%s does not say %s" % (word, says))
    place.stop(serve)
    # What does not listen is no failure of a conversation.
    place.start(book.line("acp-relay serve --otlp-endpoint"), r"listening on ws://")


def rest(book, place):
    """Agent Connect in front of an agent; and a client without one, to be told why."""
    ready = r"listening on agent-connect\+http://"
    place.stop(place.start(book.line("acp-relay serve --listen agent-connect+http://"), ready))
    place.start(book.line("acp-relay serve --listen agent-connect+http://"), ready)
    said = place.type(book.line("curl -s 127.0.0.1:8000/runs/wait"))
    if "Hello from the mock model." not in said:
        raise Wrong("the run says %s" % said)
    (place.here / "api-key").write_text("x-api-key: none\n")
    (place.here / "api-key").chmod(0o600)
    for _ in range(2):
        words = shlex.split(book.line("acp-relay connect agent-connect+https://"), comments=True)
        if "agents.example" not in place.edit(words, good=False):
            raise Wrong("the error does not name the server")


SITUATIONS = (elsewhere, old, ci, debug, team, walk, watched, rest)

# One word of a page changed, and the situation that has to fail.
SPOILED = (
    (elsewhere, '"args": ["connect", "ws://127.0.0.1:9000"]', '"args": ["connect", "ws://127.0.0.1:9001"]'),
    (old, "--agent-dialect goref -- an-agent", "--agent-dialect elephant -- an-agent"),
    (team, "proxy_set_header Host $host;", "proxy_set_header Host other.example;"),
    (walk, "--bearer-file alice.token wss", "wss"),
)


def hold(book, situation, root, relay):
    """Whether it goes as the pages say; what does not is printed."""
    begun, place = time.monotonic(), Place(root, situation.__name__, relay)
    wrong = None
    try:
        situation(book, place)
    except (Wrong, OSError, StopIteration, subprocess.SubprocessError) as error:
        wrong = error
    try:
        place.close()
    except Wrong as error:
        wrong = wrong or error
    print("%-4s  %-9s  %4.0f s  %s" % ("FAIL" if wrong else "ok", situation.__name__, time.monotonic() - begun,
                                     situation.__doc__.splitlines()[0]))
    if wrong:
        print("      %s" % str(wrong).replace("\n", "\n      "))
    sys.stdout.flush()
    return not wrong


def read():
    """All pages."""
    return "\n".join(page.read_text() for page in PAGES)


def prove(relay, root):
    for number, (situation, before, after) in enumerate(SPOILED):
        text = read()
        if before not in text:
            sys.exit("no page has %r to spoil" % before)
        folder = root / str(number)
        folder.mkdir()
        # What has to fail here is not to be mistaken for a failure.
        with contextlib.redirect_stdout(io.StringIO()):
            passed = hold(Book(text.replace(before, after)), situation, folder, relay)
        if passed:
            sys.exit("nobody noticed %r" % after)
    print("every change was noticed")


def own_names():
    """An /etc/hosts and a /srv of our own; false where the kernel refuses."""
    if os.getuid() != 0 or ctypes.CDLL(None).unshare(0x00020000) != 0:
        return False
    names = tempfile.NamedTemporaryFile("w", suffix=".hosts", delete=False)
    names.write("127.0.0.1 localhost agents.example\n")
    names.close()
    os.chmod(names.name, 0o644)
    for words in (["--make-rprivate", "/"], ["--bind", names.name, "/etc/hosts"], ["-t", "tmpfs", "none", "/srv"]):
        if subprocess.run(["mount", *words], stderr=subprocess.DEVNULL).returncode != 0:
            return False
    os.unlink(names.name)
    Path("/srv/work").mkdir()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--keep", action="store_true", help="keep what was written")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of: %s" % " ".join(s.__name__ for s in SITUATIONS))
    args = parser.parse_args()
    if not SDK.is_dir():
        sys.exit("no peers in %s; run tests/peers/install.sh" % PEERS)
    if not GOOSE.installed():
        print("skip  goose is not installed here, see install.sh")
        return 0
    if not (isolation.leave_network() and own_names()):
        print("skip  no network and no names of one's own are to be had here")
        return 0
    relay = Path(args.relay).resolve()
    root = Path(tempfile.mkdtemp(prefix="acp-readme-"))
    if args.prove:
        prove(relay, root)
        return 0
    book = Book(read())
    chosen = [one for one in SITUATIONS if not args.names or one.__name__ in args.names]
    good = [hold(book, one, root, relay) for one in chosen]
    if len(chosen) == len(SITUATIONS) and book.left:
        good.append(False)
        print("FAIL  nobody has typed these lines:\n      %s" % "\n      ".join(book.left))
    print("%d passed, %d failed" % (good.count(True), good.count(False)))
    if all(good) and not args.keep:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("what was written: %s" % root)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""readme.py: runs the commands of the README and of the manual exactly as written.

    readme.py [--relay BINARY] [--keep] [NAME...]
    readme.py --prove     a page with one word changed must fail

Each situation starts in an empty folder with an empty home, with the relay on PATH and goose with a
mock model; `claude` is the official Python SDK's example agent. Where a line is for an editor, the
official TypeScript SDK's client is that editor. A line of the sections in WHOLE that no situation
runs is a failure, so a new line there needs a situation here.

The lines name ports and hosts, so the script needs a network and an /etc/hosts of its own: without
root it skips everything, with a notice. Not here: other transports behind nginx and Caddy
(proxies.py), and text that is not a shell command.
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
import sshd
from paths import PEERS, RELAY
from peers import AGENTS, SDK

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FILES = [ROOT / "README.md"] + [ROOT / "src/docs" / (name + ".md")
                               for name in ("editors", "operations", "agent-connect", "troubleshooting")]
sys.path.insert(0, str(HERE / "dialects"))
from play import Play  # noqa: E402

# Sections of which every line must be run.
WHOLE = ("Five ways to use it", "A team server", "Monitoring", "Traces", "As a server", "As a client",
         "Troubleshooting")
PATIENCE = 60
# Typing speed in characters a minute; slow.
TYPING = 200
GOOSE, PYTHON, TYPESCRIPT = (next(agent for agent in AGENTS if agent.name == name)
                             for name in ("goose", "python-sdk", "ts-sdk"))


class Wrong(Exception):
    """The result differs from the pages."""


class Pages:
    """The blocks of the pages, and the lines of their shell blocks that were not run yet."""

    def __init__(self, text):
        # A path in the user's home is replaced by one in the situation's folder.
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
        """The block of that kind that contains a text."""
        return next(inside for _, of, inside in self.blocks if of == kind and holds in inside)

    def line(self, holds, again=False):
        """The next shell line with this text; it counts as run, unless `again` is set."""
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
        exports = "".join("export %s=%s\n" % (key, shlex.quote(value)) for key, value in dict(env).items())
        file.write_text("#!/bin/sh\n%sexec %s\n" % (exports, " ".join(words)))
        file.chmod(0o755)

    def type(self, line, expected=0):
        """Runs a line to its end and returns its output."""
        done = subprocess.run(["bash", "-c", line], cwd=self.here, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        if done.returncode not in (expected if isinstance(expected, tuple) else (expected,)):
            raise Wrong("`%s` exited with %d: %s" % (line, done.returncode, (done.stdout + done.stderr)[-2000:]))
        return done.stdout

    def start(self, line, until):
        """Starts a line that keeps running, and waits for output that matches `until`."""
        process = subprocess.Popen(["bash", "-c", line], cwd=self.here, env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.started.append(process)
        output, ready = [], threading.Event()

        def read():
            for one in process.stdout:
                output.append(one)
                if re.search(until, one):
                    ready.set()
            ready.set()
        threading.Thread(target=read, daemon=True).start()
        ready.wait(20)
        found = re.search(until, "".join(output))
        if not found:
            raise Wrong("`%s` does not print %s: %s" % (line, until, "".join(output)[-2000:]))
        process.found = found
        return process

    def stop(self, process):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)

    def edit(self, words, agent=GOOSE, good=True):
        """An editor with the agent command `words` holds the agent's expected conversation."""
        self.fresh()
        # An agent on another machine uses the files there.
        elsewhere = ("agents.example", "ssh://")
        own = ("read", "write") if any(part in str(word) for word in words for part in elsewhere) else ()
        expect = ",".join(step for step in agent.expect.split(",") if step not in own)
        options = ["--sdk", SDK, "--cwd", self.here, "--prompt", agent.prompt, "--cancel-prompt", agent.cancel_prompt,
                   "--cancel-after", agent.cancel_after, "--expect", expect, "--file", "seed.txt"]
        done = subprocess.run(["node", HERE / "client.mjs", *map(str, options), "--", *words], cwd=self.here,
                              env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=2 * PATIENCE)
        output = "%s%s" % (done.stdout[-1500:], done.stderr[-1500:])
        if (done.returncode == 0) != good:
            raise Wrong("an editor with `%s`: %s" % (shlex.join(map(str, words)), output))
        if good and "write" in agent.expect and json.loads(done.stdout)["file"] != "goodbye seed\n":
            raise Wrong("the file was not written: %s" % output)
        return output

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
    """A shell line as an editor's command, for lines that need a shell."""
    return ["bash", "-c", "exec " + line]


def elsewhere(pages, place):
    """An agent on another machine: in Zed's settings, in CodeCompanion's, and through ports."""
    line = pages.line("acp-relay install zed ssh://")
    if sshd.PROGRAM.exists():
        # The other machine is this one, with the same PATH and home.
        env = {name: place.env[name] for name in ("PATH", "HOME", *place.mark.env)}
        env["ACP_RELAY_OVER_SSH_IDLE"] = "1s"
        daemon, options = sshd.start(place.dir / "keys", "devbox", 22, env)
        place.started.append(daemon)
        place.program("ssh", ["/usr/bin/ssh", *options, '"$@"'])
        place.type(line)
        settings = json.loads((Path(place.env["XDG_CONFIG_HOME"]) / "zed/settings.json").read_text())
        for settings in (settings, json.loads(pages.block("json", "agent_servers"))):
            for server in settings["agent_servers"].values():
                place.edit(["acp-relay", *server["args"]])
        words = re.search(r"commands = \{ default = \{(.*?)\}", pages.block("lua", "codecompanion"))[1]
        place.edit(["acp-relay", *re.findall(r'"([^"]*)"', words)[1:]])
    else:
        print("      sshd is not installed; `%s` is skipped" % line)
    place.start("acp-relay serve --listen ws://127.0.0.1:9000 -- goose acp",
                r"listening on ws://127\.0\.0\.1:9000/acp")
    place.edit(shlex.split(re.search(r"`(acp-relay connect ws://127\.0\.0\.1:\d+)`", pages.text)[1]))


def old(pages, place):
    """Agents with an older dialect in a current editor: detected, and named."""
    for program, play, words in (("an-agent-of-last-year", "copilot-agent", {"auto", "allow"}),
                                 ("an-agent", "goref-agent", {"named", "allow"})):
        part = Play(HERE / "dialects" / "plays" / (play + ".play"))
        files = {}
        for role in ("client", "agent"):
            files[role] = [place.dir / ("%s.%s.%s" % (program, role, kind)) for kind in ("json", "verdict")]
            files[role][0].write_text(json.dumps({**part.part(role, words), "known": {"$here": str(place.here)}}))
        place.program(program, [sys.executable, str(HERE / "dialects/scripted.py"), *map(str, files["agent"])])
        command = shlex.split(pages.line(" -- %s " % program), comments=True)
        subprocess.run(["node", HERE / "dialects/sdk.mjs", SDK, *files["client"], "--", *command], cwd=place.here,
                       env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=PATIENCE)
        for role, (_, verdict) in files.items():
            fault = json.loads(verdict.read_text())["fault"]
            if fault:
                raise Wrong("`%s`: %s: %s" % (shlex.join(command), role, fault))


def ci(pages, place):
    """A conversation is recorded, and replayed in CI: to the same agent, to another, and as the agent."""
    # goose sends titles when its model has made them, at another time in each run.
    place.program("goose", PYTHON.command)
    record = pages.line("acp-relay connect --record recordings")
    place.edit(shlex.split(record, comments=True), PYTHON)
    # The pages name one of them.
    [recording] = (place.here / "recordings").glob("*.acpr")
    recording.rename(place.here / "recordings/talk.acpr")
    replay = pages.line("acp-relay test recordings --junit report.xml")
    view(pages, place)
    place.fresh()
    place.type(replay)
    if "<testsuite" not in (place.here / "report.xml").read_text():
        raise Wrong("no report was written")
    place.edit(shell(pages.line("acp-relay replay agent recordings/talk.acpr")), PYTHON)
    place.program("goose", TYPESCRIPT.command)
    place.type(replay, expected=1)


def view(pages, place):
    """The recordings in a browser."""
    opened = place.start(pages.line("acp-relay inspect open recordings"), r"http://\S+")
    with urllib.request.urlopen(opened.found[0], timeout=10) as page:
        if b"<html" not in page.read(4096).lower():
            raise Wrong("no page is at %s" % opened.found[0])
    place.stop(opened)


def debug(pages, place):
    """Between an editor and its agent: the recording in a browser, linted, and checked."""
    place.edit(shlex.split(pages.line("acp-relay connect --record recordings"), comments=True))
    view(pages, place)
    place.type(pages.line("acp-relay inspect lint recordings/*.acpr"), expected=(0, 1))
    if "/" not in place.type(pages.line("acp-relay check recordings/*.acpr"), expected=(0, 1)):
        raise Wrong("check prints nothing")


def team(pages, place):
    """Two agents in one file, behind nginx with TLS, and a token for a member."""
    (place.here / "team.toml").write_text(pages.block("toml", "# team.toml"))
    # The README's line and the manual's.
    for _ in range(2):
        place.type(pages.line("acp-relay config check team.toml"))
    place.type(pages.line("acp-relay config example"))
    if "agents.example" not in place.type(pages.line("acp-relay config show --config team.toml")):
        raise Wrong("config show shows no listener")
    place.type(pages.line("acp-relay token new alice"))
    place.start(pages.line("acp-relay serve --config team.toml"), r"listening on http://127\.0\.0\.1:9000/acp")
    expected = "acp-relay connect --bearer-file alice.token https://agents.example/agents/goose/acp"
    line, other = pages.line(expected), pages.line(expected)
    if not shutil.which("nginx"):
        print("      nginx is not installed; `%s` is skipped" % line)
        return
    tls = isolation.certificates(place.dir / "tls", "DNS:agents.example")
    (place.dir / "nginx.conf").write_text("""
        daemon off; master_process off; pid %(dir)s/pid; error_log %(dir)s/log; events {}
        http { access_log off; client_body_temp_path %(dir)s/b; proxy_temp_path %(dir)s/p;
               fastcgi_temp_path %(dir)s/f; uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
               server { listen 127.0.0.1:443 ssl; server_name agents.example;
                        ssl_certificate %(tls)s/cert.pem; ssl_certificate_key %(tls)s/key.pem; %(inside)s } }
    """ % {"dir": place.dir, "tls": tls, "inside": pages.block("nginx", "location")})
    nginx = subprocess.Popen(["nginx", "-p", place.dir, "-c", place.dir / "nginx.conf", "-e", place.dir / "log"],
                             env=place.env, stderr=subprocess.DEVNULL)
    place.started.append(nginx)
    if not isolation.wait_for_port(443, nginx, 10):
        raise Wrong("nginx does not start: %s" % (place.dir / "log").read_text())
    place.env["SSL_CERT_FILE"] = str(tls / "ca.pem")
    words = shlex.split(line, comments=True)
    if "401" not in place.edit([word for word in words if word not in ("--bearer-file", "alice.token")], good=False):
        raise Wrong("without a token the editor gets no 401")
    place.edit(words)
    place.edit(shlex.split(other, comments=True))
    # nginx would wait until the streams end.
    nginx.kill()


def walk(pages, place):
    """From an empty folder to a server with TLS, two agents and a token, and to an editor that uses it."""
    agents = pages.block("toml", "# team.toml").split("[[listeners]]")[0]
    file = agents + pages.block("toml", "tls-cert =")
    certificate, token = pages.line("openssl req"), pages.line("acp-relay token new alice")
    serve = pages.line("acp-relay serve --config team.toml")
    connect = pages.line("acp-relay connect --pin-sha256")
    (place.here / "team.toml").write_text(file)
    place.type(certificate)
    place.type(token)
    # For another user; not counted.
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
    print("      %d characters to type: %.1f minutes at %d a minute" % (typed, minutes, TYPING))
    if minutes > 5:
        raise Wrong("typing takes more than five minutes")


def watched(pages, place):
    """The admin listener, and the commands that query it."""
    serve = place.start(pages.line("acp-relay serve --admin 127.0.0.1:9464"), r"listening on ws://")
    expected = {"status": "ws://127.0.0.1:9000", "top": "ws://127.0.0.1:9000", "health": ""}
    for word, text in expected.items():
        if text not in place.type(pages.line("acp-relay %s " % word)):
            raise Wrong("%s does not print %s" % (word, text))
    place.stop(serve)
    # An endpoint that does not listen fails no conversation.
    place.start(pages.line("acp-relay serve --otlp-endpoint"), r"listening on ws://")


def rest(pages, place):
    """Agent Connect in front of an agent; and a client without a server, which gets an error."""
    ready = r"listening on agent-connect\+http://"
    place.stop(place.start(pages.line("acp-relay serve --listen agent-connect+http://"), ready))
    place.start(pages.line("acp-relay serve --listen agent-connect+http://"), ready)
    output = place.type(pages.line("curl -s 127.0.0.1:8000/runs/wait"))
    if "Hello from the mock model." not in output:
        raise Wrong("the run returns %s" % output)
    (place.here / "api-key").write_text("x-api-key: none\n")
    (place.here / "api-key").chmod(0o600)
    for _ in range(2):
        words = shlex.split(pages.line("acp-relay connect agent-connect+https://"), comments=True)
        if "agents.example" not in place.edit(words, good=False):
            raise Wrong("the error does not name the server")


SITUATIONS = (elsewhere, old, ci, debug, team, walk, watched, rest)

# One changed word of a page, and the situation that must fail.
CHANGED = (
    (elsewhere, "`acp-relay connect ws://127.0.0.1:9000`", "`acp-relay connect ws://127.0.0.1:9001`"),
    (old, "--agent-dialect goref -- an-agent", "--agent-dialect elephant -- an-agent"),
    (team, "proxy_set_header Host $host;", "proxy_set_header Host other.example;"),
    (walk, "--bearer-file alice.token wss", "wss"),
)


def hold(pages, situation, root, relay):
    """Whether the situation works as in the pages; prints the failure."""
    begun, place = time.monotonic(), Place(root, situation.__name__, relay)
    wrong = None
    try:
        situation(pages, place)
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
    return "\n".join(page.read_text() for page in FILES)


def prove(relay, root):
    for number, (situation, before, after) in enumerate(CHANGED):
        text = read()
        if before not in text:
            sys.exit("no page has %r to change" % before)
        folder = root / str(number)
        folder.mkdir()
        # Hide this expected failure from the output.
        with contextlib.redirect_stdout(io.StringIO()):
            passed = hold(Pages(text.replace(before, after)), situation, folder, relay)
        if passed:
            sys.exit("the change to %r was not detected" % after)
    print("every change was detected")


def own_names():
    """Mounts a private /etc/hosts and /srv; false where the kernel does not allow it."""
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
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of: %s" % " ".join(s.__name__ for s in SITUATIONS))
    args = parser.parse_args()
    if not SDK.is_dir():
        sys.exit("no peers in %s; run tests/peers/install.sh" % PEERS)
    if not GOOSE.installed():
        print("skip  goose is not installed here, see install.sh")
        return 0
    if not (isolation.leave_network() and own_names()):
        print("skip  a private network and /etc/hosts are not available here")
        return 0
    relay = Path(args.relay).resolve()
    root = Path(tempfile.mkdtemp(prefix="acp-readme-"))
    if args.prove:
        prove(relay, root)
        return 0
    pages = Pages(read())
    chosen = [one for one in SITUATIONS if not args.names or one.__name__ in args.names]
    good = [hold(pages, one, root, relay) for one in chosen]
    if len(chosen) == len(SITUATIONS) and pages.left:
        good.append(False)
        print("FAIL  no situation runs these lines:\n      %s" % "\n      ".join(pages.left))
    print("%d passed, %d failed" % (good.count(True), good.count(False)))
    if all(good) and not args.keep:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("files: %s" % root)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

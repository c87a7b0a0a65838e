#!/usr/bin/env python3
"""restart.py: agents that die or stop answering, and the next request of their client.

    restart.py [--relay BINARY] [--only TEXT] [--jobs N] [--keep]

    client - acp-relay connect - agent
    client - acp-relay connect - ws:// - acp-relay serve - agent

Real agents: SIGKILL of all processes of the agent between two turns, in the middle of a turn (with a
permission open, or while the model owes its answer), and while session/new is open. Where the agent can
load or resume its session, the next prompt has to end with end_turn, the model has to receive the first
prompt again, and the client must not receive a message of an earlier turn. Where it cannot, and before the
first session, the conversation has to end. A model that never answers has to cost one turn. The client is
the official TypeScript SDK (SDK_CLIENT); for session/new it is a plain one.
Scripted peers (AGENT): an agent that dies at each of ten points, one that dies at each prompt, one that
ignores session/cancel, one that never answers initialize, a client that never answers a permission.
In every case each request has exactly one answer, no process is left, and `serve` exits with 0. One row for
each step: its result, its time, and what was seen. Not here: each message of a restart
(tests/vectors/playbooks/restart-*.txt), and settings that are restored.
"""
import argparse
import array
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import isolation
import mock_llm
from paths import PEERS, RELAY
from peers import AGENTS, SDK
from wires import Relay

# Limit for one wait, in seconds. The agents start slowly on a busy machine.
PATIENCE = 150
# Updates that a client must not receive again from a session that was loaded, besides the agent's text.
HISTORY = ("user_message_chunk", "tool_call", "tool_call_update", "plan")

# The official SDK as a client that is driven by lines of JSON-RPC. It also prints the id of each answer
# that it was sent, because the SDK hides a second answer and makes one itself when the connection ends.
SDK_CLIENT = r"""
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { PassThrough, Readable, Writable } from "node:stream";

const acp = await import(process.argv[2]);
const relay = spawn(process.argv[3], process.argv.slice(4), { stdio: ["pipe", "pipe", "inherit"] });
const print = (message) => process.stdout.write(JSON.stringify(message) + "\n");
createInterface({ input: relay.stdout.pipe(new PassThrough()) }).on("line", (line) => {
  const message = JSON.parse(line);
  if (!message.method) print({ wire: message.id });
});
const questions = [];
const connection = acp
  .client({ name: "acp-relay-peers" })
  .onNotification(acp.methods.client.session.update, ({ params }) => print({ method: "session/update", params }))
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => new Promise((answer) => {
    print({ id: questions.push(answer) - 1, method: "session/request_permission", params });
  }))
  .connect(acp.ndJsonStream(Writable.toWeb(relay.stdin), Readable.toWeb(relay.stdout.pipe(new PassThrough()))));
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params, result } = JSON.parse(line);
    if (!method) return questions[id](result);
    if (id === undefined) return connection.agent.notify(method, params).catch(() => {});
    const failed = ({ code, message, data }) => print({ id, error: { code, message, data } });
    connection.agent.request(method, params).then((result) => print({ id, result }), failed);
  })
  .on("close", () => relay.stdin.end());
relay.on("close", (code, signal) => process.exit(code ?? 128 + signal));
"""

# An agent that dies at one point of its first process, and of every one with `always`.
AGENT = r"""
import json, os, sys
from pathlib import Path
here, point, habits = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
with open(here / "starts", "a") as starts:
    starts.write("x")
first = (here / "starts").stat().st_size == 1
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(text):
    send(method="session/update", params={"sessionId": "s", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
def reach(where):
    if where == point and (first or "always" in habits):
        print("it broke " + where, file=sys.stderr, flush=True)
        os._exit(7)
reach("before it reads")
turn = None
for line in sys.stdin:
    message = json.loads(line)
    ident, method = message.get("id"), message.get("method")
    if method == "initialize" and "silent" not in habits:
        reach("at initialize")
        send(id=ident, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": "forgetful" not in habits}})
        reach("after initialize")
    elif method == "session/new":
        reach("at session/new")
        send(id=ident, result={"sessionId": "s"})
        reach("after session/new")
    elif method == "session/load":
        update("history")
        send(id=ident, result={})
    elif method == "session/prompt":
        reach("at a prompt")
        update("working")
        reach("with an update sent")
        turn, what = ident, message["params"]["prompt"][0]["text"]
        if what == "ask":
            send(id="q", method="session/request_permission", params={
                "sessionId": "s", "toolCall": {"toolCallId": "t", "title": "may I"},
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]})
        elif what == "go":
            send(id=ident, result={"stopReason": "end_turn"})
            reach("after the answer")
    elif method == "session/cancel":
        reach("on a cancel")
        turn = turn if "asks" in habits else None
    elif method == "_break":
        reach("with a permission open")
    elif ident == "q" and turn is not None:
        outcome = message.get("result", {}).get("outcome", {}).get("outcome")
        send(id=turn, result={"stopReason": "cancelled" if outcome == "cancelled" else "end_turn"})
"""
# The points of AGENT, in the order of a conversation; at the first ones there is no session.
POINTS = ("before it reads", "at initialize", "after initialize", "at session/new", "after session/new", "at a prompt",
          "with an update sent", "with a permission open", "after the answer", "on a cancel")
EARLY = POINTS[:4]


class Wrong(Exception):
    """A step has failed."""


def need(condition, text, *values):
    if not condition:
        raise Wrong(text % values)


def parents():
    """(pid, parent) of every process."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(path.parent.name), int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # It has ended meanwhile.


class Talk:
    """A client: a program that reads and writes lines of JSON-RPC."""

    def __init__(self, words, env, folder):
        self.process = subprocess.Popen(list(map(str, words)), env=env, bufsize=0, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.folder, self.session, self.allows, self.asked, self.ended = folder, None, True, 0, False
        self.lines, self.errors, self.changed = [], [], threading.Condition()
        # Answers by id, notifications, questions of the agent, and the id of each answer that was sent.
        self.answers, self.heard, self.questions, self.wire = {}, [], [], []
        self.readers = [threading.Thread(target=read, daemon=True) for read in (self.read, self.read_errors)]
        for reader in self.readers:
            reader.start()

    def note(self, line):
        self.lines.append("%.2f %s" % (time.monotonic(), line))

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.changed:
                self.note("< " + line.decode().rstrip())
                if "method" not in message:
                    # Without the SDK an answer is itself what was sent.
                    if "wire" in message or "jsonrpc" in message:
                        self.wire.append(message.get("wire", message.get("id")))
                    if "wire" not in message:
                        self.answers.setdefault(message["id"], message)
                elif "id" not in message:
                    self.heard.append(message)
                else:
                    self.questions.append(message)
                    if self.allows:
                        self.allow(message)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.decode(errors="replace"))
            self.note("! " + self.errors[-1].rstrip())

    def wait(self, found, what):
        """Waits until `found()` is true, and returns it; it is false when the stream has ended before."""
        with self.changed:
            need(self.changed.wait_for(lambda: found() or self.ended, PATIENCE), "no %s within %d s", what, PATIENCE)
            return found()

    def send(self, **message):
        self.note("> " + json.dumps(message))
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        except BrokenPipeError:
            pass  # The reader sees the end.

    def ask(self, method, **params):
        """Sends a request; returns its id."""
        self.asked += 1
        self.send(id=self.asked, method=method, params=params)
        return self.asked

    def answer(self, ident):
        """The answer to a request; None if the stream has ended without one."""
        return self.wait(lambda: self.answers.get(ident), "answer to request %d" % ident)

    def result(self, ident):
        answer = self.answer(ident)
        need(answer and "result" in answer, "request %d got %s", ident, answer)
        return answer["result"]

    def error(self, ident, code):
        answer = self.answer(ident)
        need(answer and answer.get("error", {}).get("code") == code, "request %d got %s", ident, answer)

    def hello(self):
        return self.ask("initialize", protocolVersion=1, clientCapabilities={})

    def new(self):
        return self.ask("session/new", cwd=str(self.folder), mcpServers=[])

    def initialize(self, auth=None):
        """Returns whether the agent can bring back a session."""
        able = self.result(self.hello()).get("agentCapabilities", {})
        if auth:
            self.result(self.ask("authenticate", methodId=auth))
        return bool(able.get("loadSession") or able.get("sessionCapabilities", {}).get("resume") is not None)

    def begin(self, auth=None):
        able = self.initialize(auth)
        self.session = self.result(self.new())["sessionId"]
        return able

    def prompt(self, text):
        return self.ask("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text}])

    def turn(self, text):
        """A prompt whose turn has to end; returns the seconds that it took."""
        began = time.monotonic()
        stop = self.result(self.prompt(text))["stopReason"]
        need(stop == "end_turn", "the turn ended with %s", stop)
        return time.monotonic() - began

    def cancel(self, turn):
        """Cancels a turn; returns its result and the seconds until then."""
        began = time.monotonic()
        self.send(method="session/cancel", params={"sessionId": self.session})
        return self.result(turn), time.monotonic() - began

    def allow(self, question):
        options = question["params"]["options"]
        chosen = next((option for option in options if option["kind"] == "allow_once"), options[0])
        self.send(id=question["id"], result={"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}})

    def question(self, since=0):
        """The permission that is requested."""
        found = self.wait(lambda: self.questions[since:], "permission request")
        need(found, "the stream ended without a permission request")
        return found[0]

    def updates(self, since=0):
        return [one["params"]["update"] for one in self.heard[since:] if one["method"] == "session/update"]

    def text(self, since=0):
        return "".join(one["content"].get("text", "") for one in self.updates(since)
                       if one["sessionUpdate"] == "agent_message_chunk")


class Case:
    """A relay with an agent over one way, its clients, and the rows of its steps."""

    def __init__(self, agent, way, relay, folder):
        self.agent, self.way, self.relay, self.dir = agent, way, os.path.realpath(relay), folder
        self.workspace, self.mark = folder / "w", isolation.Mark()
        self.rows, self.now, self.began, self.seen, self.faults = [], None, 0, [], []
        self.talks, self.serve, self.model = [], None, None
        self.workspace.mkdir(parents=True)
        (folder / "home").mkdir()

    def step(self, name=None):
        """Ends the step before, and begins one."""
        if self.now:
            what = "%s, %s: %s" % (self.agent.name if self.agent else "scripted", self.way, self.now)
            self.rows.append((not self.faults, what, time.monotonic() - self.began, ", ".join(self.seen + self.faults)))
        self.now, self.began, self.seen, self.faults = name, time.monotonic(), [], []

    def start(self, command=None, limits=()):
        """Prepares the relay in front of this command, or of the real agent."""
        env = {}
        if self.agent:
            command = self.agent.command
            for name, value in self.agent.home.items():
                (self.dir / "home" / name).parent.mkdir(parents=True)
                (self.dir / "home" / name).write_text(json.dumps(value))
            words = [sys.executable, __file__, "model", "--cwd", self.workspace, "--log", self.dir / "model.log"]
            self.model = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            env = self.agent.variables("http://" + self.model.stdout.readline().split()[-1])
        self.env = {**isolation.environment(self.dir / "home"), **self.mark.env, **env}
        options = [word for limit in limits for word in ("--limit", limit)]
        self.words = [self.relay, "connect", *options, "--", *command]
        if self.way == "ws":
            self.serve = Relay([self.relay, "serve", *options, "--listen", "ws://127.0.0.1:0/acp", "--", *command], self.env)
            self.words = [self.relay, "connect", self.serve.endpoint]

    def talk(self, sdk=False):
        """Starts a client: a plain one, or the SDK."""
        words = self.words
        if sdk:
            (self.dir / "client.mjs").write_text(SDK_CLIENT)
            words = ["node", self.dir / "client.mjs", (SDK / "dist/acp.js").as_uri(), *words]
        self.talks.append(Talk(words, self.env, self.workspace))
        return self.talks[-1]

    def is_relay(self, pid):
        try:
            return os.readlink("/proc/%d/exe" % pid).removesuffix(" (deleted)") == self.relay
        except OSError:
            return False  # It is ending.

    def agents(self):
        """The processes of the agent: those of the run that are neither the relay nor a client."""
        clients = [talk.process.pid for talk in self.talks]
        return [pid for pid, _ in self.mark.processes() if pid not in clients and not self.is_relay(pid)]

    def signal_agent(self, how):
        for pid in self.agents():
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass

    def stop_agent(self):
        """SIGSTOP of the whole tree, until each thread has stopped: from then on it reads nothing."""
        def is_stopped():
            self.signal_agent(signal.SIGSTOP)
            try:
                threads = [one.read_text() for pid in self.agents() for one in Path("/proc/%d/task" % pid).glob("*/stat")]
            except OSError:
                return False  # A thread has ended meanwhile.
            return all(one.rpartition(")")[2].split()[0] in "TtZX" for one in threads)
        need(self.agents(), "there is no agent to stop")
        self.until(is_stopped, "stop of the agent")

    def kill_agent(self):
        """SIGKILL of the whole tree, which is stopped before: no process can report the end of another one."""
        self.stop_agent()
        self.signal_agent(signal.SIGKILL)
        self.until_reaped()
        if self.agent and self.agent.name == "gemini-cli":
            # It names the file of a session by the minute, and overwrites it if it loads it within that minute.
            for number, file in enumerate(sorted((self.dir / "home").rglob("session-*.jsonl"))):
                file.rename(file.with_name("session-2000-01-01T00-%02d-%s" % (number, file.name[-14:])))

    def until_reaped(self):
        """Waits until the agent has ended and its relay knows: the relay has reaped its child."""
        def is_gone():
            relays = [pid for pid, _ in self.mark.processes() if self.is_relay(pid)]
            # One that is ending has no environment, and is not yet a zombie.
            return not self.agents() and all(self.is_relay(pid) for pid, parent in parents() if parent in relays)
        self.until(is_gone, "end of the agent")

    def until(self, found, what):
        deadline = time.monotonic() + PATIENCE
        while not found():
            need(time.monotonic() < deadline, "no %s within %d s", what, PATIENCE)
            time.sleep(0.02)

    def is_sent(self):
        """Whether a stopped agent has something to read on its stdin."""
        waiting = array.array("i", [0])
        for pid in self.agents():
            try:
                with open("/proc/%d/fd/0" % pid, "rb", buffering=0) as pipe:
                    fcntl.ioctl(pipe, termios.FIONREAD, waiting)
            except OSError:
                continue  # No pipe.
            if waiting[0]:
                return True
        return False

    def model_got(self, *words):
        """Whether the model was sent all these words in one request of a turn."""
        log = self.dir / "model.log"
        lines = log.read_text().splitlines() if log.exists() else ()
        return any('"tools"' in line and all(word in line for word in words) for line in lines)

    def need_starts(self, number):
        starts = (self.dir / "starts").stat().st_size
        need(starts == number, "%d agents were started, not %d", starts, number)

    def end(self, talk, *codes, unanswered=()):
        """Ends the conversation if 0 is allowed, and checks the exit code, the answers and what is left."""
        if 0 in codes:
            talk.process.stdin.close()
        talk.wait(lambda: False, "end of the conversation")
        code = talk.process.wait(PATIENCE)
        talk.readers[1].join(PATIENCE)
        need(code in codes, "connect exited with %s, not %s", code, codes)
        need(len(talk.wire) == len(set(talk.wire)), "answered twice: %s", talk.wire)
        missing = set(range(1, talk.asked + 1)) - set(talk.answers) - set(unanswered)
        need(not missing and len(talk.wire) == len(talk.answers), "%d answers to %d requests", len(talk.wire), talk.asked)
        left = self.mark.wait_until_gone({self.serve.process.pid} if self.serve else set(), PATIENCE)
        need(not left, "processes are left: %s", left)
        if code:
            self.seen.append("the conversation ended, exit code %d" % code)

    def go(self, steps):
        """Runs the steps; returns the rows."""
        try:
            steps(self)
            code = self.serve.stop(seconds=PATIENCE) if self.serve else 0
            need(code == 0, "serve exited with %s", code)
        except Exception as fault:
            self.faults.append("%s, see %s" % (fault if isinstance(fault, Wrong) else repr(fault), self.dir))
        self.step()
        for process in (self.model, self.serve and self.serve.process, *(talk.process for talk in self.talks)):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        self.mark.kill_rest()
        for number, talk in enumerate(self.talks):
            (self.dir / ("talk%d.log" % number)).write_text("\n".join(talk.lines) + "\n")
        if self.serve:
            (self.dir / "serve.stderr").write_text("\n".join(self.serve.output) + "\n")
        return self.rows


def killed(case):
    """SIGKILL of a real agent between turns and in a turn."""
    agent, seed = case.agent, case.workspace / "seed.txt"
    case.step("killed between turns")
    case.start()
    talk = case.talk(sdk=True)
    able = talk.begin(agent.auth)
    seed.write_text("hello seed\n")
    talk.turn(agent.prompt + " quince")
    if not able:
        return cannot_load(case, talk)
    case.kill_agent()
    go_on(case, talk, "medlar", first="quince")
    if case.way == "connect":
        case.step("killed with a permission open")
        seed.write_text("hello seed\n")
        talk.allows, asked = False, len(talk.questions)
        turn = talk.prompt(agent.prompt + " damson")
        question = talk.question(asked)
    else:
        case.step("killed while the model answers")
        turn, question = talk.prompt("[[hang]] damson"), None
        case.until(lambda: case.model_got("damson"), "request to the model")
    case.kill_agent()
    talk.error(turn, -32051)
    case.seen.append("error -32051")
    if question:
        talk.allow(question)  # Too late.
    talk.allows = True
    go_on(case, talk, "loquat")
    case.end(talk, 0)


def go_on(case, talk, word, first=None):
    """The turn after the end of an agent, with `word` in its prompt."""
    since = len(talk.heard)
    case.seen.append("end_turn after %.1f s" % talk.turn("[[brief]] " + word))
    if first:
        need(case.model_got(first, word), "the model was not sent the first prompt again")
        case.seen.append("the model remembers")
    again = [one["sessionUpdate"] for one in talk.updates(since)
             if one["sessionUpdate"] in HISTORY and word not in json.dumps(one)]
    text = talk.text(since)
    if again or not re.fullmatch(r"\s*(tock \d\. ?){6}", text):
        case.faults.append("history was sent again: %s, %r, see %s" % (again, text, case.dir))


def cannot_load(case, talk):
    """An agent that cannot load sessions: its end is that of the conversation."""
    case.kill_agent()
    case.end(talk, 137)
    if "cancelled" not in case.agent.expect:
        return  # Its turns have no duration.
    case.step("killed in a turn")
    talk = case.talk(sdk=True)
    talk.begin()
    turn = talk.prompt(case.agent.prompt)
    talk.wait(talk.updates, "update")
    case.kill_agent()
    talk.error(turn, -32051)
    case.seen.append("error -32051")
    case.end(talk, 137)


def killed_at_new(case):
    """SIGKILL of a real agent that was sent session/new and has not read it."""
    case.step("killed at session/new")
    case.start()
    talk = case.talk()
    talk.initialize(case.agent.auth)
    case.stop_agent()
    new = talk.new()
    case.until(case.is_sent, "session/new at the agent")
    case.kill_agent()
    talk.error(new, -32051)
    case.seen.append("error -32051")
    case.end(talk, 137)


def model_hangs(case):
    case.step("the model never answers")
    case.start(limits=["turn-silence=20s", "cancel-grace=10s"])
    talk = case.talk(sdk=True)
    talk.begin(case.agent.auth)
    began = time.monotonic()
    stop, took = talk.result(talk.prompt("[[hang]] damson")), time.monotonic() - began
    need(took > 5, "the turn ended after %.1f s", took)
    # goose does not end a turn while the model owes its answer: then the relay does, and replaces the agent.
    by = "relay" if "acp-relay" in (stop.get("_meta") or {}) else "agent"
    case.seen.append("%s by the %s after %.1f s" % (stop["stopReason"], by, took))
    case.seen.append("the next turn took %.1f s" % talk.turn("[[brief]] medlar"))
    case.end(talk, 0)


def scripted(case, *habits, point="never", limits=()):
    case.start([sys.executable, "-uc", AGENT, str(case.dir), point, *habits], limits)
    return case.talk()


def dies(point, *habits):
    """A scripted agent that dies at one point of the conversation."""
    def steps(case):
        case.step(" and ".join(["dies " + point, *("cannot load" for habit in habits)]))
        talk = scripted(case, *habits, point=point)
        talk.session, talk.allows = "s", False
        what = {"with a permission open": "ask", "on a cancel": "wait"}.get(point, "go")
        answer = talk.answer(talk.hello())
        if answer and "result" in answer:
            answer = talk.answer(talk.new())
        if answer and "result" in answer:
            if point == "after session/new":
                case.until_reaped()
            turn = talk.prompt(what)
            if what != "go":
                talk.wait(lambda: talk.questions if what == "ask" else talk.updates(), "update")
                talk.send(method="session/cancel" if what == "wait" else "_break", params={"sessionId": "s"})
            answer = talk.answer(turn)
        code = answer and answer.get("error", {}).get("code")
        case.seen += ["error %d" % code] if code else []
        if point in EARLY or habits:
            need(code in (None, -32050, -32051), "the error is %s", answer)
            # A request that is sent after the end of the agent may find no relay.
            case.end(talk, 7, unanswered=(talk.asked,) if point == "after initialize" else ())
            need("exit code 7" in json.dumps(answer) + "".join(talk.errors), "the reason is missing: %s", answer)
            return case.need_starts(1)
        need(code == (None if point.startswith("after") else -32051), "the answer is %s", answer)
        need(not code or "it broke " + point in json.dumps(answer), "the reason is missing: %s", answer)
        if point != "after session/new":
            case.until_reaped()
        if what == "ask":
            taken = [one for one in talk.heard if one["method"] == "$/cancel_request"]
            need(len(taken) == 1, "the permission was taken back by %s", taken)
            talk.allow(talk.question())  # Too late.
        talk.turn("go")
        case.need_starts(2)
        need("history" not in talk.text(), "history was sent again")
        case.seen.append("the next turn works")
        case.end(talk, 0)
    return steps


def dies_always(case):
    """After three starts the conversation ends."""
    case.step("dies at each prompt")
    talk = scripted(case, "always", point="at a prompt")
    talk.begin()
    for _ in range(5):
        talk.error(talk.prompt("go"), -32051)
    case.need_starts(4)
    case.seen.append("5 errors, 3 starts")
    case.end(talk, 7)


def never_permits(case):
    case.step("the client never answers a permission")
    talk = scripted(case, "asks")
    talk.begin()
    talk.allows, turn = False, talk.prompt("ask")
    question = talk.question()
    stop, took = talk.cancel(turn)
    # The agent's answer, because it was told `cancelled`; that of the relay would have _meta.
    need(stop == {"stopReason": "cancelled"} and took > 1.9, "%s after %.1f s", stop, took)
    talk.allow(question)  # Too late.
    talk.turn("go")
    case.need_starts(1)
    case.seen.append("cancelled after %.1f s, the next turn works" % took)
    case.end(talk, 0)


def ignores_cancel(case):
    case.step("the agent ignores session/cancel")
    talk = scripted(case, "asks", limits=["cancel-grace=1s"])
    talk.begin()
    turn = talk.prompt("wait")
    talk.wait(talk.updates, "update")
    stop, took = talk.cancel(turn)
    need(stop["stopReason"] == "cancelled" and "acp-relay" in stop.get("_meta", {}) and took > 0.9, "%s after %.1f s", stop, took)
    later = talk.turn("go")
    need(later > 25, "the next turn did not wait: %.1f s", later)
    case.need_starts(2)
    case.seen.append("cancelled after %.1f s, the agent was replaced, the next turn took %.1f s" % (took, later))
    case.end(talk, 0)


def never_initializes(case):
    case.step("the agent never answers initialize")
    talk = scripted(case, "silent", limits=["handshake-silence=2s"])
    talk.error(talk.hello(), -32055)
    case.seen.append("error -32055")
    # The agent reads the end of its input and exits with 0, without an answer.
    case.end(talk, 0, 76)


def cases():
    """(agent, way, steps), the longest first; scripted peers have no agent of AGENTS."""
    slow_first = [agent for agent in reversed(AGENTS) if agent.installed()]
    for steps in (killed, killed_at_new):
        yield from ((agent, way, steps) for agent in slow_first for way in ("connect", "ws"))
        if steps is killed:
            yield from ((agent, "connect", model_hangs) for agent in slow_first if agent.name in ("goose", "opencode"))
    others = (ignores_cancel, never_permits, never_initializes, dies_always, dies("at a prompt", "forgetful"))
    for steps in (*others, *map(dies, POINTS)):
        yield from ((None, way, steps) for way in ("connect", "ws"))


def hanging_model():
    """mock_llm.py with one more directive: after `[[hang]]` a turn gets no answer."""
    plain = mock_llm.decide

    def decide(turns, tools):
        said = re.findall(r"\[\[(\w+)\]\]", "".join(text for role, text, _ in turns if role == "user"))
        if tools and said[-1:] == ["hang"]:
            threading.Event().wait()
        return plain(turns, tools)
    mock_llm.decide = decide
    mock_llm.main()


def main():
    if sys.argv[1:2] == ["model"]:
        del sys.argv[1]
        return hanging_model()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--only", default="", help="the cases with this text in AGENT, WAY")
    parser.add_argument("--jobs", type=int, default=4, help="real agents at a time")
    parser.add_argument("--keep", action="store_true", help="keep what passing cases have written, too")
    args = parser.parse_args()
    if not SDK.is_dir():
        sys.exit("no peers in %s; run tests/peers/install.sh" % PEERS)
    # On SIGTERM (a timeout): clean up before the exit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    isolation.leave_network()
    root, rows = Path(tempfile.mkdtemp(prefix="acp-restart-")), []

    def one(number, agent, way, steps):
        for row in Case(agent, way, args.relay, root / ("c%d" % number)).go(steps):
            rows.append(row)
            print("%-4s  %-58s %6.1f s  %s" % ("ok" if row[0] else "FAIL", *row[1:]), flush=True)

    chosen = [case for case in cases() if args.only in "%s, %s" % (case[0].name if case[0] else "scripted", case[1])]
    # Scripted peers wait more than they compute.
    with ThreadPoolExecutor(args.jobs) as real, ThreadPoolExecutor(8) as light:
        for future in [(real if case[0] else light).submit(one, number, *case) for number, case in enumerate(chosen)]:
            future.result()
    failed = sum(not good for good, *_ in rows)
    print("%d passed, %d failed" % (len(rows) - failed, failed))
    if failed or args.keep:
        print("see %s" % root)
    else:
        shutil.rmtree(root, ignore_errors=True)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""agent_connect.py: Agent Connect with its SDK and other HTTP clients.

    agent_connect.py [--relay BINARY] [--only PART]... [--moments N] [--threads N] [--seed N]

    sdk       the client of the `agntcy-acp` SDK, sync, async and as a LangGraph node, against real
              agents: poll, block, callback, stream, interrupt and resume, two runs on one thread
              with a restart of the relay in between
    schema    schemathesis with the served OpenAPI document: no 5xx, no violation
    kill      SIGKILL of the relay at random moments during runs: after the restart every finished
              run has the same status, every other one is an error, none is pending
    load      runs on many threads at once
"""
import argparse
import asyncio
import contextlib
import http.server
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paths import PEERS, RELAY
from peers import AGENTS

HERE = Path(__file__).resolve().parent
VENV = PEERS / "agent_connect"
MEMORY = [sys.executable, str(HERE / "agent_connect_agent.py")]
PATIENCE = 60


class Relay:
    """A relay that serves Agent Connect."""

    def __init__(self, binary, agent, store=None, env=None, callbacks=()):
        words = [binary, "serve", "--listen", "agent-connect+http://127.0.0.1:0"]
        words += ["--store", str(store)] if store else []
        words += [word for one in callbacks for word in ("--allow-callback", one)]
        self.process = subprocess.Popen([*words, "--", *agent], env=env, stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, errors="replace")
        self.stderr, self.base = [], None
        for line in self.process.stderr:
            self.stderr.append(line)
            if found := re.search(r"listening on agent-connect\+(\S+)", line):
                self.base = found[1].rstrip("/")
                break
        if self.base is None:
            raise SystemExit("the relay does not listen: %s" % "".join(self.stderr))
        threading.Thread(target=lambda: self.stderr.extend(self.process.stderr), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGTERM)

    def stop(self, with_signal):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(with_signal)
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise SystemExit("the relay does not exit: %s" % "".join(self.stderr))

    def call(self, method, path, body=None, seconds=PATIENCE):
        """Returns the status and the body of the response."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        return status, json.loads(text) if text else None

    def get(self, path):
        status, body = self.call("GET", path)
        assert status == 200, (path, status, body)
        return body

    def post(self, path, body):
        status, answer = self.call("POST", path, body)
        assert status == 200, (path, status, answer)
        return answer


class Hooks:
    """Receives the callbacks; rejects the first of each status, so that it is repeated."""

    def __enter__(self):
        received = self.received = []
        self.failed = set()
        failed = self.failed

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                key = (body["run_id"], body["status"])
                first = key not in failed
                failed.add(key)
                if not first:
                    received.append(body)
                self.send_response(503 if first else 204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.at = "127.0.0.1:%d" % self.server.server_port
        return self

    def __exit__(self, *_):
        self.server.shutdown()

    def wait_for(self, run, status):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if any(one["run_id"] == run and one["status"] == status for one in self.received):
                return
            time.sleep(0.05)
        raise AssertionError("no callback that %s is %s: %s" % (run, status, self.received))


def human(text):
    return {"messages": [{"role": "human", "content": text}]}


def part_sdk(args):
    """Every flow of the SDK's client, with two real agents."""
    named = {agent.name: agent for agent in AGENTS}
    with tempfile.TemporaryDirectory() as home, Hooks() as hooks:
        with Relay(args.relay, named["ts-sdk"].command, callbacks=[hooks.at]) as relay:
            sync_flows(relay, hooks)
            asyncio.run(async_flows(relay))
            node_flow(relay)
        # An agent with session/load: state, and a thread that continues after a restart of the relay.
        with goose(named["goose"], home) as (command, env):
            threads(args, command, env, Path(home) / "store.db", "[[say]] hello")
        env = {**os.environ, "ACP_AGENT_HOME": home}
        threads(args, MEMORY, env, Path(home) / "other.db", "hello")


def sync_flows(relay, hooks):
    from agntcy_acp import ACPClient, ApiClientConfiguration
    from agntcy_acp.models import AgentSearchRequest, RunCreateStateless

    with ACPClient(configuration=ApiClientConfiguration(host=relay.base, retries=0)) as client:
        agent = client.search_agents(AgentSearchRequest())[0].agent_id
        descriptor = client.get_acp_descriptor_by_id(agent)
        assert descriptor.specs.interrupts[0].interrupt_type == "acp_permission"

        def begin(**more):
            request = RunCreateStateless(agent_id=agent, input=human("hi"), **more)
            return client.create_stateless_run(request)

        # Poll, then interrupt and resume.
        run = begin(webhook="http://%s/callme" % hooks.at)
        assert run.status == "pending"
        while (now := client.get_stateless_run(run.run_id)).status == "pending":
            time.sleep(0.1)
        assert now.status == "interrupted", now
        output = client.wait_for_stateless_run_output(run.run_id).output.actual_instance
        asked = output.interrupt["acp_permission"]
        client.resume_stateless_run(run.run_id, {"request_id": asked["request_id"], "option_id": "allow"})
        done = client.wait_for_stateless_run_output(run.run_id)
        assert done.run.status == "success", done
        result = done.output.actual_instance
        assert result.values["stopReason"] == "end_turn" and result.messages, result
        hooks.wait_for(run.run_id, "interrupted")
        hooks.wait_for(run.run_id, "success")
        # Block, as the specification's text describes it.
        run = begin(config={"configurable": {"permissions": "allow"}})
        assert relay.call("GET", "/runs/%s/output?block_timeout=0" % run.run_id)[0] == 204
        output = relay.get("/runs/%s/output?block_timeout=60" % run.run_id)
        assert output["result"]["stopReason"] == "end_turn", output
        # Cancel and delete.
        run = begin()
        client.cancel_stateless_run(run.run_id, wait=True)
        assert client.get_stateless_run(run.run_id).status == "success"
        client.delete_stateless_run(run.run_id)
        assert relay.call("GET", "/runs/" + run.run_id)[0] == 404
    print("sdk: sync client: search, descriptor, poll, interrupt, resume, callback, block, cancel, delete")


async def async_flows(relay):
    from agntcy_acp import ApiClientConfiguration, AsyncACPClient
    from agntcy_acp.models import AgentSearchRequest, RunCreateStateful, RunCreateStateless, StreamingMode, StreamMode, ThreadCreate

    async with AsyncACPClient(configuration=ApiClientConfiguration(host=relay.base, retries=0)) as client:
        agent = (await client.search_agents(AgentSearchRequest()))[0].agent_id
        request = RunCreateStateless(agent_id=agent, input=human("hi"), config={"configurable": {"permissions": "reject"}})
        done = await client.create_and_wait_for_stateless_run_output(request)
        assert done.run.status == "success", done
        thread = await client.create_thread(ThreadCreate())
        request = RunCreateStateful(agent_id=agent, input=human("hi"), stream_mode=StreamMode(StreamingMode.CUSTOM))
        kinds = []
        async for event in client.create_and_stream_thread_run_output(thread.thread_id, request):
            kinds.append(event.data.actual_instance.type)
            run = event.data.actual_instance.run_id
        assert kinds[0] == "custom" and kinds[-1] == "interrupt", kinds
        await client.resume_thread_run(thread.thread_id, run, {"approved": False})
        kinds = []
        async for event in client.stream_thread_run_output(thread.thread_id, run):
            kinds.append(event.data.actual_instance.type)
        assert kinds[-1] == "values", kinds
        state = await client.get_thread(thread.thread_id)
        assert state.status == "idle" and len(state.messages) == 2, state
    print("sdk: async client: wait, thread, stream, interrupt in a stream, resume, stream again")


def node_flow(relay):
    """A graph with a node of the SDK that is interrupted and resumed."""
    from agntcy_acp import ApiClientConfiguration
    import agntcy_acp
    from langgraph.checkpoint.memory import MemorySaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Command
    from pydantic import BaseModel

    # Its package imports a library that this node does not need.
    path = Path(agntcy_acp.__file__).parent / "langgraph/acp_node.py"
    spec = importlib.util.spec_from_file_location("acp_node", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Output(BaseModel):
        stopReason: str | None = None
        messages: list | None = None

    class State(BaseModel):
        ask: dict
        output: Output | None = None

    agent = relay.post("/agents/search", {})[0]["agent_id"]
    node = module.ACPNode(name="agent", agent_id=agent, input_path="ask", input_type=dict, output_path="output",
                          output_type=Output, client_config=ApiClientConfiguration(host=relay.base, retries=0))
    graph = StateGraph(State)
    graph.add_node("agent", node)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    graph = graph.compile(checkpointer=MemorySaver())
    config = {"configurable": {"thread_id": "one"}}
    first = graph.invoke({"ask": human("hi")}, config)
    asked = first["__interrupt__"][0].value
    done = graph.invoke(Command(resume={"request_id": asked["request_id"], "option_id": "allow"}), config)
    assert done["output"].stopReason == "end_turn" and done["output"].messages, done
    print("sdk: a LangGraph node, interrupted and resumed")


@contextlib.contextmanager
def goose(agent, home):
    """goose with a mock model: its command and environment."""
    import isolation

    workspace = Path(home) / "workspace"
    workspace.mkdir()
    llm = subprocess.Popen([sys.executable, str(HERE / "mock_llm.py"), "--port", "0", "--cwd", str(workspace)],
                           stdout=subprocess.PIPE, text=True)
    try:
        url = "http://" + llm.stdout.readline().split()[-1]
        yield agent.command, {**isolation.environment(home), **agent.variables(url)}
    finally:
        llm.kill()
        llm.wait()


def threads(args, command, env, store, words):
    """Two runs on one thread, with a restart of the relay in between."""
    from agntcy_acp import ACPClient, ApiClientConfiguration
    from agntcy_acp.models import RunCreateStateful, ThreadCreate

    def run(relay, thread, text):
        with ACPClient(configuration=ApiClientConfiguration(host=relay.base, retries=0)) as client:
            if thread is None:
                thread = client.create_thread(ThreadCreate(metadata={"cwd": "/tmp"})).thread_id
            request = RunCreateStateful(input=human(text), config={"configurable": {"permissions": "allow"}})
            done = client.create_and_wait_for_thread_run_output(thread, request)
            assert done.run.status == "success", done
            return thread, done.output.actual_instance.messages[0].content.actual_instance

    with Relay(args.relay, command, store=store, env=env) as relay:
        thread, first = run(relay, None, words)
        agent = relay.post("/agents/search", {})[0]["agent_id"]
    with Relay(args.relay, command, store=store, env=env) as relay:
        assert relay.post("/agents/search", {})[0]["agent_id"] == agent
        _, second = run(relay, thread, words + " again")
        state = relay.get("/threads/%s/state" % thread)
        history = relay.get("/threads/%s/history" % thread)
    contents = [message["content"] for message in state["messages"]]
    assert contents == [words, first, words + " again", second], contents
    assert [len(one["messages"]) for one in history] == [4, 2], history
    print("sdk: %s: two runs on one thread, with a restart of the relay in between" % Path(command[-1]).name)


def part_schema(args):
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "ACP_AGENT_HOME": home}
        with Relay(args.relay, MEMORY, env=env) as relay:
            command = [str(VENV / "bin/schemathesis"), "run", relay.base + "/openapi.json", "--checks", "all",
                       "--max-examples", str(args.examples), "--seed", str(args.seed), "--request-timeout", "20",
                       "--suppress-health-check", "all", "--generation-database", "none"]
            env = {**os.environ, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "agent_connect_hooks"}
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  cwd=home, timeout=1500)
            if done.returncode != 0:
                raise SystemExit("schemathesis found a failure:\n" + done.stdout[-20000:])
            print("schema: " + done.stdout.strip().splitlines()[-1].strip("= "))


def part_kill(args):
    """Kills the relay during runs."""
    draw = random.Random(args.seed)
    finished = lost = 0
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "ACP_AGENT_HOME": home}
        store = Path(home) / "store.db"
        known = {}
        for moment in range(args.moments):
            with Relay(args.relay, [*MEMORY, "--delay", "0.02"], store=store, env=env) as relay:
                for run, seen in known.items():
                    now = relay.get("/runs/" + run)["status"]
                    output = relay.get("/runs/%s/output?block_timeout=0" % run)
                    if seen in ("pending", "interrupted"):
                        # It may have ended between the last request and the kill.
                        assert now in ("error", "success"), (moment, run, seen, now)
                        lost += now == "error"
                    else:
                        assert now == seen, (moment, run, seen, now)
                        finished += 1
                    assert output["type"] in ("result", "error"), output
                open_runs = relay.post("/runs/search", {"status": "pending", "limit": 1000})
                assert not open_runs, open_runs
                known = work_until_killed(relay, draw)
    print("kill: %d moments; %d finished runs were kept, %d unfinished ones are errors" %
          (args.moments, finished, lost))
    assert args.moments < 20 or (finished and lost)


def work_until_killed(relay, draw):
    """Starts runs and polls them until the relay is killed; returns the last status of each."""
    seen = {}

    def work(number):
        with contextlib.suppress(OSError, ValueError):
            for step in range(1000):
                text = ("ask" if step % 5 == 4 else "slow" if step % 7 == 6 else "word") + str(number)
                status, run = relay.call("POST", "/runs", {"input": human(text)}, 10)
                if status != 200:
                    return
                seen[run["run_id"]] = run["status"]
                until = time.monotonic() + 0.1
                while time.monotonic() < until and seen[run["run_id"]] == "pending":
                    seen[run["run_id"]] = relay.call("GET", "/runs/" + run["run_id"], None, 10)[1]["status"]

    moment = draw.uniform(0.0, 0.6)
    with ThreadPoolExecutor(4) as pool:
        for number in range(4):
            pool.submit(work, number)
        time.sleep(moment)
        relay.stop(signal.SIGKILL)
    return seen


def part_load(args):
    """Runs on many threads at once, each with its own text."""
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "ACP_AGENT_HOME": home}
        with Relay(args.relay, [*MEMORY, "--delay", "0.2"], store=Path(home) / "store.db", env=env) as relay:
            began = time.monotonic()

            def one(number):
                thread = relay.post("/threads", {})["thread_id"]
                for turn in range(3):
                    done = relay.post("/threads/%s/runs/wait" % thread, {"input": human("w%d-%d" % (number, turn))})
                    assert done["run"]["status"] == "success", done
                words = done["output"]["messages"][0]["content"].split()
                assert words == ["w%d-%d" % (number, turn) for turn in range(3)], words
                return len(relay.get("/threads/%s/history" % thread))

            with ThreadPoolExecutor(args.threads) as pool:
                histories = list(pool.map(one, range(args.threads)))
            assert histories == [3] * args.threads, histories
            took = time.monotonic() - began
            print("load: %d threads, %d runs, all at once, in %.1f s" % (args.threads, 3 * args.threads, took))


def main():
    if not VENV.exists():
        raise SystemExit("%s is missing; see install.sh" % VENV)
    if Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])
    parts = {"sdk": part_sdk, "schema": part_schema, "kill": part_kill, "load": part_load}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--only", action="append", choices=list(parts))
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--examples", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    for name in args.only or parts:
        parts[name](args)


if __name__ == "__main__":
    main()

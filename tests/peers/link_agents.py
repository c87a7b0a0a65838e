#!/usr/bin/env python3
"""link_agents.py: real agents over a link that is cut repeatedly in the middle of a turn.

    link_agents.py [--relay BINARY] [--cuts N] [--idle SECONDS] [--agent NAME]... [--way NAME]... [--seed N]

    client - acp-relay connect - PROXY - nginx or Caddy - PROXY - acp-relay serve - agent
    client - acp-relay connect - ssh - sshd - acp-relay of that machine - agent

The conversation is that of run.py. While the agent's request for a permission is open, the connections
are cut N times: reset or closed on either side of the web server, whose time-outs are its defaults, or
the process of sshd is killed. Then nothing is sent for IDLE s, longer than those time-outs, without a cut.
The permission is granted, and more cuts follow until the end. A run passes when the messages on both
sides are the same, the same as without a relay, and the link was not lost in the silence. Without the
web server, or sshd, a way is skipped, with a notice.
"""
import argparse
import asyncio
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import isolation
import proxies
import sshd
from link_faults import Network
from paths import RELAY
from peers import AGENTS, WAYS, Way
from run import Run, compared
from wires import Relay

NAMES = ("goose", "gemini-cli", "opencode")
CUTS = ("reset", "end of stream", "cut at a byte", "half-open")
# How long a half-open connection is silent, in seconds, and how long the client's relay tries to tell the
# other one of the end. An agent whose client's relay has given up runs on, for the client could return.
# client.mjs stops its relay after 15 s.
SILENT, STOP_GRACE = 2, 14
# Counts the agents that are started.
COUNTED = ["sh", "-c", 'echo >>"$0.starts"; exec "$@"']
CONFIG = """
[agents.test]
dialect = "canonical"
%s
"""
LISTENER = """
[[listeners]]
endpoint = "http://127.0.0.1:0"
allow-host = ["127.0.0.1"]
dialect = "canonical"
"""


def lines_of(agent, command, env):
    """The lines of an agent in a file. Wherever it is started, its environment is that of the other runs."""
    def text(value):
        # A string of JSON is one of TOML.
        return json.dumps(value, ensure_ascii=False)
    kept = [name for name in env if name in agent.env or name.startswith("XDG_")
            or name in ("HOME", "LANG", "TERM", "NO_COLOR", "DO_NOT_TRACK", isolation.MARK)]
    return "command = [%s]\nenv = { %s }" % (
        ", ".join(map(text, command)), ", ".join("%s = %s" % (name, text(env[name])) for name in kept))


class Cutter:
    """Proxies whose connections are cut, in a thread."""

    def __init__(self, chance):
        self.chance, self.loop, self.nets = chance, asyncio.new_event_loop(), []
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def start(self, target):
        """A proxy to the port; returns its own."""
        async def begin():
            self.nets.append(Network(self.chance, isolation.free_port(), target, 10, [], lambda: 0, None, kept=SILENT))
            await self.nets[-1].listen()
            return self.nets[-1].port
        return asyncio.run_coroutine_threadsafe(begin(), self.loop).result(10)

    def cut(self):
        """Cuts an attachment; whether there was one."""
        async def strike():
            net = self.chance.choice(self.nets)
            up = [pair for pair in net.pairs if pair.up and not pair.fault and not any(flow.lost for flow in pair.flows)]
            if up:
                self.chance.choice(up).strike(self.chance.choice(CUTS))
            return bool(up)
        return asyncio.run_coroutine_threadsafe(strike(), self.loop).result(10)

    def attachments(self):
        return sum(self.nets[-1].attachments.values()) - self.nets[-1].attachments["without a link"]


class CutRun(Run):
    """One conversation over one way, with cuts."""

    def __init__(self, agent, way, asked, root):
        super().__init__(agent, WAYS[0], [asked.relay], root)
        self.way, self.dir = Way(way, "-"), Path(root) / ("%s-%s" % (agent.name, way))
        # As long as the others.
        self.workspace = Path(root) / ("w%d%s" % (AGENTS.index(agent), way[0]))
        # Attachments are not counted over ssh.
        self.asked, self.chance = asked, random.Random("%d %s %s" % (asked.seed, agent.name, way))
        self.counts, self.front, self.cutter = {"open": 0, "later": 0, "attachments": 0, "agents": 0}, None, None
        self.options, self.limit = ["--hold", self.dir, "--timeout", 400], 420
        self.connect_options = ["--limit", "stop-grace=%ds" % STOP_GRACE]

    def environment(self):
        self.home_env = super().environment()
        more = {"ACP_RELAY_STATE_DIR": str(self.dir / "state")}
        if self.way.name == "sshd":
            more["PATH"] = "%s:%s" % (self.dir, self.home_env["PATH"])
        return {**self.home_env, **more}

    def start_serve(self, env, behind):
        config = CONFIG % lines_of(self.agent, [*COUNTED, str(self.dir / "agent"), *behind], env)
        if self.way.name == "sshd":
            return self.start_sshd(config), "ssh://agents.example/test"
        (self.dir / "serve.toml").write_text(config + LISTENER)
        (self.dir / "serve.toml").chmod(0o600)
        made = subprocess.run([*self.relay, "token", "new", "client"], env=env, check=True, capture_output=True, text=True)
        serve = Relay([*self.relay, "serve", "--config", self.dir / "serve.toml"], env=env)
        self.cutter = Cutter(self.chance)
        port = isolation.free_port()
        words = getattr(proxies, self.way.name)(self.dir, port, self.cutter.start(serve.port))
        for name in ("nginx.conf", "Caddyfile"):
            if (file := self.dir / name).exists():
                file.write_text(file.read_text().replace("agents.example", "127.0.0.1").replace("proxy_read_timeout 1h;", ""))
        self.front = subprocess.Popen(words, env={**self.home_env, isolation.MARK: ""}, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        isolation.wait_for_port(port, self.front, 20)
        env["ACP_RELAY_BEARER"] = made.stdout.strip()
        return serve.process, "ws://127.0.0.1:%d/agents/test/acp" % self.cutter.start(port)

    def start_sshd(self, text):
        home = self.dir / "there"
        (home / "config/acp-relay").mkdir(parents=True)
        (home / ".local/bin").mkdir(parents=True)
        (home / ".local/bin/acp-relay").symlink_to(self.relay[0])
        (home / "config/acp-relay/acp-relay.toml").write_text(text)
        there = {**isolation.environment(home), **self.mark.env, "ACP_RELAY_OVER_SSH_IDLE": "2s"}
        there = {name: there[name] for name in there if name == "HOME" or name.startswith(("XDG_", "ACP_RELAY_"))}
        daemon, options = sshd.start(self.dir / "keys", "agents.example", isolation.free_port(), there)
        (self.dir / "ssh").write_text('#!/bin/sh\nexec /usr/bin/ssh %s "$@"\n' % shlex.join(options))
        (self.dir / "ssh").chmod(0o755)
        return daemon

    def cut(self):
        if self.cutter:
            return self.cutter.cut()
        for pid, line in self.mark.programs():
            if not line.startswith("acp-relay over-ssh "):
                continue
            try:
                # The process with the connection is the parent; that of one that is left over is another program.
                parent = int(Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[1])
                if Path("/proc/%d/comm" % parent).read_text().startswith("sshd"):
                    os.kill(parent, signal.SIGKILL)
                    return True
            except OSError:
                pass  # It has ended meanwhile.
        return False

    def converse(self, env, peer):
        over = threading.Event()
        cutting = threading.Thread(target=self.cut_all, args=(over,), daemon=True)
        cutting.start()
        try:
            super().converse(env, peer)
        finally:
            over.set()
            cutting.join()

    def cut_all(self, over):
        while not (self.dir / "asked").exists() and not over.wait(0.02):
            pass
        while self.counts["open"] < self.asked.cuts and not over.wait(self.chance.uniform(0.05, 0.6)):
            self.counts["open"] += self.cut()
        # What the last cut began has ended.
        if not over.wait(20 if self.asked.cuts else 0):
            before = self.cutter and self.cutter.attachments()
            over.wait(self.asked.idle)
            if self.cutter and self.cutter.attachments() != before:
                self.wrong.append("the link was lost %d times in the silence" % (self.cutter.attachments() - before))
        (self.dir / "allowed").touch()
        while self.asked.cuts and not over.wait(self.chance.uniform(0.02, 0.4)):
            self.counts["later"] += self.cut()

    def stop(self, serve):
        super().stop(serve)
        if self.cutter:
            self.counts["attachments"] = self.cutter.attachments()
        if self.front:
            self.front.kill()
            self.front.wait()

    def judge(self):
        super().judge()
        self.counts["agents"] = len((self.dir / "agent.starts").read_text())
        if self.counts["agents"] != 1:
            self.wrong.append("%d agents were started" % self.counts["agents"])
        if self.counts["open"] < self.asked.cuts:
            self.wrong.append("only %d cuts with the permission open" % self.counts["open"])
        if self.cutter and self.counts["attachments"] < self.asked.cuts // 2:
            self.wrong.append("only %d attachments of a link" % self.counts["attachments"])


# The ways, and the program that each needs.
PROGRAMS = {"nginx": shutil.which("nginx"), "caddy": shutil.which("caddy"), "sshd": sshd.PROGRAM.exists()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--idle", type=float, default=65)
    parser.add_argument("--agent", action="append", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--way", action="append", choices=PROGRAMS)
    parser.add_argument("--jobs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    asked.relay = str(Path(asked.relay).resolve())
    ways = [way for way in PROGRAMS if not asked.way or way in asked.way]
    for way in (way for way in ways if not PROGRAMS[way]):
        print("%s is not installed; skipped" % way)
    agents = [agent for agent in AGENTS if agent.name in (asked.agent or NAMES) and agent.installed()]
    isolation.leave_network()
    print("seed %d" % asked.seed, flush=True)
    root, rows, good = Path(tempfile.mkdtemp(prefix="acp-cuts-")), [], bool(agents)

    def one(agent, way, reference):
        def pair(folder):
            return Run(agent, WAYS[0], [asked.relay], folder).go(), CutRun(agent, way, asked, folder).go()
        return compared(CutRun(agent, way, asked, root).go(), reference.result(), lambda: pair(root / ("again-" + way)))

    with ThreadPoolExecutor(asked.jobs) as pool:
        direct = {agent.name: pool.submit(Run(agent, WAYS[0], [asked.relay], root).go) for agent in agents}
        runs = [pool.submit(one, agent, way, direct[agent.name]) for agent in agents for way in ways if PROGRAMS[way]]
        for future in runs:
            run = future.result()
            reference = direct[run.agent.name].result()
            rows.append((run.agent.name, run.way.name, *run.counts.values(),
                         len(run.client.order) if run.client else 0, "%.0f s" % run.seconds, "differs" if run.wrong else "equal"))
            good = good and not run.wrong and not reference.wrong
            for reason in run.wrong + reference.wrong:
                print("FAIL  %s, %s: %s" % (run.agent.name, run.way.name, reason), flush=True)
    form = "%-12s %-6s %22s %11s %12s %7s %9s %7s  %s"
    print(form % ("agent", "way", "cuts, permission open", "later cuts", "attachments", "starts", "messages", "took",
                  "transcript"))
    for row in rows:
        print(form % row)
    if good and not asked.keep:
        shutil.rmtree(root, ignore_errors=True)
    else:
        print("captures: %s" % root)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

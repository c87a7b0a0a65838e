#!/usr/bin/env python3
"""cluster_agents.py: real agents on a host of a cluster, which the client reaches through a gateway.

    cluster_agents.py [--relay BINARY] [--agent NAME]...

    client - acp-relay connect - gateway - NATS, or its address - acp-relay serve --cluster - agent

The conversation is that of run.py. A run passes when the messages on both sides are the same, and the
same as without a relay.
"""
import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import Place, prepared, served
from link_agents import lines_of
from paths import RELAY
from peers import AGENTS, WAYS, Way
from run import Run, compared

NAMES = ("goose", "gemini-cli", "opencode", "claude-agent-acp")


class ClusterRun(Run):
    """One conversation with an agent on a host."""

    def __init__(self, agent, way, relay, root):
        super().__init__(agent, WAYS[0], [relay], root)
        self.way, self.dir, self.place = Way(way, "-"), Path(root) / ("%s-%s" % (agent.name, way)), None
        # As long as the others.
        self.workspace = Path(root) / ("w%d%s" % (AGENTS.index(agent), way[0]))

    def environment(self):
        return {**super().environment(), "ACP_RELAY_STATE_DIR": str(self.dir / "state")}

    def start_serve(self, env, behind):
        self.place = Place(self.relay[0], self.dir, 1)
        host = self.place.host("test", direct=self.way.name == "address", options=["--client-dialect", "canonical"],
                               agent=lines_of(self.agent, behind, env))
        gateway = self.place.gateway()
        self.place.known(1)
        served(self.place, gateway, "test")
        return host.process, "ws://127.0.0.1:%d/agents/test/acp" % gateway.web

    def go(self):
        try:
            return super().go()
        finally:
            if self.place:
                self.place.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--agent", action="append", choices=[agent.name for agent in AGENTS])
    asked = parser.parse_args()
    relay = str(Path(asked.relay).resolve())
    agents = [agent for agent in AGENTS if agent.name in (asked.agent or NAMES) and agent.installed()]
    if not prepared():
        return 0
    root, good = Path(tempfile.mkdtemp(prefix="acp-cluster-")), bool(agents)

    def one(agent, way):
        def pair(folder):
            return Run(agent, WAYS[0], [relay], folder).go(), ClusterRun(agent, way, relay, folder).go()
        direct, run = pair(root / way)
        return compared(run, direct, lambda: pair(root / ("again-" + way)))

    with ThreadPoolExecutor(2) as pool:
        for run in [pool.submit(one, agent, way) for agent in agents for way in ("nats", "address")]:
            run = run.result()
            good = good and not run.wrong
            print("%-16s %-7s %4d messages, %3.0f s, %s" % (
                run.agent.name, run.way.name, len(run.client.order) if run.client else 0, run.seconds,
                "; ".join(run.wrong) or "equal"), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

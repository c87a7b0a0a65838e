#!/usr/bin/env python3
"""cluster_faults.py: agents on hosts behind gateways, while servers, gateways and hosts are killed or cut off.

    cluster_faults.py [--conversations N] [--minutes M] [--seed N] [--cuts] [--bin RELAY] [--old-host RELAY]
    cluster_faults.py long         500 conversations for ten minutes: the release build
    cluster_faults.py prove        tests the check itself: what is broken has to be detected
    cluster_faults.py partitions   one cut after another, and what each has to lead to

    conversations = acp-relay connect - 2 gateways - 3 nats-servers (or directly) - 4 hosts = cluster_agent.py

A process of each kind is killed at random and started again, and a host is stopped (SIGSTOP); or, with --cuts, they
are cut off from the servers by nftables. Every conversation has numbered messages in both directions and two open
requests. Beside them, clients race for sessions. A run passes when conversations on hosts that live lose nothing, and
nothing in them is doubled or reordered; when each request that is open on a host that was killed gets one error within
the lease, and its session continues on another one; when no agent outlives its host; and when no session has two
owners. All of it runs in a network of its own. Prints the seed, and a table at the end.
"""
import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import isolation
from cluster import Balancer, Failed, Place, address_of, prepared, served
from paths import RELAY

LEASE = 30
# How long agents may outlive a host that was killed, and an error may come after the lease, on a loaded machine.
SOON, LATE = 10, 30
# Seconds without progress after which a conversation is hung.
HUNG = 120
# Conversations that begin at a time.
AT_ONCE = 16
KINDS = ("lost", "doubled", "reordered", "unexpected", "broken", "unanswered", "late", "hung", "outlives", "owners")
LIMITS = ["connections=65536", "per-principal=65536", "agent-starts=1073741824", "unauthenticated-sockets=65536",
          "failures=65536"]
LIMITS = [word for limit in LIMITS for word in ("--limit", limit)]
# Agents are stopped in this time, which a host keeps free at the end of its leases.
STOP = ["--limit", "stop-grace=1s"]
MODES = {
    "run": {},
    "long": dict(minutes=10.0, conversations=500, sessions=6, pause=1.0, calm=60),
    "prove": dict(minutes=1.0, conversations=24, sessions=6),
    "partitions": dict(minutes=10.0, conversations=20, sessions=4, kinds=["parts"]),
}


class Over(Exception):
    """A connection has ended."""


class Line:
    """A client behind a process `acp-relay connect`."""

    def __init__(self, load):
        self.load, self.next, self.open, self.answered, self.updates, self.since = load, 0, {}, {}, [], time.monotonic()

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            self.load.binary, "connect", self.load.url, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=self.load.env, limit=1 << 22)
        self.reader = asyncio.create_task(self._read())
        found = await self.call("initialize", protocolVersion=1, clientCapabilities={})
        self.host = found["agentInfo"]["name"]
        return self

    def write(self, **message):
        if self.process.stdin.is_closing():
            raise Over("it is closed")
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method, **params):
        """Sends a request; its answer is a future."""
        self.next += 1
        self.open[self.next] = asyncio.get_running_loop().create_future()
        self.write(id=self.next, method=method, params=params)
        return self.open[self.next]

    async def call(self, method, **params):
        answer = await self.ask(method, **params)
        if "result" not in answer:
            raise Over("%s: %s" % (method, answer["error"]))
        return answer["result"]

    async def _read(self):
        while line := await self.process.stdout.readline():
            message, self.since = json.loads(line), time.monotonic()
            if "method" in message:
                update = (message.get("params") or {}).get("update", {})
                if update.get("sessionUpdate") == "agent_message_chunk":
                    self.updates.append(update["content"]["text"])
                    self.load.counts["updates"] += 1
                continue
            number = message.get("id")
            self.answered[number] = self.answered.get(number, 0) + 1
            if self.answered[number] > 1:
                self.load.fail("doubled", "a second answer on %s: %.200s" % (getattr(self, "host", "?"), line))
            elif number in self.open and not self.open[number].done():
                self.open[number].set_result(message)
        for future in self.open.values():
            if not future.done():
                future.set_exception(Over("the connection has ended without an answer"))
                # Some are not waited for.
                future.exception()

    async def end(self):
        """Ends it in order; one that does not is killed."""
        if not hasattr(self, "process"):
            return
        self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), 30)
        except TimeoutError:
            self.load.counts["clients killed"] += 1
            self.process.kill()
            await self.process.wait()
        await self.reader


class Talk:
    """A conversation, which goes on after its host has been killed."""

    def __init__(self, load, number):
        self.load, self.number, self.chance = load, number, random.Random("%d %d" % (load.seed, number))
        self.session, self.turns, self.state, self.since = None, 0, "begins", time.monotonic()
        self.killed = self.host = None

    async def run(self):
        while not self.load.stopping:
            line = Line(self.load)
            try:
                await self.life(line)
            except (Over, OSError) as error:
                self.load.counts["openings repeated"] += 1
                self.load.last = str(error)
                await asyncio.sleep(self.chance.uniform(0.5, 1.5))
            finally:
                await line.end()

    def progress(self, state):
        self.state, self.since = state, time.monotonic()

    async def life(self, line):
        await line.start()
        self.host = line.host
        if self.session is None:
            session = (await line.call("session/new", cwd="/tmp", mcpServers=[]))["sessionId"]
        else:
            session = self.session
            await line.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        if self.killed:
            self.load.continued.append(time.monotonic() - self.killed)
            self.killed = None
        self.session = session
        self.progress("goes on")
        held, notes, noted = line.ask("_peers/hold"), 0, 0
        while not self.load.stopping:
            self.turns += 1
            for _ in range(self.chance.randrange(4)):
                line.write(method="_peers/note", params={"sessionId": session, "number": notes})
                notes += 1
            count, size = self.chance.randrange(2, 12), self.chance.choice((10, 100, 1000, 20000))
            pause = self.chance.uniform(0, 2 * self.load.pause)
            text = ("t%d.%d-" % (self.number, self.turns)).ljust(size, "x")
            line.updates.clear()
            sent = line.ask("session/prompt", sessionId=session,
                            prompt=[{"type": "text", "text": "%d 0 %g %s" % (count, pause, text)}])
            try:
                answer = await sent
                fault = answer.get("error")
            except Over as error:
                answer, fault = {}, str(error)
            if "result" not in answer:
                return await self.broken(line, held, fault, bool(answer))
            self.progress("goes on")
            updates, expected = [update.split(" ", 1) for update in line.updates], range(count)
            self.check("updates", updates, [[str(number), text] for number in expected])
            came = answer["result"]["_meta"]["notes"]
            self.check("notes", [[str(number)] for number in came], [[str(number)] for number in range(noted, notes)])
            self.load.counts["turns"] += 1
            self.load.counts["notes"] += notes - noted
            noted = notes
            await asyncio.sleep(self.chance.uniform(0, 10 * self.load.pause))
        self.progress("ends")

    async def broken(self, line, held, fault, one):
        """A prompt was answered by an error, or not at all: that is right when its host was killed."""
        killed = self.load.killed.get(line.host)
        if killed is None:
            self.load.fail("broken", "conversation %d on %s: %s" % (self.number, line.host, fault))
            self.session = None
            return
        after = time.monotonic() - killed
        answers = [one]
        try:
            answers.append("error" in await asyncio.wait_for(asyncio.shield(held), SOON))
        except (Over, TimeoutError):
            answers.append(False)
        self.load.errors.append(after)
        self.load.counts["requests of killed hosts"] += 2
        self.load.counts["errors for them"] += sum(answers)
        for name, good in zip(("prompt", "other request"), answers):
            if not good:
                where = self.number, line.host, name, fault
                self.load.fail("unanswered", "conversation %d on %s: the open %s, %s" % where)
        if after > LEASE + LATE:
            self.load.fail("late", "conversation %d on %s: %.1f s after" % (self.number, line.host, after))
        self.killed = killed
        self.progress("looks for another host")

    def check(self, what, found, expected):
        if found == expected:
            return
        numbers = [place[0] for place in found]
        if not all(place in expected for place in found):
            kind = "unexpected"
        elif len(set(numbers)) < len(numbers):
            kind = "doubled"
        else:
            kind = "lost" if len(numbers) < len(expected) else "reordered"
        self.load.fail(kind, "conversation %d, turn %d: the %s %s of %s" % (
            self.number, self.turns, what, " ".join(numbers), " ".join(place[0] for place in expected)))


class Load:
    """All conversations, and what is wrong."""

    def __init__(self, asked, place, url):
        self.asked, self.place, self.url, self.binary, self.env = asked, place, url, place.binary, place.env
        self.seed, self.pause, self.stopping, self.last = asked.seed, asked.pause, False, None
        self.killed, self.errors, self.continued, self.outlived = {}, [], [], []
        self.counts, self.failed, self.talks, self.tasks = Counter(), Counter(), [], []

    def fail(self, kind, detail):
        self.failed[kind] += 1
        if self.failed[kind] <= 5:
            print("FAIL  %-10s  %s  %s" % (kind, time.strftime("%H:%M:%S"), detail), flush=True)

    async def start(self):
        folder = self.place.folder / "sessions-goose"
        for number in range(self.asked.sessions):
            (folder / ("raced-%d" % number)).touch()
            self.tasks += [asyncio.create_task(self.race("raced-%d" % number)) for _ in range(2)]
        for number in range(self.asked.conversations):
            self.talks.append(Talk(self, number))
            self.tasks.append(asyncio.create_task(self.talks[-1].run()))
            await self.begun(AT_ONCE)
        await self.begun(0)
        self.tasks.append(asyncio.create_task(self.watch()))

    async def begun(self, but):
        """Waits until not more than so many conversations have not begun."""
        until = time.monotonic() + HUNG
        while sum(talk.state == "begins" for talk in self.talks) > but:
            if time.monotonic() > until:
                raise Failed("conversations do not begin: %s" % self.last)
            await asyncio.sleep(0.05)

    async def race(self, session):
        """Has a session again and again, as another client does."""
        while not self.stopping:
            line = Line(self)
            try:
                await line.start()
                while not self.stopping:
                    answer = await line.ask("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
                    if "result" in answer:
                        self.counts["races won"] += 1
                        await line.ask("session/prompt", sessionId=session,
                                       prompt=[{"type": "text", "text": "10 10 %g" % random.uniform(0, 0.2)}])
                        break
                    self.counts["races lost"] += 1
                    await asyncio.sleep(random.uniform(0.1, 1))
            except (Over, OSError):
                await asyncio.sleep(0.5)
            finally:
                await line.end()

    async def watch(self):
        overlaps = self.place.folder / "sessions-goose/overlaps"
        while True:
            found = overlaps.read_text().splitlines() if overlaps.exists() else []
            for line in found[self.failed["owners"]:]:
                self.fail("owners", line)
            for talk in self.talks:
                if time.monotonic() - talk.since > HUNG:
                    what = talk.number, talk.state, HUNG, self.last
                    self.fail("hung", "conversation %d %s, but not for %d s; %s" % what)
                    talk.since = time.monotonic()
            await asyncio.sleep(0.5)

    async def stop(self):
        self.stopping = True
        done, late = await asyncio.wait(self.tasks[:-1], timeout=HUNG)
        self.tasks[-1].cancel()
        for task in late:
            task.cancel()
        if late:
            self.fail("hung", "%d conversations did not end" % len(late))
        for task in done:
            task.result()


class Network:
    """What is cut off by the kernel."""

    RULES = """add table inet cuts
add set inet cuts gone { type ipv4_addr; }
add chain inet cuts in { type filter hook input priority 0; }
add rule inet cuts in ip daddr @gone drop
add rule inet cuts in ip saddr @gone drop
"""

    def __init__(self):
        self.nft(self.RULES)

    def nft(self, text):
        done = subprocess.run(["nft", "-f", "-"], input=text, capture_output=True, text=True, timeout=30)
        if done.returncode:
            raise Failed("nft: " + done.stderr)

    def cut(self, addresses):
        self.nft("add element inet cuts gone { %s }\n" % ", ".join(addresses))

    def heal(self, addresses):
        self.nft("delete element inet cuts gone { %s }\n" % ", ".join(addresses))


def routes_of(server, servers):
    """The addresses between a server and the others."""
    pairs = {(server, other) for other in range(servers)} | {(other, server) for other in range(servers)}
    return sorted("127.3.%d.%d" % pair for pair in pairs)


class Scene:
    """The processes of a run, which are killed or cut off one after another."""

    def __init__(self, asked, folder, how="stays", hides=None):
        self.asked, self.chance, self.how = asked, random.Random(asked.seed), how
        self.mark, self.faults = isolation.Mark(), Counter()
        self.place = Place(asked.bin, folder, asked.servers)
        self.place.env.update(self.mark.env)
        self.balancers = [Balancer(self.place.ports, hides=hides)] if hides else []
        self.network = Network() if any(kind.startswith(("cut", "parts")) for kind in asked.kinds) else None

    def start(self):
        self.balancer = Balancer([], random=True)
        self.load = Load(self.asked, self.place, "ws://127.0.0.1:%d/agents/goose/acp" % self.balancer.port)
        self.hosts = [self.host(direct=number % 2 == 1) for number in range(self.asked.hosts)]
        if self.asked.old_host:
            self.place.host(binary=self.asked.old_host, options=self.options(), fault=[self.how])
        self.gateways = [self.gateway() for _ in range(self.asked.gateways)]
        self.place.known(self.place.hosts)
        for gateway in self.gateways:
            served(self.place, gateway)
        self.balancer.ports[:] = [gateway.web for gateway in self.gateways]

    def options(self):
        return [*LIMITS, *STOP, "--cluster-capacity", "10000"]

    def host(self, direct=False):
        number = self.place.hosts + 1
        servers, at = self.place.ports, address_of("host", number)
        if self.balancers:
            servers, at = [self.balancers[0].port], "127.0.0.1"
        elif "parts" in self.asked.kinds:
            # The last one has a server of its own.
            servers = servers[:1] if number == self.asked.hosts else servers[1:]
        url = self.place.url_of("", at, servers)
        host = self.again(lambda: self.place.host(direct=direct, options=self.options(), fault=[self.how], url=url))
        host.direct = direct
        return host

    def gateway(self):
        return self.again(lambda: self.place.gateway(options=LIMITS))

    def again(self, start):
        """Starts a relay as a supervisor does: one that finds no leader among the servers ends."""
        until = time.monotonic() + 60
        while True:
            try:
                return start()
            except OSError as error:
                if time.monotonic() > until:
                    raise
                self.load.counts["starts repeated"] += 1
                self.load.last = str(error)

    def agents(self, *hosts):
        """The processes of their agents."""
        names = ["cluster_agent.py %s " % host.agent for host in hosts]
        return [pid for pid, line in self.mark.programs() if any(name in line for name in names)]

    async def kill_server(self):
        number = self.chance.randrange(len(self.place.nats))
        self.place.nats[number].kill()
        self.place.nats[number].wait()
        await asyncio.sleep(self.chance.uniform(0, 5))
        self.place.nats[number] = self.place.server(number)
        await self.healthy()

    async def kill_gateway(self):
        number = self.chance.randrange(len(self.gateways))
        self.gateways[number].stop(signal.SIGKILL)
        await asyncio.sleep(self.chance.uniform(0, 3))
        self.gateways[number] = await asyncio.to_thread(self.gateway)
        await asyncio.to_thread(served, self.place, self.gateways[number])
        self.balancer.ports[:] = [gateway.web for gateway in self.gateways]

    async def kill_host(self, host=None):
        host = host or self.chance.choice(self.hosts)
        self.load.killed[host.agent] = begun = time.monotonic()
        host.stop(signal.SIGKILL)
        while left := await asyncio.to_thread(self.agents, host):
            if time.monotonic() - begun > SOON:
                what = len(left), host.agent, SOON
                self.load.fail("outlives", "%d agents of %s run %d s after it was killed" % what)
                break
            await asyncio.sleep(0.1)
        self.load.outlived.append(time.monotonic() - begun)
        await asyncio.sleep(self.chance.uniform(0, 3))
        self.hosts[self.hosts.index(host)] = await asyncio.to_thread(self.host, host.direct)

    async def kill_unwatched(self):
        """Kills a host after the watchdogs of its agents."""
        host = self.hosts[0]
        for pid, line in self.mark.processes():
            if " __watchdog " in line and "cluster_agent.py %s " % host.agent in line:
                os.kill(pid, signal.SIGKILL)
        await self.kill_host(host)

    async def kill_agent(self):
        """Kills the agents of a host that goes on."""
        for pid in self.agents(self.chance.choice(self.hosts)):
            os.kill(pid, signal.SIGKILL)

    async def freeze_host(self):
        """Stops a host (SIGSTOP) for longer than its leases: its agents have to end before these."""
        host = self.chance.choice(self.hosts)
        await self.fence([host], lambda: host.process.send_signal(signal.SIGSTOP),
                         lambda: host.process.send_signal(signal.SIGCONT))

    async def freeze_watched(self):
        """Stops a host and the watchdogs of its agents, which run longer than its leases then."""
        host = self.hosts[0]
        self.load.killed[host.agent] = time.monotonic()
        for pid, line in self.mark.processes():
            if " __watchdog " in line and "cluster_agent.py %s " % host.agent in line:
                os.kill(pid, signal.SIGSTOP)
        host.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(3 * LEASE)

    async def cut_server(self):
        # Those that are connected to it have no leader for this time, which is shorter than a lease.
        await self.cut(routes_of(self.chance.randrange(len(self.place.nats)), len(self.place.nats)), 6)
        await self.healthy()

    async def cut_gateway(self):
        await self.cut([address_of("gateway", self.chance.choice(self.gateways).number)], 40)

    async def cut_host(self):
        host = self.chance.choice(self.hosts)
        addresses = [address_of("host", host.number)]
        if self.chance.random() < 0.5:
            return await self.cut(addresses, 8)
        await self.fence_off([host], addresses)

    async def fence_off(self, hosts, addresses):
        """Cuts hosts off for longer than a lease."""
        await self.fence(hosts, lambda: self.network.cut(addresses), lambda: self.network.heal(addresses))

    async def fence(self, hosts, cut, heal):
        """Has hosts gone for longer than a lease: their agents have to end; they take new conversations later."""
        begun = time.monotonic()
        self.load.killed.update((host.agent, begun) for host in hosts)
        # Those that have sessions.
        files = [file for host in hosts for file in (self.place.folder / "sessions-goose").glob("*@" + host.agent)]
        before = {int(pid) for file in files for pid in file.read_text().split()}
        cut()
        while left := before & set(await asyncio.to_thread(self.agents, *hosts)):
            if time.monotonic() - begun > LEASE:
                self.load.fail("outlives", "%d agents run after a lease without the servers" % len(left))
                break
            await asyncio.sleep(0.2)
        self.load.outlived.append(time.monotonic() - begun)
        await asyncio.sleep(max(0, LEASE + 5 - (time.monotonic() - begun)))
        heal()
        await asyncio.sleep(SOON)
        for host in hosts:
            # What it has from now on is to live, unless it was killed meanwhile.
            if host in self.hosts:
                del self.load.killed[host.agent]

    async def cut(self, addresses, longest, shortest=0.5):
        self.network.cut(addresses)
        await asyncio.sleep(self.chance.uniform(shortest, longest))
        self.network.heal(addresses)

    async def healthy(self):
        begun = time.monotonic()
        while not all([await asyncio.to_thread(self.place.healthy, number) for number in range(len(self.place.nats))]):
            if time.monotonic() - begun > 60:
                raise Failed("the servers do not become healthy")
            await asyncio.sleep(0.2)

    async def trouble(self, kind):
        """One fault of a kind after another."""
        while True:
            await asyncio.sleep(self.chance.uniform(2, self.asked.calm))
            await getattr(self, kind)()
            self.faults[kind] += 1

    async def parts(self):
        """One cut after another."""
        first, second, alone = self.hosts[0], self.hosts[1], self.hosts[-1]
        cuts = [
            ("a host and the servers, 10 s", first, lambda: self.cut([address_of("host", first.number)], 10, 10)),
            ("a host and the servers, longer than a lease", first,
             lambda: self.fence_off([first], [address_of("host", first.number)])),
            ("a gateway and the servers, longer than a lease", None,
             lambda: self.cut([address_of("gateway", self.gateways[0].number)], 45, 45)),
            ("gateways and the address of a host", second,
             lambda: self.cut([address_of("direct", second.number)], 45, 45)),
            ("a host's own server and the others, longer than a lease", alone,
             lambda: self.fence_off([alone], routes_of(0, 3))),
        ]
        for what, cut_off, cut in cuts:
            turns, begun, self.load.outlived, self.load.errors = self.load.counts["turns"], time.monotonic(), [], []
            spread = Counter(talk.host for talk in self.load.talks)
            await cut()
            await self.healthy()
            told = "nothing ended"
            if self.load.outlived:
                told = "its agents ended within %.1f s, and %d of %d conversations had an error within %.1f s" % (
                    self.load.outlived[0], len(self.load.errors), spread[cut_off.agent], max(self.load.errors, default=0))
            print("  cut off: %s; after %.1f s: %d turns, %s" % (
                what, time.monotonic() - begun, self.load.counts["turns"] - turns, told), flush=True)
            self.faults["parts"] += 1

    async def run(self):
        begun = shown = time.monotonic()
        await self.load.start()
        print("%4d s  %d conversations are begun" % (time.monotonic() - begun, self.asked.conversations), flush=True)
        troubles = [asyncio.create_task(self.trouble(kind)) for kind in self.asked.kinds if kind != "parts"]
        if "parts" in self.asked.kinds:
            troubles.append(asyncio.create_task(self.parts()))
        until = time.monotonic() + 60 * self.asked.minutes
        while (now := time.monotonic()) < until and sum(self.load.failed.values()) < self.asked.enough:
            await asyncio.sleep(0.2)
            if any(task.done() for task in troubles):
                break
            for relay in self.hosts + self.gateways:
                if relay.process.poll() not in (None, -signal.SIGKILL):
                    self.load.fail("broken", "a relay has ended: %s" % relay.output[-5:])
                    until = 0
            if now - shown > 30:
                shown = now
                print("%4d s  %s; %d turns" % (now - begun, self.told(), self.load.counts["turns"]), flush=True)
        for task in troubles:
            task.cancel()
        for error in await asyncio.gather(*troubles, return_exceptions=True):
            if error is not None and not isinstance(error, asyncio.CancelledError):
                self.load.fail("broken", "the faults have ended: %r" % error)
        if self.network:
            self.network.nft("flush set inet cuts gone\n")
        if sum(self.load.failed.values()) < self.asked.enough:
            # A conversation that lost its host has to go on before the end.
            wait = time.monotonic() + LEASE + LATE
            while any(talk.killed for talk in self.load.talks) and time.monotonic() < wait:
                await asyncio.sleep(0.2)
            await self.load.stop()
        else:
            # Clients that do not end hold nothing up.
            for task in self.load.tasks:
                task.cancel()
            self.mark.kill_rest()
            await asyncio.wait(self.load.tasks, timeout=SOON)
        self.show(time.monotonic() - begun)

    def told(self):
        return ", ".join("%d times %s" % (self.faults[kind], kind.replace("_", " ")) for kind in self.asked.kinds)

    def show(self, took):
        load = self.load
        print(self.told())
        for what, count in [*load.counts.items(), *((kind, load.failed[kind]) for kind in KINDS)]:
            print("  %-28s %8d" % (what, count))
        for what, times in (("until the error", load.errors), ("until another host has the session", load.continued),
                            ("until no agent was left", load.outlived)):
            if times:
                print("  %-36s %5.1f s to %5.1f s, half of them within %.1f s" % (
                    what, min(times), max(times), sorted(times)[len(times) // 2]))
        print("took %.0f s" % took, flush=True)

    def stop(self):
        self.place.stop()
        self.mark.kill_rest()
        if self.network:
            self.network.nft("delete table inet cuts\n")


def one_run(asked, **changes):
    """Runs once, and returns what failed."""
    with tempfile.TemporaryDirectory(prefix="acp-cluster-") as folder:
        scene = Scene(asked, Path(folder), **changes)
        try:
            scene.start()
            asyncio.run(scene.run())
            if scene.load.failed and asked.enough > 100:
                for relay in scene.hosts + scene.gateways:
                    print("-- %s" % relay.process.args[1], *relay.output[-50:], sep="\n", file=sys.stderr)
            return scene.load.failed
        finally:
            scene.stop()


def passed(asked):
    failed = one_run(asked)
    print("FAILED, seed %d" % asked.seed if failed else "passed", flush=True)
    return not failed


# What is broken in a run, the faults in it, and what the check has to report.
PROOFS = {
    "an agent loses updates": (dict(how="lost"), [], "lost"),
    "an agent doubles updates": (dict(how="doubled"), [], "doubled"),
    "an agent reorders updates": (dict(how="reordered"), [], "reordered"),
    "an agent ends on a host that goes on": ({}, ["kill_agent"], "broken"),
    "agents without a watchdog": ({}, ["kill_unwatched"], "outlives"),
    "claims without the revision that they expect": (dict(hides=b"Nats-Expected-Last-Subject-Sequence"), [], "owners"),
    "a host that keeps its agents after its lease": ({}, ["freeze_watched"], "owners"),
}


def prove(asked):
    """The check passes what is right, and names what is not."""
    good = bool(asked.only) or passed(asked)
    for what, (changes, kinds, expected) in PROOFS.items():
        if asked.only not in what:
            continue
        one = argparse.Namespace(**{**vars(asked), "kinds": kinds, "enough": 1, "minutes": 2.0})
        failed = one_run(one, **changes)
        detected = set(failed) == {expected}
        print("%s: %s" % (what, "detected" if detected else "NOT DETECTED, %s" % dict(failed)), flush=True)
        good = good and detected
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", default="run", choices=MODES)
    parser.add_argument("--conversations", type=int, default=60)
    parser.add_argument("--sessions", type=int, default=6, help="sessions that are raced for")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--gateways", type=int, default=2)
    parser.add_argument("--calm", type=float, default=20, help="most seconds between two faults of a kind")
    parser.add_argument("--pause", type=float, default=0.3, help="about the seconds between two updates")
    parser.add_argument("--kinds", nargs="*", help="the kinds of faults")
    parser.add_argument("--cuts", action="store_true", help="cut them off from the servers, and do not kill them")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--only", default="", help="prove: those whose names contain this")
    parser.add_argument("--enough", type=int, default=1000, help="stop after so many failures")
    parser.add_argument("--bin", default=RELAY)
    parser.add_argument("--old-host", help="a further host, of another build")
    parser.set_defaults(**MODES[parser.parse_known_args()[0].mode])
    asked = parser.parse_args()
    if asked.kinds is None:
        asked.kinds = [("cut_" if asked.cuts else "kill_") + what for what in ("server", "gateway", "host")]
        asked.kinds += [] if asked.cuts else ["freeze_host"]
    if not prepared():
        return 0
    # So that a run that is ended stops what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print("seed %d" % asked.seed, flush=True)
    return 0 if (prove if asked.mode == "prove" else passed)(asked) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""cluster.py: agents on hosts behind gateways, on a real nats-server.

    cluster.py [--bin RELAY] [--only NAME]... [--servers N] [--permissions]

    client - acp-relay gateway - nats-server (or directly) - acp-relay serve --cluster - cluster_agent.py

RELAY is built with `--features cluster`. All of it runs in a network of its own. Prints a line for each
check, and what it measured. Without nats-server nothing is checked, with a notice.
"""
import argparse
import asyncio
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from random import sample

import isolation
from http_load import memory
from paths import PEERS, RELAY
from wires import Relay, dial

AGENT = Path(__file__).with_name("cluster_agent.py")
# install.sh unpacks it, where it is not installed.
NATS = shutil.which("nats-server", path="%s:/usr/sbin:%s" % (os.environ.get("PATH"), PEERS / "nats-server/usr/sbin"))
WAIT = 30


class Failed(Exception):
    """A check has failed."""


def require(condition, what):
    if not condition:
        raise Failed(what)


class Client:
    """An ACP client on a wire."""

    def __init__(self, wire):
        self.wire, self.next, self.updates = wire, 0, []

    def send(self, method, **params):
        self.next += 1
        request = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.wire.send(json.dumps(request).encode())
        return self.next

    def answer(self, wanted, seconds=WAIT):
        until = time.monotonic() + seconds
        while True:
            require(time.monotonic() < until, "no answer came, but %d updates" % len(self.updates))
            body = self.wire.receive(seconds)
            require(body is not None, "the connection has ended before the answer")
            message = json.loads(body)
            self.take(message)
            if message.get("id") == wanted and "method" not in message:
                return message

    def read(self, seconds):
        """Reads one message, if one comes in time."""
        try:
            message = json.loads(self.wire.receive(seconds) or "{}")
        except TimeoutError:
            return
        self.take(message)

    def take(self, message):
        update = (message.get("params") or {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            self.updates.append(update["content"]["text"])

    def call(self, method, **params):
        message = self.answer(self.send(method, **params))
        require("result" in message, "%s: %s" % (method, message.get("error")))
        return message["result"]

    def begin(self):
        found = self.call("initialize", protocolVersion=1, clientCapabilities={})
        self.agent = found["agentInfo"]["name"]
        return self

    def session(self):
        return self.call("session/new", cwd="/tmp", mcpServers=[])["sessionId"]

    def prompt(self, session, text):
        return self.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def turn(self, session, count=20, size=10, pause=0):
        self.updates.clear()
        self.answer(self.prompt(session, "%d %d %g" % (count, size, pause)))
        self.all_came(count, size)

    def all_came(self, count, size):
        wanted = ["%d %s" % (number, "x" * size) for number in range(count)]
        require(self.updates == wanted, "%d of %d updates came in order" % (len(self.updates), count))


class Balancer:
    """Passes TCP connections on to the first of several ports that takes them, or to a random one.

    `hides` is a text of clients that servers are not to see."""

    def __init__(self, ports, random=False, hides=None):
        self.ports, self.random, self.hides = ports, random, hides
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.sock.getsockname()[1]
        self.open, self.is_cut = set(), False
        threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True).start()

    async def _serve(self):
        self.loop = asyncio.get_running_loop()
        await asyncio.start_server(self._accept, sock=self.sock)
        await asyncio.Event().wait()

    def cut(self, is_cut=True):
        """Ends all connections, and refuses further ones."""
        self.is_cut = is_cut
        for end in list(self.open) if is_cut else ():
            self.loop.call_soon_threadsafe(end.abort)

    async def _accept(self, reads, writes):
        if self.is_cut:
            return writes.transport.abort()
        self.open.add(writes.transport)
        for port in sample(self.ports, len(self.ports)) if self.random else list(self.ports):
            try:
                ends = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 5)
            except OSError:
                continue
            await asyncio.gather(self._pump(reads, ends[1], self.hides), self._pump(ends[0], writes))
            break
        self.open.discard(writes.transport)
        writes.close()

    @staticmethod
    async def _pump(source, target, hides=None):
        rest = b""
        try:
            while data := await source.read(1 << 16):
                if hides:
                    data = (rest + data).replace(hides, b"X" * len(hides))
                    # What may be the beginning of it waits.
                    begun = next((n for n in range(len(hides) - 1, 0, -1) if data.endswith(hides[:n])), 0)
                    data, rest = data[:len(data) - begun], data[len(data) - begun:]
                target.write(data)
                await target.drain()
        except OSError:
            pass
        target.close()


class Place:
    """The servers, hosts and gateways of a run."""

    def __init__(self, binary, folder, servers, permissions=False):
        self.binary, self.folder, self.relays, self.nats = binary, folder, [], []
        self.hosts = self.gateways = 0
        self.others, self.more = [], ""
        self.env = {**isolation.environment(folder), "ACP_RELAY_STATE_DIR": str(folder / "state")}
        self.permissions, self.ca = permissions, ()
        if permissions:
            ends = ["127.0.0.1"] + [address_of(kind, number) for kind in ("host", "gateway") for number in range(1, 33)]
            self.tls = isolation.certificates(folder / "tls", *("IP:" + end for end in ends))
            self.ca = ("--cluster-ca", self.tls / "ca.pem")
        self.ports = [isolation.free_port() for _ in range(servers)]
        self.routes = [isolation.free_port() for _ in range(servers)]
        self.webs = [isolation.free_port() for _ in range(servers)]
        self.nats = [self.server(number) for number in range(servers)]
        for port, process in zip(self.ports, self.nats):
            require(isolation.wait_for_port(port, process, 10), "nats-server did not start")
        self.url = self.url_of("gateway")
        self.key, self.trust = folder / "gateway.seed", folder / "trust"
        self.trust.write_text(self.run("cluster", "key", self.key))
        if permissions:
            # Hosts may not create the buckets.
            self.cluster("status")

    def server(self, number, stores=True):
        """Starts a server, without JetStream if it does not store. Each uses another address for each of the others, so that it can be cut off."""
        config = 'listen: "0.0.0.0:%d"\nhttp: "127.0.0.1:%d"\nserver_name: n%d\n' % (
            self.ports[number], self.webs[number], number)
        if stores:
            config += 'jetstream { store_dir: "%s" }\n' % (self.folder / ("nats%d" % number))
        if len(self.ports) > 1:
            others = ", ".join('"nats://127.3.%d.%d:%d"' % (number, other, route)
                               for other, route in enumerate(self.routes) if other != number)
            # What they tell each other of themselves leads nowhere: only these routes are used, and can be cut.
            config += ('cluster { name: c, listen: "0.0.0.0:%d", advertise: "192.0.2.%d:%d", no_advertise: true, '
                       "routes: [%s] }\n" % (self.routes[number], number, self.routes[number], others))
        if self.permissions:
            # What the packaged file says of TLS and of accounts.
            example = self.run("assets", "print", "nats/cluster.conf")
            config += re.search(r"\ntls {.*?\n}\n", example, re.DOTALL)[0].replace(
                "/etc/nats/server.crt", str(self.tls / "cert.pem")).replace("/etc/nats/server.key", str(self.tls / "key.pem"))
            accounts = example[example.index("accounts {"):]
            user = accounts[accounts.index('      {\n        user: "host1"'):accounts.index("    ]\n  }\n}")]
            more = "".join(user.replace("host1", "host%d" % n).replace("HOST1", "HOST%d" % n) for n in range(2, 9))
            config += accounts.replace("    ]\n  }\n}", more + "    ]\n  }\n}")
        path = self.folder / ("nats%d.conf" % number)
        path.write_text(config + self.more)
        with open(self.folder / ("nats%d.log" % number), "ab") as log:
            return subprocess.Popen([NATS, "-c", path], stdout=log, stderr=log, env=self.env)

    def healthy(self, number):
        """Whether a server has what the others have."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/healthz" % self.webs[number], timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def url_of(self, user, at="127.0.0.1", servers=None):
        scheme, who = ("tls", "%s:%s@" % (user, user.upper())) if self.permissions else ("nats", "")
        return ",".join("%s://%s%s:%d" % (scheme, who, at, port) for port in servers or self.ports)

    def run(self, *words, good=True):
        done = subprocess.run([self.binary, *words], env=self.env, capture_output=True, text=True, timeout=60)
        require((done.returncode == 0) == good, "%s: %s" % (" ".join(map(str, words)), done.stderr))
        return done.stdout if good else done.stderr

    def cluster(self, *words, good=True):
        return self.run("cluster", *words, "--cluster", self.url, "--cluster-key", self.key, *self.ca, good=good)

    def start(self, *words, binary=None):
        relay = Relay([binary or self.binary, *words], self.env)
        self.relays.append(relay)
        # It prints all of them before it serves the first client.
        relay.ends = []
        until = time.monotonic() + WAIT
        while len(relay.ends) < words.count("--listen") and time.monotonic() < until:
            time.sleep(0.05)
            relay.ends = [line.split("listening on ")[1] for line in relay.output if "listening on" in line]
        relay.web = int(re.search(r":(\d+)", relay.ends[0])[1])
        return relay

    def host(self, name="goose", direct=False, options=(), url=None, fault=(), binary=None, agent=None,
             dialect="canonical"):
        """A host with an agent, by default one whose processes are named in the host's folder; or the lines of one."""
        self.hosts += 1
        number = self.hosts
        folder = self.folder / ("sessions-" + name)
        folder.mkdir(exist_ok=True)
        config = self.folder / ("host%d.toml" % number)
        agent = agent or "command = " + json.dumps(
            [sys.executable, str(AGENT), "%s%d" % (name, number), str(folder), *fault])
        config.touch(0o600)
        config.write_text('on-disconnect = "detach"\n[agents.%s]\n%s\ndialect = "%s"\n' % (name, agent, dialect))
        url = url or self.url_of("host%d" % number, address_of("host", number))
        words = ["serve", "--config", config, "--cluster", url, "--cluster-trust", self.trust,
                 "--cluster-name", "host%d" % number, *self.ca]
        at = "ws://%s:%d" % (address_of("direct", number), isolation.free_port())
        words += ["--listen", at]
        if direct:
            words += ["--cluster-address", at]
        host = self.start(*words, *options, binary=binary)
        host.number, host.at, host.agent = number, at, "%s%d" % (name, number)
        return host

    def gateway(self, *listen, options=(), direct="127.4.0.0/16"):
        """A gateway, which connects to hosts directly if they are in that network."""
        self.gateways += 1
        options = [*options, *(("--cluster-direct", direct) if direct else ())]
        listen = listen or ("http://127.0.0.1:0",)
        words = [word for at in listen for word in ("--listen", at)]
        gateway = self.start("gateway", "--cluster", self.url_of("gateway", address_of("gateway", self.gateways)),
                             "--cluster-key", self.key, *self.ca, *words, "--allow-host", "127.0.0.1", *options)
        gateway.number = self.gateways
        return gateway

    def connect(self, url, *options):
        relay = Relay([self.binary, "connect", url, *options], self.env, listens=False)
        self.relays.append(relay)
        client = Client(relay.stdio())
        client.relay = relay
        return client

    def known(self, count):
        """Waits until there are so many hosts."""
        until = time.monotonic() + 2 * WAIT
        while True:
            try:
                found = json.loads(self.cluster("hosts", "--json"))
            except Failed:
                # Servers that were stopped elect a leader first.
                require(time.monotonic() < until, "the hosts cannot be listed")
                continue
            if len(found) == count:
                return found
            require(time.monotonic() < until, "%d hosts are known, not %d" % (len(found), count))
            time.sleep(0.2)

    def stop(self):
        for relay in self.relays:
            relay.stop(signal.SIGKILL)
        for process in self.nats + self.others:
            process.kill()
            process.wait()


def address_of(kind, number):
    """Where a host or gateway connects to the servers, or where a host listens: each can be cut off."""
    return "127.%d.0.%d" % ({"host": 1, "gateway": 2, "direct": 4}[kind], number)


def address(gateway, scheme="ws", agent="goose"):
    return "%s://127.0.0.1:%d/agents/%s/acp" % (scheme, gateway.web, agent)


def served(place, gateway, agent="goose"):
    """Waits until a gateway knows an agent."""
    until = time.monotonic() + WAIT
    while agent not in urllib.request.urlopen("http://127.0.0.1:%d/registry.json" % gateway.web).read().decode():
        require(time.monotonic() < until, "the gateway does not offer the agent")
        time.sleep(0.1)


def transports(place):
    """A turn through a gateway over each transport, over NATS and directly."""
    gateway = place.gateway("http://127.0.0.1:0", "tcp://127.0.0.1:0", "unix:%s/g.sock" % place.folder)
    for direct in (False, True):
        host = place.host(direct=direct)
        place.known(1)
        served(place, gateway)
        _, tcp, unix = gateway.ends
        ways = {
            "connect": lambda: place.connect(address(gateway)),
            "connect --no-link": lambda: place.connect(address(gateway), "--no-link"),
            "connect http": lambda: place.connect(address(gateway, "http"), "--no-link"),
            "websocket": lambda: Client(dial(address(gateway))),
            "tcp": lambda: Client(dial(tcp)),
            "unix": lambda: Client(dial(unix)),
        }
        for name, way in ways.items():
            client = way().begin()
            require(client.agent == "goose%d" % host.number, "another agent: %s" % client.agent)
            session = client.session()
            client.turn(session, 200, 100)
            # Longer than a payload of NATS, 1 MiB.
            client.turn(session, 2, 3_000_000)
            client.wire.end()
            print("  %-18s %s" % (name, "directly" if direct else "over NATS"))
        said = [line for line in gateway.output if "not reached directly" in line]
        require(not said, said)
        require(host.stop() == 0, "the host exits with an error: %s" % host.output[-5:])
        place.known(0)


def killed_gateway(place):
    """Gateways are killed during turns of `connect`, and nothing is lost."""
    for direct in (False, True):
        host = place.host(direct=direct)
        gateways = [place.gateway(), place.gateway()]
        for gateway in gateways:
            served(place, gateway)
        balancer = Balancer([gateway.web for gateway in gateways])
        client = place.connect("ws://127.0.0.1:%d/agents/goose/acp" % balancer.port).begin()
        session = client.session()
        for round_ in range(4):
            client.updates.clear()
            sent = client.prompt(session, "400 1000 0.005")
            time.sleep(0.5)
            gateways[0].stop(signal.SIGKILL)
            client.answer(sent)
            client.all_came(400, 1000)
            gateways[0] = gateways.pop()
            gateways.append(place.gateway())
            served(place, gateways[1])
            balancer.ports[:] = [gateway.web for gateway in gateways]
        client.wire.end()
        require(client.relay.process.wait(WAIT) == 0, "connect: %s" % client.relay.output[-5:])
        print("  4 gateways killed, 1600 updates came, %s" % ("directly" if direct else "over NATS"))
        host.stop()
        for gateway in gateways:
            gateway.stop()
        place.known(0)


def rolling(place):
    """Gateways are stopped in order during a turn of `connect`: it goes on through another one."""
    host, gateways = place.host(), [place.gateway(), place.gateway()]
    for gateway in gateways:
        served(place, gateway)
    balancer = Balancer([gateway.web for gateway in gateways])
    client = place.connect("ws://127.0.0.1:%d/agents/goose/acp" % balancer.port).begin()
    session = client.session()
    sent = client.prompt(session, "600 100 0.005")
    time.sleep(0.5)
    code = gateways[0].stop()
    client.answer(sent)
    client.all_came(600, 100)
    require(code == 0, "the gateway exits with %s: %s" % (code, gateways[0].output[-5:]))
    client.wire.end()
    print("  600 updates came over a gateway that was stopped")


def placement(place):
    """Conversations are spread, a full host is not used, and none is left with −32053."""
    for direct in (True, False):
        spread(place, direct)


def spread(place, direct):
    hosts = [place.host(direct=direct, options=["--cluster-capacity", "2"]) for _ in range(2)]
    names, gateway = sorted(host.agent for host in hosts), place.gateway()
    served(place, gateway)
    place.known(2)
    clients = []
    for _ in range(4):
        client = Client(dial(address(gateway))).begin()
        client.session()
        clients.append(client)
    agents = sorted(client.agent for client in clients)
    require(agents == sorted(2 * names), "placed on %s" % agents)
    for last in (Client(dial(address(gateway))), place.connect(address(gateway))):
        error = last.answer(last.send("initialize", protocolVersion=1, clientCapabilities={})).get("error", {})
        require(error.get("code") == -32053, "the fifth gets %s" % error)
        print("  2 and 2 of 4, and then: %s" % error["message"])
    clients[0].wire.close()
    time.sleep(1)
    # A drained host gets none.
    until = time.monotonic() + WAIT
    place.cluster("drain", "host%d" % hosts[0].number)
    while not any(host["draining"] for host in place.known(2).values()):
        require(time.monotonic() < until, "no host drains")
    for relay in hosts + [gateway]:
        relay.stop()
    place.known(0)


def full(place):
    """A host that is full is not used, neither for a new conversation nor for a session that lives there."""
    options = ["--limit", "connections=2"]
    hosts, gateway = [place.host(options=options), place.host()], place.gateway()
    served(place, gateway)
    place.known(2)
    own = [Client(dial(hosts[0].at + "/agents/goose/acp")).begin() for _ in range(2)]
    session = own[0].session()
    # The gateway does not know yet that the first one is full.
    client = Client(dial(address(gateway))).begin()
    require(client.agent == hosts[1].agent, "placed on %s" % client.agent)
    error = client.answer(client.send("session/load", sessionId=session, cwd="/tmp", mcpServers=[]))["error"]
    require("lives on the host" in error["message"], error)
    print("  " + error["message"])
    client.turn(client.session())


def patient(place):
    """An agent that may take too long to stop gets no session, whatever its limits come from."""
    place.host(agent='command = %s\nlimits = { stop-grace = "10s" }' % json.dumps(
        [sys.executable, str(AGENT), "goose1", str(place.folder)]))
    gateway = place.gateway()
    served(place, gateway)
    client = Client(dial(address(gateway))).begin()
    error = client.answer(client.send("session/new", cwd="/tmp", mcpServers=[]))["error"]
    require("stop-grace" in error["message"], error)
    print("  " + error["message"])


def broken(place):
    """A gateway that cannot serve new agents says so once."""
    folder = place.folder / "recordings"
    gateway = place.gateway(options=["--record", folder])
    shutil.rmtree(folder, ignore_errors=True)
    folder.touch()
    place.host()
    time.sleep(3)
    said = [line for line in gateway.output if "cannot record" in line]
    require(len(said) == 1, "it says so %d times" % len(said))
    print("  " + said[0])


def copies(place):
    """The buckets have three copies, also when one of the servers is started last."""
    if len(place.nats) < 3 or place.permissions:
        print("  SKIPPED: only with --servers 3, and not with --permissions, where they exist before")
        return
    place.nats[2].kill()
    place.nats[2].wait()
    time.sleep(5)
    print("  " + place.cluster("status", good=False).strip())
    place.nats[2] = place.server(2)
    wait_until(lambda: place.healthy(2), WAIT, "the server is not healthy")
    place.cluster("status")
    with urllib.request.urlopen("http://127.0.0.1:%d/jsz?streams=1&config=1" % place.webs[0], timeout=5) as answer:
        streams = json.load(answer)["account_details"][0]["stream_detail"]
    counts = [stream["config"]["num_replicas"] for stream in streams]
    require(counts == [3, 3], counts)


def trusted(place):
    """A host refuses what a gateway asks that it does not trust, and bad input has a clear error."""
    place.host()
    other = place.folder / "other.seed"
    place.run("cluster", "key", other)
    fault = place.run("cluster", "drain", "host1", "--cluster", place.url, "--cluster-key", other, *place.ca, good=False)
    require("trusts" in fault, fault)
    print("  " + fault.strip())
    if place.ca:
        fault = place.run("cluster", "hosts", "--cluster", place.url, "--cluster-key", place.key, good=False)
        require("certificate" in fault, fault)
        print("  " + fault.strip())
    fault = place.run("gateway", "--cluster", "nats://127.0.0.1:1", "--cluster-key", place.key, good=False)
    print("  " + fault.strip())
    os.chmod(other, 0o644)
    fault = place.run("gateway", "--cluster", place.url, "--cluster-key", other, good=False)
    require("chmod" in fault, fault)
    print("  " + fault.strip())


def alive(session):
    """Whether the agent's process that began a session runs."""
    try:
        os.kill(int(session.split("-")[1]), 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, seconds, what):
    """Waits for a condition, and returns how long that took."""
    begun = time.monotonic()
    while not condition():
        require(time.monotonic() - begun < seconds, what)
        time.sleep(0.1)
    return time.monotonic() - begun


def living_sessions(place):
    """A client whose gateway was killed finds its living session through another one, on its host."""
    for direct in (False, True):
        hosts, gateways = [place.host(direct=direct) for _ in range(2)], [place.gateway(), place.gateway()]
        place.known(2)
        for gateway in gateways:
            served(place, gateway)
        first = Client(dial(address(gateways[0]))).begin()
        session = first.session()
        first.turn(session)
        wait_until(lambda: any(host["open"] for host in place.known(2).values()), WAIT, "no host is used")
        first.prompt(session, "100 10 0.02")
        time.sleep(0.5)
        gateways[0].stop(signal.SIGKILL)
        # Placed on the other host, which is less loaded, until it names its session.
        again = Client(dial(address(gateways[1]))).begin()
        require(again.agent != first.agent, "both are on %s" % first.agent)
        again.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        until = time.monotonic() + WAIT
        while not again.updates or not again.updates[-1].startswith("99 "):
            require(time.monotonic() < until, "the turn did not go on: %d updates" % len(again.updates))
            again.read(5)
        require(len(again.updates) == 120, "%d of 120 updates came" % len(again.updates))
        require(alive(session), "its agent has ended")
        counts = place.cluster("sessions")
        require(len(counts.split("\n")) == 2 and counts.split()[2] == "1", "the directory has %r" % counts)
        # `connect` stays where it is placed: the session is refused there, and its owner is named.
        other = place.connect(address(gateways[1])).begin()
        if other.agent != first.agent:
            error = other.answer(other.send("session/load", sessionId=session, cwd="/tmp", mcpServers=[]))["error"]
            require("lives on the host" in error["message"], error)
            print("  " + error["message"])
        other.wire.end()
        again.turn(session)
        again.wire.close()
        for relay in hosts + gateways[1:]:
            relay.stop()
        place.known(0)
        print("  found again with its turn, %s" % ("directly" if direct else "over NATS"))


def spelled(place):
    """A session that lives on another host is refused in a batch and in a user's dialect, too."""
    table = place.folder / "own.json"
    table.write_text(json.dumps({"format": 1, "dialect": "own", "title": "T", "method": {
        "open": {"is": "session/load", "members": {"chat": "sessionId"}}}}))
    hosts = [place.host(), place.host(dialect="auto"), place.host(options=["--table", table, "--client-dialect", "own"])]
    place.known(3)
    first, batches, own = (Client(dial(host.at + "/agents/goose/acp")) for host in hosts)
    session, rest = first.begin().session(), {"cwd": "/tmp", "mcpServers": []}
    batches.call("initialize", protocolVersion=2, capabilities={}, info={"name": "c", "version": "1"})
    request = {"jsonrpc": "2.0", "id": 9, "method": "session/resume", "params": {"sessionId": session, **rest}}
    batches.wire.send(json.dumps([request]).encode())
    refusals = [batches.wire.receive(WAIT).decode()]
    refusals.append(json.dumps(own.begin().answer(own.send("open", chat=session, **rest))))
    for refusal in refusals:
        require("lives on the host" in refusal, refusal)
        print("  " + refusal)
    require(not (place.folder / "sessions-goose/overlaps").exists(), "two agents had the session")
    first.turn(session)


def killed_host(place):
    """The requests of a host that is killed get one error each within the lease; the next host takes the session."""
    for direct in (False, True):
        host, gateway = place.host(direct=direct), place.gateway()
        served(place, gateway)
        ways = {"websocket": Client(dial(address(gateway))), "connect": place.connect(address(gateway))}
        sent, sessions = {}, {}
        for name, client in ways.items():
            sessions[name] = client.begin().session()
            sent[name] = client.prompt(sessions[name], "10000 10 0.01")
        time.sleep(1)
        begun = time.monotonic()
        host.stop(signal.SIGKILL)
        wait_until(lambda: not any(map(alive, sessions.values())), 10, "agents outlive their host")
        for name, client in ways.items():
            error = client.answer(sent[name], 90)["error"]
            print("  %-10s %4.1f s: %s %.70s" % (name, time.monotonic() - begun, error["code"], error["message"]))
        other = place.host(direct=direct)
        place.known(1)
        client = Client(dial(address(gateway))).begin()
        # Its claim may be valid for some seconds more, and the client is told to try again.
        load = {"sessionId": sessions["connect"], "cwd": "/tmp", "mcpServers": []}
        wait_until(lambda: "result" in client.answer(client.send("session/load", **load)), WAIT, "no host takes the session")
        client.turn(sessions["connect"], 0)
        client.wire.end()
        for relay in (other, gateway):
            relay.stop()
        place.known(0)


def fenced(place):
    """A host that does not reach NATS stops its agents before a lease is over, and no other host has them before."""
    host, gateway = place.host(direct=True, options=["--limit", "stop-grace=1s"]), place.gateway()
    served(place, gateway)
    client = place.connect(address(gateway)).begin()
    session = client.session()
    time.sleep(6)
    for process in place.nats:
        process.send_signal(signal.SIGSTOP)
    try:
        took = wait_until(lambda: not alive(session), 35, "the agent runs on")
    finally:
        for process in place.nats:
            process.send_signal(signal.SIGCONT)
    require(took < 30, "it took %.1f s" % took)
    code = client.relay.process.wait(WAIT)
    require(code == 69, "connect exits with %s" % code)
    print("  stopped after %.1f s: %s" % (took, client.relay.output[-1]))
    # The host goes on when NATS is there again, and the gateway when it has heard of that.
    place.known(1)

    def begins():
        try:
            return Client(dial(address(gateway))).begin()
        except Failed:
            # There is no agent yet: try again later.
            return False
    print("  clients are served again after %.1f s" % wait_until(begins, WAIT, "the gateway serves no client"))
    client = Client(dial(address(gateway))).begin()
    client.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
    client.turn(session)
    require(host.process.poll() is None, "the host has ended")


def revoked(place):
    """The agents of a client end within 5 s and one check when its token is revoked, wherever the client is; others go on."""
    options = ["--limit", "credential-check=2s"]
    place.host(options=["--limit", "stop-grace=1s"])
    other = None
    for where in ("there", "there without a link", "away", "away while its gateway is killed"):
        gateway = place.gateway(options=options)
        served(place, gateway)
        if other is None:
            other = place.connect(address(gateway), "--no-link").begin()
            others = other.session()
        balancer, token = Balancer([gateway.web]), place.folder / "token"
        token.unlink(missing_ok=True)
        place.run("token", "new", "eve", "--out", token)
        words = ["--no-link"] if where == "there without a link" else []
        client = place.connect("ws://127.0.0.1:%d/agents/goose/acp" % balancer.port, "--bearer-file", token, *words).begin()
        session = client.session()
        client.prompt(session, "100000 10 0.01")
        time.sleep(3)
        require(alive(session), "the agent has ended before")
        if where.startswith("away"):
            balancer.cut()
        if where.endswith("killed"):
            gateway.stop(signal.SIGKILL)
        place.run("token", "revoke", "eve")
        if where.endswith("killed"):
            gateway = place.gateway(options=options)
            served(place, gateway)
        print("  %-33s the agent ends after %.1f s" % (
            where, wait_until(lambda: not alive(session), 7, "the agent of a client that is %s runs on" % where)))
        if where == "there":
            code = client.relay.process.wait(WAIT)
            require(code == 77, "connect exits with %s" % code)
    require(alive(others), "another client's agent has ended")


def lost(place):
    """A client that is away while its host loses its session is told when it comes back, without JetStream, too."""
    for what in ("at once", "later"):
        host, gateway = place.host(options=["--limit", "stop-grace=1s"]), place.gateway()
        served(place, gateway)
        balancer = Balancer([gateway.web])
        # Else the client's next request connects to the agent again.
        options = ["--agent-restart", "never"] if what == "later" else []
        client = place.connect("ws://127.0.0.1:%d/agents/goose/acp" % balancer.port, *options).begin()
        session = client.session()
        if what == "later":
            sent = client.prompt(session, "100000 10 0.01")
        balancer.cut()
        # A majority of the servers goes; a single one begins without what it stores, as with a full disk.
        ended = list(range(1, len(place.nats))) or [0]
        for number in ended:
            place.nats[number].kill()
            place.nats[number].wait()
        if len(place.nats) == 1:
            place.nats[0] = place.server(0, stores=False)
        took = wait_until(lambda: not alive(session), 35, "the agent runs on")
        if what == "later":
            # Until the gateway has forgotten the host, and the host the link.
            time.sleep(25)
        begun = time.monotonic()
        balancer.cut(False)
        if what == "later":
            error = client.answer(sent, 60)["error"]
            require(error["code"] == -32050, error)
            print("  the open turn: %s" % error["message"])
        code, output = client.relay.process.wait(60), "\n".join(client.relay.output)
        require(code == 69, "connect exits with %s: %s" % (code, output))
        require(what == "later" or "session_lost" in output, output)
        print("  agent stopped after %.1f s; a client that is back %s ends %.1f s later: %s" % (
            took, what, time.monotonic() - begun, client.relay.output[-1]))
        for number in ended:
            place.nats[number].kill()
            place.nats[number].wait()
            place.nats[number] = place.server(number)
        for number in range(len(place.nats)):
            wait_until(lambda: place.healthy(number), 2 * WAIT, "a server is not healthy")
        for relay in (host, gateway):
            relay.stop()
        place.known(0)


def frozen(place):
    """The agents of a host that is stopped (SIGSTOP) end before another host can have their sessions."""
    host, gateway = place.host(), place.gateway()
    served(place, gateway)
    client = Client(dial(address(gateway))).begin()
    session = client.session()
    # The claim is renewed meanwhile.
    time.sleep(12)
    host.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    try:
        other = place.host()
        # Renewed at most 6 s before.
        took = wait_until(lambda: not alive(session), 35, "the agent runs on")
        print("  ended after %.1f s" % took)
        place.known(1)
        again = Client(dial(address(gateway))).begin()
        load = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
        wait_until(lambda: "result" in again.answer(again.send("session/load", **load)), WAIT, "no host takes the session")
        print("  the next host has the session after %.1f s" % (time.monotonic() - begun))
        require(again.agent == other.agent, "another agent: %s" % again.agent)
        again.turn(session, 3)
        require(not (place.folder / "sessions-goose/overlaps").exists(), "two agents had the session")
    finally:
        host.process.send_signal(signal.SIGCONT)
    place.known(2)
    require(host.process.poll() is None, "the host has ended")


def measured(place):
    """What a hop costs: a prompt with one update, over NATS and directly, beside the host alone."""
    for direct in (False, True):
        host, gateway = place.host(direct=direct), place.gateway()
        served(place, gateway)
        ways = {"host": host.at + "/agents/goose/acp", "gateway": address(gateway)}
        clients = {name: place.connect(url).begin() for name, url in ways.items()}
        sessions, times = {name: client.session() for name, client in clients.items()}, {name: [] for name in ways}
        # In turns, so that what else the machine does concerns both.
        for _ in range(2000):
            for name, client in clients.items():
                begun = time.perf_counter()
                client.answer(client.prompt(sessions[name], "1 10 0"))
                times[name].append(1000 * (time.perf_counter() - begun))
        near, far = (statistics.quantiles(times[name], n=100) for name in ways)
        print("  p50 %.2f ms more (%.2f ms beside %.2f ms), p99 %.2f ms more (%.2f ms beside %.2f ms), %s" % (
            far[49] - near[49], far[49], near[49], far[98] - near[98], far[98], near[98],
            "directly" if direct else "over NATS"))
        for client in clients.values():
            client.wire.end()
        host.stop()
        gateway.stop()
        place.known(0)


def crowded(place, count=2000):
    """The memory of a gateway with 2,000 conversations, over NATS and directly."""
    path = place.folder / "agents.sock"
    program = Path(__file__).with_name("http_load.py")
    agents = subprocess.Popen([sys.executable, program, "--agents", path], stdout=subprocess.PIPE)
    place.others.append(agents)
    agents.stdout.readline()
    limits = ["connections=8192", "per-principal=8192", "unauthenticated-sockets=8192", "http-sockets=8192"]
    limits = [word for limit in limits for word in ("--limit", limit)]
    for direct in (False, True):
        host = place.host(direct=direct, options=limits, agent='endpoint = "unix:%s"' % path)
        gateway = place.gateway(options=limits)
        served(place, gateway)
        empty, clients = memory(gateway.process.pid), []
        for number in range(count):
            client = Client(dial(address(gateway)))
            clients.append(client)
            client.call("initialize", protocolVersion=1, clientCapabilities={})
            client.call("session/new", cwd="/tmp", mcpServers=[], open="s%d" % number)
        full = memory(gateway.process.pid)
        print("  %d conversations: %.0f MiB, %.0f before; their host has %.0f MiB; %s" % (
            count, full, empty, memory(host.process.pid), "directly" if direct else "over NATS"))
        require(full <= 300, "a gateway takes more than 300 MiB")
        for client in clients:
            client.wire.close()
        host.stop(signal.SIGKILL)
        gateway.stop(signal.SIGKILL)
        place.cluster("hosts")
        wait_until(lambda: not json.loads(place.cluster("hosts", "--json")), 2 * WAIT, "the host is known on")


def written(session):
    """The bytes that the agent of a session has written."""
    return int(re.search(r"wchar: (\d+)", Path("/proc/%s/io" % session.split("-")[1]).read_text())[1])


def stalled(place):
    """A client that does not read pauses its own agent; others on its gateway and host go on."""
    for direct in (False, True):
        host, gateway = place.host(direct=direct), place.gateway()
        served(place, gateway)
        for name, way in {"websocket": lambda: Client(dial(address(gateway))),
                          "connect": lambda: place.connect(address(gateway))}.items():
            stuck, other = way().begin(), way().begin()
            session, count, size = stuck.session(), 100_000, 2000
            sent = stuck.prompt(session, "%d %d 0" % (count, size))
            others, turns, before, since = other.session(), 0, 0, time.monotonic()
            until = time.monotonic() + 4 * WAIT
            # Until nothing more was taken from its agent for some time.
            while time.monotonic() - since < 3:
                require(time.monotonic() < until, "the agent is not paused")
                other.turn(others)
                turns += 1
                if (now := written(session)) != before:
                    before, since = now, time.monotonic()
            require(before < count * size, "all of it was taken")
            print("  %-10s paused after %.0f MiB, another client had %d turns; gateway %.0f MiB, host %.0f MiB; %s" % (
                name, before / (1 << 20), turns, memory(gateway.process.pid), memory(host.process.pid),
                "directly" if direct else "over NATS"))
            stuck.answer(sent, 4 * WAIT)
            stuck.all_came(count, size)
            for client in (stuck, other):
                client.wire.end()
        host.stop()
        gateway.stop()
        place.known(0)


def slow(place):
    """Servers that drop what a slow gateway or host does not take: nothing is lost."""
    place.more = 'max_pending: 2000000\nwrite_deadline: "1s"\n'
    for number, process in enumerate(place.nats):
        process.kill()
        process.wait()
        place.nats[number] = place.server(number)
    for number in range(len(place.nats)):
        wait_until(lambda: place.healthy(number), 2 * WAIT, "a server is not healthy")
    host, gateway = place.host(), place.gateway()
    served(place, gateway)
    client = place.connect(address(gateway)).begin()
    session = client.session()
    for relay in (gateway, host):
        sent = client.prompt(session, "4000 10000 0.001")
        for _ in range(3):
            wait_until(lambda: client.read(WAIT) or client.updates, WAIT, "no update came")
            relay.process.send_signal(signal.SIGSTOP)
            time.sleep(4)
            relay.process.send_signal(signal.SIGCONT)
            count = len(client.updates)
            wait_until(lambda: client.read(WAIT) or len(client.updates) > count, WAIT, "it does not go on")
        client.answer(sent, 4 * WAIT)
        client.all_came(4000, 10000)
        client.updates.clear()
    logs = "".join(path.read_text() for path in place.folder.glob("nats*.log"))
    print("  8000 updates came; the servers named %d slow consumers" % logs.count("Slow Consumer"))


CHECKS = [transports, killed_gateway, rolling, placement, full, patient, broken, copies, trusted, living_sessions, spelled,
          killed_host, fenced, revoked, lost, frozen]
# Those that load the machine.
LOADING = [stalled, slow, measured, crowded]


def prepared():
    """Whether there is a nats-server; then this process is in a network of its own, and may open many files."""
    if not NATS:
        print("SKIPPED: there is no nats-server (install.sh)")
        return False
    if not isolation.leave_network():
        print("SKIPPED: the kernel allows no network of its own")
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    return True


def main():
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--bin", default=RELAY)
    asked.add_argument("--only", action="append")
    asked.add_argument("--servers", type=int, default=1)
    asked.add_argument("--quick", action="store_true", help="without what loads the machine")
    asked.add_argument("--permissions", action="store_true", help="TLS and the accounts of the packaged file")
    asked = asked.parse_args()
    if not prepared():
        return 0
    failed = 0
    for check in CHECKS + ([] if asked.quick else LOADING):
        if asked.only and check.__name__ not in asked.only:
            continue
        print("%s: %s" % (check.__name__, check.__doc__), flush=True)
        place = None
        with tempfile.TemporaryDirectory() as folder:
            try:
                place = Place(asked.bin, Path(folder), asked.servers, asked.permissions)
                check(place)
                print("  ok", flush=True)
            except (Failed, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
                failed += 1
                print("  FAILED: %s" % error)
                for relay in place.relays if place else ():
                    print("    %s: %s" % (relay.process.args[1], "\n      ".join(relay.output[-12:])))
            finally:
                if place:
                    place.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

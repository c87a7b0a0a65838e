#!/usr/bin/env python3
"""cluster_attack.py: what the NATS account of one host can do to the others, with the accounts of the packaged file.

    cluster_attack.py [--bin RELAY] [--only NAME]...

    client - acp-relay gateway - nats-server with TLS - acp-relay serve --cluster - cluster_agent.py
                                                      - this program, with the account of another host

RELAY is built with `--features cluster`. All of it runs in a network of its own. Prints a line for each check. Without
nats-server nothing is checked, with a notice.
"""
import argparse
import asyncio
import base64
import json
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from uuid import uuid4

from cluster import WAIT, Client, Failed, Place, address, alive, prepared, require, served, wait_until
from http_load import memory
from paths import RELAY
from wires import dial

# The account that was stolen.
STOLEN = "host3"


class Stolen:
    """A connection to the servers with the account of a host."""

    def __init__(self, place):
        self.errors, self.came, self.pongs, self.next = [], {}, 0, 0
        self.id = "%s.%s" % (STOLEN, uuid4().hex)
        self.answer_with, self.writer = None, None
        threading.Thread(target=asyncio.run, args=(self._run(place),), daemon=True).start()
        wait_until(lambda: self.writer, WAIT, "nats-server does not answer")
        who = {"user": STOLEN, "pass": STOLEN.upper(), "verbose": False, "pedantic": False, "tls_required": True,
               "headers": True, "lang": "python", "version": "1", "protocol": 1}
        self.write(b"CONNECT %s\r\n" % json.dumps(who).encode())
        self.write(b"SUB _INBOX_acp_%s.a.* 1\r\nSUB acp.host.%s.* 2\r\n" % (STOLEN.encode(), STOLEN.encode()))
        self.settle()

    def write(self, data):
        self.loop.call_soon_threadsafe(self.writer.write, data)

    async def _run(self, place):
        self.loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_connection("127.0.0.1", place.ports[0], limit=1 << 24)
        # What the server says of itself comes before TLS.
        await reader.readline()
        await writer.start_tls(ssl.create_default_context(cafile=str(place.tls / "ca.pem")), server_hostname="127.0.0.1")
        self.writer = writer
        try:
            while line := await reader.readline():
                words = line.decode().split()
                if words[0] == "PING":
                    writer.write(b"PONG\r\n")
                elif words[0] == "PONG":
                    self.pongs += 1
                elif words[0] == "-ERR":
                    self.errors.append(line.decode().strip())
                elif words[0] in ("MSG", "HMSG"):
                    payload = (await reader.readexactly(int(words[-1]) + 2))[:-2]
                    if words[2] == "1":
                        self.came[words[1]] = payload
                    elif self.answer_with:
                        # A request of a gateway.
                        self.publish(words[3], self.answer_with)
        except (OSError, asyncio.IncompleteReadError):
            pass

    def publish(self, subject, payload, reply=""):
        self.write(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), reply.encode(), len(payload), payload))

    def settle(self):
        """Waits until the server has read what was written."""
        wanted = self.pongs + 1
        self.write(b"PING\r\n")
        wait_until(lambda: self.pongs >= wanted, WAIT, "nats-server does not answer")

    def request(self, subject, payload=b"", seconds=WAIT):
        """The answer; None if it is forbidden, or none comes."""
        self.next += 1
        reply, before = "_INBOX_acp_%s.a.%d" % (STOLEN, self.next), len(self.errors)
        self.publish(subject, payload, reply)
        until = time.monotonic() + seconds
        while reply not in self.came:
            if len(self.errors) > before or time.monotonic() > until:
                return None
            time.sleep(0.005)
        return json.loads(self.came.pop(reply))

    def put(self, host=None, **record):
        """Writes a record of a host, and returns the server's answer."""
        record = {"v": 1, "agents": ["stolen"], "capacity": 100, "open": 0, **record}
        return self.request("$KV.acp_hosts.%s" % (host or self.id), json.dumps(record).encode())

    def claims(self):
        """All entries of the bucket of sessions, read by their numbers."""
        state = self.request("$JS.API.STREAM.INFO.KV_acp_sessions")["state"]
        for number in range(state["first_seq"], state["last_seq"] + 1):
            found = self.request("$JS.API.STREAM.MSG.GET.KV_acp_sessions", json.dumps({"seq": number}).encode())
            if found and "message" in found:
                yield found["message"]["subject"], base64.b64decode(found["message"].get("data", ""))


def offered(gateway):
    """The names of the agents that a gateway offers."""
    with urllib.request.urlopen("http://127.0.0.1:%d/registry.json" % gateway.web, timeout=WAIT) as answer:
        return [agent["name"] for agent in json.load(answer)["agents"]]


def said(gateway, what):
    return [line for line in list(gateway.output) if what in line]


def names(place):
    """A host with very many agents hides none of another host."""
    place.host()
    gateway = place.gateway(direct=None)
    served(place, gateway)
    stolen = Stolen(place)
    stolen.put(agents=["%06d" % number for number in range(1000)])
    wait_until(lambda: any("000" in name for name in offered(gateway)), WAIT, "its agents are not offered")
    # Others of its name have as many.
    for part in range(1, 4):
        stolen.put("%s.%s" % (STOLEN, uuid4().hex), agents=["%06d" % (number + 1000 * part) for number in range(1000)])
    wait_until(lambda: len(offered(gateway)) == 1000, WAIT, "fewer are offered")
    found = offered(gateway)
    require("goose" in found, "the agent of another host is not offered, of %d" % len(found))
    wait_until(lambda: said(gateway, "not all agents"), WAIT, "it is not said that agents are left out")
    client = Client(dial(address(gateway))).begin()
    client.turn(client.session())
    for agents in (["%d" % number for number in range(1001)], ["x" * 65]):
        require("seq" in stolen.put(agents=agents), "the record is not written")
    wait_until(lambda: said(gateway, "a host is not used"), WAIT, "it is not said that a record is refused")
    require(len(said(gateway, "a host is not used")) == 1, "it is said again")
    print("  %s" % said(gateway, "a host is not used")[0])
    client.turn(client.session())


def takeover(place):
    """A session whose claim another host has read and copied goes on, and is found on its host."""
    hosts, gateway, other = [place.host(), place.host()], place.gateway(direct=None), place.gateway(direct=None)
    place.known(2)
    served(place, gateway)
    served(place, other)
    first = Client(dial(address(gateway))).begin()
    session = first.session()
    first.turn(session)
    owner = next(host for host in hosts if host.agent == first.agent)
    known = next(name for name in place.known(2) if name.startswith("host%d." % owner.number))
    stolen = Stolen(place)
    # For two renewals and the time in which its agent would be stopped.
    until, copied = time.monotonic() + 15, 0
    while time.monotonic() < until:
        for subject, payload in stolen.claims():
            copied += 1
            text = payload.decode().replace(known, stolen.id).replace('"held":false', '"held":true')
            stolen.publish(subject, text.encode())
            stolen.publish(subject.replace(known, stolen.id), text.encode())
        stolen.settle()
        require(alive(session), "the agent of a host whose claim was overwritten has ended")
        first.turn(session, 3)
        time.sleep(0.5)
    gateway.stop(signal.SIGKILL)
    # Placed on the host that is less loaded, until it names its session.
    again = Client(dial(address(other))).begin()
    require(again.agent != first.agent, "both are on %s" % first.agent)
    again.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
    again.turn(session)
    require(alive(session), "the agent has ended")
    violations = [line for line in stolen.errors if "$KV.acp_sessions.%s" % known in line]
    require(violations, "the claim of another host was written: %s" % stolen.errors[-3:])
    print("  %d copies of its claim, and the session goes on; %s" % (copied, violations[0]))
    # Nor is anything else of the others written or read.
    for subject in ("$KV.acp_hosts.%s" % known, "acp.host.%s" % known, "acp.c.host1.%s.h" % uuid4().hex,
                    "$JS.API.STREAM.MSG.GET.KV_acp_hosts", "$JS.API.STREAM.PURGE.KV_acp_sessions",
                    "$JS.API.STREAM.DELETE.KV_acp_sessions", "$JS.API.STREAM.UPDATE.KV_acp_sessions",
                    "$JS.API.CONSUMER.CREATE.KV_acp_sessions"):
        require(stolen.request(subject, b"{}") is None, "%s is allowed" % subject)
        require(any(subject in line for line in stolen.errors), "%s is not refused" % subject)


def addresses(place):
    """A gateway connects to no address that its operator has not listed."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def accept():
            while True:
                try:
                    stream, _ = listener.accept()
                except OSError:
                    return
                asked.append(stream.recv(1 << 16))
                stream.close()
        threading.Thread(target=accept, daemon=True).start()
        port, stolen = listener.getsockname()[1], Stolen(place)
        stolen.answer_with = json.dumps({"pass": "planted"}).encode()
        for direct in (None, "127.4.0.0/16"):
            gateway = place.gateway(direct=direct)
            for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
                stolen.put(address="ws://%s:%d/internal/admin" % (host, port))
                served(place, gateway, "stolen")
                client = Client(dial(address(gateway, agent="stolen")))
                error = client.answer(client.send("initialize", protocolVersion=1, clientCapabilities={}))["error"]
                require(not asked, "the gateway has connected, with %r" % asked[:1])
                require(error["code"] == -32053, error)
            print("  " + said(gateway, "not reached directly")[0])
            require(len(said(gateway, "not reached directly")) == 1, "it is said again")
            gateway.stop()
        # And to one that is listed.
        gateway = place.gateway(direct="127.0.0.0/24")
        stolen.put(address="ws://127.0.0.1:%d" % port)
        served(place, gateway, "stolen")
        client = Client(dial(address(gateway, agent="stolen")))
        client.answer(client.send("initialize", protocolVersion=1, clientCapabilities={}))
        require(asked, "the gateway has not connected to an address that is listed")


def filled(place):
    """Records of one host, long or many, do not fill gateways."""
    place.host()
    gateway = place.gateway(direct=None)
    served(place, gateway)
    stolen, before = Stolen(place), memory(gateway.process.pid)
    stolen.put()
    answers = []
    for length, count in ((796 << 10, 40), (60 << 10, 400)):
        for _ in range(count):
            answer = stolen.put("%s.%s" % (STOLEN, uuid4().hex), labels={"fill": "x" * length})
            answers.append((length, bool(answer and "error" not in answer)))
    stolen.put(agents=["last"])
    served(place, gateway, "last")
    after = memory(gateway.process.pid)
    require(after - before < 12, "the gateway has %.0f MiB more" % (after - before))
    # The servers do not take those that are too long.
    require(all(taken == (length < 1 << 16) for length, taken in answers), answers)
    print("  %.0f MiB, and %.0f before; %s" % (after, before, said(gateway, "a host is not used")[0]))
    client = Client(dial(address(gateway))).begin()
    client.turn(client.session())


CHECKS = [names, takeover, addresses, filled]


def main():
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--bin", default=RELAY)
    asked.add_argument("--only", action="append")
    asked = asked.parse_args()
    if not prepared():
        return 0
    failed = 0
    for check in CHECKS:
        if asked.only and check.__name__ not in asked.only:
            continue
        print("%s: %s" % (check.__name__, check.__doc__), flush=True)
        place = None
        with tempfile.TemporaryDirectory() as folder:
            try:
                place = Place(asked.bin, Path(folder), 1, permissions=True)
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

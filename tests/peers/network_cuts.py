#!/usr/bin/env python3
"""network_cuts.py: the kernel takes the network away under HTTP and WebSocket, at random moments.

    network_cuts.py [--relay BINARY] [--server BINARY] [--cuts N] [--seed N]

    editor - acp-relay connect = http or ws = acp-relay serve - agent

All of it stands in a network namespace of its own, with loopback alone. A cut is one of two, to
the client's or the server's sockets, or to both: `ss -K`, after which a side is told that its
socket is gone, and an nftables rule that drops what comes, after which nobody is told anything. N / 2
cuts are under HTTP, in conversations that go on all the time; some last longer than the sockets
may be silent, so that both sides have to notice by themselves. Each of these has to end in a
resumed stream: every request has one answer, a result or an error that says why, and no update is
missing, comes twice or out of order. N / 2 are under WebSocket, where `connect` has to answer all
that is open and to end, and the server has to stop the agent, both within `WITHIN` of a silence
that they are not told of. At last the network stays away under HTTP for good, with the same
demands. Prints the seed. Where the kernel refuses a namespace, `ss -K` or nftables, it says
`skipped` and why. Not here: cuts that need no rights (remote_cuts.py).
"""
import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import isolation
from paths import RELAY
from remote_agents import Editor
from remote_cuts import AGENT, Fault, heard, last_answers, stop, turns
from wires import Relay

# The shortest silence that tells (the default is 25 s), and what both sides may take to notice:
# keepalive asks once a second, and all lanes share the machine.
SILENCE = 2
WITHIN = 8
# How long the server waits for an HTTP client, as by default: longer than the longest cut that has to
# end well, and than a client takes to come back, whose tries are up to some seconds apart.
GRACE = 30
LIMITS = ["--limit", "tcp-user-timeout=%d" % SILENCE, "--limit", "handshake=2"]
LANES = 4
SIDES = ("client", "server", "both")


def command(*words, text=None):
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise Fault("%s: %s" % (" ".join(words), done.stderr.strip()))
    return done.stdout


class Wire:
    """The connections to one port, and how they are cut."""

    def __init__(self, port):
        self.port = port

    def kill(self, side):
        """Ends the sockets that are open now. Says how many there were."""
        of = {"client": "dport = :%d", "server": "sport = :%d", "both": "( dport = :%d or sport = :%d )"}[side]
        killed = command("ss", "-KHtn", "state", "established", of.replace("%d", str(self.port)))
        return len(killed.splitlines())

    def drop(self, side):
        """From now on nothing comes to that side, until `restore`."""
        rules = {"client": ["sport"], "server": ["dport"], "both": ["sport", "dport"]}[side]
        lines = ["add chain inet cuts p%d { type filter hook input priority 0; }" % self.port]
        lines += ["add rule inet cuts p%d tcp %s %d counter drop" % (self.port, rule, self.port) for rule in rules]
        command("nft", "-f", "-", text="\n".join(lines) + "\n")

    def restore(self):
        command("nft", "-f", "-", text="flush chain inet cuts p%d\ndelete chain inet cuts p%d\n" % (self.port, self.port))


class Lane:
    """One `serve`, and what is held and cut there."""

    def __init__(self, asked, number, folder):
        self.asked, self.number = asked, number
        self.chance = random.Random("%d %d" % (asked.seed, number))
        self.log = open(folder / ("connect%d.stderr" % number), "wb")
        self.mark = isolation.Mark()
        listen = ["--listen", "http://127.0.0.1:0", "--allow-host", "127.0.0.1", *LIMITS,
                  "--limit", "http-grace=%d" % GRACE, "--limit", "stop-grace=1"]
        self.server = Relay([asked.server, "serve", *listen, "--", sys.executable, "-c", AGENT],
                            {**isolation.environment(folder), **self.mark.env})
        self.wire = Wire(self.server.port)

    def editor(self, scheme):
        editor = Editor([self.asked.relay, "connect"], "%s://127.0.0.1:%d" % (scheme, self.wire.port), LIMITS, self.log)
        editor.until(editor.ask("initialize", protocolVersion=1), editor.ask("session/new"))
        return editor

    def agents(self):
        return [pid for pid, line in self.mark.programs() if "session/prompt" in line and " serve " not in line]

    def until_no_agent(self, since, within):
        while self.agents():
            if time.monotonic() - since > within:
                raise Fault("the server keeps the agent of a client that has been gone for %d s" % within)
            time.sleep(0.05)
        return time.monotonic() - since

    def http(self, cuts):
        """Cuts that end in a resumed stream."""
        editor = self.editor("http")
        over, failed = threading.Event(), []
        told = {"killed": 0, "sockets": 0, "dropped": 0, "longer": 0}

        def cutting():
            try:
                for _ in range(cuts):
                    time.sleep(self.chance.uniform(0.02, 0.3))
                    side = self.chance.choice(SIDES)
                    if self.chance.random() < 0.5:
                        told["killed"] += 1
                        told["sockets"] += self.wire.kill(side)
                        continue
                    longer = self.chance.random() < 0.3
                    told["dropped"] += 1
                    told["longer"] += longer
                    self.wire.drop(side)
                    time.sleep(SILENCE + self.chance.uniform(0.5, 2) if longer else self.chance.uniform(0.01, 0.8))
                    self.wire.restore()
                    if longer:
                        # Two of these in a row would be one that is longer than the grace.
                        time.sleep(self.chance.uniform(0.5, 3))
            except Exception as fault:
                failed.append(fault)
            over.set()
        cutter = threading.Thread(target=cutting, daemon=True)
        cutter.start()
        try:
            results, errors = turns(editor, lambda: not over.is_set())
            cutter.join()
            # What was cut last is resumed too.
            done, late = turns(editor, iter([True, True, True, False]).__next__)
            if failed:
                raise failed[0]
            editor.end()
        finally:
            over.wait(60)
            stop(editor)
        return {**told, "results": results + done, "errors": errors + late}

    def websocket(self, cuts):
        """Cuts that end in answers, the end of `connect` and of the agent."""
        told = {"killed": 0, "dropped": 0, "results": 0, "errors": 0, "noticed": 0.0, "stopped": 0.0}
        for _ in range(cuts):
            editor = self.editor("ws")
            kind, side = self.chance.choice(("killed", "dropped")), self.chance.choice(SIDES)
            told[kind] += 1
            try:
                waiting = {editor.ask("session/prompt", sessionId="s", turn=turn) for turn in range(2)}
                # What is still in the pipe to a relay that ends is not answered (kill.py).
                heard(editor)
                time.sleep(self.chance.uniform(0, 0.05))
                since = time.monotonic()
                if kind == "killed":
                    if not self.wire.kill(side):
                        raise Fault("ss -K found no socket")
                else:
                    self.wire.drop(side)
                    if self.chance.random() < 0.5:
                        waiting.add(editor.ask("session/prompt", sessionId="s", turn=2))
                done, failed = last_answers(editor, waiting)
                noticed = time.monotonic() - since
                stopped = self.until_no_agent(since, WITHIN)
                if noticed > WITHIN:
                    raise Fault("connect ended %.1f s after the network" % noticed)
                told["results"] += done
                told["errors"] += failed
                told["noticed"] = max(told["noticed"], noticed)
                told["stopped"] = max(told["stopped"], stopped)
            finally:
                if kind == "dropped":
                    self.wire.restore()
                stop(editor)
        return told

    def for_good(self):
        """The network does not come back under HTTP."""
        editor = self.editor("http")
        try:
            waiting = {editor.ask("session/prompt", sessionId="s", turn=turn) for turn in range(2)}
            since = time.monotonic()
            self.wire.drop("both")
            waiting.add(editor.ask("session/prompt", sessionId="s", turn=2))
            stopped = self.until_no_agent(since, WITHIN + GRACE)
            _, errors = last_answers(editor, waiting)
            return {"stopped": stopped, "noticed": time.monotonic() - since, "errors": errors}
        finally:
            self.wire.restore()
            stop(editor)


def able(asked):
    """Whether this kernel lets us; else why not."""
    for tool in ("ss", "nft"):
        if not shutil.which(tool):
            return "there is no %s (Debian: iproute2, nftables)" % tool
    if not isolation.leave_network():
        return "the kernel refuses a network of its own"
    try:
        command("nft", "add", "table", "inet", "cuts")
    except Fault as fault:
        return "nftables do not work here: %s" % fault
    from socket import create_connection, create_server
    with create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with create_connection(("127.0.0.1", port)) as near, listener.accept()[0]:
            near.settimeout(2)
            try:
                Wire(port).kill("both")
                near.recv(1)
            except ConnectionError:
                return None
            except (OSError, Fault):
                pass
    return "the kernel does not end sockets for ss -K (CONFIG_INET_DIAG_DESTROY)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--server", default=RELAY)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    asked = parser.parse_args()
    if refusal := able(asked):
        print("skipped: %s" % refusal)
        return 0
    print("seed %d, silence %d s" % (asked.seed, SILENCE), flush=True)
    share = -(-asked.cuts // 2 // LANES)
    faults = []
    with tempfile.TemporaryDirectory(prefix="acp-relay-network-") as folder:
        def lane(number, *jobs):
            here = None
            try:
                here = Lane(asked, number, Path(folder))
                for name, job in jobs:
                    told = job(here)
                    print("lane %d  %-9s  %s" % (number, name, ", ".join(
                        "%s %s" % (what, round(n, 1)) for what, n in told.items())), flush=True)
            except Exception as fault:
                faults.append(fault)
                print("FAIL  lane %d  %s: %s" % (number, type(fault).__name__, fault), flush=True)
                if here:
                    print("-- serve%d" % number, *here.server.said, sep="\n", file=sys.stderr)
            finally:
                if here:
                    here.server.stop()
                    here.mark.kill_rest()
        cuts = [("http", lambda one: one.http(share)), ("websocket", lambda one: one.websocket(share))]
        lanes = [threading.Thread(target=lane, args=(number, *cuts)) for number in range(LANES)]
        lanes.append(threading.Thread(target=lane, args=(LANES, ("for good", Lane.for_good))))
        for one in lanes:
            one.start()
        for one in lanes:
            one.join()
        if faults:
            for path in sorted(Path(folder).glob("*.stderr")):
                if tail := path.read_text(errors="replace")[-1500:]:
                    print("-- %s\n%s" % (path.name, tail), file=sys.stderr)
    print("%d cuts, %s" % (2 * share * LANES, "all well" if not faults else "%d lanes failed" % len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

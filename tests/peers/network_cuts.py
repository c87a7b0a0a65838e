#!/usr/bin/env python3
"""network_cuts.py: the kernel cuts the network of HTTP and WebSocket links, at random moments.

    network_cuts.py [--relay BINARY] [--server BINARY] [--cuts N] [--seed N]

    editor - acp-relay connect = http or ws = acp-relay serve - agent

All processes are in their own network namespace, with only loopback. A cut affects the client's
sockets, the server's, or both, and is one of two: `ss -K`, after which a side gets an error from its
socket, and an nftables rule that drops incoming packets, after which no side gets an error. N / 2
cuts are of HTTP, during conversations; some last longer than the silence limit of the sockets, so
that both sides have to detect them. Each of these has to end in a resumed stream: every request
gets one answer, a result or an error with a reason, and no update is missing, duplicated or out of
order. N / 2 are of WebSocket, where `connect` has to answer all open requests and exit, and the
server has to stop the agent, both within `WITHIN` s of a silent cut. Finally HTTP is cut
permanently, with the same requirements. Prints the seed. Links that are
resumed are elsewhere (link.py). Where the kernel refuses a namespace,
`ss -K` or nftables, it prints `skipped` and the reason. Not here: cuts without privileges
(remote_cuts.py).
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
from remote_cuts import AGENT, Fault, last_answers, receive, stop, turns
from wires import Relay

# The silence limit (the default is 25 s), and the time in which both sides have to detect a cut:
# keepalive probes are sent once a second, and all lanes share the machine.
SILENCE = 2
WITHIN = 8
# How long the server waits for an HTTP client, as by default: longer than the longest cut that has to
# be resumed, and than a reconnect, whose tries are up to some seconds apart.
GRACE = 30
LIMITS = ["--no-link", "--limit", "tcp-user-timeout=%d" % SILENCE, "--limit", "handshake=2"]
LANES = 4
SIDES = ("client", "server", "both")


def command(*words, text=None):
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise Fault("%s: %s" % (" ".join(words), done.stderr.strip()))
    return done.stdout


class Network:
    """The connections to one port, which can be cut."""

    def __init__(self, port):
        self.port = port

    def kill(self, side):
        """Closes the sockets that are open now; returns their number."""
        of = {"client": "dport = :%d", "server": "sport = :%d", "both": "( dport = :%d or sport = :%d )"}[side]
        killed = command("ss", "-KHtn", "state", "established", of.replace("%d", str(self.port)))
        return len(killed.splitlines())

    def drop(self, side):
        """Drops all incoming packets of that side, until `restore`."""
        rules = {"client": ["sport"], "server": ["dport"], "both": ["sport", "dport"]}[side]
        lines = ["add chain inet cuts p%d { type filter hook input priority 0; }" % self.port]
        lines += ["add rule inet cuts p%d tcp %s %d counter drop" % (self.port, rule, self.port) for rule in rules]
        command("nft", "-f", "-", text="\n".join(lines) + "\n")

    def restore(self):
        command("nft", "-f", "-", text="flush chain inet cuts p%d\ndelete chain inet cuts p%d\n" % (self.port, self.port))


class Lane:
    """One `serve`, its conversations and their cuts."""

    def __init__(self, asked, number, folder):
        self.asked, self.number = asked, number
        self.chance = random.Random("%d %d" % (asked.seed, number))
        self.log = open(folder / ("connect%d.stderr" % number), "wb")
        self.mark = isolation.Mark()
        listen = ["--listen", "http://127.0.0.1:0", "--allow-host", "127.0.0.1", *LIMITS,
                  "--limit", "http-grace=%d" % GRACE, "--limit", "stop-grace=1"]
        self.server = Relay([asked.server, "serve", *listen, "--", sys.executable, "-c", AGENT],
                            {**isolation.environment(folder), **self.mark.env})
        self.network = Network(self.server.port)

    def editor(self, scheme):
        editor = Editor([self.asked.relay, "connect"], "%s://127.0.0.1:%d" % (scheme, self.network.port), LIMITS, self.log)
        editor.until(editor.ask("initialize", protocolVersion=1), editor.ask("session/new"))
        return editor

    def agents(self):
        return [pid for pid, line in self.mark.programs() if "session/prompt" in line and " serve " not in line]

    def until_no_agent(self, since, within):
        while self.agents():
            if time.monotonic() - since > within:
                raise Fault("the server keeps the agent of a client that has been disconnected for %d s" % within)
            time.sleep(0.05)
        return time.monotonic() - since

    def http(self, cuts):
        """Cuts after which the stream is resumed."""
        editor = self.editor("http")
        over, failed = threading.Event(), []
        counts = {"killed": 0, "sockets": 0, "dropped": 0, "longer": 0}

        def cutting():
            try:
                for _ in range(cuts):
                    time.sleep(self.chance.uniform(0.02, 0.3))
                    side = self.chance.choice(SIDES)
                    if self.chance.random() < 0.5:
                        counts["killed"] += 1
                        counts["sockets"] += self.network.kill(side)
                        continue
                    longer = self.chance.random() < 0.3
                    counts["dropped"] += 1
                    counts["longer"] += longer
                    self.network.drop(side)
                    time.sleep(SILENCE + self.chance.uniform(0.5, 2) if longer else self.chance.uniform(0.01, 0.8))
                    self.network.restore()
                    if longer:
                        # Two of these in a row would be one cut that is longer than the grace.
                        time.sleep(self.chance.uniform(0.5, 3))
            except Exception as fault:
                failed.append(fault)
            over.set()
        cutter = threading.Thread(target=cutting, daemon=True)
        cutter.start()
        try:
            results, errors = turns(editor, lambda: not over.is_set())
            cutter.join()
            # The last cut is resumed too.
            done, late = turns(editor, iter([True, True, True, False]).__next__)
            if failed:
                raise failed[0]
            editor.end()
        finally:
            over.wait(60)
            stop(editor)
        return {**counts, "results": results + done, "errors": errors + late}

    def websocket(self, cuts):
        """Cuts after which open requests are answered, and `connect` and the agent end."""
        counts = {"killed": 0, "dropped": 0, "results": 0, "errors": 0, "noticed": 0.0, "stopped": 0.0}
        for _ in range(cuts):
            editor = self.editor("ws")
            kind, side = self.chance.choice(("killed", "dropped")), self.chance.choice(SIDES)
            counts[kind] += 1
            try:
                waiting = {editor.ask("session/prompt", sessionId="s", turn=turn) for turn in range(2)}
                # A request still in the pipe to a relay that exits is not answered (kill.py).
                receive(editor)
                time.sleep(self.chance.uniform(0, 0.05))
                since = time.monotonic()
                if kind == "killed":
                    if not self.network.kill(side):
                        raise Fault("ss -K found no socket")
                else:
                    self.network.drop(side)
                    if self.chance.random() < 0.5:
                        waiting.add(editor.ask("session/prompt", sessionId="s", turn=2))
                done, failed = last_answers(editor, waiting)
                noticed = time.monotonic() - since
                stopped = self.until_no_agent(since, WITHIN)
                if noticed > WITHIN:
                    raise Fault("connect exited %.1f s after the cut" % noticed)
                counts["results"] += done
                counts["errors"] += failed
                counts["noticed"] = max(counts["noticed"], noticed)
                counts["stopped"] = max(counts["stopped"], stopped)
            finally:
                if kind == "dropped":
                    self.network.restore()
                stop(editor)
        return counts

    def permanent(self):
        """HTTP with a network that stays cut."""
        editor = self.editor("http")
        try:
            waiting = {editor.ask("session/prompt", sessionId="s", turn=turn) for turn in range(2)}
            since = time.monotonic()
            self.network.drop("both")
            waiting.add(editor.ask("session/prompt", sessionId="s", turn=2))
            stopped = self.until_no_agent(since, WITHIN + GRACE)
            _, errors = last_answers(editor, waiting)
            return {"stopped": stopped, "noticed": time.monotonic() - since, "errors": errors}
        finally:
            self.network.restore()
            stop(editor)


def refusal():
    """Why this kernel cannot run the test; None when it can."""
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
                Network(port).kill("both")
                near.recv(1)
            except ConnectionError:
                return None
            except (OSError, Fault):
                pass
    return "the kernel does not close sockets for ss -K (CONFIG_INET_DIAG_DESTROY)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--server", default=RELAY)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    asked = parser.parse_args()
    if reason := refusal():
        print("skipped: %s" % reason)
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
                    counts = job(here)
                    print("lane %d  %-9s  %s" % (number, name, ", ".join(
                        "%s %s" % (what, round(n, 1)) for what, n in counts.items())), flush=True)
            except Exception as fault:
                faults.append(fault)
                print("FAIL  lane %d  %s: %s" % (number, type(fault).__name__, fault), flush=True)
                if here:
                    print("-- serve%d" % number, *here.server.output, sep="\n", file=sys.stderr)
            finally:
                if here:
                    here.server.stop()
                    here.mark.kill_rest()
        cuts = [("http", lambda one: one.http(share)), ("websocket", lambda one: one.websocket(share))]
        lanes = [threading.Thread(target=lane, args=(number, *cuts)) for number in range(LANES)]
        lanes.append(threading.Thread(target=lane, args=(LANES, ("permanent", Lane.permanent))))
        for one in lanes:
            one.start()
        for one in lanes:
            one.join()
        if faults:
            for path in sorted(Path(folder).glob("*.stderr")):
                if tail := path.read_text(errors="replace")[-1500:]:
                    print("-- %s\n%s" % (path.name, tail), file=sys.stderr)
    print("%d cuts, %s" % (2 * share * LANES, "all lanes passed" if not faults else "%d lanes failed" % len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

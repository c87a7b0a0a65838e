#!/usr/bin/env python3
"""link.py: the resumable link between two relays, while its network fails.

    link.py [--faults N] [--messages N] [--links N] [--minutes M] [--seed N] [--bin RELAY]
    link.py gate          four minutes, for the debug build
    link.py long          100 000 faults, 10 million messages, 200 links, at most an hour: the release build
    link.py variants      two builds with broken receivers have to fail, and the right one to pass
    link.py prove         tests the check itself, over WebSockets without a link

    clients = unix = acp-relay serve (near) - ws - PROXY - ws - acp-relay serve (far) = unix = agents

The clients, the agents and the proxy are in this process. On every link a conversation follows
another one; both sides send numbered messages of known content (link_talks.py) while the proxy makes
faults (link_faults.py), in a fixed proportion to the messages. A run passes when each message
arrived once, unchanged and in order, each conversation ended by its own side only, and nothing waited
for a minute. Prints the seed, and a table at the end.
"""
import argparse
import asyncio
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation
from link_faults import GLOBAL, KINDS, Meddler, Network
from link_talks import Load
from paths import PEERS, RELAY, ROOT
from wires import Relay

# Faults that a run without a given number makes for so many messages.
RATIO = 100
MANY = 1 << 40
MODES = {
    "run": {},
    "gate": dict(minutes=4.0, links=80, liveness=1.0, least=500),
    "long": dict(minutes=60.0, links=200, faults=100_000, messages=10_000_000, least=100_000),
    "variants": dict(minutes=0.5, links=40, liveness=1.0),
    "prove": dict(minutes=0.5, links=8, faults=0, messages=40_000),
}
# Above what so many links and attachments need. The end of a conversation is told as long as it takes.
LIMITS = {"stop-grace": "120s", "connections": 65536, "per-principal": 65536, "agent-starts": 1 << 30,
          "unauthenticated-sockets": 65536, "handshake": "5s", "failures": 65536}
# Changes of whole messages that `prove` makes, and how the check names them.
PROOFS = {"drop": "lost", "double": "doubled", "swap": "reordered", "change": "changed", "reset": "broken"}


def start_relays(asked, folder, port):
    """The two relays, with a token between them, and the path for clients and the one of agents."""
    paths, env = [folder / "near.sock", folder / "agents.sock"], {}
    for name in ("near", "far"):
        env[name] = {**isolation.environment(folder), "ACP_RELAY_STATE_DIR": str(folder / name)}
    limits = {**LIMITS, "http-keepalive": "%dms" % (asked.liveness * 1000)}
    limits = [word for pair in limits.items() for word in ("--limit", "%s=%s" % pair)]
    limits += ["--client-dialect", "canonical", "--agent-dialect", "canonical", *asked.options]
    subprocess.run([asked.bin, "token", "new", "near", "--out", folder / "token"], env=env["far"], check=True,
                   stdout=subprocess.DEVNULL)
    far = Relay([asked.bin, "serve", "--listen", "ws://127.0.0.1:0/acp", "--allow-host", "127.0.0.1", "--require-token", *limits,
                 "--agent", "unix:%s" % paths[1]], env["far"])
    try:
        (folder / "near.toml").write_text('[agents.far]\nendpoint = "ws://127.0.0.1:%d/acp"\nbearer-file = "token"\n' % port)
        near = Relay([asked.bin, "serve", "--config", folder / "near.toml", "--listen", "unix:%s" % paths[0], *limits],
                     env["near"])
    except OSError:
        far.stop()
        raise
    return near, far, *map(str, paths)


class Pace:
    """Keeps faults and messages in proportion."""

    def __init__(self, asked):
        self.asked, self.slack, self.since = asked, max(20, asked.links), time.monotonic()
        self.ratio = asked.messages / asked.faults if asked.faults else 0
        self.net = self.load = None

    def faults(self):
        """How many faults there should have been by now."""
        if not self.ratio:
            return 0
        rate = self.asked.rate * (time.monotonic() - self.since)
        return min(self.asked.faults, sum(self.load.received.values()) / self.ratio + self.slack, rate)

    def messages(self):
        """How many messages may have been sent by now."""
        if not self.ratio:
            return self.asked.messages
        return min(self.asked.messages, (self.net.done + self.slack) * self.ratio)


async def run(asked, folder, alter=None):
    """One run: the load, the network, and what is wrong besides single messages."""
    chance, pace, wrong = random.Random(asked.seed), Pace(asked), []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: wrong.append("%s: %r" % (context["message"], context.get("exception"))))
    port = isolation.free_port()
    near, far, clients, agents = start_relays(asked, folder, port)
    try:
        load = pace.load = Load(asked.seed, asked.links, clients, agents, pace.messages)
        net = pace.net = Network(chance, port, far.port, asked.liveness, [near.process.pid, far.process.pid], pace.faults,
                                 load.stick, alter)
        await net.listen()
        await load.start()
        # Half a minute without faults before a conversation counts as hung.
        faults = asyncio.create_task(net.drive(lambda: load.stalled > 30))
        begun = shown = time.monotonic()
        until = begun + 60 * asked.minutes
        while (now := time.monotonic()) < until and sum(load.received.values()) < asked.messages:
            await asyncio.sleep(0.1)
            if relay := next((relay for relay in (near, far) if relay.process.poll() is not None), None):
                wrong.append("a relay has ended with %s: %s" % (relay.process.returncode, relay.output[-5:]))
                break
            if sum(load.failed.values()) >= asked.enough or faults.done():
                break
            if now - shown > 30:
                shown = now
                print("%4d s  %d faults, %d messages" % (now - begun, net.done, sum(load.received.values())), flush=True)
        if faults.done():
            wrong.append("the proxy has failed: %r" % faults.exception())
        faults.cancel()
        await net.heal()
        try:
            await asyncio.wait_for(load.stop(), 90)
        except TimeoutError:
            wrong.append("%d conversations did not end" % len(load.talks))
        took = time.monotonic() - begun
        memory = [memory_of(relay.process.pid) for relay in (near, far)]
    finally:
        codes = [relay.stop() for relay in (near, far)]
    if any(codes):
        wrong.append("the relays exit with %s" % codes)
    if sum(load.failed.values()) < asked.enough:
        wrong += shortfall(asked, net, load)
    show(load, net, took, memory)
    for fault in wrong[:10]:
        print("FAIL  %s" % fault)
    if (wrong or load.failed) and asked.enough > 100:
        for name, relay in (("near", near), ("far", far)):
            print("-- %s" % name, *relay.output[-20:], sep="\n", file=sys.stderr)
    return load, wrong


def shortfall(asked, net, load):
    """What was not reached in the time."""
    if (both := sum(load.received.values())) < (asked.messages if asked.messages < MANY else 1):
        yield "only %d messages were sent" % both
    if net.done < (asked.faults if asked.faults < MANY // RATIO else asked.least):
        yield "only %d faults were made" % net.done
    if not asked.faults and load.repeated:
        yield "%d openings failed without a fault" % load.repeated
    if asked.faults and not net.attachments["resumed"]:
        yield "no link was resumed"


def memory_of(pid):
    try:
        with open("/proc/%d/status" % pid) as status:
            return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


def show(load, net, took, memory):
    """The table."""
    for kind in [*KINDS, *GLOBAL]:
        print("  %-22s %8d" % (kind, net.faults[kind]))
    both = sum(load.received.values())
    counts = {"faults": net.done, "late bytes delivered": net.delivered, "connections": net.connections}
    counts.update(("attachments, " + kind, count) for kind, count in sorted(net.attachments.items()))
    counts.update(("refused, " + kind, count) for kind, count in sorted(net.refusals.items()))
    counts.update({"messages to agents": load.received["c"], "messages to clients": load.received["a"],
                   "answers among them": load.answers, "conversations": load.over, "openings repeated": load.repeated})
    counts.update((kind, load.failed[kind]) for kind in Load.KINDS)
    for what, count in counts.items():
        print("%-24s %8d" % (what, count))
    for line in load.openings[:3]:
        print("an opening failed with %s" % line.decode(errors="replace"))
    print("took %.0f s, %.0f messages/s, %.1f faults/s; the relays' largest memory is %d and %d MiB" % (
        took, both / took, net.done / took, *memory))


def one_run(asked, alter=None):
    """Runs once; the load and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="acp-link-") as folder:
        return asyncio.run(run(asked, Path(folder), alter))


def passed(asked):
    load, wrong = one_run(asked)
    good = not wrong and not load.failed
    print("passed" if good else "FAILED, seed %d" % asked.seed, flush=True)
    return good


def prove(asked):
    """The check passes what is right, and names what is not."""
    shown = subprocess.run([asked.bin, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    asked.options += ["--no-link"] if "--no-link" in shown else []
    good = passed(asked)
    for number, (how, expected) in enumerate(PROOFS.items()):
        asked.enough = 1
        load, wrong = one_run(asked, Meddler(how, ("near", "far")[number % 2], 20))
        detected = expected in load.failed and not wrong
        print("%s: %s" % (how, "detected" if detected else "NOT DETECTED, %s %s" % (dict(load.failed), wrong)), flush=True)
        good = good and detected
    return good


def variants(asked):
    """Builds the two broken receivers, which must fail; the right one passes."""
    folder, good = PEERS / "link", passed(asked)
    folder.mkdir(parents=True, exist_ok=True)
    asked.enough = 100
    for name in ("unchecked", "implicit"):
        # Only the relay is compiled with the fault, not its dependencies.
        wrapper = folder / ("rustc-" + name)
        wrapper.write_text("#!/bin/sh\nrustc=$1\nshift\nexec \"$rustc\" \"$@\" --cfg 'link_fault=\"%s\"'\n" % name)
        wrapper.chmod(0o755)
        env = {**os.environ, "RUSTC_WORKSPACE_WRAPPER": str(wrapper), "CARGO_TARGET_DIR": str(folder),
               "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_INCREMENTAL": "0"}
        build = ["cargo", "build", "--quiet", "--locked", "--offline", "--bin", "acp-relay"]
        subprocess.run(build, env=env, cwd=ROOT, check=True)
        asked.bin = str(folder / ("acp-relay-" + name))
        shutil.copy2(folder / "debug/acp-relay", asked.bin)
        load, _ = one_run(asked)
        found = {kind: count for kind, count in load.failed.items() if kind in ("lost", "doubled", "reordered", "changed")}
        print("the variant `%s`: %s" % (name, "fails, as it must" if found else "IS NOT DETECTED"), flush=True)
        good = good and bool(found)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", default="run", choices=MODES)
    parser.add_argument("--faults", type=int, help="that many, or one for %d messages" % RATIO)
    parser.add_argument("--messages", type=int)
    parser.add_argument("--links", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, help="the most faults a second; half as many as links")
    parser.add_argument("--liveness", type=float, default=0.5, help="seconds of silence before a ping")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--bin", default=RELAY)
    parser.add_argument("--enough", type=int, default=1000, help="stop after so many failures")
    parser.add_argument("--option", dest="options", action="append", default=[], help="a further option of both relays")
    chosen = parser.parse_known_args()[0].mode
    parser.set_defaults(**{"least": 0, **MODES[chosen]})
    asked = parser.parse_args()
    asked.rate = asked.rate or asked.links / 2
    if asked.messages is None:
        asked.messages = asked.faults * RATIO if asked.faults else MANY
    if asked.faults is None:
        asked.faults = asked.messages // RATIO
    asked.bin = str(Path(asked.bin).resolve())
    if not os.access(asked.bin, os.X_OK):
        sys.exit("no relay at %s; build it, or name it with --bin" % asked.bin)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    isolation.leave_network()
    print("seed %d, %d links, a ping after %.1f s" % (asked.seed, asked.links, asked.liveness), flush=True)
    return 0 if {"prove": prove, "variants": variants}.get(asked.mode, passed)(asked) else 1


if __name__ == "__main__":
    sys.exit(main())

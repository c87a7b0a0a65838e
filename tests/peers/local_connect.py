#!/usr/bin/env python3
"""local_connect.py: what `connect -- COMMAND` costs: its start, its memory, and its time while idle.

    local_connect.py [--relay BINARY] [--count 200] [--seconds 60] [--starts 50]

Three rows, each with its limit; the exit code is 1 when one is exceeded:
  start     median time in ms from the start of the relay to the first message from its agent (`cat`,
            which returns the client's message), at most 5
  resident  VmRSS of the relay after that message in MiB, at most 9; its watchdog is shown beside it
  idle      per cent of one processor that --count such relays and their watchdogs use together over
            --seconds, less than 1
Needs the release build. Other work on the machine makes the first row larger.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

from paths import RELAY

MESSAGE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'


def start(relay):
    """A relay that has forwarded a message, and how long that took in ms."""
    began = time.monotonic()
    process = subprocess.Popen([relay, "connect", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    process.stdin.write(MESSAGE)
    process.stdin.flush()
    process.stdout.readline()
    return process, (time.monotonic() - began) * 1000


def stop(processes):
    for process in processes:
        process.stdin.close()
    for process in processes:
        process.wait(20)
        process.stdout.close()


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as listed:
        return [int(child) for child in listed.read().split()]


def resident(pid):
    with open("/proc/%d/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def ticks(pids):
    """Processor time of these processes, in clock ticks."""
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=str(RELAY))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--starts", type=int, default=50)
    options = parser.parse_args()

    times = []
    for _ in range(options.starts):
        process, took = start(options.relay)
        times.append(took)
        stop([process])

    relays = [start(options.relay)[0] for _ in range(options.count)]
    try:
        watchdogs = [child for relay in relays for child in children(relay.pid)]
        time.sleep(3)
        memory = statistics.median(resident(relay.pid) for relay in relays)
        beside = statistics.median(resident(pid) for pid in watchdogs)
        pids = [relay.pid for relay in relays] + watchdogs
        before = ticks(pids)
        time.sleep(options.seconds)
        used = (ticks(pids) - before) / os.sysconf("SC_CLK_TCK")
    finally:
        stop(relays)

    rows = [("start", statistics.median(times), 5, "ms"),
            ("resident", memory, 9, "MiB (its watchdog: %.1f)" % beside),
            ("idle", 100 * used / options.seconds, 1, "%% of a processor, %d relays" % options.count)]
    for name, value, limit, unit in rows:
        print("%-9s %6.2f of %d %s" % (name, value, limit, unit))
    return int(any(value > limit for _, value, limit, _ in rows))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""systemd.py: systemd's checks of the units, and its socket activation in front of a relay.

    systemd.py [--relay BINARY]

`systemd-analyze verify` must report nothing about src/assets/systemd, and `security` must rate the
service's exposure below 2.0 of 10. `systemd-socket-activate` owns the socket of acp-relay.socket: it
starts the relay for the first client, which is served; a configuration without a listener for that
socket must be reported as an error. Without systemd's programs it is skipped, with a notice.
"""
import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation
from paths import RELAY

HERE = Path(__file__).resolve().parent
UNITS = HERE.parents[1] / "src/assets/systemd"
# In tenths.
EXPOSURE = 20
AGENT = """
import sys
for line in sys.stdin:
    print('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"woken","version":"1"}}}', flush=True)
"""
CONFIG = """
[agents.one]
command = ["python3", "-c", '''%s''']
[[listeners]]
endpoint = "http://%s"
"""
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def verify(folder, relay):
    """Yields the findings of systemd-analyze."""
    units = folder / "units"
    units.mkdir()
    for unit in UNITS.iterdir():
        # `verify` checks that the program exists; use the tested one.
        (units / unit.name).write_text(unit.read_text().replace("/usr/bin/acp-relay", relay))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units.iterdir()], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # Ignore findings about the machine's other units.
    output = [line for line in done.stdout.split("\n") if "acp-relay" in line]
    if output:
        yield "verify: %s" % "; ".join(output)
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=%d" % EXPOSURE,
                           UNITS / "acp-relay.service"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    level = re.search(r"Overall exposure level.*?: (\S+)", done.stdout)
    print("      exposure %s" % (level[1] if level else "unknown"))
    if done.returncode != 0:
        yield "security: %s" % done.stdout[-300:]


def activate(folder, relay, at, served):
    """Runs the relay behind systemd's socket; returns answer, exit code and the relay's output."""
    config = folder / "acp-relay.toml"
    config.write_text(CONFIG % (AGENT, served))
    config.chmod(0o600)
    env = {**isolation.environment(folder), "ACP_RELAY_STATE_DIR": str(folder / "state")}
    host, port = at.rsplit(":", 1)
    output = open(folder / "output", "w+")
    holder = subprocess.Popen(["systemd-socket-activate", "-l", at, "-E", "ACP_RELAY_STATE_DIR", relay, "serve",
                               "--config", config], env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        until = time.monotonic() + 10
        while "Listening on" not in (folder / "output").read_text() and time.monotonic() < until:
            time.sleep(0.05)
        try:
            done = subprocess.run([relay, "connect", "http://%s:%s" % (host, port)], env=env, text=True,
                                  input=json.dumps(HELLO) + "\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=20)
            answer = done.stdout
        except subprocess.TimeoutExpired:
            answer = ""
        if holder.poll() is None:
            holder.send_signal(signal.SIGTERM)
        return answer, holder.wait(20), (folder / "output").read_text()
    finally:
        if holder.poll() is None:
            holder.kill()
            holder.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    relay = str(Path(parser.parse_args().relay).resolve())
    if not shutil.which("systemd-analyze") or not shutil.which("systemd-socket-activate"):
        print("skip  systemd's programs are not installed")
        return 0
    if not isolation.leave_network():
        print("skip  the socket's port needs a network namespace, which is not available here")
        return 0
    wrong = []
    with tempfile.TemporaryDirectory(prefix="acp-systemd-") as folder:
        folder = Path(folder)
        wrong += verify(folder, relay)
        at = re.search(r"^ListenStream=(\S+)", (UNITS / "acp-relay.socket").read_text(), re.M)[1]
        answer, code, output = activate(folder, relay, at, at)
        if '"woken"' not in answer or code != 0:
            wrong.append("socket activation: %r, exited with %d: %s" % (answer, code, output))
        answer, code, output = activate(folder, relay, at, "127.0.0.1:9001")
        if '"woken"' in answer or code == 0 or at not in output:
            wrong.append("a socket without a listener: %r, exited with %d: %s" % (answer, code, output))
    print("\n".join("FAIL  %s" % fault for fault in wrong) or "ok    the units, and systemd's sockets")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

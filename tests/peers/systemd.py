#!/usr/bin/env python3
"""systemd.py: what systemd says of the units, and its own socket activation in front of a relay.

    systemd.py [--relay BINARY]

`systemd-analyze verify` has to have nothing to say of src/assets/systemd, and `security` has to
find the service less exposed than 2.0 of 10. `systemd-socket-activate` holds the socket of
acp-relay.socket: it starts the relay when the first client comes, which is served; a configuration
without a listener there is a fault that is told. A machine without systemd's programs is told so.
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
    """What systemd-analyze has to say."""
    units = folder / "units"
    units.mkdir()
    for unit in UNITS.iterdir():
        # The program is not installed here, and looked for.
        (units / unit.name).write_text(unit.read_text().replace("/usr/bin/acp-relay", relay))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units.iterdir()], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # What it says of units that this machine has besides is not of ours.
    said = [line for line in done.stdout.split("\n") if "acp-relay" in line]
    if said:
        yield "verify: %s" % "; ".join(said)
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=%d" % EXPOSURE,
                           UNITS / "acp-relay.service"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    level = re.search(r"Overall exposure level.*?: (\S+)", done.stdout)
    print("      exposure %s" % (level[1] if level else "unknown"))
    if done.returncode != 0:
        yield "security: %s" % done.stdout[-300:]


def activate(folder, relay, at, served):
    """The relay behind systemd's socket: what an editor is answered, and what the relay said."""
    config = folder / "acp-relay.toml"
    config.write_text(CONFIG % (AGENT, served))
    config.chmod(0o600)
    env = {**isolation.environment(folder), "ACP_RELAY_STATE_DIR": str(folder / "state")}
    host, port = at.rsplit(":", 1)
    said = open(folder / "said", "w+")
    holder = subprocess.Popen(["systemd-socket-activate", "-l", at, "-E", "ACP_RELAY_STATE_DIR", relay, "serve",
                               "--config", config], env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        until = time.monotonic() + 10
        while "Listening on" not in (folder / "said").read_text() and time.monotonic() < until:
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
        return answer, holder.wait(20), (folder / "said").read_text()
    finally:
        if holder.poll() is None:
            holder.kill()
            holder.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    relay = str(Path(parser.parse_args().relay).resolve())
    if not shutil.which("systemd-analyze") or not shutil.which("systemd-socket-activate"):
        print("skip  systemd's programs are not installed here")
        return 0
    if not isolation.leave_network():
        print("skip  the socket's port wants a network of its own, which is not to be had here")
        return 0
    wrong = []
    with tempfile.TemporaryDirectory(prefix="acp-systemd-") as folder:
        folder = Path(folder)
        wrong += verify(folder, relay)
        at = re.search(r"^ListenStream=(\S+)", (UNITS / "acp-relay.socket").read_text(), re.M)[1]
        answer, code, said = activate(folder, relay, at, at)
        if '"woken"' not in answer or code != 0:
            wrong.append("socket activation: %r, ended with %d: %s" % (answer, code, said))
        answer, code, said = activate(folder, relay, at, "127.0.0.1:9001")
        if '"woken"' in answer or code == 0 or at not in said:
            wrong.append("a socket that nobody serves: %r, ended with %d: %s" % (answer, code, said))
    print("\n".join("FAIL  %s" % fault for fault in wrong) or "ok    the units, and systemd's sockets")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

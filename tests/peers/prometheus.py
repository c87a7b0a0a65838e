#!/usr/bin/env python3
"""prometheus.py: a real Prometheus scrapes a relay and evaluates its alerts and its dashboard.

    prometheus.py [--relay BINARY] [--prove]

`promtool` reads src/assets/prometheus/alerts.yaml, and each alert is evaluated on series in which
it must fire and on healthy ones (ALARMS). Then Prometheus itself scrapes a relay: every rule and
every query of src/assets/grafana/dashboard.json must be evaluated without an error, the
conversation must be counted, and the first client of an agent that cannot be started must make
AcpRelayAgentCannotStart fire. --prove checks that the harness detects an alert that never fires.
Without Prometheus it prints a notice and passes.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import isolation
from paths import PEERS, RELAY

HERE = Path(__file__).resolve().parent
# Unpacked by install.sh where the machine has none.
os.environ["PATH"] += ":%s" % (PEERS.resolve() / "prometheus/usr/bin")
ALERTS = HERE.parents[1] / "src/assets/prometheus/alerts.yaml"
DASHBOARD = HERE.parents[1] / "src/assets/grafana/dashboard.json"
# Three seconds at this interval are enough for rates.
PACE = "500ms"
PATIENCE = 60

# Series that make each alert fire: one sample a minute, healthy for ten minutes and faulty from then
# on. Where one event is enough, it is three minutes before the end.
STEADY, ONCE, MANY = "0+0x60", "0+0x25 1+0x35", "0+0x10 0+600x50"
ALARMS = {
    "AcpRelayDown": {"build_info{version=\"1\"}": "1+0x10 stale"},
    "AcpRelayAgentsCrash": {"agent_exits_total{agent=\"a\",how=\"signal\"}": "0+0x10 0+1x50"},
    "AcpRelayAgentCannotStart": {"agent_spawns_total{agent=\"a\",outcome=\"failed\"}": ONCE},
    "AcpRelayClientsTurnedAway": {"connections_rejected_total{transport=\"ws\",reason=\"full\"}": MANY},
    "AcpRelayPeerLost": {"synthesised_errors_total{side=\"agent\",code=\"-32050\"}": MANY},
    "AcpRelayPaused": {"producer_paused_seconds_total{side=\"agent\"}": "0+0x10 0+50x50"},
    "AcpRelayRecordingFails": {"recordings_total{outcome=\"failed\"}": ONCE},
    "AcpRelayLosesMessages": {"undeliverable_messages_total{dir=\"to_client\"}": MANY},
    # Its series appears with the first event.
    "AcpRelayUntranslatable": {
        "dialect_events_total{dialect=\"elephant\",event=\"untranslatable\",side=\"agent\"}": "_x25 1+0x35"},
    "AcpRelayLimits": {"limit_hits_total{side=\"agent\",reason=\"frame\"}": MANY},
    "AcpRelayOpenFiles": {"process_open_fds": "10+0x10 990+0x50", "process_max_fds": "1000+0x60"},
    "AcpRelayWrongTokens": {"auth_attempts_total{method=\"token\",outcome=\"refused\"}": MANY},
    "AcpRelayFileNotTaken": {"config_reload_total{outcome=\"error\"}": ONCE},
    "AcpRelayRecordingDrops": {"recording_dropped_total": ONCE},
    "AcpRelayTracesLost": {"trace_spans_total{outcome=\"failed\"}": MANY},
    "AcpRelayRestarts": {"process_start_time_seconds": "1+0x10 10+10x50"},
    "AcpRelayCannotAccept": {"accept_errors_total{transport=\"ws\"}": ONCE},
    "AcpRelayBuffersFull": {
        "buffer_bytes{dir=\"to_client\",where=\"outbox\"}": "1+0x10 99+0x50",
        "buffer_limit_bytes{dir=\"to_client\",where=\"outbox\"}": "100+0x60"},
    "AcpRelayLinksLost": {
        "links{state=\"detached\"}": "0+0x10 8+0x50", "links{state=\"attached\"}": "9+0x10 1+0x50"},
    "AcpRelayClusterUnplaced": {"cluster_placements_total{outcome=\"none\"}": ONCE},
    "AcpRelayClusterUnrenewed": {"cluster_renewals_failed_total": ONCE},
    "AcpRelayDrains": {"drain_duration_seconds": "0+0x10 0+60x50"},
    "AcpRelayBusy": {"tokio_busy_seconds_total{runtime=\"main\"}": "0+0x10 0+59x50",
                     "tokio_workers{runtime=\"main\"}": "1+0x60"},
    "AcpRelayPanicked": {"panics_total{place=\"conversation\"}": ONCE},
    "AcpRelayLogLost": {"log_lines_lost_total{reason=\"flood\"}": MANY},
    "AcpRelayAdminProbed": {"admin_refused_total{reason=\"host\"}": MANY},
}
CONFIG = """
[agents.one]
command = ["python3", "-c", '''
import sys
for line in sys.stdin:
    print('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"counted","version":"1"}}}', flush=True)
''']
[agents.none]
endpoint = "unix:%s/nobody"
[[listeners]]
endpoint = "ws://127.0.0.1:0"
default-agent = "one"
"""
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def unit_tests(folder, alarms):
    """Runs promtool's tests of the alerts: for each one healthy, and one in which it fires."""
    def test(series, firing, at):
        everywhere = {"build_info{version=\"1\"}": "1+0x60", **series}
        def full(name):
            name = name if name.startswith("process_") else "acp_relay_" + name
            return re.sub(r"\}$", ",instance=\"i\"}", name) if "{" in name else name + "{instance=\"i\"}"

        lines = [{"series": full(name), "values": values} for name, values in everywhere.items()]
        expected = [{"labels": "{alertname=\"%s\"}" % name, "value": 1} for name in firing]
        return {"interval": "1m", "input_series": lines, "promql_expr_test": [
            # A series may fire with several values of its labels.
            {"expr": "max by (alertname) (ALERTS{alertstate=\"firing\"})", "eval_time": at, "exp_samples": expected}]}

    tests = [test(series, [], "10m") for series in alarms.values()]
    tests += [test(series, [name], "29m") for name, series in alarms.items()]
    file = folder / "tests.yaml"
    # YAML is a superset of JSON.
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout


def rules(folder):
    done = subprocess.run(["promtool", "check", "rules", ALERTS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        yield "promtool check rules: %s" % done.stdout
    named = set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
    for name in sorted(named ^ set(ALARMS)):
        yield "%s is either no alert or not tested here" % name
    failures = unit_tests(folder, ALARMS)
    if failures:
        yield "promtool test rules: %s" % failures[:2000]
    else:
        print("      %d alerts fire when expected, and not before" % len(ALARMS))


def ask(base, path, **query):
    url = "%s/api/v1/%s?%s" % (base, path, urllib.parse.urlencode(query))
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        if refused.headers.get_content_type() != "application/json":
            raise  # not ready yet
        return json.load(refused)


def until(what, get):
    """Calls `get` until its result is true, and returns it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if found := get():
                return found
        except OSError:
            pass  # not listening yet
        time.sleep(0.1)
    raise TimeoutError("%s: not within %d s" % (what, PATIENCE))


def expressions(part):
    if isinstance(part, dict):
        if "expr" in part:
            yield part["expr"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from expressions(one)


def live(folder, relay):
    """A relay that is scraped while clients connect."""
    env = {**isolation.environment(folder), "ACP_RELAY_STATE_DIR": str(folder / "state")}
    config = folder / "acp-relay.toml"
    config.write_text(CONFIG % folder)
    config.chmod(0o600)
    output = folder / "output"
    with open(output, "w") as out:
        serve = subprocess.Popen([relay, "serve", "--config", config, "--admin", "127.0.0.1:0"], env=env,
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    watcher = None
    try:
        at = until("the relay listens", lambda: re.search(r"ws://\S+?(?=[/,]?\s)", output.read_text()))[0]
        admin = re.search(r"admin at http://(\S+)", output.read_text())[1]
        setup = folder / "prometheus.yml"
        setup.write_text(json.dumps({
            "global": {"scrape_interval": PACE, "scrape_timeout": PACE, "evaluation_interval": PACE},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [{"job_name": "relay", "static_configs": [{"targets": [admin]}]}]}))
        port = isolation.free_port()
        with open(folder / "prometheus.log", "w") as log:
            watcher = subprocess.Popen(
                ["prometheus", "--config.file=%s" % setup, "--storage.tsdb.path=%s" % (folder / "data"),
                 "--web.listen-address=127.0.0.1:%d" % port], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        yield from queries(relay, env, at, "http://127.0.0.1:%d" % port)
    except TimeoutError as late:
        yield str(late)
    finally:
        for process in (watcher, serve):
            if process:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=30)


def queries(relay, env, at, base):
    def value(query):
        found = ask(base, "query", query=query)["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    until("a scrape", lambda: value("acp_relay_build_info"))
    broken = 'acp_relay_agent_spawns_total{agent="none",outcome="failed"}'
    # The agent has metrics before its first client.
    until("a second scrape of the agent", lambda: value("count_over_time(%s[1m]) > 1" % broken))
    for to in (at, at.replace("/acp", "/agents/none/acp")):
        subprocess.run([relay, "connect", to], env=env, input=json.dumps(HELLO) + "\n", text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    until("the conversation is counted",
          lambda: value('sum(acp_relay_messages_total{dir="to_agent",method="initialize"}) > 0'))
    target = ask(base, "targets")["data"]["activeTargets"][0]
    if target["health"] != "up" or target["lastError"]:
        yield "the scrape: %s" % target["lastError"]
    asked = 0
    for query in expressions(json.loads(DASHBOARD.read_text())):
        for name, filled in (("$__rate_interval", "1m"), ("$quantile", "0.99")):
            query = query.replace(name, filled)
        answer = ask(base, "query", query=re.sub(r"\$\w+", ".*", query))
        asked += 1
        if answer["status"] != "success":
            yield "%s: %s" % (query, answer.get("error"))
    groups = ask(base, "rules")["data"]["groups"]
    evaluated = [rule for group in groups for rule in group["rules"]]
    for rule in evaluated:
        if rule["health"] != "ok":
            yield "%s: %s %s" % (rule["name"], rule["health"], rule.get("lastError"))
    print("      %d queries of the dashboard and %d rules were evaluated" % (asked, len(evaluated)))
    firing = 'ALERTS{alertname="AcpRelayAgentCannotStart",agent="none",alertstate="firing"}'
    until("the alert of an agent that cannot be reached", lambda: value(firing))
    print("      AcpRelayAgentCannotStart fired for the first client of an agent that cannot be started")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--prove", action="store_true")
    args = parser.parse_args()
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        print("prometheus.py: skipped: Prometheus is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if args.prove:
            # The series is steady, and the test expects the alert to fire.
            failures = unit_tests(folder, {"AcpRelayRecordingDrops": {"recording_dropped_total": STEADY}})
            if not failures or "AcpRelayRecordingDrops" not in failures:
                sys.exit("prometheus.py: an alert that does not fire is not detected")
            print("prometheus.py: an alert that does not fire is detected")
            return
        faults = list(rules(folder))
        faults += live(folder, str(Path(args.relay).resolve()))
    for fault in faults:
        print("FAIL  %s" % fault)
    print("%d failed" % len(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

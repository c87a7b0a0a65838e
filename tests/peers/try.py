#!/usr/bin/env python3
"""try.py: `acp-relay try` with every real agent: a turn with a permission, as a script reads it.

    try.py [--relay BINARY] [--agent NAME]...

A run passes when the agent introduces itself, says something, ends its turn with end_turn, and the
relay's report has no message that was stopped. One line per agent, `N passed, N failed` at the end.

Not here: the agents (peers.py), what a person sees at a terminal (tests/it/try_agent.rs).
"""
import argparse
import json
import subprocess
import sys
import tempfile

import isolation
from paths import RELAY
from peers import AGENTS, WAYS
from run import Run

DIRECT = WAYS[0]


def attempt(agent, relay, root):
    """What is wrong with one agent's run, and what it printed."""
    run = Run(agent, DIRECT, [relay], root)
    run.dir.mkdir(parents=True)
    run.workspace.mkdir()
    (run.workspace / "seed.txt").write_text("hello seed\n")
    env, llm = run.environment(), None
    try:
        if agent.llm:
            llm, url = run.start_llm()
            env.update(agent.variables(url))
        login = ["--authenticate", agent.auth] if agent.auth else []
        words = [relay, "try", "--json", "--permission", "allow", *login, agent.prompt, "--", *agent.command]
        done = subprocess.run(words, cwd=run.workspace, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)
    finally:
        if llm:
            llm.kill()
            llm.wait()
        run.mark.kill_rest()
    events = [json.loads(line) for line in done.stdout.split("\n") if line]
    of = {event["event"]: event for event in events}
    said = [event for event in events if event["event"] == "update"
            and event["update"].get("sessionUpdate") == "agent_message_chunk"]
    checks = {
        "exit code 0": done.returncode == 0,
        "introduced": "initialized" in of,
        "says something": bool(said),
        "asks for permission": "permission" in of or "permission" not in agent.expect,
        "end_turn": of.get("stopped", {}).get("stopReason") == "end_turn",
        "nothing stopped": of.get("report", {}).get("stopped") == {},
    }
    wrong = [name for name, holds in checks.items() if not holds]
    report = of.get("report", {})
    return wrong, "%s of %s unchanged, %d changed, %d deviations" % (
        report.get("unchanged"), report.get("received"), report.get("changed", -1),
        len(report.get("deviations", []))), done.stderr[-400:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--agent", action="append")
    args = parser.parse_args()
    if not isolation.leave_network():
        print("note: the runs could not be isolated from the network")
    failed = passed = 0
    with tempfile.TemporaryDirectory(prefix="acp-relay-try-") as root:
        for agent in AGENTS:
            if (args.agent and agent.name not in args.agent) or not agent.installed():
                continue
            wrong, report, said = attempt(agent, str(args.relay), root)
            print("%-6s %s: %s" % ("FAILED" if wrong else "ok", agent.name, ", ".join(wrong) or report))
            if wrong:
                print("       %s; %s" % (report, said))
            failed, passed = failed + bool(wrong), passed + (not wrong)
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()

#!/bin/sh
# check.sh [waiting|loading]: all checks of this directory, or one half of them. `.ci/run` calls it
# after the build, with the relay at $ACP_RELAY_BIN (default: target/debug/acp-relay) and the command
# of the WebSocket echo at $ACP_RELAY_ECHO. Each part prints its duration. A failure does not stop
# the other parts: all failed parts are listed at the end.
#
# The half `waiting`: parts that wait more than they compute, in three concurrent lanes; the output
# of a part is printed in one piece when it ends. The half `loading`: parts that load the machine and
# run alone.
set -eu
half=${1:-both}
case $half in waiting | loading | both) ;; *) echo "check.sh: no half is called $half" >&2 && exit 64 ;; esac
cd "$(dirname "$0")"
begun=$(date +%s)
heap=$(mktemp -d)
trap 'rm -rf "$heap"' EXIT
: >"$heap/failed"
part() { # TITLE COMMAND...
    title=$1
    shift
    since=$(date +%s)
    output=$(mktemp "$heap/XXXXXX")
    status=0
    "$@" >"$output" 2>&1 || status=$?
    {
        echo "== $title"
        cat "$output"
        echo "== took $(($(date +%s) - since)) s"
    } >"$output.whole"
    # One write at a time, or the lanes would be mixed.
    flock "$heap/failed" cat "$output.whole"
    [ "$status" = 0 ] || {
        echo "   $title (status $status): $*"
        # What there is room for at the end of a log that is cut.
        grep -E '^(FAIL|Traceback|once more)|Error' "$output" | tail -n 8 | cut -c1-300 | sed 's/^/      /'
    } >>"$heap/failed"
}
first_lane() {
    part "self-test of run.py" python3 run.py --prove
    part "real agents and the official client" python3 run.py
    part "self-test of dialects/run.py" python3 dialects/run.py --prove
    part "older dialects" python3 dialects/run.py
    part "older dialects, recorded and replayed" python3 dialects/replays.py
    part "official remote clients" python3 http_server.py
    part "replayed recordings" python3 replay.py
    part "processes killed at random moments" python3 kill.py
    part "self-test of torn.py" python3 torn.py --prove
    part "recorders killed 300 times" python3 torn.py --moments 300
    part "full disks" python3 full_disk.py
    part "the viewer in a browser" python3 viewer.py
}
second_lane() {
    part "Agent Connect" python3 agent_connect.py --examples 1 --moments 30
    part "LangGraph's server as an agent" python3 agent_connect_client.py
    part "another user of the machine" python3 other_user.py "${ACP_RELAY_BIN:-../../target/debug/acp-relay}"
    part "self-test of versions.py" python3 versions.py --prove
    part "clients and agents of different versions of ACP" python3 versions.py
    part "recordings, played to clients of v2" python3 versions_played.py
    part "curl and nghttp" ./http_tools.sh
    part "a browser as a client" node browser.mjs
    part "nginx and Caddy, configured as in the manual" python3 proxies.py
    part "self-test of readme.py" python3 readme.py --prove
    part "the commands of the README and the manual" python3 readme.py
    part "ssh, and its connection that breaks" python3 ssh.py
    part "ssh, to a machine without acp-relay" python3 ssh_install.py
    part "a slow network, and one behind a proxy" python3 far.py
    part "logins of remote agents in a browser" python3 login.py
    part "try, with every agent" python3 try.py
    part "the units, checked by systemd" python3 systemd.py
    part "self-test of prometheus.py" python3 prometheus.py --prove
    part "Prometheus, with our alerts and dashboard" python3 prometheus.py
    part "clients that reconnect" python3 returns.py
    part "agents that die or do not answer" python3 restart.py
    part "traces, decoded with OpenTelemetry's definitions" python3 traces.py
    part "JSON over every pair of transports" python3 json_suite.py
    part "self-test of trace_viewer.py" python3 trace_viewer.py --prove
    part "the official trace viewer" python3 trace_viewer.py
    part "self-test of formats.py" python3 formats.py --prove
    part "Mermaid, read by its own parser" python3 formats.py
}

third_lane() {
    part "the NATS account of a host" python3 cluster_attack.py
    part "real agents on a host, through a gateway" python3 cluster_agents.py
    part "self-test of link.py" python3 link.py prove
    part "the resumable link, in a network with faults" python3 link.py gate
    part "remote agents over HTTP and WebSocket" python3 remote_agents.py
    part "connections reset 200 times" python3 remote_cuts.py
    part "network failures, 200 times" python3 network_cuts.py
    part "a real agent over a link that is cut" python3 link_agents.py --agent goose --cuts 10 --idle 0
}

part "the peers" ./install.sh
if [ -s "$heap/failed" ]; then exit 1; fi
if [ "$half" != loading ]; then
    first_lane &
    third_lane &
    second_lane
    wait
fi
if [ "$half" != waiting ]; then
    part "self-test of autobahn.py" python3 autobahn.py --prove
    # Streams of 2 GiB and floods need the optimised program; the other checks do not.
    part "the optimised program" cargo build --quiet --release --locked --offline
    fast=${CARGO_TARGET_DIR:-../../target}/release/acp-relay
    part "stalled readers" python3 stall.py --relay "$fast"
    part "memory of recorders" python3 slow.py --relay "$fast" --mib 128
    part "many clients" python3 http_load.py --relay "$fast" --idle 9000 --seconds 20
    part "self-test of red_team.py" python3 red_team.py --relay "$fast" --prove
    part "the red team" python3 red_team.py --relay "$fast"
    part "a flood beside another client" python3 flood.py --relay "$fast" --rounds 8 --allow 100
    # Split into words on purpose: it is a command with arguments.
    # shellcheck disable=SC2086
    part "Autobahn" python3 autobahn.py -- ${ACP_RELAY_ECHO:-cargo test --quiet --offline --test autobahn_echo --}
fi
echo "== all of it took $(($(date +%s) - begun)) s"
[ ! -s "$heap/failed" ] || {
    echo "== FAILED:"
    cat "$heap/failed"
    exit 1
}

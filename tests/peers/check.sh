#!/bin/sh
# check.sh [waiting|loading]: all that this directory proves, or one half of it. `.ci/run` calls it
# after the build, with the relay at $ACP_RELAY_BIN (default: target/debug/acp-relay) and the command
# of the WebSocket echo at $ACP_RELAY_ECHO. Each part says how long it took. What fails does not keep
# the others from being tried: all that failed is named at the end.
#
# Most parts wait more than they work, so two lanes of them run beside each other; what a part
# prints comes in one piece when it is over: the half `waiting`. The last ones load the machine, and
# run alone: the half `loading`.
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
    said=$(mktemp "$heap/XXXXXX")
    status=0
    "$@" >"$said" 2>&1 || status=$?
    {
        echo "== $title"
        cat "$said"
        echo "== took $(($(date +%s) - since)) s"
    } >"$said.whole"
    # One write at a time, or the lanes would be mixed.
    flock "$heap/failed" cat "$said.whole"
    [ "$status" = 0 ] || echo "   $title (status $status): $*" >>"$heap/failed"
}
first_lane() {
    part "the harnesses can fail" python3 run.py --prove
    part "real agents and a real client" python3 run.py
    part "so can that of the peers of old" python3 dialects/run.py --prove
    part "peers of old" python3 dialects/run.py
    part "peers of old, recorded and played again" python3 dialects/replays.py
    part "official remote clients" python3 http_server.py
    part "recordings played again" python3 replay.py
    part "killed at random moments" python3 kill.py
    part "torn recordings can be told" python3 torn.py --prove
    part "recorders killed 300 times" python3 torn.py --moments 300
    part "disks that are full" python3 full_disk.py
    part "the viewer in a browser" python3 viewer.py
}
second_lane() {
    part "Agent Connect" python3 agent_connect.py --examples 1 --moments 30
    part "somebody else's Agent Connect" python3 agent_connect_client.py
    part "another user of the machine" python3 other_user.py "${ACP_RELAY_BIN:-../../target/debug/acp-relay}"
    part "curl and nghttp" ./http_tools.sh
    part "a browser" node browser.mjs
    part "nginx and Caddy, as the manual sets them up" python3 proxies.py
    part "what checks the README and the manual can fail" python3 readme.py --prove
    part "the commands of the README and the manual" python3 readme.py
    part "the units, by systemd itself" python3 systemd.py
    part "what checks the alerts can fail" python3 prometheus.py --prove
    part "a Prometheus, with our alerts and our dashboard" python3 prometheus.py
    part "clients that come back" python3 returns.py
    part "traces, by OpenTelemetry's own definitions" python3 traces.py
    part "remote agents over HTTP and WebSocket" python3 remote_agents.py
    part "connections reset 200 times" python3 remote_cuts.py
    part "the network taken away 200 times" python3 network_cuts.py
    part "JSON through every pair of wires" python3 json_suite.py
    part "so can that of the trace viewer" python3 trace_viewer.py --prove
    part "the official trace viewer" python3 trace_viewer.py
    part "the checks of exports can fail" python3 formats.py --prove
    part "HAR, Mermaid and pcapng are what others say they are" python3 formats.py
}

part "the peers" ./install.sh
if [ -s "$heap/failed" ]; then exit 1; fi
if [ "$half" != loading ]; then
    first_lane &
    second_lane
    wait
fi
if [ "$half" != waiting ]; then
    part "so can Autobahn's" python3 autobahn.py --prove
    # Streams of 2 GiB and floods take the optimised program; the other checks are as good on any.
    part "the optimised program" cargo build --quiet --release --locked --offline
    fast=${CARGO_TARGET_DIR:-../../target}/release/acp-relay
    part "stalled readers" python3 stall.py --relay "$fast"
    part "those who write down do not grow" python3 slow.py --relay "$fast" --mib 128
    part "many clients" python3 http_load.py --relay "$fast" --idle 9000 --seconds 20
    part "the red team can fail" python3 red_team.py --relay "$fast" --prove
    part "the red team" python3 red_team.py --relay "$fast"
    part "a flood beside a bystander" python3 flood.py --relay "$fast" --rounds 8 --allow 100
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

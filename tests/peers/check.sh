#!/bin/sh
# check.sh: all that this directory proves, in the order of cost. `.ci/run` calls it after the
# build, with the relay at $ACP_RELAY_BIN (default: target/debug/acp-relay) and the command of
# the WebSocket echo at $ACP_RELAY_ECHO.
set -eu
cd "$(dirname "$0")"
./install.sh
echo "== the harnesses can fail"
python3 run.py --prove
python3 autobahn.py --prove
python3 dialects/run.py --prove
echo "== real agents and a real client"
python3 run.py
echo "== peers of old"
python3 dialects/run.py
echo "== official remote clients"
python3 http_server.py
echo "== curl and nghttp"
./http_tools.sh
echo "== remote agents over HTTP and WebSocket"
python3 remote_agents.py
echo "== the official trace viewer"
python3 trace_viewer.py --prove
python3 trace_viewer.py
echo "== recordings played again"
python3 replay.py
echo "== JSON through every pair of wires"
python3 json_suite.py
echo "== killed at random moments"
python3 kill.py
echo "== the viewer in a browser"
python3 viewer.py
echo "== stalled readers"
# Streams of 2 GiB take the optimised program; the other checks are as good on any.
cargo build --quiet --release --locked --offline
python3 stall.py --relay "${CARGO_TARGET_DIR:-../../target}/release/acp-relay"
echo "== many clients"
python3 http_load.py --idle 9000 --seconds 20
echo "== Autobahn"
# Split into words on purpose: it is a command with arguments.
# shellcheck disable=SC2086
python3 autobahn.py -- ${ACP_RELAY_ECHO:-cargo test --quiet --offline --test autobahn_echo --}

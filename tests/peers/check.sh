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
echo "== real agents and a real client"
python3 run.py
echo "== Autobahn"
# Split into words on purpose: it is a command with arguments.
# shellcheck disable=SC2086
python3 autobahn.py -- ${ACP_RELAY_ECHO:-cargo test --quiet --offline --test autobahn_echo --}

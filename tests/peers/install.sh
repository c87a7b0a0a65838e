#!/bin/sh
# install.sh [DIR]: installs the external programs of these tests, each at one pinned version.
#
# DIR is $ACP_RELAY_PEERS, or target/peers in the checkout. A part that is installed at its pinned
# version is kept, so a second call needs no network. What cannot be installed is named on a line
# `skipped: ...`, and its marker file is absent: run.py and autobahn.py then skip it.
#
# Needs node >= 20 with npm, python3 >= 3.11 with venv, and cargo. The browser is Debian's chromium,
# which is installed when this runs as root. Autobahn needs Python 2.7, which Debian dropped after
# version 11: it is looked for in $PYTHON2, on the PATH and under pyenv.
set -eu

sdk_js=1.9.0
sdk_js_2=2.4.0
ws_js=8.23.0
gemini=0.61.0
sdk_py=0.12.1
hypercorn=0.18.0
opentelemetry=1.45.2
acpremote=1.10.0
goose=1.52.0
opencode=1.18.34
claude=0.101.0
codex=2.6.0
acpx=0.19.1
crow=0.1.48
rust_v2=5.2.0
jsonschema=4.26.0
playwright=1.65.1
autobahn=25.10.1
trace_viewer=5.0.0
mermaid=11.17.2
jsdom=29.1.1
agntcy=1.5.2
langgraph=0.4.8
langgraph_cli=0.4.40
langgraph_api=0.16.7
langgraph_inmem=0.36.7
langgraph_served=1.2.22
schemathesis=4.32.5
virtualenv=20.21.1 # the last that makes environments for Python 2.7

here=$(cd "$(dirname "$0")" && pwd)
peers=${1:-${ACP_RELAY_PEERS:-$here/../../target/peers}}
mkdir -p "$peers"
peers=$(cd "$peers" && pwd)

# A part is complete when its stamp holds the requested versions; a partial one has no stamp.
is_there() { [ -f "$peers/$1/.installed" ] && [ "$(cat "$peers/$1/.installed")" = "$2" ]; }
begin() { echo "peers: installing $1 ($2)" && rm -rf "${peers:?}/$1" && mkdir -p "$peers/$1"; }
complete() { echo "$2" > "$peers/$1/.installed"; }

# The official Rust SDK as a client and as a server. Compiling takes longer than all downloads, so it
# runs in the background.
rust=
want_rust="rust_sdk $(cat "$here/rust_sdk/Cargo.lock" "$here"/rust_sdk/src/bin/*.rs | cksum)"
if ! is_there rust "$want_rust"; then
    echo "peers: building rust ($want_rust)"
    # Compiled dependencies are kept: a change here does not rebuild the SDK.
    rm -f "$peers/rust/.installed"
    CARGO_TARGET_DIR="$peers/rust" CARGO_PROFILE_DEV_DEBUG=0 cargo build --quiet --locked --manifest-path "$here/rust_sdk/Cargo.toml" &
    rust=$!
    # A failure before it ends stops it.
    trap 'kill $rust 2> /dev/null || true' EXIT
fi

# The official TypeScript SDK, with its example agent and the library of our client; Gemini CLI.
# --ignore-scripts: no code of a package runs before a test runs it.
want="sdk $sdk_js ws $ws_js gemini-cli $gemini"
if ! is_there npm "$want"; then
    major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
    if [ "$major" -lt 20 ]; then
        echo "peers: node >= 20 is needed, found: $(node --version 2>&1 || true)" >&2
        exit 69
    fi
    begin npm "$want"
    npm install --prefix "$peers/npm" --ignore-scripts --no-audit --no-fund --loglevel=error \
        "@agentclientprotocol/sdk@$sdk_js" "ws@$ws_js" "@google/gemini-cli@$gemini"
    complete npm "$want"
fi

# The same SDK's next major version, with different remote clients.
want="sdk $sdk_js_2 ws $ws_js"
if ! is_there npm2 "$want"; then
    begin npm2 "$want"
    npm install --prefix "$peers/npm2" --ignore-scripts --no-audit --no-fund --loglevel=error \
        "@agentclientprotocol/sdk@$sdk_js_2" "ws@$ws_js"
    complete npm2 "$want"
fi

# goose and OpenCode, one binary each. Skipped where there is none for this machine.
for package in "goose @aaif/goose-binary-linux-x64@$goose" "opencode opencode-linux-x64@$opencode"; do
    part=${package%% *}
    want=${package#* }
    is_there "$part" "$want" && continue
    if [ "$(uname -sm)" = "Linux x86_64" ]; then
        begin "$part" "$want"
        npm install --prefix "$peers/$part" --ignore-scripts --no-audit --no-fund --loglevel=error "$want"
        complete "$part" "$want"
    else
        echo "peers: skipped: $part: no package for $(uname -sm)" >&2
    fi
done

# Claude Code behind its ACP adapter, which includes the program as an optional package.
want="claude-agent-acp $claude"
if ! is_there claude "$want"; then
    begin claude "$want"
    npm install --prefix "$peers/claude" --ignore-scripts --no-audit --no-fund --loglevel=error \
        "@agentclientprotocol/claude-agent-acp@$claude"
    complete claude "$want"
fi

# The library that validates messages of v1 and v2.
want="jsonschema $jsonschema"
if ! is_there versions "$want"; then
    begin versions "$want"
    python3 -m venv "$peers/versions"
    "$peers/versions/bin/python" -m pip --quiet --disable-pip-version-check install "jsonschema==$jsonschema"
    complete versions "$want"
fi

# More peers of v2, for versions.py --all: 1.6 GB, so only on request. crow needs Python 3.13.
if [ -n "${ACP_RELAY_PEERS_ALL:-}" ]; then
    # The Rust SDK's examples of v2; compiling them takes minutes.
    want="agent-client-protocol $rust_v2"
    if ! is_there rust_v2 "$want"; then
        begin rust_v2 "$want"
        CARGO_TARGET_DIR="$peers/rust_v2/target" CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug \
            --root "$peers/rust_v2" agent-client-protocol --version "$rust_v2" \
            --features stdio,process,unstable_protocol_v2 --example simple_agent_v2 --example v2_one_shot_client
        complete rust_v2 "$want"
    fi
    want="acpx $acpx"
    if ! is_there acpx "$want"; then
        begin acpx "$want"
        npm install --prefix "$peers/acpx" --ignore-scripts --no-audit --no-fund --loglevel=error "acpx@$acpx"
        complete acpx "$want"
    fi
    want="codex-acp $codex"
    if ! is_there codex "$want"; then
        begin codex "$want"
        npm install --prefix "$peers/codex" --ignore-scripts --no-audit --no-fund --loglevel=error \
            "@agentclientprotocol/codex-acp@$codex"
        complete codex "$want"
    fi
    want="crow-cli $crow"
    if ! is_there crow "$want"; then
        python13=
        for candidate in python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13.*/bin/python3.13; do
            "$candidate" --version > /dev/null 2>&1 && python13=$candidate && break
        done
        if [ -z "$python13" ]; then
            echo "peers: skipped: crow-cli: there is no Python 3.13" >&2
        else
            begin crow "$want"
            "$python13" -m venv "$peers/crow"
            "$peers/crow/bin/python" -m pip --quiet --disable-pip-version-check install "crow-cli==$crow"
            complete crow "$want"
        fi
    fi
fi

# The official Python SDK; only the source distribution has its examples.
want="agent-client-protocol $sdk_py hypercorn $hypercorn"
if ! is_there python "$want"; then
    begin python "$want"
    python3 -m venv "$peers/python"
    pip="$peers/python/bin/python -m pip --quiet --disable-pip-version-check"
    $pip install "agent-client-protocol[http]==$sdk_py" "hypercorn==$hypercorn"
    $pip download --no-deps --no-binary :all: --dest "$peers/python/source" "agent-client-protocol==$sdk_py"
    tar -xzf "$peers/python/source/"*.tar.gz -C "$peers/python/source" --strip-components=1
    mv "$peers/python/source/examples" "$peers/python/examples"
    rm -rf "$peers/python/source"
    complete python "$want"
fi

# The same SDK in a client that creates traces, and OpenTelemetry's definitions to decode them.
want="agent-client-protocol $sdk_py opentelemetry $opentelemetry"
if ! is_there traces "$want"; then
    begin traces "$want"
    python3 -m venv "$peers/traces"
    "$peers/traces/bin/python" -m pip --quiet --disable-pip-version-check install \
        "agent-client-protocol==$sdk_py" "opentelemetry-sdk==$opentelemetry" \
        "opentelemetry-exporter-otlp-proto-http==$opentelemetry"
    complete traces "$want"
fi

# A program that serves agents over WebSocket.
want="acpremote $acpremote"
if ! is_there acpremote "$want"; then
    begin acpremote "$want"
    python3 -m venv "$peers/acpremote"
    "$peers/acpremote/bin/python" -m pip --quiet --disable-pip-version-check install "acpremote==$acpremote"
    complete acpremote "$want"
fi

# Login shells (ssh_install.py), tools that cut the network (network_cuts.py), TLS in front of a server without it
# (remote_agents.py), the proxies of the manual (proxies.py), and another HTTP/2 client
# (http_tools.sh). Each test reports a missing tool.
for tool in nft:nftables ss:iproute2 nginx:nginx-light caddy:caddy nghttp:nghttp2-client zsh:zsh fish:fish; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${tool%:*}" > /dev/null && continue
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        apt-get install -y -qq --no-install-recommends "${tool#*:}" > /dev/null 2>&1 \
            || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${tool#*:}"; } > /dev/null 2>&1 || true
    fi
    PATH=$PATH:/usr/sbin:/sbin command -v "${tool%:*}" > /dev/null \
        || echo "peers: skipped: ${tool%:*}: apt-get cannot install ${tool#*:} here" >&2
done
# Prometheus with promtool, NATS (cluster.py), and sshd with a library (sshd.py), unpacked only: their packages would
# run them as services.
want=debian
for package in prometheus nats-server openssh-server libwrap0; do
    if ! is_there "$package" "$want" && command -v apt-get > /dev/null && command -v dpkg > /dev/null; then
        begin "$package" "$want"
        (
            cd "$peers/$package"
            # apt's own user may not write here; apt warns and continues.
            apt-get download -qq "$package" > /dev/null 2>&1 \
                || { apt-get update -qq && apt-get download -qq "$package"; } > /dev/null 2>&1 \
                && dpkg -x "$package"_*.deb . && rm "$package"_*.deb
        ) && complete "$package" "$want"
    fi
    is_there "$package" "$want" || echo "peers: skipped: $package: apt-get cannot fetch it here" >&2
done
# The user that sshd gives up its rights to, which its package would make.
if [ "$(id -u)" = 0 ] && ! id sshd > /dev/null 2>&1; then
    useradd --system --no-create-home --home-dir /run/sshd --shell /usr/sbin/nologin sshd || true
fi
# The SDK of Agent Connect, LangGraph for its node, and schemathesis for the OpenAPI document.
want="agntcy-acp $agntcy langgraph $langgraph schemathesis $schemathesis"
if ! is_there agent_connect "$want"; then
    begin agent_connect "$want"
    python3 -m venv "$peers/agent_connect"
    "$peers/agent_connect/bin/python" -m pip --quiet --disable-pip-version-check install \
        "agntcy-acp==$agntcy" "langgraph==$langgraph" "schemathesis==$schemathesis"
    complete agent_connect "$want"
fi

# LangGraph's own server, the origin of Agent Connect's paths.
want="langgraph-cli $langgraph_cli langgraph-api $langgraph_api inmem $langgraph_inmem langgraph $langgraph_served"
if ! is_there langgraph "$want"; then
    begin langgraph "$want"
    python3 -m venv "$peers/langgraph"
    "$peers/langgraph/bin/python" -m pip --quiet --disable-pip-version-check install \
        "langgraph-cli[inmem]==$langgraph_cli" "langgraph-api==$langgraph_api" \
        "langgraph-runtime-inmem==$langgraph_inmem" "langgraph==$langgraph_served"
    complete langgraph "$want"
fi

# A browser: Debian's Chromium, and the library that drives it. npm downloads no browser.
want="playwright-core $playwright"
if ! command -v chromium > /dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        # Outdated package lists have to be updated first.
        apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core > /dev/null 2>&1 \
            || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } > /dev/null 2>&1 || true
    fi
fi
if ! command -v chromium > /dev/null; then
    echo "peers: skipped: the browser: there is no chromium and apt-get cannot install it here" >&2
elif ! is_there browser "$want"; then
    begin browser "$want"
    npm install --prefix "$peers/browser" --ignore-scripts --no-audit --no-fund --loglevel=error \
        "playwright-core@$playwright"
    complete browser "$want"
fi

# The official trace viewer, built with its published lock file.
want="trace-viewer $trace_viewer"
if ! is_there viewer "$want"; then
    begin viewer "$want"
    cargo install --quiet --locked --debug --root "$peers/viewer" \
        agent-client-protocol-trace-viewer --version "$trace_viewer"
    complete viewer "$want"
fi

# The parser of Mermaid.
want="mermaid $mermaid jsdom $jsdom"
if ! is_there formats "$want"; then
    begin formats "$want"
    npm install --prefix "$peers/formats" --ignore-scripts --no-audit --no-fund --loglevel=error \
        "mermaid@$mermaid" "jsdom@$jsdom"
    complete formats "$want"
fi

# The Autobahn test suite for WebSocket. It needs Python 2.
want="autobahntestsuite $autobahn"
if ! is_there autobahn "$want"; then
    python2=
    for candidate in "${PYTHON2:-}" python2.7 "$HOME"/.pyenv/versions/2.7.*/bin/python2.7 \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/2.7.*/bin/python2.7; do
        [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (2, 7))' \
            2>/dev/null && python2=$(command -v "$candidate") && break
    done
    if [ -z "$python2" ]; then
        echo "peers: skipped: the Autobahn suite: there is no Python 2.7 (name one in PYTHON2)" >&2
    else
        begin autobahn "$want, with $python2"
        python3 -m venv "$peers/autobahn/maker"
        "$peers/autobahn/maker/bin/python" -m pip --quiet --disable-pip-version-check install \
            "virtualenv==$virtualenv"
        "$peers/autobahn/maker/bin/virtualenv" --quiet --no-download --python "$python2" "$peers/autobahn/python2"
        "$peers/autobahn/python2/bin/python" -m pip --quiet --disable-pip-version-check install \
            "autobahntestsuite==$autobahn" 2>&1 | grep -v DEPRECATION || true
        rm -rf "$peers/autobahn/maker"
        "$peers/autobahn/python2/bin/wstest" --help > /dev/null
        complete autobahn "$want"
    fi
fi
if [ -n "$rust" ]; then
    wait "$rust"
    trap - EXIT
    complete rust "$want_rust"
fi
echo "peers: ready in $peers"

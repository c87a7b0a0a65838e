#!/bin/sh
# http_tools.sh [RELAY]: curl and nghttp at one `http://` and one `https://` listener, in HTTP/1.1,
# HTTP/2 by prior knowledge, by TLS, and with an upgrade to h2c that is ignored. nghttp is skipped
# where it is not installed (Debian: nghttp2-client). Not here: every status (tests/it).
set -eu
relay=${1:-${ACP_RELAY_BIN:-$(dirname "$0")/../../target/debug/acp-relay}}
dir=$(mktemp -d)
trap 'kill $(cat "$dir"/*.pid 2>/dev/null) 2>/dev/null; rm -rf "$dir"' EXIT
failed=0

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
    -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null

# An agent that answers initialize with 0 and everything else with the same id 1.
cat > "$dir/agent" <<'AGENT'
#!/bin/sh
read -r line
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
while read -r line; do
    case $line in *'"id":1'*) echo '{"jsonrpc":"2.0","id":1,"result":{"heard":true}}';; esac
done
AGENT
chmod +x "$dir/agent"

serve() { # NAME SCHEME OPTIONS...
    name=$1 scheme=$2
    shift 2
    "$relay" serve --listen "$scheme://127.0.0.1:0" "$@" -- "$dir/agent" 2> "$dir/$name.err" &
    echo $! > "$dir/$name.pid"
    tries=0
    until url=$(sed -n 's/.*listening on \(http.*\)/\1/p' "$dir/$name.err") && [ -n "$url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { cat "$dir/$name.err" >&2; exit 1; }
        sleep 0.1
    done
}

expect() { # WHAT WANTED GOT
    case $3 in
    *"$2"*) echo "ok    $1" ;;
    *) echo "FAIL  $1: wanted $2, got $3" && failed=1 ;;
    esac
}

json='Content-Type: application/json'
hello='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
ask='{"jsonrpc":"2.0","id":1,"method":"x"}'

# A conversation with curl, which is given OPTIONS.
curls() { # NAME VERSION OPTIONS...
    name=$1 version=$2
    shift 2
    answer=$(curl -sk "$@" -D "$dir/head" -w ' %{http_code} %{http_version}' -H "$json" -d "$hello" "$url")
    expect "$name: initialize" "\"protocolVersion\":1}} 200 $version" "$answer"
    id=$(tr -d '\r' < "$dir/head" | sed -n 's/^[Aa]cp-[Cc]onnection-[Ii]d: //p')
    named="Acp-Connection-Id: $id"
    curl -skN "$@" -H "$named" -H 'Accept: text/event-stream' --max-time 20 "$url" > "$dir/events" &
    stream=$!
    answer=$(curl -sk "$@" -w '%{http_code}' -H "$json" -H "$named" -d "$ask" "$url")
    expect "$name: a request" 202 "$answer"
    tries=0
    until grep -q heard "$dir/events" || [ $tries -ge 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    expect "$name: its answer" 'data: {"jsonrpc":"2.0","id":1,"result":{"heard":true}}' "$(cat "$dir/events")"
    expect "$name: its number" 'id: ' "$(cat "$dir/events")"
    answer=$(curl -sk "$@" -w '%{http_code}' -X DELETE -H "$named" "$url")
    expect "$name: the end" 202 "$answer"
    wait $stream && ended=0 || ended=$?
    expect "$name: the stream's end" 0 "$ended"
    answer=$(curl -sk "$@" -w '%{http_code}' -X DELETE -H "$named" "$url")
    expect "$name: once more" 404 "$answer"
}

serve clear http
curls 'HTTP/1.1' 1.1 --http1.1
curls 'HTTP/2 by prior knowledge' 2 --http2-prior-knowledge
curls 'an upgrade to h2c' 1.1 --http2
if command -v nghttp > /dev/null; then
    printf %s "$hello" > "$dir/hello"
    answer=$(nghttp -v -H "$json" -d "$dir/hello" "$url" 2>&1)
    expect 'nghttp: initialize' ':status: 200' "$answer"
    expect 'nghttp: its connection' 'acp-connection-id: ' "$answer"
    answer=$(nghttp -v -H 'Accept: text/event-stream' "$url" 2>&1)
    expect 'nghttp: no connection' ':status: 400' "$answer"
    answer=$(h2load -n 2000 -c 10 -m 20 -H "$json" -H 'Acp-Connection-Id: x' -d "$dir/hello" "$url" 2>&1)
    expect 'h2load: 2000 strangers' '0 errored' "$answer"
    expect 'h2load: each is answered' '2000 4xx' "$answer"
else
    echo "skip  nghttp is not installed"
fi
serve tls https --tls-cert "$dir/cert.pem" --tls-key "$dir/key.pem"
curls 'HTTP/2 over TLS' 2 --http2
curls 'HTTP/1.1 over TLS' 1.1 --http1.1
exit $failed

# Reads messages with Content-Length headers, and answers with such. A line that is no header is left
# out. Its argument is what it writes on stderr when it starts.
import json, sys

sys.stderr.write(sys.argv[1])
results = {
    "initialize": {"protocolVersion": 1, "agentInfo": {"name": "headers", "version": "3"}},
    "session/new": {"sessionId": "s"},
    "session/prompt": {"stopReason": "end_turn"},
}
length = None
for line in iter(sys.stdin.buffer.readline, b""):
    if line.lower().startswith(b"content-length:"):
        length = int(line.split(b":")[1])
    if line.strip() or length is None:
        continue
    message = json.loads(sys.stdin.buffer.read(length))
    length = None
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
    body = json.dumps(answer).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()

# Runs by rules, each an argument in JSON: {"on": METHOD, "do": [STEP, ...]}. The method of an
# answer is "answer"; "*" is any other. `initialize` and `session/new` (session `s`) are answered
# without a rule. A step is one of
#   {"result": VALUE}               answers the request, or the one that was kept
#   {"send": MESSAGE}               prints it as it is
#   {"keep": true}                  keeps the request, to be answered later
#   {"sleep": SECONDS}
#   {"exit": CODE}                  ends, at once
#   {"forever": [STEP, ...]}
# In a VALUE or MESSAGE, "$line", "$message", "$id", "$text" and "$pid" stand for the line that was
# read, what is in it, its result as a text, and the process id.
import json, os, sys, time

rules = {"initialize": [{"result": {"protocolVersion": 1}}], "session/new": [{"result": {"sessionId": "s"}}]}
for rule in map(json.loads, sys.argv[1:]):
    rules[rule["on"]] = rule["do"]
kept = None

def fill(value, names):
    if isinstance(value, dict):
        return {name: fill(one, names) for name, one in value.items()}
    if isinstance(value, list):
        return [fill(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value

def run(steps, message, names):
    global kept
    for step in steps:
        if "result" in step:
            answered = message["id"] if "method" in message else kept
            print(json.dumps({"jsonrpc": "2.0", "id": answered, "result": fill(step["result"], names)}), flush=True)
        if "send" in step:
            print(json.dumps(fill(step["send"], names)), flush=True)
        if "keep" in step:
            kept = message["id"]
        time.sleep(step.get("sleep", 0))
        if "exit" in step:
            os._exit(step["exit"])
        while "forever" in step:
            run(step["forever"], message, names)

for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    method = message.get("method", "answer")
    names = {"$line": line, "$message": message, "$id": message.get("id"), "$pid": os.getpid(),
             "$text": json.dumps(message.get("result"))}
    run(rules.get(method, rules.get("*", [])), message, names)

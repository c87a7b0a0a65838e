"""The captured messages of a run, and their two comparisons.

`same_bytes`: the relay forwards every message unchanged. Two captures of one run are compared,
taken on the two sides of the relay.
`same_talk`: the conversation is the same as without a relay. A run is compared with the direct
run of the same agent, after the parts that differ between any two runs are replaced.

Each returns a list of differences as texts; an empty list is a pass. `REPLACED` and `comparable` contain
all tolerated differences, with their reasons.
"""
import json
import re
from dataclasses import dataclass, field

from framing import NDJSON, Splitter, one_line, sniff

WAYS = ("c2a", "a2c")

# Texts that differ between any two runs of the same agent, and their replacements. The directory
# of the run and the session id are replaced first, by value.
REPLACED = [
    # Session ids of Gemini CLI, request ids of goose.
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    # Session ids of the TypeScript example.
    (r"\b[0-9a-f]{32}\b", "HEX"),
    # Ids of OpenCode, which begin with a time.
    (r"\b(msg|prt|ses|per)_[0-9a-f]{12}[0-9A-Za-z]{14}\b", "ID"),
    # goose starts its extensions concurrently and lists them in the order in which they are ready.
    (r'"extensionResults": \[[^]]*\]', '"extensionResults": []'),
    # goose fetches its models concurrently with its start: some runs offer only the configured one.
    (r'("options": \[\{"value": "mock-model", "name": "mock-model"\})(, \{"value": "[^"]*", "name": "[^"]*"\})*\]', r"\1]"),
    # claude-agent-acp reports the tokens of a cancelled turn up to the answers that have arrived.
    (r'"token_count": \{[^{}]*\}', '"token_count": {}'),
    # Seconds in goose's chunks.
    (r'"created": \d{10}\b', '"created": SECONDS'),
    # Milliseconds in tool call ids of Gemini CLI: replace__replace_1795200427200_0.
    (r"\d{13}", "MILLIS"),
]


@dataclass
class Capture:
    """The files of one tee. `order` is (way, body), in the order in which the messages were complete."""

    name: str
    raw: dict
    order: list = field(default_factory=list)
    exit: int | None = None
    tail: dict = field(default_factory=dict)

    @classmethod
    def load(cls, prefix, name):
        raw = {way: open("%s.%s" % (prefix, way), "rb").read() for way in WAYS}
        capture = cls(name, raw)
        splitters = {way: Splitter(sniff(raw[way])) for way in WAYS}
        at = dict.fromkeys(WAYS, 0)
        for line in open("%s.log" % prefix):
            _, what, value = line.split()
            if what == "exit":
                capture.exit = int(value)
            elif value.isdigit():
                chunk = raw[what][at[what]:at[what] + int(value)]
                at[what] += int(value)
                capture.order += [(what, body) for body in splitters[what].feed(chunk)]
        capture.tail = {way: splitters[way].rest for way in WAYS}
        return capture

    def framing(self, way):
        return sniff(self.raw[way])

    def bodies(self, way):
        return [body for one, body in self.order if one == way]


def same_bytes(client, agent):
    """Compares the bytes of every message of `client` and `agent`, two captures of one run."""
    wrong = []
    for way in WAYS:
        if client.framing(way) == agent.framing(way) == NDJSON:
            if client.raw[way] == agent.raw[way]:
                continue
        for capture in (client, agent):
            if capture.tail[way]:
                wrong.append("%s, %s: ends inside a message: %.80r" % (way, capture.name, capture.tail[way]))
        # A body over several lines is one line for an NDJSON peer, otherwise unchanged.
        there, here = ([one_line(body) for body in one.bodies(way)] for one in (client, agent))
        if there != here:
            wrong.append("%s: %s" % (way, first_difference(there, here, client.name, agent.name)))
        elif client.framing(way) == agent.framing(way):
            wrong.append("%s: the messages are the same, the bytes between them differ" % way)
    return wrong


def same_talk(direct, other, agent):
    """Compares the conversation of `other` with that of `direct`."""
    wrong = []
    first, second = comparable(direct, agent), comparable(other, agent)
    for way in WAYS:
        a, b = ([text for one, _, text in messages if one == way] for messages in (first, second))
        if a != b:
            wrong.append("%s, against direct: %s" % (way, first_difference(a, b, "direct", other.name)))
    # Notifications of one direction may interleave with messages of the other, so only requests and
    # answers, which depend on each other, have one order for both directions.
    a, b = ([(way, normalized(kind)) for way, kind, _ in messages if not kind.startswith("~")] for messages in (first, second))
    if a != b:
        wrong.append("order, against direct: %s" % first_difference(a, b, "direct", other.name))
    return wrong


def comparable(capture, agent):
    """(way, kind, normalized text) of each message, without those that depend on a race in the agent.

    The number of updates after `session/cancel` is such a race, so the updates of the cancelled turn
    are compared up to the one that triggered the cancel (`agent.cancel_after`).
    `agent.side_jobs` are updates that the agent sends whenever a job outside the turn is done.
    """
    session = next((json.loads(body)["result"]["sessionId"] for way, body in capture.order
                    if way == "a2c" and b'"sessionId"' in body and b'"result"' in body), None)
    cwd = next((json.loads(body)["params"]["cwd"] for way, body in capture.order
                if way == "c2a" and b'"session/new"' in body), None)
    messages, prompts, updates = [], 0, 0
    for way, body in capture.order:
        message = json.loads(body)
        kind = kind_of(message)
        prompts += kind == "session/prompt"
        if prompts == 2 and kind == "~session/update agent_message_chunk":
            updates += 1
            if updates > agent.cancel_after:
                continue
        # Parsed and printed again: the content is compared here, the bytes in same_bytes.
        text = json.dumps(message, ensure_ascii=False)
        # OpenCode reports paths below its root without the first slash.
        for value, name in ((cwd, "CWD"), (cwd and cwd[1:], "CWD"), (session, "SESSION")):
            if value and len(value) > 3:
                text = text.replace(value, name)
        text = normalized(text)
        if any(re.search(job, text) for job in agent.side_jobs):
            continue
        messages.append((way, kind, text))
    return messages


def normalized(text):
    for pattern, name in REPLACED:
        text = re.sub(pattern, name, text)
    return text


def kind_of(message):
    """The method, with `~` before it for a notification, or `result` or `error` with the id."""
    if "method" not in message:
        return "%s %s" % ("error" if "error" in message else "result", json.dumps(message.get("id")))
    if "id" in message:
        return message["method"]
    update = (message.get("params") or {}).get("update") or {}
    return ("~" + message["method"] + " " + update.get("sessionUpdate", "")).rstrip()


def first_difference(a, b, a_name, b_name):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return "message %d: %s has %s, %s has %s" % (i + 1, a_name, show(x, y), b_name, show(y, x))
    longer, name = (a, a_name) if len(a) > len(b) else (b, b_name)
    return "%d messages at %s, %d at %s; the first additional one at %s: %.200r" % (
        len(a), a_name, len(b), b_name, name, longer[min(len(a), len(b))])


def show(one, other):
    """The place where two messages differ, with some context."""
    if not isinstance(one, (bytes, str)):
        return repr(one)
    at = next((i for i, (x, y) in enumerate(zip(one, other)) if x != y), min(len(one), len(other)))
    start = max(0, at - 40)
    return "%r (at %d)" % (one[start:at + 60], at)

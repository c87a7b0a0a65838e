"""Reads a play: one conversation, as sent on each of its two wires.

A play is a text file. A line has the sender, the wires and the message:

    C= {...}   from the client, the same on both wires
    A> {...}   from the agent, on the agent's wire
    A< {...}   the same message on the client's wire

`<` is the wire of the client, `>` that of the agent; a message with only one of them must not appear
on the other wire. JSON continues in lines that begin with a blank. Words in brackets before a line
restrict it to runs of that kind, as in `[refuse] A> {...}`; `[auto, allow]` requires both.

`! NAME VALUE` at the top configures the play, for either role:

    client, agent   `sdk`, a dialect, `canonical`, or a real agent of ../peers.py
    ROLE.framing    one of ../framing.py, or `as-heard` (as received); default `ndjson`
    ROLE.jsonrpc    methods whose messages have that member on the wire; default `all`
    ROLE.auto       the same as `jsonrpc METHODS`, for messages received in runs with `auto`
    ROLE.ids        `int32` if the peer reads only 32-bit ids
    ROLE.wire       `tcp` for a socket instead of stdio
    agent.shown     the framing that the relay uses with an agent that answers `as-heard`
    auto            `no` skips the runs with `auto`; a comment gives the reason

In a message, `"$name"` matches any value: the first one received is stored, later ones must be equal
to it. `"$here"` is the folder of the run, `"$id:X"` the id with which the request X was received. Ids
are those of the sender; the relay may replace them on the other wire.

Not here: the peers (scripted.py, sdk.mjs), and the runs (run.py).
"""
import json
import re

LINE = re.compile(r"(?:\[([^\]]*)\]\s*)?([CA])([=<>])\s*(.*)", re.DOTALL)
SENDERS = {"C": "client", "A": "agent"}


class Play:
    """`lines` are (line number, words, sender, wire, message); `setup` has the values of the head."""

    def __init__(self, path):
        self.name = path.stem
        self.setup = {}
        self.lines = []
        number, whole = 0, ""
        for at, line in enumerate([*path.read_text().split("\n"), ""], 1):
            if line[:1].isspace() and line.strip():
                whole += " " + line.strip()
                continue
            self._add(path, number, whole)
            number, whole = at, line

    def _add(self, path, number, line):
        if not line.strip() or line.startswith("#"):
            return
        if line.startswith("!"):
            _, name, value = line.split(None, 2)
            self.setup[name] = value.strip()
            return
        found = LINE.fullmatch(line.strip())
        if not found:
            raise ValueError("%s:%d: not a line of a play" % (path.name, number))
        words, sender, wire, text = found.groups()
        try:
            message = json.loads(text)
        except ValueError as error:
            raise ValueError("%s:%d: %s" % (path.name, number, error)) from None
        words = {word.strip() for word in (words or "").split(",") if word.strip()}
        self.lines.append((number, words, SENDERS[sender], wire, message))

    def part(self, role, kind):
        """The lines of the peer `role` in a run of these words, in the form that scripted.py and
        sdk.mjs read."""
        own = {"client": "<", "agent": ">"}[role]
        lines = [{"at": "%s:%d" % (self.name, number), "mine": sender == role, "message": message}
                 for number, words, sender, wire, message in self.lines
                 if wire in ("=", own) and words <= kind]
        jsonrpc = self.setup.get(role + ".jsonrpc", "all")
        received = self.setup.get(role + ".auto", jsonrpc).removeprefix("jsonrpc ") if "auto" in kind else jsonrpc
        return {"role": role, "jsonrpc": {"says": jsonrpc, "hears": received}, "framing": self.setup.get(role + ".framing", "ndjson"),
                "ids": self.setup.get(role + ".ids", "any"), "lines": lines}

"""Reads a play: one conversation, as each of its two wires carries it.

A play is a text file. A line says who speaks, on which wires, and what:

    C= {...}   the client, the same on both wires
    A> {...}   the agent, as its own wire carries it
    A< {...}   the same message as the client's wire carries it

`<` is the wire of the client, `>` that of the agent; what stands on one alone is never seen on
the other. JSON may go on in lines that begin with a blank. Words in brackets before a line bind
it to runs of that kind, as in `[refuse] A> {...}`; `[auto, allow]` wants both.

`! NAME VALUE` at the top sets up the play, for either role:

    client, agent   `sdk`, a dialect, `canonical`, or an agent of ../peers.py with its own words
    ROLE.framing    one of ../framing.py, or `as-heard`; `ndjson` when left out
    ROLE.jsonrpc    methods whose messages carry that member on the wire; `all` when left out
    ROLE.auto       the same as `jsonrpc METHODS`, for what is heard in runs with `auto`
    ROLE.ids        `int32` when it reads no others
    ROLE.wire       `tcp` gives it a socket in the place of its stdio
    agent.shown     the framing that the relay is told to show to an agent that answers `as-heard`
    auto            `no` leaves out the runs with `auto`; a comment says why

In a message, `"$name"` stands for whatever is there: heard the first time it is kept, after that
it must be the same. `"$here"` is the folder that the run is held in, `"$id:X"` the id with which
the request X arrived. Ids are the speaker's own; the relay may replace them on the other wire.

Not here: playing it (scripted.py, sdk.mjs), and what runs there are (run.py).
"""
import json
import re

LINE = re.compile(r"(?:\[([^\]]*)\]\s*)?([CA])([=<>])\s*(.*)", re.DOTALL)
SPEAKERS = {"C": "client", "A": "agent"}


class Play:
    """`lines` are (line number, words, speaker, wire, message); `setup` what the head says."""

    def __init__(self, path):
        self.name = path.stem
        self.setup = {}
        self.lines = []
        number, whole = 0, ""
        for at, line in enumerate([*path.read_text().split("\n"), ""], 1):
            if line[:1].isspace() and line.strip():
                whole += " " + line.strip()
                continue
            self._take(path, number, whole)
            number, whole = at, line

    def _take(self, path, number, line):
        if not line.strip() or line.startswith("#"):
            return
        if line.startswith("!"):
            _, name, value = line.split(None, 2)
            self.setup[name] = value.strip()
            return
        found = LINE.fullmatch(line.strip())
        if not found:
            raise ValueError("%s:%d: no line of a play" % (path.name, number))
        words, speaker, wire, text = found.groups()
        try:
            message = json.loads(text)
        except ValueError as error:
            raise ValueError("%s:%d: %s" % (path.name, number, error)) from None
        words = {word.strip() for word in (words or "").split(",") if word.strip()}
        self.lines.append((number, words, SPEAKERS[speaker], wire, message))

    def part(self, role, kind):
        """What the peer `role` plays in a run of these words: its lines, as scripted.py and
        sdk.mjs take them."""
        own = {"client": "<", "agent": ">"}[role]
        lines = [{"at": "%s:%d" % (self.name, number), "mine": speaker == role, "message": message}
                 for number, words, speaker, wire, message in self.lines
                 if wire in ("=", own) and words <= kind]
        jsonrpc = self.setup.get(role + ".jsonrpc", "all")
        heard = self.setup.get(role + ".auto", jsonrpc).removeprefix("jsonrpc ") if "auto" in kind else jsonrpc
        return {"role": role, "jsonrpc": {"says": jsonrpc, "hears": heard}, "framing": self.setup.get(role + ".framing", "ndjson"),
                "ids": self.setup.get(role + ".ids", "any"), "lines": lines}

"""The two framings of ACP over a byte stream.

NDJSON is one JSON text per line; Content-Length is the header block of the Language Server
Protocol. `Splitter` splits a stream of either kind into bodies, `wrap` frames one body.
Nothing here parses a body: the harness must not repair the messages under test.
"""

NDJSON = "ndjson"
CONTENT_LENGTH = "content-length"
FRAMINGS = (NDJSON, CONTENT_LENGTH)


class Splitter:
    """Turns chunks into whole bodies. An NDJSON body has no line end."""

    def __init__(self, framing):
        self.framing = framing
        self.rest = b""

    def feed(self, chunk):
        self.rest += chunk
        bodies = []
        while (body := self._next()) is not None:
            bodies.append(body)
        return bodies

    def _next(self):
        if self.framing == NDJSON:
            body, newline, rest = self.rest.partition(b"\n")
            if not newline:
                return None
            self.rest = rest
            return body
        head, blank, rest = self.rest.partition(b"\r\n\r\n")
        if not blank:
            return None
        length = next(int(line.split(b":", 1)[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        if len(rest) < length:
            return None
        self.rest = rest[length:]
        return rest[:length]


def wrap(body, framing):
    """One framed message."""
    if framing == NDJSON:
        return one_line(body) + b"\n"
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def one_line(body):
    """The same JSON on one line. A raw line end can only occur between tokens, where a space is
    equivalent; JSON forbids it inside a string."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ")


def sniff(data):
    """The framing of a capture, by its first byte: a header starts with a letter, JSON does not."""
    return CONTENT_LENGTH if data[:1].lower() == b"c" else NDJSON

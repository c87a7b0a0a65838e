"""The network between the two relays of link.py: a proxy with faults.

Each connection of a relay is a `Pair` of flows, one for each direction. A fault concerns a pair, or,
if it is in `GLOBAL`, the whole network. The proxy reads the first messages of each connection, so that
it knows the link, and when an attachment begins. Not here: the conversations (link_talks.py).
"""
import asyncio
import os
import re
import signal
import socket
import struct
from collections import Counter

# Bytes that a flow may hold back before it is no longer read.
ROOM = 1 << 18
# How long the proxy keeps a pair that has been struck, in seconds.
KEPT = 10
PASS, HOLD, DROP = "pass", "hold", "drop"
# Faults of one connection, and how frequent they are.
KINDS = {"reset": 14, "end of stream": 10, "cut at a byte": 24, "cut in the handshake": 8, "silence": 8, "one way dead": 8,
         "half-open": 8, "late bytes": 10, "sleep": 4, "slow network": 4, "slow reader": 4}
# Faults of all connections. A relay that is stopped is a laptop that sleeps.
GLOBAL = {"refusing": 0.2, "deaf": 0.1, "bad gateway": 0.2, "relay stopped": 0.1}


def end(transport):
    """Ends the stream, unless the connection was lost at this moment."""
    try:
        transport.write_eof()
    except OSError:
        pass


def reset(transport):
    """Closes it with an RST."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Flow(asyncio.Protocol):
    """What one relay sends on one connection."""

    def __init__(self, pair):
        self.pair, self.to, self.transport = pair, None, None
        self.mode, self.held, self.left, self.ended, self.lost = PASS, bytearray(), None, False, False
        self.unread, self.first = set(), b""

    def connection_made(self, transport):
        self.transport = transport
        if self is self.pair.near:
            self.read(False, "no connection yet")
            self.pair.net.keep(asyncio.create_task(self.pair.net.connect(self.pair)))

    def read(self, on, why):
        """Reads again, or stops reading, for a reason; it reads when there is none."""
        (self.unread.discard if on else self.unread.add)(why)
        if self.transport and not self.transport.is_closing():
            (self.transport.pause_reading if self.unread else self.transport.resume_reading)()

    def pause_writing(self):
        self.to.read(False, "full")

    def resume_writing(self):
        self.to.read(True, "full")

    def data_received(self, data):
        if self.first is not None:
            self.pair.net.observe(self, data)
        if self.pair.alter and self.mode == PASS:
            data = self.pair.alter(self, data)
        if self.left is not None and self.mode == PASS:
            data = data[:self.left]
            self.left -= len(data)
            self.hand(data)
            if self.left == 0:
                self.pair.tear(self)
        else:
            self.hand(data)

    def hand(self, data):
        if self.mode == PASS:
            self.write(data)
        elif self.mode == HOLD:
            self.held += data
            if len(self.held) > ROOM:
                self.read(False, "held")

    def write(self, data):
        if self.to.transport and not self.to.transport.is_closing():
            self.to.transport.write(data)

    def release(self, size=None):
        """Sends what was held back, or the first bytes of it."""
        self.write(bytes(self.held[:size]))
        del self.held[:len(self.held) if size is None else size]
        self.read(True, "held")

    def eof_received(self):
        self.ended = True
        if self.mode == PASS and not self.lost and self.to.transport and not self.to.transport.is_closing():
            end(self.to.transport)
        if self.to.ended:
            self.pair.close()
        return True

    def connection_lost(self, fault):
        self.lost = True
        if self.mode == PASS and self.to.transport and not self.to.lost:
            reset(self.to.transport) if fault else self.to.transport.close()
        self.pair.over()


class Pair:
    """A connection of a relay to the other one, through the proxy."""

    def __init__(self, net):
        self.net, self.near, self.far = net, Flow(self), Flow(self)
        self.near.to, self.far.to = self.far, self.near
        self.link, self.up, self.fault, self.since = None, False, None, net.now()
        # Called when the next attachment of the link begins.
        self.replaced = None
        # Changes bytes, for `link.py --prove`.
        self.alter = net.alter
        net.pairs.add(self)

    @property
    def flows(self):
        return self.near, self.far

    def over(self):
        if all(flow.lost or flow.transport is None for flow in self.flows):
            self.net.pairs.discard(self)

    def close(self):
        for flow in self.flows:
            if flow.transport and not flow.lost:
                flow.transport.close()

    def abort(self):
        for flow in self.flows:
            flow.mode = DROP
            if flow.transport and not flow.lost:
                reset(flow.transport)

    def later(self, seconds, what, *args):
        self.net.loop.call_later(seconds, what, *args)

    def tear(self, flow):
        """Its last byte has been forwarded: both sides are reset, or the stream ends."""
        flow.mode = flow.to.mode = DROP
        if self.net.chance.random() < 0.5:
            self.abort()
            return
        if not flow.lost:
            reset(flow.transport)
        self.close()

    def strike(self, kind):
        """Begins a fault of this connection."""
        self.fault, chance = kind, self.net.chance
        one = chance.choice(self.flows)
        if kind == "reset":
            self.abort()
        elif kind == "end of stream":
            for flow in self.flows:
                flow.mode = DROP
                if not flow.lost and not flow.transport.is_closing():
                    end(flow.transport)
            self.later(0.3, self.close)
        elif kind == "cut at a byte":
            one.left = int(2 ** chance.uniform(0, 15))
            # A direction without traffic is cut nevertheless.
            self.later(1, self.abort)
        elif kind == "silence":
            self.near.mode = self.far.mode = DROP
        elif kind == "one way dead":
            one.mode = DROP
        elif kind == "half-open":
            self.near.mode = self.far.mode = DROP
            reset(one.transport)
        elif kind == "late bytes":
            self.late(one)
        elif kind == "sleep":
            seconds = self.net.liveness * chance.uniform(1.1, 4)
            for flow in self.flows:
                flow.read(False, "sleep")
                self.later(seconds, flow.read, True, "sleep")
            self.later(seconds, self.recover)
        elif kind == "slow network":
            until = self.net.now() + chance.uniform(0.5, 4)
            for flow in self.flows if chance.random() < 0.5 else (one,):
                flow.mode = HOLD
                self.trickle(flow, until, int(2 ** chance.uniform(6, 13)))
        if kind not in ("sleep", "slow network"):
            self.later(self.net.kept, self.abort)

    def recover(self):
        self.fault, self.since = None, self.net.now()

    def late(self, one):
        """Holds back the bytes of `one`, resets its sender, and delivers them once the link has a new attachment."""
        one.mode, one.to.mode = HOLD, DROP
        wait = self.net.chance.uniform(0, 0.05)

        def deliver():
            self.replaced = None
            if one.mode == HOLD:
                self.net.delivered += bool(one.held and not one.to.lost)
                one.release()
                self.later(0.3, self.abort)
        self.replaced = lambda: self.later(wait, deliver)
        until = self.net.now() + 0.5

        def cut():
            # Not before there are some.
            if not one.held and not one.lost and self.net.now() < until:
                self.later(0.01, cut)
            elif not one.lost:
                reset(one.transport)
        self.later(self.net.chance.uniform(0, 0.1), cut)
        self.later(4, lambda: self.replaced and deliver())

    def trickle(self, flow, until, size):
        if self.net.now() < until and not flow.lost:
            flow.release(size)
            self.later(0.02, self.trickle, flow, until, size)
        elif flow.mode == HOLD:
            flow.mode = PASS
            flow.release()
            if flow.ended and not flow.to.lost and not flow.to.transport.is_closing():
                end(flow.to.transport)
            elif flow.lost and not flow.to.lost:
                flow.to.transport.close()
            if flow.to.mode == PASS:
                self.recover()


class Network:
    """The proxy. `due` is the number of faults that there should have been by now."""

    def __init__(self, chance, port, target, liveness, relays, due, stick, alter=None, kept=KEPT):
        self.chance, self.port, self.target, self.liveness, self.relays = chance, port, target, liveness, relays
        self.due, self.stick, self.alter, self.kept = due, stick, alter, kept
        self.loop, self.server, self.pairs, self.tasks, self.links = asyncio.get_running_loop(), None, set(), set(), {}
        self.faults, self.attachments, self.refusals, self.connections = Counter(), Counter(), Counter(), 0
        # What new connections get instead of the other relay, and whether they begin with a cut.
        self.door, self.cut_next, self.busy = "open", 0, False
        # How often late bytes reached a relay.
        self.delivered = 0

    @property
    def done(self):
        return sum(self.faults.values())

    def now(self):
        return self.loop.time()

    def keep(self, task):
        self.tasks.add(task)
        task.add_done_callback(lambda done: (self.tasks.discard(done), done.cancelled() or done.result()))

    async def listen(self):
        self.server = await self.loop.create_server(lambda: Pair(self).near, "127.0.0.1", self.port, backlog=4096)

    async def connect(self, pair):
        """Connects to the other relay; or not, while the network has a fault."""
        self.connections += 1
        if self.door == "bad gateway":
            pair.near.transport.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            pair.near.mode = DROP
            pair.near.read(True, "no connection yet")
            pair.later(0.2, pair.close)
            return
        if self.door == "deaf":
            pair.near.mode = DROP
            pair.near.read(True, "no connection yet")
            pair.later(self.chance.uniform(0.5, 3), pair.abort)
            return
        try:
            await self.loop.create_connection(lambda: pair.far, "127.0.0.1", self.target)
        except OSError:
            pair.abort()
            return
        if pair.near.lost:
            pair.close()
        if self.cut_next:
            self.cut_next -= 1
            self.faults["cut in the handshake"] += 1
            pair.fault = "cut in the handshake"
            self.chance.choice(pair.flows).left = self.chance.randrange(1, 1200)
            pair.later(self.kept, pair.abort)
        pair.near.read(True, "no connection yet")

    def observe(self, flow, data):
        """Reads the beginning of a connection."""
        flow.first += data
        pair = flow.pair
        head, blank, rest = flow.first.partition(b"\r\n\r\n")
        if not blank:
            return
        if flow is pair.far:
            status = head.split(b" ", 2)[1].decode(errors="replace")
            if status != "101":
                self.refusals["HTTP " + status] += 1
                flow.first = None
                return
            if b"acp-link" not in head.lower():
                self.attachments["without a link"] += 1
                pair.up, flow.first, pair.since = True, None, self.now()
                return
        message = first_message(rest)
        if message is None:
            if len(rest) > 1 << 16:
                flow.first = None
            return
        flow.first = None
        named = re.search(rb'"link":"([^"]+)"', message)
        if flow is pair.near:
            if named:
                self.begin(pair, named[1])
        elif b'"welcome"' in message:
            self.attachments["resumed" if b'"resumed":true' in message else "new"] += 1
            self.begin(pair, named and named[1])
            pair.up, pair.since = True, self.now()
        elif b'"refuse"' in message:
            code = re.search(rb'"code":"([^"]+)"', message)
            self.refusals[code[1].decode() if code else "?"] += 1

    def begin(self, pair, link):
        """An attachment of the link begins."""
        pair.link, old = link, self.links.get(link)
        self.links[link] = pair
        if old is not None and old is not pair and old.replaced:
            old.replaced()

    async def drive(self, calm):
        """Makes the faults that are due, except while `calm()`."""
        kinds, weights = zip(*{**KINDS, **GLOBAL}.items())
        while True:
            await asyncio.sleep(0.01)
            if calm():
                self.cut_next = 0
                continue
            count, now = min(int(self.due()) - self.done - self.cut_next, 20), self.now()
            healthy = [pair for pair in self.pairs if pair.up and not pair.fault and now - pair.since > 0.1
                       and not any(flow.lost or flow.ended for flow in pair.flows)] if count > 0 else []
            self.chance.shuffle(healthy)
            for pair in healthy[:max(count, 0)]:
                kind = self.chance.choices(kinds, weights)[0]
                if kind in GLOBAL:
                    if not self.busy:
                        self.busy = True
                        self.keep(asyncio.create_task(self.strike_all(kind)))
                elif kind == "cut in the handshake":
                    # The next connection will be the one of this link.
                    self.cut_next += 1
                    self.faults["reset"] += 1
                    pair.strike("reset")
                elif kind == "slow reader":
                    self.faults[kind] += self.stick(self.chance)
                else:
                    self.faults[kind] += 1
                    pair.strike(kind)

    async def strike_all(self, kind):
        """A fault of the whole network."""
        self.faults[kind] += 1
        seconds = self.chance.uniform(0.2, 1.5)
        try:
            if kind == "relay stopped":
                pid = self.chance.choice(self.relays)
                os.kill(pid, signal.SIGSTOP)
                try:
                    await asyncio.sleep(self.liveness * self.chance.uniform(1.1, 3))
                finally:
                    os.kill(pid, signal.SIGCONT)
                return
            if kind == "refusing":
                self.server.close()
            self.door = kind
            up = [pair for pair in self.pairs if pair.up and not pair.fault]
            for pair in self.chance.sample(up, len(up) // 5):
                self.faults["reset"] += 1
                pair.strike("reset")
            await asyncio.sleep(seconds)
            self.door = "open"
            if kind == "refusing":
                await self.listen()
        finally:
            self.busy = False

    async def heal(self):
        """Ends all faults."""
        while self.busy:
            await asyncio.sleep(0.05)
        self.cut_next = 0
        for pair in list(self.pairs):
            if pair.fault and pair.fault not in ("sleep", "slow network"):
                pair.abort()


def first_message(data):
    """The content of the first WebSocket frame, None if it is not complete."""
    if len(data) < 2:
        return None
    size, at = data[1] & 0x7F, 2
    if size > 125:
        at = 4 if size == 126 else 10
        size = int.from_bytes(data[2:at], "big")
    masked = data[1] & 0x80
    start = at + 4 if masked else at
    if len(data) < start + size:
        return None
    body = data[start:start + size]
    if masked:
        body = bytes(byte ^ data[at + i % 4] for i, byte in enumerate(body))
    return body


class Meddler:
    """Changes whole WebSocket messages of the first connection in one direction, for `link.py prove`."""

    def __init__(self, how, way, at):
        self.how, self.way, self.at = how, way, at
        self.flow, self.rest, self.opened, self.count, self.swapped = None, b"", False, 0, b""

    def __call__(self, flow, data):
        if self.flow is None and flow is getattr(flow.pair, self.way):
            self.flow = flow
        if flow is not self.flow:
            return data
        self.rest += data
        out = []
        if not self.opened:
            head, blank, self.rest = self.rest.partition(b"\r\n\r\n")
            if not blank:
                self.rest = head
                return b""
            self.opened = True
            out.append(head + blank)
        while (size := frame_size(self.rest)) is not None:
            frame, self.rest = self.rest[:size], self.rest[size:]
            # Of an answer or a request the relays drop the second one themselves.
            note = size > 150 and any(method in first_message(frame) for method in (b"_peers/note", b"session/update"))
            self.count += note
            out.append(self.frame(frame) if note else frame)
        return b"".join(out)

    def frame(self, frame):
        if self.count == self.at + 1:
            frame, self.swapped = frame + self.swapped, b""
        if self.count != self.at:
            return frame
        if self.how == "swap":
            self.swapped = frame
        elif self.how == "reset":
            self.flow.pair.later(0, self.flow.pair.abort)
        elif self.how == "change":
            return frame[:-20] + bytes([frame[-20] ^ 1]) + frame[-19:]
        return {"drop": b"", "swap": b"", "double": 2 * frame}.get(self.how, frame)


def frame_size(data):
    if len(data) < 2:
        return None
    size, at = data[1] & 0x7F, 2
    if size > 125:
        at = 4 if size == 126 else 10
        if len(data) < at:
            return None
        size = int.from_bytes(data[2:at], "big")
    whole = at + size + (4 if data[1] & 0x80 else 0)
    return whole if len(data) >= whole else None

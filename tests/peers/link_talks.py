"""The conversations of link.py: clients and agents with fixed messages, and the check of what arrives.

Message number i of a direction of a conversation has one text, which is computed from the seed. So
what a side receives is compared with the expected bytes in large pieces; only after the first
difference are messages read one by one, to name what was lost, doubled, reordered or changed.
Requests and answers have fixed places among the messages. Not here: the relays (link.py), the
network between them (link_faults.py).
"""
import asyncio
import json
import os
import random
import re
import struct
import time
from collections import Counter

# Messages of a block, and the places of a request and of an answer in it.
BLOCK, REQUEST, ANSWER = 64, 13, 45
# One message in so many is a large one.
LARGE = 1024
# Seconds without progress after which a conversation is hung.
HUNG = 60
# The direction of what each side sends.
WAYS = {"c": "client to agent", "a": "agent to client"}
OTHER = {"c": "a", "a": "c"}
PLACE = re.compile(rb'"of":\[(\d+),(\d+),"([ca])",(\d+)\]')
# How many blocks a side may be ahead of the other one. The bytes of 300 exceed the window of a link.
LAGS, SHARES = (1, 4, 16, 300), (5, 9, 5, 1)


class Texts:
    """The messages of one direction."""

    def __init__(self, seed, pool, link, life, way, blocks, lag):
        self.key, self.pool, self.blocks, self.lag = "%d %d %d %s" % (seed, link, life, way), pool, blocks, lag
        of = ('"of":[%d,%d,"%s",%%d],"text":"%%b"' % (link, life, way)).encode()
        methods = (b"_peers/note", b"_peers/ask") if way == "c" else (b"session/update", b"session/request_permission")
        self.note = b'{"jsonrpc":"2.0","method":"%b","params":{%b}}\n' % (methods[0], of)
        self.request = b'{"jsonrpc":"2.0","id":"%b%%d","method":"%b","params":{%b}}\n' % (way.encode(), methods[1], of)
        # Not ASCII, and an escape.
        self.answer = '{"jsonrpc":"2.0","id":"%s%%d","result":{%s,"\\u00e4":"\U0001f980"}}\n' % (OTHER[way], of.decode())
        self.answer = self.answer.encode()

    def block(self, number):
        """The bytes of the messages of a block."""
        draws = struct.unpack("<%dI" % BLOCK, random.Random("%s %d" % (self.key, number)).randbytes(4 * BLOCK))
        first, pool, note, lines = number * BLOCK, self.pool, self.note, []
        for i, draw in enumerate(draws):
            at = draw >> 14
            size = draw & 0xFF if draw & 0x300 else draw & 0x1F
            if draw % LARGE == 0:
                size = 10_000 + at * 3 % 190_000
            text = pool[at:at + size]
            if i == REQUEST and number + self.lag < self.blocks:
                lines.append(self.request % (first + i, first + i, text))
            elif i == ANSWER and number >= self.lag:
                lines.append(self.answer % (first + REQUEST - self.lag * BLOCK, first + i, text))
            else:
                lines.append(note % (first + i, text))
        return b"".join(lines)

    def message(self, number):
        return self.block(number // BLOCK).split(b"\n")[number % BLOCK] + b"\n"


class End(asyncio.Protocol):
    """A client or an agent of a conversation that has been opened: sends, and checks what it receives."""

    def __init__(self, talk, way, transport):
        self.talk, self.load, self.way, self.transport = talk, talk.load, way, transport
        self.texts, self.expected = talk.texts[way], talk.texts[OTHER[way]]
        self.sent = self.got = self.at = 0
        self.block = b""
        self.full = self.stuck = False
        self.since = time.monotonic()
        # After a difference: the bytes of an incomplete line, the next number, and those left out.
        self.line, self.next, self.missing, self.strange = None, 0, set(), 0
        self.place = (b"%d" % talk.link, b"%d" % talk.life, OTHER[way].encode())

    @property
    def peer(self):
        return self.talk.ends.get(OTHER[self.way])

    def number(self):
        """The first message that has not arrived."""
        return self.next if self.line is not None else self.got * BLOCK + self.block.count(b"\n", 0, self.at)

    def waits(self):
        """Whether something that was sent has not arrived."""
        return self.peer is not None and self.peer.sent * BLOCK > self.number()

    def pump(self):
        """Sends as much as it may."""
        if self.talk.state != "going":
            return
        while not self.full and self.sent < self.texts.blocks and self.got > self.sent - self.texts.lag:
            if not self.load.may_send() and not self.talk.cut:
                self.load.waiting.add(self)
                return
            if self.peer and not self.peer.waits():
                self.peer.since = time.monotonic()
            self.transport.write(self.texts.block(self.sent))
            self.sent += 1
            self.load.sent += BLOCK

    def pause_writing(self):
        self.full = True

    def resume_writing(self):
        self.full = False
        self.pump()

    def stick(self, seconds):
        """Stops reading for a while."""
        self.stuck = True
        self.transport.pause_reading()

        def resume():
            self.stuck = False
            if not self.transport.is_closing():
                self.transport.resume_reading()
        asyncio.get_running_loop().call_later(seconds, resume)

    def data_received(self, data):
        self.since = time.monotonic()
        if self.line is not None:
            self.examine(data)
        else:
            pos, size = 0, len(data)
            while pos < size:
                if self.at == len(self.block):
                    if self.got >= self.expected.blocks:
                        self.load.fail("unexpected", self.talk, self.way, self.got * BLOCK, "%.300r" % data[pos:])
                        return
                    self.block, self.at = self.expected.block(self.got), 0
                take = min(size - pos, len(self.block) - self.at)
                if data[pos:pos + take] != self.block[self.at:self.at + take]:
                    same = len(os.path.commonprefix((data[pos:pos + take], self.block[self.at:self.at + take])))
                    begin = self.block.rfind(b"\n", 0, self.at + same) + 1
                    self.next = self.got * BLOCK + self.block.count(b"\n", 0, begin)
                    self.load.received[OTHER[self.way]] += self.next - self.got * BLOCK
                    self.line = self.block[begin:self.at]
                    if begin > self.at:
                        pos += begin - self.at
                    self.examine(data[pos:])
                    break
                pos += take
                self.at += take
                if self.at == len(self.block):
                    self.got += 1
                    self.load.received[OTHER[self.way]] += BLOCK
                    self.load.answers += self.got > self.expected.lag
        self.pump()
        self.talk.settle()

    def examine(self, data):
        """Reads messages one by one."""
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            place = PLACE.search(line)
            if not place or place.groups()[:3] != self.place:
                self.strange += 1
                if self.strange <= 3:
                    self.load.fail("unexpected", self.talk, self.way, self.next, "%.300r" % line)
                continue
            number = int(place[4])
            if line + b"\n" != self.expected.message(number):
                self.load.fail("changed", self.talk, self.way, number, "%.300r" % line)
            if number >= self.next:
                self.missing.update(range(self.next, number))
                self.next = number + 1
                self.load.received[OTHER[self.way]] += 1
            elif number in self.missing:
                self.missing.remove(number)
                self.load.fail("reordered", self.talk, self.way, number, "it arrives after number %d" % (self.next - 1))
            else:
                self.load.fail("doubled", self.talk, self.way, number, "it arrives again, after number %d" % (self.next - 1))
        self.got = self.next // BLOCK

    def finish_count(self):
        """Names what never arrived."""
        for number in sorted(self.missing):
            self.load.fail("lost", self.talk, self.way, number, "")
        self.missing = set()

    def eof_received(self):
        self.talk.ended(self, "the relay has ended the connection")

    def connection_lost(self, fault):
        self.talk.gone(self, fault)


class Door(asyncio.Protocol):
    """A connection until its first line has arrived."""

    def __init__(self, on_line, on_lost=lambda: None):
        self.on_line, self.on_lost, self.rest, self.transport = on_line, on_lost, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.rest += data
        if b"\n" in self.rest:
            line, rest = self.rest.split(b"\n", 1)
            self.on_line(self.transport, line, rest)

    def connection_lost(self, fault):
        self.on_lost()


class Talk:
    """A conversation; `life` is its number on its link. States: opening, going, ending, over."""

    def __init__(self, load, link, life):
        self.load, self.link, self.life, self.attempt = load, link, life, 0
        chance = random.Random("%d %d %d" % (load.seed, link, life))
        lag = chance.choices(LAGS, SHARES)[0]
        self.blocks, self.lag = lag + int(2 ** chance.uniform(0, 5)), lag
        self.texts = {way: Texts(load.seed, load.pool, link, life, way, self.blocks, lag) for way in WAYS}
        # Which side ends it, and whether it does so before its last messages have arrived.
        self.closer, self.hasty = chance.choice("ca"), chance.random() < 0.5
        self.ends, self.state, self.cut, self.since = {}, "opening", False, time.monotonic()

    async def open(self):
        """Connects the client, until its `initialize` is answered."""
        while self.state == "opening" and not self.load.stopping:
            self.attempt += 1
            self.since = time.monotonic()
            done = asyncio.get_running_loop().create_future()
            attempt = self.attempt

            def answered(transport, line, rest):
                if b'"result"' not in line or self.state != "opening":
                    if self.state == "opening" and len(self.load.openings) < 20:
                        self.load.openings.append(line[:300])
                    transport.abort()
                    return
                self.ends["c"] = End(self, "c", transport)
                transport.set_protocol(self.ends["c"])
                self.state = "going"
                if "a" not in self.ends:
                    self.load.fail("broken", self, "c", 0, "answered without an agent")
                if rest:
                    self.ends["c"].data_received(rest)
                for end in list(self.ends.values()):
                    end.pump()
                if not done.done():
                    done.set_result(True)

            def lost():
                if not done.done():
                    done.set_result(False)
            try:
                transport, _ = await asyncio.get_running_loop().create_unix_connection(
                    lambda: Door(answered, lost), self.load.near)
                hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
                    "protocolVersion": 1, "clientCapabilities": {},
                    "clientInfo": {"name": "peers", "version": "%d.%d.%d" % (self.link, self.life, attempt)}}}
                transport.write(json.dumps(hello).encode() + b"\n")
                if await done:
                    return
            except OSError as fault:
                self.load.openings.append(str(fault).encode())
            # One that is under way when the run ends has not failed.
            if not self.load.stopping:
                self.load.repeated += 1
            await asyncio.sleep(0.1)

    def settle(self):
        """Begins the end: once everything has arrived, or is only on its way to the other side."""
        ends = self.ends.values()
        if self.hasty:
            ends = [end for end in ends if end.way == self.closer and end.sent >= self.blocks]
        if self.state == "going" and ends and all(end.got >= self.blocks for end in ends):
            self.finish()

    def finish(self):
        self.state, self.since = "ending", time.monotonic()
        closing = self.ends[self.closer]
        if closing.way == "c":
            closing.transport.write_eof()
        else:
            closing.transport.close()

    def shorten(self):
        """Ends it as soon as all requests that were sent are answered."""
        self.cut = True
        self.blocks = min(self.blocks, max(end.sent for end in self.ends.values()) + self.lag)
        for texts in self.texts.values():
            texts.blocks = self.blocks
        for end in list(self.ends.values()):
            end.pump()
        self.settle()

    def ended(self, end, how):
        if self.state == "going" and self.ends.get(end.way) is end:
            numbers = ", ".join("%s up to %d of %d" % (WAYS[OTHER[way]], one.number(), one.peer.sent * BLOCK)
                                                for way, one in self.ends.items() if one.peer)
            self.load.fail("broken", self, end.way, end.number(), "%s; %s" % (how, numbers))
            self.stop()

    def gone(self, end, fault):
        self.ended(end, "the connection to the relay broke: %s" % fault)
        if self.state == "ending" and self.ends.get(end.way) is end:
            if (number := end.number()) < self.blocks * BLOCK:
                end.missing.update(range(number, self.blocks * BLOCK))
            end.finish_count()
            del self.ends[end.way]
            if not self.ends:
                self.state = "over"
                self.load.next(self)

    def stop(self):
        """Gives it up."""
        self.state = "over"
        for end in self.ends.values():
            end.finish_count()
            end.transport.abort()
        self.load.next(self)

    def check(self, now):
        """Detects that it is hung; returns for how long it has not progressed."""
        stalls = [(now - self.since, "c", 0, "it is not %s, by the side %s" % (
            {"opening": "opened", "ending": "ended"}.get(self.state), "".join(self.ends)))]
        if self.state == "going":
            stalls = [(now - end.since, way, end.number(), "%d were sent" % (end.peer.sent * BLOCK))
                      for way, end in self.ends.items() if end.waits() and not end.stuck]
        longest = max(stalls, default=(0,))
        if longest[0] > HUNG and self.state != "over":
            self.load.fail("hung", self, longest[1], longest[2], "no progress for %d s; %s" % (longest[0], longest[3]))
            self.stop()
        return longest[0]


class Load:
    """All conversations. `pace` is the number of messages that may have been sent by now."""

    KINDS = ("lost", "doubled", "reordered", "changed", "unexpected", "broken", "hung")

    def __init__(self, seed, links, near, agents, pace):
        self.seed, self.links, self.near, self.agents, self.pace = seed, links, near, agents, pace
        letters = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,:;0123456789{}[()/'"
        self.pool = "".join(random.Random(seed).choices(letters, k=(1 << 18) + 200_000)).encode()
        self.talks, self.waiting, self.tasks = {}, set(), set()
        self.sent = self.answers = self.over = self.repeated = 0
        self.received, self.failed, self.named, self.openings = Counter(), Counter(), Counter(), []
        self.stopping, self.stalled = False, 0

    def may_send(self):
        return not self.stopping and self.sent < self.pace()

    async def start(self):
        server = await asyncio.get_running_loop().create_unix_server(lambda: Door(self.agent), self.agents, backlog=4096)
        for link in range(self.links):
            self.open(Talk(self, link, 0))
        self.keep(asyncio.create_task(self.tick()))
        return server

    def keep(self, task):
        self.tasks.add(task)
        task.add_done_callback(lambda done: (self.tasks.discard(done), done.cancelled() or done.result()))

    def open(self, talk):
        self.talks[talk.link] = talk
        self.keep(asyncio.create_task(talk.open()))

    def next(self, talk):
        """The conversation is over, the next one of its link begins."""
        if self.talks.get(talk.link) is talk:
            del self.talks[talk.link]
            self.over += 1
            if not self.stopping:
                self.open(Talk(self, talk.link, talk.life + 1))

    def agent(self, transport, line, rest):
        """A relay has connected to an agent, and sent the first line."""
        link, life, attempt = map(int, re.search(rb'"version": ?"(\d+)\.(\d+)\.(\d+)"', line).groups())
        talk = self.talks.get(link)
        if talk is None or (talk.life, talk.attempt, talk.state) != (life, attempt, "opening"):
            # Of an attempt that the client has given up.
            transport.set_protocol(Door(lambda *_: None))
            return
        end = talk.ends["a"] = End(talk, "a", transport)
        transport.set_protocol(end)
        answer = {"jsonrpc": "2.0", "id": "hello", "result": {"protocolVersion": 1, "agentCapabilities": {}}}
        transport.write(json.dumps(answer).encode() + b"\n")
        if rest:
            end.data_received(rest)

    async def tick(self):
        while True:
            for _ in range(50):
                await asyncio.sleep(0.02)
                # In an order that favours none.
                waiting, self.waiting = list(self.waiting), set()
                random.shuffle(waiting)
                for end in waiting:
                    end.pump()
            now = time.monotonic()
            self.stalled = max((talk.check(now) for talk in list(self.talks.values())), default=0)

    def stick(self, chance):
        """One client or agent stops reading for a while; whether one could be found."""
        talk = self.talks.get(chance.randrange(self.links))
        end = talk and talk.state == "going" and talk.ends.get(chance.choice("ca"))
        if not end or end.stuck:
            return False
        end.stick(chance.uniform(0.3, 3))
        return True

    async def stop(self):
        """Ends all conversations."""
        self.stopping = True
        while self.talks:
            for talk in list(self.talks.values()):
                if talk.state == "opening":
                    talk.state = "over"
                    self.next(talk)
                elif talk.state == "going" and len(talk.ends) == 2 and not talk.cut:
                    talk.shorten()
            await asyncio.sleep(0.02)

    def fail(self, kind, talk, way, number, detail):
        """Something is wrong with message `number` that the side `way` receives; the first ones are named."""
        self.failed[kind] += 1
        self.named[kind, talk.link, talk.life, way] += 1
        if self.named[kind, talk.link, talk.life, way] <= 3 and len(self.named) <= 20:
            print("FAIL  %-10s  link %d, conversation %d, %s, number %d%s" % (
                kind, talk.link, talk.life, WAYS[OTHER[way]], number, detail and ": " + detail), flush=True)

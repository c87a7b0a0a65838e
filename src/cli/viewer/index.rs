//! Where every event of a recording stands, and what a page must know of it before it is read.
//!
//! It is shown one line after the other and keeps no bodies: about 60 bytes for each event. A
//! translated message was recorded when it was written; it is listed behind the one that it was made
//! of, where its receiver got it.
//! Not here: files and threads (see `book`).

use super::findings::Findings;
use crate::jsonrpc::Side;
use crate::recording::{
    Conversation, Entry, Event, Exchange, Found, Header, Message, MessageKind, View, What,
};

/// Items within which a translated message follows the one it was made of.
const NEAR: usize = 10_000;

/// Every line that was read, in order.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The header of each segment, and which segment that is.
    pub(super) headers: Vec<(u16, Header)>,
    pub(super) items: Vec<Item>,
    /// The keys of all items, in order.
    pub(super) order: Vec<u64>,
    /// What is shown while runs of chunks are folded: no repetitions, and not that frames were
    /// passed on.
    pub(super) folded: Vec<u64>,
    pub(super) turns: Vec<Turn>,
    pub(super) damaged: u64,
    pub(super) errors: u64,
    /// The recording says that it is over.
    pub(super) ended: bool,
    /// Its last line says that it goes on in another file.
    pub(super) rotated: bool,
    pub(super) findings: Findings,
    /// Items of which more became known after they were taken in, in the order in which it did.
    pub(super) revised: Vec<u32>,
    conversation: Conversation,
    /// Runs of chunks that may go on.
    open: Vec<OpenRun>,
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Where it begins in its segment.
    pub(super) at: u64,
    /// Its event's number; of a damaged line, that of the event before it.
    pub(super) n: u64,
    /// Microseconds since the recording began.
    pub(super) t: u64,
    pub(super) length: u32,
    /// How many chunks it stands for while runs are folded; 0 for one that is folded away.
    pub(super) run: u32,
    pub(super) segment: u16,
    /// The item behind which it is listed: of a translated message, the one it was made of; of any
    /// other item, itself.
    pub(super) place: u32,
    pub(super) class: Class,
    /// It was handed over with the bytes it had.
    pub(super) passed: bool,
}

/// What a line is, as far as the timeline tells lines apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Heard from the client, or said to the agent.
    ToAgent,
    /// The other way.
    ToClient,
    /// An answer that says why there is none.
    Error,
    /// That frames were passed on.
    Passed,
    /// All else.
    Other,
    /// Nothing that can be relied on.
    Broken,
}

/// A prompt and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) item: usize,
    pub(super) n: u64,
    pub(super) t: u64,
    pub(super) session: Option<String>,
    pub(super) end: Option<TurnEnd>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnEnd {
    pub(super) item: usize,
    pub(super) n: u64,
    pub(super) t: u64,
    pub(super) failed: bool,
}

#[derive(Debug)]
struct OpenRun {
    hop: Side,
    to: Side,
    kind: Vec<u8>,
    session: Option<String>,
    head: usize,
    /// Where its last chunk is listed.
    last: usize,
}

impl Item {
    /// What orders it among all items, of which it is the one at `at`.
    pub(super) fn key(&self, at: usize) -> u64 {
        u64::from(self.place) << 32 | u64::from(narrow(at))
    }
}

impl Index {
    /// Takes a line of segment `segment` in.
    pub(super) fn take(&mut self, segment: u16, entry: &Entry) {
        let last = self.items.last().map_or((0, 0), |item| (item.n, item.t));
        let (n, t, class) = match &entry.found {
            Found::Header(header) => {
                if self.headers.last().is_none_or(|(last, _)| *last < segment) {
                    self.headers.push((segment, (**header).clone()));
                }
                return;
            }
            Found::Event(event) => (event.n, event.t.max(last.1), class(&event.what)),
            Found::Broken(_) => (last.0, last.1, Class::Broken),
        };
        self.errors += u64::from(class == Class::Error);
        self.damaged += u64::from(class == Class::Broken);
        let at = self.items.len();
        self.items.push(Item {
            at: entry.at,
            n,
            t,
            length: u32::try_from(entry.line.len()).unwrap_or(u32::MAX),
            run: 1,
            segment,
            place: narrow(self.place(at, entry)),
            class,
            passed: false,
        });
        let key = self.key(at);
        put(&mut self.order, key);
        if let Found::Event(event) = &entry.found {
            self.learn(at, event);
        }
        if class != Class::Passed && self.items[at].run > 0 {
            put(&mut self.folded, key);
        }
    }

    /// The place of the message that a translated one was made of; its own, of anything else.
    fn place(&self, at: usize, entry: &Entry) -> usize {
        let Found::Event(event) = &entry.found else {
            return at;
        };
        let of = match &event.what {
            What::Message(message) if !message.is_heard() => message.of,
            _ => None,
        };
        let origin = of.map(|of| (of, self.item_of(of)));
        let is_near = |(of, origin): &(u64, usize)| {
            *origin < at && at - origin < NEAR && self.items[*origin].n == *of
        };
        origin.filter(is_near).map_or(at, |(_, origin)| origin)
    }

    /// The key of an item; beyond the last one, a greater one than all.
    pub(super) fn key(&self, at: usize) -> u64 {
        self.items.get(at).map_or(u64::MAX, |item| item.key(at))
    }

    /// What the recording says of itself.
    pub(super) fn header(&self) -> Option<&Header> {
        self.headers.first().map(|(_, header)| header)
    }

    /// The exchange that the event with number `n` asks for or answers.
    pub(super) fn exchange(&self, n: u64) -> Option<&Exchange> {
        self.conversation.exchange(n)
    }

    /// How long that took, in microseconds, when there is an answer.
    pub(super) fn took(&self, n: u64) -> Option<u64> {
        self.conversation.took(n)
    }

    /// The first item with number `n` or a later one.
    pub(super) fn item_of(&self, n: u64) -> usize {
        self.items.partition_point(|item| item.n < n)
    }

    /// How much happened in each of `count` equal parts of the time: to the agent, to the client,
    /// errors, all else.
    pub(super) fn buckets(&self, count: usize) -> [Vec<u32>; 4] {
        let mut buckets = [(); 4].map(|()| vec![0; count]);
        let whole = self.lasted() + 1;
        for item in &self.items {
            let bucket = match item.class {
                Class::ToAgent => 0,
                Class::ToClient => 1,
                Class::Error => 2,
                Class::Other | Class::Broken => 3,
                Class::Passed => continue,
            };
            let place = u128::from(item.t) * count as u128 / u128::from(whole);
            // It is less than `count`, for no item is later than the last.
            buckets[bucket][usize::try_from(place).unwrap_or(0)] += 1;
        }
        buckets
    }

    /// Microseconds from the beginning to the last event.
    pub(super) fn lasted(&self) -> u64 {
        self.items.last().map_or(0, |item| item.t)
    }

    fn learn(&mut self, at: usize, event: &Event) {
        self.ended = matches!(event.what, What::End { rotated: false, .. });
        self.rotated = matches!(event.what, What::End { rotated: true, .. });
        match &event.what {
            What::Passed(passed) => {
                let from = self.item_of(passed.first);
                let class = match passed.to {
                    Side::Agent => Class::ToAgent,
                    Side::Client => Class::ToClient,
                };
                for item in &mut self.items[from..at] {
                    let is_error = item.class == Class::Error;
                    if item.n <= passed.last && (item.class == class || is_error) {
                        item.passed = true;
                    }
                }
            }
            What::Message(message) => {
                self.follow_run(at, message);
                self.follow_turn(at, event, message);
            }
            _ => self.open.clear(),
        }
    }

    fn follow_run(&mut self, at: usize, message: &Message) {
        let edge = (message.hop, message.to);
        let Some(kind) = chunk(message) else {
            self.open.retain(|run| (run.hop, run.to) != edge);
            return;
        };
        let (class, place) = (self.items[at].class, self.items[at].place as usize);
        // A message that was passed on as it was, between two translated chunks, parts them.
        let parts = |run: &OpenRun| {
            let is_own = |n: usize| self.items[n].place as usize == n;
            let mut between = run.last + 1..place;
            place < at && between.any(|n| self.items[n].class == class && is_own(n))
        };
        let known = self.open.iter().position(|run| {
            (run.hop, run.to) == edge
                && run.kind == kind
                && run.session == message.session
                && !parts(run)
        });
        match known {
            Some(run) => {
                let run = &mut self.open[run];
                run.last = place;
                self.items[run.head].run += 1;
                self.items[at].run = 0;
            }
            None => {
                self.open.retain(|run| (run.hop, run.to) != edge);
                self.open.push(OpenRun {
                    hop: message.hop,
                    to: message.to,
                    kind: kind.to_owned(),
                    session: message.session.clone(),
                    head: at,
                    last: place,
                });
            }
        }
    }

    fn follow_turn(&mut self, at: usize, event: &Event, message: &Message) {
        if self.conversation.see(event).is_none() {
            return;
        }
        // What the client asked and was sent; of both, a translated prompt's own exchange is the
        // agent's.
        let at_client = View::At(Side::Client);
        let Some(exchange) = self.conversation.exchange_in(at_client, event.n) else {
            return;
        };
        let (asked, prompt) = (exchange.n, exchange.method == "session/prompt");
        if message.kind.is_some_and(MessageKind::is_answer) {
            let request = self.items.partition_point(|item| item.n < asked);
            self.revised.push(narrow(request));
            let open = self.turns.iter_mut().rev().find(|turn| turn.n == asked);
            let translated = !message.is_heard() && message.of.is_some();
            if let Some(turn) = open.filter(|turn| prompt && (turn.end.is_none() || translated)) {
                turn.end = Some(TurnEnd {
                    item: at,
                    n: event.n,
                    t: event.t,
                    failed: message.kind == Some(MessageKind::Error),
                });
            }
        } else if prompt && message.hop == Side::Client && message.is_heard() {
            self.turns.push(Turn {
                item: at,
                n: event.n,
                t: event.t,
                session: message.session.clone(),
                end: None,
            });
        }
    }
}

fn class(what: &What) -> Class {
    match what {
        What::Message(message) if message.kind == Some(MessageKind::Error) => Class::Error,
        What::Message(message) => match message.to {
            Side::Agent => Class::ToAgent,
            Side::Client => Class::ToClient,
        },
        What::Passed(_) => Class::Passed,
        _ => Class::Other,
    }
}

/// The kind of update that a frame is, if it is one of many that make up one text.
///
/// The name cannot stand inside of a string, where its quotes would be escaped.
fn chunk(message: &Message) -> Option<&[u8]> {
    const NAME: &[u8] = b"\"sessionUpdate\"";
    if message.method.as_deref() != Some("session/update") {
        return None;
    }
    let body = message.body.bytes()?;
    let at = memchr::memmem::find(body, NAME)?;
    let rest = body[at + NAME.len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b":")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"")?;
    let kind = &rest[..memchr::memchr(b'"', rest)?];
    kind.ends_with(b"_chunk").then_some(kind)
}

/// Puts a key into an ordered list, at or near its end.
pub(super) fn put(list: &mut Vec<u64>, key: u64) {
    let at = list.partition_point(|known| *known < key);
    list.insert(at, key);
}

/// The item of a key.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half is the item"
)]
pub(super) const fn item_at(key: u64) -> usize {
    key as u32 as usize
}

fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

//! Two ends of a link over connections that are cut at random, in virtual time: nothing is lost,
//! doubled or reordered. Receivers that leave out a check fail the same runs, so the law is seen to
//! be broken when it is.
//!
//! `LINK_FAULTS=1000000 cargo test --test it -- link::simulation` makes so many faults.

use std::collections::VecDeque;
use std::time::Duration;

use acp_relay::jsonrpc::Frame;
use acp_relay::link::{LinkState, Received};

/// Faults of a usual run.
const FAULTS: u64 = 100_000;
/// Messages in each direction of one link.
const MESSAGES: usize = 60;
const WINDOW: u64 = 64 * 16;
const LIMIT: usize = 64 << 8;

/// A small generator of numbers (SplitMix64), so that a seed is a run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// How an end checks what it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checks {
    /// As the link does: generation and number.
    Both,
    /// The number alone: what is late is taken for the current attachment's.
    NumberOnly,
    /// Neither: it counts what it receives.
    None,
    /// It takes the number of whatever comes as the last one.
    Unchecked,
}

/// What is on the wire.
#[derive(Clone, Copy, Debug)]
enum Message {
    Data { seq: u64, ack: u64, number: usize },
    Ack(u64),
}

/// One end.
struct EndPoint {
    state: LinkState,
    checks: Checks,
    /// What was sent so far, and what was delivered.
    sent: usize,
    delivered: Vec<usize>,
    /// The number that a broken receiver expects.
    own_expected: u64,
}

/// What one run came to.
#[derive(Debug, Default)]
struct Outcome {
    faults: u64,
    is_right: bool,
}

impl EndPoint {
    fn new(checks: Checks) -> Self {
        Self {
            state: LinkState::default(),
            checks,
            sent: 0,
            delivered: Vec::new(),
            own_expected: 1,
        }
    }

    fn expected(&self) -> u64 {
        match self.checks {
            Checks::Both | Checks::NumberOnly => self.state.expected(),
            Checks::None | Checks::Unchecked => self.own_expected,
        }
    }

    /// Sends the next message, if there is room.
    fn send(&mut self) {
        if self.sent < MESSAGES && self.state.has_room(LIMIT) {
            let frame = Frame::from(format!("{{\"n\":{}}}", self.sent));
            self.state.send(frame).unwrap();
            self.sent += 1;
        }
    }

    /// What it writes next.
    fn write(&mut self) -> Option<Message> {
        let (seq, ack, frame) = self.state.next_to_write()?;
        let ack = match self.checks {
            Checks::Both | Checks::NumberOnly => ack,
            Checks::None | Checks::Unchecked => self.own_expected - 1,
        };
        let value: serde_json::Value = serde_json::from_slice(frame.as_bytes()).unwrap();
        let number = value["n"].as_u64().unwrap() as usize;
        Some(Message::Data { seq, ack, number })
    }

    fn acknowledgement(&mut self) -> Message {
        let ack = self.state.acknowledge();
        Message::Ack(match self.checks {
            Checks::Both | Checks::NumberOnly => ack,
            Checks::None | Checks::Unchecked => self.own_expected - 1,
        })
    }

    /// Takes what was received, one message at a time.
    fn take(&mut self, now: Duration) {
        if let Some(frame) = self.state.take(|| now) {
            let number = std::str::from_utf8(frame.as_bytes()).unwrap();
            self.delivered.push(number.parse().unwrap());
        }
    }

    /// Receives a message; `false` if the attachment has to end.
    fn receive(&mut self, generation: u64, message: Message) -> bool {
        // What does not know generations takes everything for the current one.
        let generation = match self.checks {
            Checks::Both => generation,
            _ => self.state.generation(),
        };
        let (ack, data) = match message {
            Message::Data { seq, ack, number } => (ack, Some((seq, number))),
            Message::Ack(ack) => (ack, None),
        };
        if self.state.acknowledged(generation, ack, None).is_err() {
            return false;
        }
        let Some((seq, number)) = data else {
            return true;
        };
        let deliver = match self.checks {
            Checks::Both | Checks::NumberOnly => {
                let frame = Frame::from(number.to_string());
                match self.state.receive(generation, seq, frame) {
                    Received::Next | Received::Duplicate | Received::Stale => false,
                    Received::Gap | Received::Flood => return false,
                }
            }
            Checks::None => {
                self.own_expected += 1;
                true
            }
            Checks::Unchecked => {
                self.own_expected = seq + 1;
                true
            }
        };
        if deliver {
            self.delivered.push(number);
        }
        true
    }

    fn is_done(&self, other: &Self) -> bool {
        self.sent == MESSAGES && self.state.sent().is_empty() && other.delivered.len() >= MESSAGES
    }
}

/// Runs one link to its end.
fn run(seed: u64, checks: Checks) -> Outcome {
    let mut random = Random(seed);
    let mut ends = [EndPoint::new(checks), EndPoint::new(checks)];
    // On the wire to each end: of the current attachment, and of earlier ones, which come late.
    let mut wire: [VecDeque<Message>; 2] = Default::default();
    let mut late: [VecDeque<(u64, Message)>; 2] = Default::default();
    let mut outcome = Outcome::default();
    let mut generation = 0;
    let mut attached = false;
    for step in 0..50_000_u64 {
        let now = Duration::from_millis(step);
        if !attached {
            generation += 1;
            let expected = [ends[0].expected(), ends[1].expected()];
            let fits = (0..2).all(|side| {
                let rx = expected[1 - side];
                ends[side].state.attach(generation, rx, WINDOW).is_ok()
            });
            if !fits {
                return outcome;
            }
            attached = true;
        }
        let side = random.below(2);
        match random.below(10) {
            8 | 9 => ends[side].take(now),
            0 | 1 => ends[side].send(),
            2 | 3 => {
                if let Some(message) = ends[side].write() {
                    wire[1 - side].push_back(message);
                }
            }
            4 => {
                if ends[side].state.ack_due().is_some_and(|due| due <= now) || random.chance(20) {
                    let ack = ends[side].acknowledgement();
                    wire[1 - side].push_back(ack);
                }
            }
            5 | 6 => {
                if let Some(message) = wire[side].pop_front()
                    && !ends[side].receive(generation, message)
                {
                    attached = false;
                }
            }
            _ => {
                if let Some((old, message)) = late[side].pop_front()
                    && !ends[side].receive(old, message)
                {
                    attached = false;
                }
            }
        }
        // A connection is lost at any time; a beginning of what is on it still arrives, later.
        if attached && random.chance(3) {
            attached = false;
        }
        if !attached {
            outcome.faults += 1;
            for side in 0..2 {
                let arrives = random.below(wire[side].len() + 1);
                let messages = wire[side].drain(..).take(arrives);
                late[side].extend(messages.map(|message| (generation, message)));
                wire[side].clear();
                ends[side].state.detach();
            }
        }
        if ends[0].is_done(&ends[1]) && ends[1].is_done(&ends[0]) {
            break;
        }
    }
    let all: Vec<usize> = (0..MESSAGES).collect();
    outcome.is_right = ends.iter().all(|end| end.delivered == all);
    outcome
}

/// Runs links with these checks until there were so many faults; returns how many links were wrong,
/// and how many there were.
fn many(checks: Checks, faults: u64) -> (u64, u64) {
    let (mut seen, mut wrong, mut links) = (0, 0, 0);
    while seen < faults {
        let outcome = run(links, checks);
        if checks == Checks::Both {
            assert!(outcome.is_right, "seed {links}: {outcome:?}");
        }
        seen += outcome.faults.max(1);
        wrong += u64::from(!outcome.is_right);
        links += 1;
    }
    (wrong, links)
}

#[test]
fn no_message_is_lost_doubled_or_reordered() {
    let faults = std::env::var("LINK_FAULTS").ok();
    let faults = faults.map_or(FAULTS, |faults| faults.parse().unwrap());
    let (wrong, links) = many(Checks::Both, faults);
    println!("{faults} faults on {links} links, {wrong} wrong");
    assert_eq!(wrong, 0);
}

#[test]
fn a_number_alone_suffices() {
    assert_eq!(many(Checks::NumberOnly, FAULTS / 20).0, 0);
}

#[test]
fn receivers_that_leave_out_the_checks_are_seen_to_fail() {
    for checks in [Checks::None, Checks::Unchecked] {
        let (wrong, links) = many(checks, FAULTS / 20);
        assert!(wrong * 2 > links, "{checks:?}: {wrong} of {links}");
    }
}

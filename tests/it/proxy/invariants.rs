//! Invariants of the loop, over random schedules.
//!
//! Both peers send requests, notifications, answers and garbage, stall, end, vanish and exit in any
//! order. In every case: the conversation ends; each side receives what the other sent, in order
//! and once; every request of a side that reads to the end has one answer; and every message that
//! was not forwarded is accounted for by a note.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::time::Duration;

use acp_relay::jsonrpc::{Exit, Limits, Side};
use acp_relay::proxy::End;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use tokio::time::sleep;

use crate::support::bridge::{Bridge, Plan, Seen, TestPeer};

/// The longest message of a side, in bytes. The relay's own may quote 2 KiB of the agent's output.
const LONGEST: usize = 8 << 10;

#[derive(Clone, Debug)]
enum Step {
    /// A side sends a message, if it is accepted.
    Send(Side, TestMessage),
    /// Many of them at once.
    Burst(Side, TestMessage, u8),
    /// A side reads so many messages, if they are there. It stalls otherwise.
    Receive(Side, u8),
    End(Side),
    Vanish(Side),
    Exit(i32),
    Stop,
    Wait(u8),
}

#[derive(Clone, Copy, Debug)]
enum TestMessage {
    /// A request with a new id.
    Request,
    /// A request with an id from a few, so that it may be in use.
    Again(u8),
    Notification,
    /// An answer to the oldest request received and not answered.
    Answer,
    /// An answer to no request.
    Unasked,
    ErrorWithoutId,
    Garbage,
    Stray,
    Batch,
    Large,
}

/// One peer and its state.
struct Player {
    peer: Option<TestPeer>,
    ended: bool,
    received: Vec<String>,
    /// How many received messages were searched for requests to answer.
    searched: usize,
}

/// The result of a schedule.
struct Outcome {
    plan: Plan,
    /// The agent ended or was ended, and not because the client had left.
    agent_was_ended: bool,
    /// The schedule lasts longer than the relay waits for a slow client after a stop, so that the
    /// client may miss answers.
    stalled: bool,
    end: End,
    seen: Vec<Seen>,
    players: [Player; 2],
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Agent)]
}

fn message() -> impl Strategy<Value = TestMessage> {
    prop_oneof![
        6 => Just(TestMessage::Request),
        2 => (0..3_u8).prop_map(TestMessage::Again),
        6 => Just(TestMessage::Notification),
        6 => Just(TestMessage::Answer),
        1 => Just(TestMessage::Unasked),
        1 => Just(TestMessage::ErrorWithoutId),
        1 => Just(TestMessage::Garbage),
        1 => Just(TestMessage::Stray),
        1 => Just(TestMessage::Batch),
        1 => Just(TestMessage::Large),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (side(), message()).prop_map(|(side, message)| Step::Send(side, message)),
        3 => (side(), message(), 1..=255_u8)
            .prop_map(|(side, message, n)| Step::Burst(side, message, n)),
        12 => (side(), 1..60_u8).prop_map(|(side, n)| Step::Receive(side, n)),
        1 => side().prop_map(Step::End),
        1 => side().prop_map(Step::Vanish),
        1 => (0..4).prop_map(Step::Exit),
        1 => Just(Step::Stop),
        3 => (0..9_u8).prop_map(Step::Wait),
    ];
    vec(step, 0..60)
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        any::<[bool; 4]>(),
        1..40_usize,
        200..4000_usize,
        2..50_usize,
    )
        .prop_map(
            |([child, client_half_close, agent_half_close, parent], frames, bytes, in_flight)| {
                Plan {
                    limits: Limits {
                        queue_frames: frames,
                        queue_bytes: bytes,
                        in_flight,
                        frame_from_network: LONGEST,
                        // No peer is closed here: it would receive nothing more.
                        oversized_messages: usize::MAX,
                        invalid_messages: usize::MAX,
                        ..Limits::default()
                    },
                    child,
                    client_half_close,
                    agent_half_close: agent_half_close || child,
                    parent,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_delivered_or_accounted_for(
        plan in plan(),
        steps in steps(),
        first_to_end in side(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let outcome = runtime.block_on(play(&plan, steps, first_to_end));
        for side in [Side::Client, Side::Agent] {
            outcome.check_order(side);
            outcome.check_answers(side);
            outcome.check_accounts(side);
        }
    }
}

async fn play(plan: &Plan, steps: Vec<Step>, first_to_end: Side) -> Outcome {
    let mut bridge = Bridge::over(plan);
    let spare = Bridge::over(plan);
    let player = |peer| Player {
        peer: Some(peer),
        ended: false,
        received: Vec::new(),
        searched: 0,
    };
    let client = std::mem::replace(&mut bridge.client, spare.client);
    let agent = std::mem::replace(&mut bridge.agent, spare.agent);
    let mut players = [player(client), player(agent)];
    let mut serial = 0;
    let agent_was_ended = first_to_end == Side::Agent
        || (steps.iter()).any(|step| {
            matches!(
                step,
                Step::Stop | Step::Exit(_) | Step::End(Side::Agent) | Step::Vanish(Side::Agent)
            )
        });
    let stop = steps.iter().position(|step| matches!(step, Step::Stop));
    let waits = steps.iter().skip(stop.unwrap_or(steps.len()));
    let waits = waits.map(|step| match step {
        Step::Wait(seconds) => u64::from(*seconds),
        _ => 0,
    });
    let stalled = Duration::from_secs(waits.sum()) >= plan.limits.drain;
    for step in steps {
        match step {
            Step::Send(side, message) => players[side as usize].send(message, &mut serial).await,
            Step::Burst(side, message, many) => {
                for _ in 0..many {
                    players[side as usize].send(message, &mut serial).await;
                }
            }
            Step::Receive(side, many) => players[side as usize].receive(many).await,
            Step::End(side) => players[side as usize].end().await,
            Step::Vanish(side) => players[side as usize].peer = None,
            Step::Exit(code) => bridge.process.exit(Exit::Code(code)),
            Step::Stop => bridge.stop.requested.cancel(),
            Step::Wait(seconds) => sleep(Duration::from_secs(seconds.into())).await,
        }
    }
    // One of them ends, the other one follows, and both read to the end.
    let [client, agent] = &mut players;
    let client_ends = async {
        if first_to_end == Side::Client {
            client.end().await;
        }
        client.receive_all().await;
    };
    let agent_ends = async {
        if first_to_end == Side::Client {
            agent.receive_all().await;
        }
        agent.end().await;
        bridge.process.exit(Exit::Code(0));
        agent.receive_all().await;
    };
    tokio::join!(client_ends, agent_ends);
    Outcome {
        plan: plan.clone(),
        agent_was_ended,
        stalled,
        end: bridge.end().await,
        seen: bridge.notebook.seen(),
        players,
    }
}

impl Player {
    async fn send(&mut self, message: TestMessage, serial: &mut u64) {
        if self.ended {
            return;
        }
        *serial += 1;
        let n = *serial;
        let text = match message {
            TestMessage::Request => format!(r#"{{"id":"new {n}","method":"ask","params":{n}}}"#),
            TestMessage::Again(id) => format!(r#"{{"id":{id},"method":"ask","params":{n}}}"#),
            TestMessage::Notification => format!(r#"{{"method":"tell","params":{n}}}"#),
            TestMessage::Answer => match self.next_open() {
                Some(id) => format!(r#"{{"id":{id},"result":{n}}}"#),
                None => return,
            },
            TestMessage::Unasked => format!(r#"{{"id":"unknown {n}","result":{n}}}"#),
            TestMessage::ErrorWithoutId => format!(r#"{{"error":{{"code":1,"message":"{n}"}}}}"#),
            TestMessage::Garbage => format!(r#"{{"id":"broken {n}","method":"ask""#),
            TestMessage::Stray => format!("Loading {n} ..."),
            TestMessage::Batch => format!(r#"[{{"method":"tell","params":{n}}}]"#),
            TestMessage::Large => {
                format!(r#"{{"method":"{n}","params":"{}"}}"#, "x".repeat(LONGEST))
            }
        };
        if let Some(peer) = &mut self.peer {
            peer.try_send(&text).await;
        }
    }

    /// The id of the oldest request received that was not returned before.
    fn next_open(&mut self) -> Option<Value> {
        while let Some(text) = self.received.get(self.searched) {
            self.searched += 1;
            let message: Value = serde_json::from_str(text).unwrap();
            if message.get("method").is_some() && message.get("id").is_some() {
                return Some(message["id"].clone());
            }
        }
        None
    }

    async fn receive(&mut self, many: u8) {
        let Some(peer) = &mut self.peer else { return };
        for _ in 0..many {
            match peer.try_receive().await {
                Some(text) => self.received.push(text),
                None => return,
            }
        }
    }

    async fn receive_all(&mut self) {
        if let Some(peer) = &mut self.peer {
            self.received.extend(peer.receive_all().await);
        }
    }

    async fn end(&mut self) {
        if let Some(peer) = &mut self.peer {
            peer.end().await;
        }
        self.ended = true;
    }
}

impl Outcome {
    /// `side` received what the relay sent to it, and each forwarded message is one of the other
    /// side, in order and once.
    fn check_order(&self, side: Side) {
        let sent: Vec<&[u8]> = self.sent(side).collect();
        let received = &self.players[side as usize].received;
        // A link that vanishes loses the messages in transit.
        assert!(received.len() <= sent.len());
        for (received, sent) in received.iter().zip(&sent) {
            assert_eq!(received.as_bytes(), *sent);
        }
        if self.players[side as usize].peer.is_some() {
            assert_eq!(received.len(), sent.len(), "the {side} misses messages");
        }
        let mut source = self.received(side.other()).peekable();
        for text in sent.iter().filter(|text| !ours(text)) {
            assert!(
                source.any(|received| received == *text),
                "out of order, twice, or made up: {}",
                String::from_utf8_lossy(text)
            );
        }
    }

    /// No request has two answers, and every request that the relay has received has one if its
    /// side reads to the end. An agent receives nothing more once it, the client or the relay has
    /// ended the conversation; each answer it misses is noted.
    fn check_answers(&self, side: Side) {
        let mut open: HashMap<Value, i64> = HashMap::new();
        let player = &self.players[side as usize];
        for text in self.received(side) {
            let Ok(text) = serde_json::from_slice::<Value>(text) else {
                continue;
            };
            if text.get("method").is_some() && text.get("id").is_some() {
                *open.entry(text["id"].clone()).or_default() += 1;
            }
        }
        for text in &player.received {
            let text: Value = serde_json::from_str(text).unwrap();
            if text.get("method").is_none() && text.get("id").is_some_and(|id| !id.is_null()) {
                *open.entry(text["id"].clone()).or_default() -= 1;
            }
        }
        open.retain(|_, count| *count != 0);
        assert!(
            open.values().all(|count| *count > 0),
            "too many answers: {open:?}"
        );
        let missing = open.values().sum::<i64>();
        let left = match side {
            Side::Client => player.ended && !self.plan.client_half_close,
            Side::Agent => self.agent_was_ended,
        };
        if left || player.peer.is_none() {
            return;
        }
        let allowed = match side {
            Side::Client if !self.stalled => 0,
            _ => self.end.counts.note("undeliverable"),
        };
        assert!(missing as u64 <= allowed, "answers are missing: {open:?}");
    }

    /// Every message of `from` that was not forwarded is accounted for.
    fn check_accounts(&self, from: Side) {
        let counts = &self.end.counts;
        let received = self.received(from).count();
        let forwarded = self.sent(from.other()).filter(|text| !ours(text)).count();
        assert_eq!(counts.received(from).frames as usize, received);
        assert_eq!(counts.sent(from).frames as usize, self.sent(from).count());
        let accounted: u64 = [
            "stray_line",
            "refused",
            "batch",
            "unknown_answer",
            "reused_id",
            "overloaded",
            "answered_for_peer",
            "undeliverable",
        ]
        .map(|name| counts.note(name))
        .into_iter()
        .sum();
        assert!(
            (received - forwarded) as u64 <= accounted,
            "{} messages of the {from} are lost, {accounted} are accounted for",
            received - forwarded
        );
    }

    fn received(&self, from: Side) -> impl Iterator<Item = &[u8]> {
        self.seen.iter().filter_map(move |seen| match seen {
            Seen::Received(side, frame) if *side == from => Some(frame.as_bytes()),
            _ => None,
        })
    }

    fn sent(&self, to: Side) -> impl Iterator<Item = &[u8]> {
        self.seen.iter().filter_map(move |seen| match seen {
            Seen::Sent(side, frame) if *side == to => Some(frame.as_bytes()),
            _ => None,
        })
    }
}

/// Whether the relay itself made this message.
fn ours(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.contains(r#""data":{"relay":"#) || text.contains("_acp-relay/")
}

//! Two canonical peers with one dialect between them: client, relay, dialect, relay, agent.
//!
//! Each message is written to the dialect by one translator and read from it by another, so both
//! roles of a table are used in every conversation. Not here: the messages (see `official`), and
//! the checks on what arrives (see `roundtrip`).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use acp_relay::dialect::{Program, Translation, Translator};
use acp_relay::jsonrpc::{Envelope, Frame, Limits, Scanned, Side, scan};
use serde_json::{Value, json};

use super::{Passed, pass};

/// The two relays.
pub(super) struct Line {
    /// At the client; its peer is an agent with the dialect.
    near: Translator,
    /// At the agent; its peer is a client with the dialect.
    far: Translator,
    /// The session id of the client and of the agent.
    sessions: [String; 2],
    requests: u64,
}

/// The results of one message.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// What the other peer received.
    pub(super) there: Vec<Value>,
    /// What the sender received.
    pub(super) here: Vec<Value>,
    /// What was sent in the dialect.
    pub(super) wire: Vec<Value>,
    /// The rules that were applied, as `dialect/rule`.
    pub(super) rules: BTreeSet<String>,
    /// The notes.
    pub(super) notes: Vec<String>,
}

/// The envelope of a frame that has to be a message.
pub(super) fn scanned(frame: &Frame) -> Envelope {
    match scan(frame, &Limits::default()) {
        Scanned::Message(at) => at,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(frame.as_bytes())),
    }
}

fn text(frame: &Frame) -> &str {
    std::str::from_utf8(frame.as_bytes()).unwrap()
}

pub(super) fn value(frame: &Frame) -> Value {
    serde_json::from_slice(frame.as_bytes()).unwrap()
}

impl Line {
    /// Two relays before any message.
    pub(super) fn new(program: &Arc<Program>) -> Self {
        Self {
            near: Translator::new(Side::Agent, Arc::clone(program)),
            far: Translator::new(Side::Client, Arc::clone(program)),
            sessions: ["s1".into(), "s1".into()],
            requests: 100,
        }
    }

    /// The session id that this side knows.
    pub(super) fn session(&self, side: Side) -> &str {
        &self.sessions[side as usize]
    }

    /// Sends a request with an id of its own.
    pub(super) fn request(
        &mut self,
        from: Side,
        method: &str,
        params: &Value,
    ) -> (Value, Received) {
        self.requests += 1;
        // Ids of all kinds, and some above 32 bits.
        let id = match self.requests % 3 {
            0 => json!(format!("id-{}", self.requests)),
            1 => json!(self.requests),
            _ => json!(self.requests << 33),
        };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let received = self.send(from, &message);
        (message, received)
    }

    /// Sends a canonical message, and handles all that follow.
    pub(super) fn send(&mut self, from: Side, message: &Value) -> Received {
        let mut received = Received::default();
        let mut open = VecDeque::from([(from, true, Frame::from(message.to_string()))]);
        let mut hops = 0;
        while let Some((by, writes, frame)) = open.pop_front() {
            hops += 1;
            assert!(hops < 64, "{message} runs in circles");
            // Written by the sender's relay, read by the receiver's relay.
            let relay = match (by, writes) {
                (Side::Client, true) | (Side::Agent, false) => &mut self.near,
                _ => &mut self.far,
            };
            let Passed { frame, outcome } = pass(relay, !writes, text(&frame));
            received.learn(&outcome);
            for made in outcome.frames(&frame) {
                if writes {
                    received.wire.push(value(&made));
                    open.push_back((by, false, made));
                } else {
                    received.deliver(by != from, value(&made));
                }
            }
            for made in outcome.replies {
                if !writes {
                    received.wire.push(value(&made));
                    open.push_back((by.other(), false, made));
                    continue;
                }
                let got = value(&made);
                if got["method"] == "session/new" {
                    // A relay opens the session that its dialect does not have.
                    let answer = json!({ "jsonrpc": "2.0", "id": got["id"], "result": { "sessionId": "s1" } });
                    open.push_back((by, true, Frame::from(answer.to_string())));
                } else {
                    received.deliver(by == from, got);
                }
            }
        }
        received
    }

    /// The client sends a request, and the agent answers if it arrives.
    pub(super) fn open(&mut self, method: &str, params: &Value, result: &Value) {
        let (_, received) = self.request(Side::Client, method, params);
        let asked = received.there.iter().find(|one| one["method"] == method);
        let answers = match asked {
            Some(asked) => {
                let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
                self.send(Side::Agent, &answer).there
            }
            None => received.here,
        };
        let session = answers
            .iter()
            .find_map(|one| one["result"]["sessionId"].as_str());
        if let Some(session) = session {
            self.sessions[Side::Client as usize] = session.to_owned();
        }
    }
}

impl Received {
    fn deliver(&mut self, here: bool, got: Value) {
        if here {
            self.here.push(got);
        } else {
            self.there.push(got);
        }
    }

    fn learn(&mut self, outcome: &Translation) {
        let fired = outcome.fired.iter();
        self.rules
            .extend(fired.map(|fired| format!("{}/{}", fired.dialect, fired.rule)));
        for note in &outcome.notes {
            self.rules.extend(note.rule.clone());
            self.notes
                .push(format!("{}: {}", note.what.name(), note.detail));
        }
    }
}

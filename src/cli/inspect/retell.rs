//! Checks whether the mapping tables translate a recording's messages as recorded.
//!
//! The received messages go through a conversation with the recorded dialects; each message that a
//! rule changed must come out as it was sent. This needs the same tables, all received messages
//! from the beginning, and their texts.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::conversation::{Choice, Core, Manners, Outbox, Speech};
use crate::dialect::Library;
use crate::jsonrpc::{Frame, Limits, Side};
use crate::recording::{
    Entry, Finding, Found, Header, Message, MessageKind, Recording, What, tree,
};

/// Maximum number of received messages whose translations are kept. The sent ones follow closely.
const REMEMBERED: usize = 4096;

/// The result.
#[derive(Debug, Default)]
pub(super) struct Retold {
    /// Translated messages that were compared.
    pub(super) compared: u64,
    /// Why no message, or none after some event, could be compared.
    pub(super) why: Option<String>,
    pub(super) findings: Vec<Finding>,
}

/// The mapping tables in use.
pub(super) struct Desk {
    pub(super) library: Arc<Library>,
    /// The digest of the tables.
    pub(super) digest: String,
}

/// A conversation that is translated again.
struct Again {
    core: Core,
    out: Outbox,
    began: Instant,
    /// The translations of each received message, by its number and the receiving side.
    expected: BTreeMap<(u64, usize), VecDeque<Frame>>,
    /// Received messages that something other than a rule has changed.
    foreign: HashSet<u64>,
}

/// Translates the conversation of a recording again.
///
/// # Errors
/// The recording cannot be read.
pub(super) fn retell(recording: &Recording, desk: &Desk) -> io::Result<Retold> {
    let mut retold = Retold::default();
    let header = recording
        .entries()
        .find_map(|entry| match entry.ok()?.1.found {
            Found::Header(header) => Some(*header),
            _ => None,
        });
    let Some(header) = header else {
        return Ok(retold);
    };
    let mut again = match begin(&header, recording, desk)? {
        Ok(Some(again)) => again,
        Ok(None) => return Ok(retold),
        Err(why) => {
            retold.why = Some(why);
            return Ok(retold);
        }
    };
    for entry in recording.entries() {
        let (segment, Entry { at, found, .. }) = entry?;
        let Found::Event(event) = found else {
            continue;
        };
        let why = match &event.what {
            What::Message(message) => match again.see(event.n, event.t, message) {
                Some(Verdict::Same) => {
                    retold.compared += 1;
                    None
                }
                Some(Verdict::Other(what)) => {
                    retold.compared += 1;
                    retold.findings.push(Finding {
                        segment,
                        at,
                        id: "translation",
                        what,
                    });
                    None
                }
                Some(Verdict::Blind) => Some("a message was not recorded"),
                None => None,
            },
            What::Note { name, of, .. } => {
                let is_foreign = ["adjusted", "denied"].contains(&name.as_str());
                again.foreign.extend(of.filter(|_| is_foreign));
                None
            }
            What::Gap { .. } => Some("events are missing"),
            _ => None,
        };
        if let Some(why) = why {
            retold.why = Some(format!("from event {} on {why}", event.n));
            break;
        }
    }
    Ok(retold)
}

/// The result for one message.
enum Verdict {
    Same,
    Other(String),
    /// The message was not recorded, so its effects are unknown.
    Blind,
}

/// The conversation at its beginning; `None` if nothing is translated in it, or the reason why it
/// cannot be repeated.
fn begin(
    header: &Header,
    recording: &Recording,
    desk: &Desk,
) -> io::Result<Result<Option<Again>, String>> {
    let speaks = |dialect: &str| match dialect {
        "" | "canonical" => Choice::Canonical,
        "auto" => Choice::Auto,
        name => Choice::Named(name.to_owned()),
    };
    let (client, agent) = (
        speaks(&header.client.dialect),
        speaks(&header.agent.dialect),
    );
    if client == Choice::Canonical && agent == Choice::Canonical {
        return Ok(Ok(None));
    }
    let why = match (&header.tables, header.redaction.mode.as_str()) {
        (None, _) => Some("it does not name its tables".to_owned()),
        (Some(tables), _) if *tables != desk.digest => Some(format!(
            "it was made by tables {tables}, these are {}",
            desk.digest
        )),
        (_, mode @ ("meta" | "structure")) => Some(format!("its texts were left out ({mode})")),
        _ if header.first != 1 => Some("its beginning is missing".to_owned()),
        _ => None,
    };
    if let Some(why) = why {
        return Ok(Err(why));
    }
    let speech = match Speech::new(&desk.library, &client, &agent) {
        Ok(speech) => speech.in_folder(&folder(recording)?),
        Err(unknown) => return Ok(Err(unknown.to_string())),
    };
    let limits = Arc::new(Limits::default());
    let manners = Manners {
        client_half_close: true,
        agent_half_close: true,
        agent_is_child: false,
        agent_is_played: header.agent.name.starts_with("replay:"),
        announce_exit: false,
    };
    Ok(Ok(Some(Again {
        out: Outbox::new(&limits),
        core: Core::new(limits, manners, speech),
        began: Instant::now(),
        expected: BTreeMap::new(),
        foreign: HashSet::new(),
    })))
}

/// The folder in which the relay opened a session itself, for a client that knows no sessions.
fn folder(recording: &Recording) -> io::Result<String> {
    for event in recording.events() {
        if let What::Message(message) = event?.what
            && !message.is_heard()
            && message.kind == Some(MessageKind::Request)
            && message.method.as_deref() == Some("session/new")
            && let Some(body) = message.body.json()
            && let Some(folder) = body["params"]["cwd"].as_str()
        {
            return Ok(folder.to_owned());
        }
    }
    Ok(String::new())
}

impl Again {
    /// Processes a received message, or compares a sent one.
    fn see(&mut self, n: u64, t: u64, message: &Message) -> Option<Verdict> {
        let Some(bytes) = message.body.bytes() else {
            return Some(Verdict::Blind);
        };
        if message.is_heard() {
            self.hear(n, t, message.hop, Frame::new(bytes.clone()));
            return None;
        }
        let of = message.of?;
        let made = self
            .expected
            .get_mut(&(of, message.to as usize))?
            .pop_front();
        let is_ours =
            !message.rules.is_empty() && message.redacted.is_empty() && !self.foreign.contains(&of);
        if !is_ours {
            return None;
        }
        let made = made.and_then(|frame| tree(frame.as_bytes()));
        let said = tree(bytes);
        if made == said || made == said.map(without_trace) {
            return Some(Verdict::Same);
        }
        let rules = message.rules.join(", ");
        let what = format!("event {n} is not what these tables make of event {of} ({rules})");
        Some(Verdict::Other(what))
    }

    fn hear(&mut self, n: u64, t: u64, from: Side, frame: Frame) {
        let now = self.began + Duration::from_micros(t);
        self.core.handle_frame(from, frame, now, &mut self.out);
        while self.out.pop_note().is_some() {}
        while self.out.pop_order().is_some() {}
        for to in [Side::Client, Side::Agent] {
            while let Some(frame) = self.out.pop(to) {
                self.expected
                    .entry((n, to as usize))
                    .or_default()
                    .push_back(frame);
            }
        }
        while self.expected.len() > REMEMBERED {
            if let Some(((n, _), _)) = self.expected.pop_first() {
                self.foreign.remove(&n);
            }
        }
    }
}

/// The message without the trace context that the relay may have added.
fn without_trace(mut message: Value) -> Value {
    let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) else {
        return message;
    };
    if let Some(meta) = params.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove("traceparent");
        if meta.is_empty() {
            params.remove("_meta");
        }
    }
    message
}

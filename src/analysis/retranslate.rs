//! Checks whether the mapping tables translate a recording's messages as recorded.
//!
//! The received messages go through a conversation with the recorded dialects; each message that a
//! rule changed must come out as it was sent. This needs the same tables, all received messages
//! from the beginning, and their texts.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use conversation::offline::OfflineRelay;
use conversation::{DialectChoice, DialectOptions};
use dialect::Library;
use dialect::versions::VersionPolicies;
use jsonrpc::{Frame, Kind, Side};
use recording::{Defect, EventKind, Header, Message, Recording, parse_json};

/// Maximum number of received messages whose translations are kept. The sent ones follow closely.
const MAX_PENDING: usize = 4096;

/// The result.
#[derive(Debug, Default)]
pub struct Retranslation {
    /// Translated messages that were compared.
    pub compared: u64,
    /// Why no message, or none after some event, could be compared.
    pub why: Option<String>,
    /// The messages that differ.
    pub findings: Vec<Defect>,
}

/// The mapping tables in use.
#[derive(Debug)]
pub struct CurrentTables {
    /// The tables.
    pub library: Arc<Library>,
    /// Their digest.
    pub digest: String,
}

/// A conversation that is translated again.
struct Retranslator {
    relay: OfflineRelay,
    /// The last message that was received.
    last: u64,
    /// The translations of each received message, by its number and the receiving side.
    expected: BTreeMap<(u64, usize), VecDeque<Frame>>,
    /// Received messages that something other than a rule has changed.
    altered: HashSet<u64>,
}

/// Translates the conversation of a recording again.
///
/// # Errors
/// The recording cannot be read.
pub fn retranslate(recording: &Recording, tables: &CurrentTables) -> io::Result<Retranslation> {
    let mut result = Retranslation::default();
    let Some(header) = recording.header() else {
        return Ok(result);
    };
    let [client, agent] = [&header.client, &header.agent].map(|peer| match &*peer.dialect {
        "" | "canonical" => DialectChoice::Canonical,
        "auto" => DialectChoice::Auto,
        name => DialectChoice::Named(name.to_owned()),
    });
    if client == DialectChoice::Canonical && agent == DialectChoice::Canonical {
        return Ok(result);
    }
    result.why = obstacle(&header, tables);
    if result.why.is_some() {
        return Ok(result);
    }
    let is_canonical = |choice: &DialectChoice| *choice == DialectChoice::Canonical;
    let converts = ![&client, &agent].into_iter().any(is_canonical);
    let options = match DialectOptions::new(&tables.library, &client, &agent) {
        Ok(options) if converts => options
            .with_versions(Arc::default(), VersionPolicies::default(), [None; 2])
            .in_folder(&folder(recording)?),
        Ok(options) => options.in_folder(&folder(recording)?),
        Err(unknown) => {
            result.why = Some(unknown.to_string());
            return Ok(result);
        }
    };
    let mut state = Retranslator {
        relay: OfflineRelay::new(options, header.agent.name.starts_with("replay:")),
        last: 0,
        expected: BTreeMap::new(),
        altered: HashSet::new(),
    };
    for entry in recording.entries() {
        let (segment, entry) = entry?;
        let Some(event) = entry.parsed.event() else {
            continue;
        };
        let why = match &event.kind {
            EventKind::Message(message) if message.body.bytes().is_none() => {
                "a message was not recorded"
            }
            EventKind::Gap { .. } => "events are missing",
            EventKind::Message(message) => {
                if let Some(verdict) = state.check(event.n, event.t, message) {
                    result.compared += 1;
                    result.findings.extend(verdict.err().map(|text| Defect {
                        segment,
                        at: entry.at,
                        id: "translation",
                        text,
                    }));
                }
                continue;
            }
            EventKind::Note { name, source, .. } => {
                let is_altered = ["adjusted", "denied"].contains(&name.as_str());
                state.altered.extend(source.filter(|_| is_altered));
                continue;
            }
            _ => continue,
        };
        result.why = Some(format!("from event {} on {why}", event.n));
        break;
    }
    Ok(result)
}

/// Why the conversation cannot be repeated from its beginning.
fn obstacle(header: &Header, current: &CurrentTables) -> Option<String> {
    match (&header.tables, header.redaction.mode.as_str()) {
        (None, _) => Some("it does not name its tables".to_owned()),
        (Some(tables), _) if *tables != current.digest => Some(format!(
            "it was made by tables {tables}, these are {}",
            current.digest
        )),
        (_, mode @ ("meta" | "structure")) => Some(format!("its texts were left out ({mode})")),
        _ if header.first != 1 => Some("its beginning is missing".to_owned()),
        _ => None,
    }
}

/// The folder in which the relay opened a session itself, for a client that knows no sessions.
fn folder(recording: &Recording) -> io::Result<String> {
    for event in recording.events() {
        if let EventKind::Message(message) = event?.kind
            && !message.is_received()
            && message.kind == Some(Kind::Request)
            && message.method.as_deref() == Some("session/new")
            && let Some(body) = message.body.json()
            && let Some(folder) = body["params"]["cwd"].as_str()
        {
            return Ok(folder.to_owned());
        }
    }
    Ok(String::new())
}

impl Retranslator {
    /// Processes a received message, or compares a sent one; returns how that differs, if it does.
    fn check(&mut self, n: u64, t: u64, message: &Message) -> Option<Result<(), String>> {
        let bytes = message.body.bytes()?;
        if message.is_received() {
            self.receive(n, t, message.edge, Frame::new(bytes.clone()));
            return None;
        }
        let of = message.source?;
        let expected = self
            .expected
            .get_mut(&(of, message.to as usize))?
            .pop_front();
        let is_comparable =
            !message.rules.is_empty() && message.redacted.is_empty() && !self.altered.contains(&of);
        if !is_comparable {
            return None;
        }
        let made = expected.and_then(|frame| parse_json(frame.as_bytes()));
        let sent = parse_json(bytes);
        if made == sent || made == sent.map(without_trace) {
            return Some(Ok(()));
        }
        let rules = message.rules.join(", ");
        let what = format!("event {n} is not what these tables make of event {of} ({rules})");
        Some(Err(what))
    }

    fn receive(&mut self, n: u64, t: u64, from: Side, frame: Frame) {
        self.relay.pass_time(Duration::from_micros(t));
        self.take_output();
        self.last = n;
        self.relay.receive(from, frame);
        self.take_output();
        while self.expected.len() > MAX_PENDING {
            if let Some(((n, _), _)) = self.expected.pop_first() {
                self.altered.remove(&n);
            }
        }
    }

    /// Takes what is sent because of the last message.
    fn take_output(&mut self) {
        for to in [Side::Client, Side::Agent] {
            while let Some((frame, _)) = self.relay.sent(to) {
                self.expected
                    .entry((self.last, to as usize))
                    .or_default()
                    .push_back(frame);
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

//! A conversation as seen at one edge of the relay, step by step: read from a recording, or from a
//! capture with one message a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use jsonrpc::{Envelope, Frame, Id, Kind, Limits, Scanned, Side, scan};
use recording::capture::{self, LineContent, Lines};
use recording::parse_json;
use recording::{
    EventKind, Message, NotRecording, PACKED, PLAIN, Payload, RecordedEvent, Recording, View,
    ViewFilter,
};

/// The number of bytes that are read to detect the format of a file.
const MAX_HEAD: u64 = 4096;

/// The bytes of the events of a conversation that is played, unpacked, and what each takes besides.
const MAX_BYTES: u64 = 256 << 20;
const EVENT_BYTES: u64 = 512;

/// A conversation.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The messages, in order.
    pub steps: Vec<ScriptStep>,
}

/// A message of a script.
#[derive(Clone, Debug)]
pub struct ScriptStep {
    /// The number of its event in the recording, or of its line in a capture.
    pub n: u64,
    /// Microseconds since the beginning.
    pub at: u64,
    /// The sender.
    pub from: Side,
    /// The message.
    pub frame: Frame,
    /// The positions of its parts; `None` for an invalid line.
    pub envelope: Option<Envelope>,
    /// The step that this answers.
    pub answers: Option<usize>,
    /// It is a request that a later step answers.
    answered: bool,
    /// Its method, or that of the request it answers.
    pub method: String,
    /// Its session, or that of the request it answers.
    pub session: Option<String>,
    /// Its params, result or error; null where it has none.
    pub body: Value,
}

/// Why a file cannot be played.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ScriptError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: ScriptFault,
}

/// What is wrong with a file that is to be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFault {
    /// It cannot be read, or not as the recording that it is.
    #[error(transparent)]
    NotRecording(#[from] NotRecording),
    /// It has another format.
    #[error(
        "this is neither a recording (.acpr) nor a capture (lines of {{\"dir\":\"c2a\",\"ts\":0,\"msg\":…}})"
    )]
    Unknown,
    /// Its bodies were not recorded; how many.
    #[error(
        "{0} messages have no body, so they cannot be replayed; record with --record-redact default or full"
    )]
    NoBodies(usize),
    /// It has more bytes than are held in memory.
    #[error("its messages have more than {} MiB, which is too much to play", MAX_BYTES >> 20)]
    TooLarge,
    /// It has no messages.
    #[error("there is no message in it")]
    Empty,
}

impl From<io::Error> for ScriptFault {
    fn from(error: io::Error) -> Self {
        Self::NotRecording(NotRecording::Unreadable(error))
    }
}

impl ScriptStep {
    /// Whether it is a request.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.kind() == Some(Kind::Request)
    }

    /// Whether it is an answer.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.kind().is_some_and(Kind::is_answer)
    }

    /// Whether it is a notification.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        self.kind() == Some(Kind::Notification)
    }

    /// The kind of message.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.envelope.map(|envelope| envelope.kind)
    }

    /// Its id as spelled, `null` where it has none.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        match self.envelope.map(|envelope| envelope.id(&self.frame)) {
            Some(Id::Number(text) | Id::String(text)) => text,
            _ => b"null",
        }
    }

    /// The kind of update, for `session/update`.
    #[must_use]
    pub fn update(&self) -> Option<&str> {
        self.body.pointer("/update/sessionUpdate")?.as_str()
    }

    /// A description for people: `session/update agent_message_chunk`, `answer to initialize`.
    #[must_use]
    pub fn title(&self) -> String {
        let method = &self.method;
        match (self.kind(), self.update()) {
            (None, _) => "a line that is no message".to_owned(),
            (Some(Kind::Result), _) => format!("answer to {method}"),
            (Some(Kind::Error), _) => format!("error in answer to {method}"),
            (_, Some(update)) => format!("{method} {update}"),
            (_, None) => method.clone(),
        }
    }
}

impl Script {
    /// Reads the conversation at `edge` of the relay. The edges differ where a dialect was
    /// translated.
    ///
    /// # Errors
    /// When the file cannot be read or contains no messages.
    pub fn open(path: &Path, edge: Side) -> Result<Self, ScriptError> {
        read(path, edge).map_err(|reason| ScriptError {
            path: path.to_owned(),
            reason,
        })
    }

    /// Appends a message.
    pub fn push(&mut self, n: u64, at: u64, from: Side, frame: Frame) {
        let limits = Limits::default();
        let envelope = match scan(&frame, &limits) {
            Scanned::Message(envelope) => Some(envelope),
            _ => None,
        };
        let mut step = ScriptStep {
            n,
            at,
            from,
            answers: None,
            answered: false,
            method: String::new(),
            session: None,
            body: envelope
                .and_then(|envelope| parse_json(envelope.body(&frame)?))
                .unwrap_or_default(),
            envelope,
            frame,
        };
        if let Some(envelope) = envelope {
            step.method = envelope.method(&step.frame).into_owned();
            let session = step.body.get("sessionId").and_then(Value::as_str);
            step.session = session.map(str::to_owned);
            if step.is_answer() && envelope.id(&step.frame) != Id::Absent {
                // If several requests have one id, the last is answered first: a peer that detects
                // the duplicate rejects that one.
                let is_request = |one: &ScriptStep| {
                    one.from != from && one.is_request() && !one.answered && one.id() == step.id()
                };
                step.answers = self.steps.iter().rposition(is_request);
            }
            if let Some(request) = step.answers.and_then(|at| self.steps.get_mut(at)) {
                request.answered = true;
                step.method.clone_from(&request.method);
                step.session.clone_from(&request.session);
            }
        }
        self.steps.push(step);
    }

    /// The indices of the prompts, each of which begins a turn.
    #[must_use]
    pub fn turns(&self) -> Vec<usize> {
        let prompts = self.steps.iter().enumerate();
        prompts
            .filter(|(_, step)| {
                step.from == Side::Client && step.is_request() && step.method == "session/prompt"
            })
            .map(|(index, _)| index)
            .collect()
    }

    /// The steps before turn number `turns`, counted from 0: the handshake and so many turns.
    #[must_use]
    pub fn prefix(&self, turns: usize) -> Self {
        let end = self.turns().get(turns).copied();
        let steps = self.steps[..end.unwrap_or(self.steps.len())].to_vec();
        Self { steps }
    }

    /// The same as the text of a capture.
    #[must_use]
    pub fn to_capture(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for step in &self.steps {
            let (frame, is_message) = (step.frame.as_bytes(), step.envelope.is_some());
            capture::write_line(&mut text, step.from, step.at, frame, is_message);
            text.push(b'\n');
        }
        text
    }

    /// The same as events of a recording, for code that reads those.
    #[must_use]
    pub fn events(&self) -> Vec<RecordedEvent> {
        let steps = self.steps.iter();
        steps
            .map(|step| RecordedEvent {
                n: step.n,
                t: step.at,
                w: step.at,
                kind: EventKind::Message(Box::new(self.message(step))),
            })
            .collect()
    }

    /// A step as the message of an event, received from its sender.
    #[must_use]
    pub fn message(&self, step: &ScriptStep) -> Message {
        let is_paired = !step.is_answer() || step.answers.is_some();
        let at = step.envelope.filter(|at| at.id.is_some());
        let id = at.map(|at| String::from_utf8_lossy(at.id(&step.frame).json()).into_owned());
        let session = step.body.get("sessionId").and_then(Value::as_str);
        Message {
            edge: step.from,
            to: step.from.other(),
            id,
            method: step
                .envelope
                .filter(|_| is_paired)
                .map(|_| step.method.clone()),
            session: session.map(str::to_owned).or_else(|| step.session.clone()),
            kind: step.kind(),
            answers: step.answers.map(|request| self.steps[request].n),
            source: None,
            rules: Vec::new(),
            patch: None,
            redacted: Vec::new(),
            body: Payload::of(step.frame.clone().into_bytes()),
        }
    }

    /// The working directory that the client named first.
    #[must_use]
    pub fn directory(&self) -> Option<&str> {
        let mut of_client = self.steps.iter().filter(|step| step.from == Side::Client);
        of_client.find_map(|step| step.body.get("cwd")?.as_str())
    }
}

fn read(path: &Path, edge: Side) -> Result<Script, ScriptFault> {
    if let Some(error) = NotRecording::of(path) {
        return Err(error.into());
    }
    let (script, missing) = if is_recording(path)? {
        let recording = Recording::of(path)?;
        recording.check()?;
        of_recording(&recording, edge)?
    } else {
        (of_capture(path)?.ok_or(ScriptFault::Unknown)?, 0)
    };
    match (missing, script.steps.is_empty()) {
        (0, false) => Ok(script),
        (0, true) => Err(ScriptFault::Empty),
        _ => Err(ScriptFault::NoBodies(missing)),
    }
}

fn is_recording(path: &Path) -> io::Result<bool> {
    let name = path.to_string_lossy();
    let mut head = Vec::new();
    File::open(path)?.take(MAX_HEAD).read_to_end(&mut head)?;
    Ok(name.ends_with(PLAIN) || name.ends_with(PACKED) || head.starts_with(br#"{"acpr":"#))
}

/// The script, and the number of its messages without a body.
fn of_recording(recording: &Recording, edge: Side) -> Result<(Script, usize), ScriptFault> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    for event in recording.events() {
        let event = event?;
        let length = match &event.kind {
            EventKind::Message(message) => message.body.len(),
            EventKind::Stderr(text) => text.len(),
            _ => 0,
        };
        add_bytes(&mut bytes, length)?;
        events.push(event);
    }
    let filter = ViewFilter::new(View::At(edge), &events);
    let mut found = BTreeMap::new();
    let mut missing = 0;
    let mut client_closed = false;
    for event in &events {
        let message = match &event.kind {
            EventKind::Message(message) => message,
            EventKind::Link { side, event, .. } => {
                client_closed |= *side == Side::Client && event == "end";
                continue;
            }
            _ => continue,
        };
        // Frames that the relay created after the client has left were sent by no peer and will be
        // created again.
        client_closed &= !(message.is_received() && message.edge == Side::Client);
        let synthetic = client_closed && !message.is_received() && message.source.is_none();
        if synthetic || !filter.shows(event.n, message) {
            continue;
        }
        // A sent frame has the place of its source.
        let place = (message.source.unwrap_or(event.n), event.n);
        match message.body.bytes() {
            Some(bytes) => {
                let frame = Frame::new(bytes.clone());
                found.insert(place, (event.t, message.to.other(), frame));
            }
            None => missing += 1,
        }
    }
    let mut script = Script::default();
    for ((_, n), (at, from, frame)) in found {
        script.push(n, at, from, frame);
    }
    Ok((script, missing))
}

/// Adds the bytes of an event, up to the limit.
fn add_bytes(sum: &mut u64, bytes: u64) -> Result<(), ScriptFault> {
    *sum += bytes + EVENT_BYTES;
    if *sum > MAX_BYTES {
        Err(ScriptFault::TooLarge)
    } else {
        Ok(())
    }
}

/// The script, if the file is a capture.
fn of_capture(path: &Path) -> Result<Option<Script>, ScriptFault> {
    let (mut script, mut bytes) = (Script::default(), 0);
    for line in Lines::new(capture::open(path)?) {
        let line = line?;
        let LineContent::Message { from, message, .. } = &line.content else {
            continue;
        };
        add_bytes(&mut bytes, message.len() as u64)?;
        match *from {
            Some(from) => {
                let at = line.micros().unwrap_or_default();
                script.push(line.number, at, from, message.clone());
            }
            // The sender is unknown; further down, the line is torn.
            None if script.steps.is_empty() => return Ok(None),
            None => {}
        }
    }
    Ok(Some(script))
}

//! A conversation as seen at one edge of the relay, step by step.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use crate::jsonrpc::{Envelope, Frame, Id, IdAt, Kind, Limits, Scanned, Side, scan};
use crate::recording::surrogates::parse_json;
use crate::recording::{EventKind, Message, NotRecording, Payload, RecordedEvent};

/// A conversation.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The messages, in order.
    pub steps: Vec<ScriptStep>,
    /// Unanswered requests, by requester and id. If several have one id, the last is answered
    /// first: a peer that detects the duplicate rejects that one.
    open: HashMap<(Side, Vec<u8>), Vec<usize>>,
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
#[non_exhaustive]
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
            method: String::new(),
            session: None,
            body: envelope
                .and_then(|envelope| parse_json(envelope.body(&frame)?))
                .unwrap_or_default(),
            envelope,
            frame,
        };
        let index = self.steps.len();
        if let Some(envelope) = envelope {
            step.method = envelope.method(&step.frame).into_owned();
            let session = step.body.get("sessionId").and_then(Value::as_str);
            step.session = session.map(str::to_owned);
            if step.is_request() {
                let open = self.open.entry((from, step.id().to_vec()));
                open.or_default().push(index);
            } else if step.is_answer() && envelope.id(&step.frame) != Id::Absent {
                let open = self.open.get_mut(&(from.other(), step.id().to_vec()));
                let request = open.and_then(Vec::pop);
                step.answers = request;
                if let Some(request) = request.map(|index| &self.steps[index]) {
                    step.method.clone_from(&request.method);
                    step.session.clone_from(&request.session);
                }
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
        let steps = &self.steps[..end.unwrap_or(self.steps.len())];
        let mut prefix = Self::default();
        for step in steps {
            prefix.push(step.n, step.at, step.from, step.frame.clone());
        }
        prefix
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
        let at = step.envelope.filter(|at| at.id != IdAt::Absent);
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

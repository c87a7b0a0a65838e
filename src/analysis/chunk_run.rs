//! Joins consecutive chunks of an agent's message into one run.

use serde_json::Value;

use jsonrpc::Kind;
use recording::{Message, RecordedEvent};

/// Maximum bytes of a run; a longer one continues as another.
const MAX_RUN: usize = 1 << 20;

/// Consecutive chunks of one kind.
#[derive(Debug)]
pub struct ChunkRun {
    /// The number of the first chunk.
    pub n: u64,
    /// The time of the first chunk, in microseconds.
    pub t: u64,
    /// The time of the last chunk.
    pub until: u64,
    /// The number of chunks.
    pub count: u64,
    /// `agent_message_chunk`, `agent_thought_chunk`, `user_message_chunk`.
    pub kind: String,
    /// Their texts, joined.
    pub text: String,
    /// Where each text ends, except the last.
    pub ends: Vec<usize>,
    /// The first chunk.
    pub message: Message,
}

/// The current run, if any.
#[derive(Debug, Default)]
pub struct ChunkFolder(Option<ChunkRun>);

impl ChunkFolder {
    /// Adds a chunk; returns the previous run if the chunk begins a new one.
    pub fn add(&mut self, chunk: ChunkRun) -> Option<ChunkRun> {
        let next = match &mut self.0 {
            Some(current) => current.merge(chunk)?,
            None => chunk,
        };
        self.0.replace(next)
    }

    /// Ends the current run.
    pub const fn end(&mut self) -> Option<ChunkRun> {
        self.0.take()
    }
}

impl ChunkRun {
    /// The run of one chunk, if the event is a chunk.
    pub fn from_event(event: &RecordedEvent) -> Option<Self> {
        let message = event.message()?;
        let is_update = message.kind == Some(Kind::Notification)
            && message.method.as_deref() == Some("session/update");
        let tree = is_update.then(|| message.body.json()).flatten()?;
        let update = tree.pointer("/params/update")?;
        let kind = update.get("sessionUpdate")?.as_str()?;
        let text = update.pointer("/content/text").and_then(Value::as_str)?;
        kind.ends_with("_chunk").then(|| Self {
            n: event.n,
            t: event.t,
            until: event.t,
            count: 1,
            kind: kind.to_owned(),
            text: text.to_owned(),
            ends: Vec::new(),
            message: message.clone(),
        })
    }

    /// The kind, and the number of chunks.
    pub fn title(&self) -> String {
        match self.count {
            1 => self.kind.clone(),
            count => format!("{} ×{count}", self.kind),
        }
    }

    /// Appends the next run; returns it if it does not belong to this one.
    fn merge(&mut self, next: Self) -> Option<Self> {
        let same = self.kind == next.kind
            && self.message.edge == next.message.edge
            && self.message.to == next.message.to
            && self.message.session == next.message.session
            && self.text.len() < MAX_RUN;
        if !same {
            return Some(next);
        }
        self.count += next.count;
        self.until = next.until;
        self.ends.push(self.text.len());
        self.text.push_str(&next.text);
        None
    }
}

//! Totals of a recording: of its lines, its turns and errors, and the times without a connection.
//!
//! It is given the lines one by one, so that the recording can grow.

use super::event::{EventKind, Header, RecordedEvent};
use super::parse::Parsed;
use jsonrpc::{Kind, Side};

/// The totals of the lines so far.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The first header.
    pub header: Option<Header>,
    /// The number of events.
    pub events: u64,
    /// The number of lines that cannot be read.
    pub damaged: u64,
    /// Microseconds from the beginning to the last event.
    pub lasted: u64,
    /// The prompts of the client.
    pub turns: u64,
    /// The errors in all messages.
    pub errors: u64,
    /// The errors in messages that the relay received: without those that it made or translated.
    pub received_errors: u64,
    /// If the last event is an end, whether the recording continues in another file.
    pub rotated: Option<bool>,
    /// The times without a connection of a side.
    pub outages: Vec<Outage>,
    /// The outage of each side that is not over.
    lost: [Option<usize>; 2],
}

/// A time without a connection: from, to (unless it is not over), the side that was lost.
pub type Outage = (u64, Option<u64>, Side);

impl Summary {
    /// Adds a line.
    pub fn add(&mut self, line: &Parsed) {
        match line {
            Parsed::Header(header) => {
                self.header.get_or_insert_with(|| (**header).clone());
            }
            Parsed::Event(event) => self.add_event(event),
            Parsed::Invalid(_) => self.damaged += 1,
        }
    }

    /// Adds an event.
    pub fn add_event(&mut self, event: &RecordedEvent) {
        self.events += 1;
        self.lasted = self.lasted.max(event.t);
        self.rotated = None;
        match &event.kind {
            EventKind::Message(message) => {
                let is_received = message.is_received();
                let is_prompt = message.kind == Some(Kind::Request)
                    && message.method.as_deref() == Some("session/prompt");
                let is_error = message.kind == Some(Kind::Error);
                self.turns += u64::from(is_prompt && is_received && message.to == Side::Agent);
                self.errors += u64::from(is_error);
                self.received_errors += u64::from(is_error && is_received);
            }
            EventKind::Link { side, event, .. } => self.link_changed(*side, event),
            EventKind::End { rotated, .. } => self.rotated = Some(*rotated),
            _ => {}
        }
    }

    /// Whether the last event is the end of the recording.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.rotated == Some(false)
    }

    fn link_changed(&mut self, side: Side, event: &str) {
        let lost = side.of_mut(&mut self.lost);
        if let Some((_, until, _)) = lost.take().and_then(|open| self.outages.get_mut(open)) {
            *until = Some(self.lasted);
        }
        if event == "lost" {
            *lost = Some(self.outages.len());
            self.outages.push((self.lasted, None, side));
        }
    }
}

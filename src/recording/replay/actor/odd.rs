//! The client says what is no message: a batch, an id that nobody takes, garbage.
//!
//! It is told so, as the relay tells it, unless it was said in the recording: then what was said
//! about it there is said again.

use std::time::Duration;

use serde_json::Value;

use super::Actor;
use crate::jsonrpc::{Flaw, Frame, IdBuf, Role, Side, reply};
use crate::recording::replay::normal::matches;
use crate::recording::replay::rules::Match;

impl Actor {
    /// Takes what is no message; without a flaw it is a batch.
    pub(super) fn heard_odd(&mut self, frame: &Frame, flaw: Option<&Flaw>, now: Duration) {
        self.remarks
            .push_back("heard what is no message".to_owned());
        // An answer that cannot be read is one all the same: there will be no other.
        if let Some(flaw) = flaw
            && flaw.role == Some(Role::Answer)
        {
            if self.borrowed.botched(flaw) {
                return;
            }
            if self.asked.remove(&flaw.id).is_some() {
                self.release(&flaw.id, now);
                return;
            }
        }
        if !self.was_said(frame) {
            self.urgent
                .push_back(flaw.map_or_else(reply::batch, reply::flaw));
        }
    }

    /// What waits for the client's answer under this id goes on.
    pub(super) fn release(&mut self, id: &IdBuf, now: Duration) {
        for run in &mut self.running {
            if let Some(at) = run.open.iter().position(|open| open.1 == *id) {
                run.open.remove(at);
                run.since = now;
            }
        }
    }

    /// Whether the recorded client said such a line, each once.
    fn was_said(&mut self, frame: &Frame) -> bool {
        let text = |frame: &Frame| {
            let text = String::from_utf8_lossy(frame.as_bytes());
            Value::from(text.trim())
        };
        let live = self.names.heard(&text(frame));
        let steps = self.script.steps.iter().enumerate();
        let mut odd = steps.filter(|(at, step)| {
            step.from == Side::Client && step.envelope.is_none() && !self.odd.contains(at)
        });
        let found = odd.find(|(_, step)| matches(Match::Strict, "", &text(&step.frame), &live));
        let found = found.map(|(at, _)| at);
        self.odd.extend(found);
        found.is_some()
    }
}

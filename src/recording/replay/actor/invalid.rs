//! Handles frames of the client that are not messages: batches, unusable ids, garbage.
//!
//! It gets the error that the relay would send, unless the recorded client sent such a line, too:
//! then the recorded reaction is replayed.

use std::time::Duration;

use serde_json::Value;

use super::Actor;
use crate::jsonrpc::{Frame, FrameError, IdBuf, Role, Side, reply};
use crate::recording::replay::matching::matches;
use crate::recording::replay::rules::MatchRule;

impl Actor {
    /// Handles an invalid frame; without an `error` it is a batch.
    pub(super) fn on_invalid(&mut self, frame: &Frame, error: Option<&FrameError>, now: Duration) {
        self.notices
            .push_back("received a line that is not a message".to_owned());
        // An unreadable answer still counts as the answer: there will be no other.
        if let Some(error) = error
            && error.role == Some(Role::Answer)
        {
            if self.live_agent.answer_invalid(error) {
                return;
            }
            if self.pending.remove(&error.id).is_some() {
                self.release(&error.id, now);
                return;
            }
        }
        if !self.was_recorded(frame) {
            self.urgent
                .push_back(error.map_or_else(reply::batch, reply::frame_error));
        }
    }

    /// Continues the runs that wait for the client's answer with this id.
    pub(super) fn release(&mut self, id: &IdBuf, now: Duration) {
        for run in &mut self.running {
            if let Some(at) = run.open.iter().position(|open| open.1 == *id) {
                run.open.remove(at);
                run.since = now;
            }
        }
    }

    /// Whether the recorded client sent such a line; each line counts once.
    fn was_recorded(&mut self, frame: &Frame) -> bool {
        let text = |frame: &Frame| {
            let text = String::from_utf8_lossy(frame.as_bytes());
            Value::from(text.trim())
        };
        let live = self.names.to_recorded(&text(frame));
        let steps = self.script.steps.iter().enumerate();
        let mut unused = steps.filter(|(at, step)| {
            step.from == Side::Client && step.envelope.is_none() && !self.used_invalid.contains(at)
        });
        let found =
            unused.find(|(_, step)| matches(MatchRule::Strict, "", &text(&step.frame), &live));
        let found = found.map(|(at, _)| at);
        self.used_invalid.extend(found);
        found.is_some()
    }
}

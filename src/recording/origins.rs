//! Whether what the relay said was made of what it had heard, as the recording has it.
//!
//! A translated message names the one that led to it and the difference between them, which has to
//! give it again. Not here: whether the rules would make the same of it today (see
//! `cli::inspect::retell`).

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::{Body, Message};
use super::patch;

/// Bytes of heard messages that are kept. What is made of one follows it closely.
const KEPT: usize = 32 << 20;

/// Messages that were heard lately.
#[derive(Debug, Default)]
pub(super) struct Origins {
    heard: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Origins {
    /// Takes the message in that event `n` is; what is wrong with it.
    pub(super) fn see(&mut self, n: u64, message: &Message) -> Option<String> {
        let Body::Json(body) = &message.body else {
            return None;
        };
        if message.is_heard() {
            self.bytes += body.len();
            self.heard.push_back((n, body.clone()));
            while self.bytes > KEPT && self.heard.len() > 1 {
                self.bytes -= self.heard.pop_front().map_or(0, |(_, body)| body.len());
            }
            return None;
        }
        let (of, difference) = (message.of?, message.patch.as_ref()?);
        if of >= n {
            return Some(format!("event {n} was made of event {of}, which is later"));
        }
        let at = self.heard.binary_search_by_key(&of, |(n, _)| *n).ok()?;
        let from = serde_json::from_slice(&self.heard[at].1).ok()?;
        let to: serde_json::Value = serde_json::from_slice(body).ok()?;
        let made = patch::apply(&from, difference);
        (made.as_ref() != Some(&to))
            .then(|| format!("event {of} with its changes is not what event {n} is"))
    }
}

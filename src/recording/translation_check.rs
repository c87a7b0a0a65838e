//! Checks translated messages against their sources.
//!
//! A translated message names the event it was made from and a patch; the patch applied to the
//! source has to give the message again.

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::{Message, Payload};
use super::patch;

/// Bytes of received messages that are kept. A translated message follows its source closely.
const MAX_BYTES: usize = 32 << 20;

/// The messages that were received lately.
#[derive(Debug, Default)]
pub(super) struct TranslationCheck {
    received: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl TranslationCheck {
    /// Adds the message of event `n`; returns what is wrong with it.
    pub(super) fn check(&mut self, n: u64, message: &Message) -> Option<String> {
        let Payload::Json(body) = &message.body else {
            return None;
        };
        if message.is_received() {
            self.bytes += body.len();
            self.received.push_back((n, body.clone()));
            while self.bytes > MAX_BYTES && self.received.len() > 1 {
                self.bytes -= self.received.pop_front().map_or(0, |(_, body)| body.len());
            }
            return None;
        }
        let (source, change) = (message.source?, message.patch.as_ref()?);
        if source >= n {
            return Some(format!(
                "event {n} was made of event {source}, which is later"
            ));
        }
        let at = self
            .received
            .binary_search_by_key(&source, |(n, _)| *n)
            .ok()?;
        let from = serde_json::from_slice(&self.received.get(at)?.1).ok()?;
        let to: serde_json::Value = serde_json::from_slice(body).ok()?;
        let applied = patch::apply(&from, change);
        (applied.as_ref() != Some(&to))
            .then(|| format!("event {source} with its changes is not what event {n} is"))
    }
}

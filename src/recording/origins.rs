//! Checks translated messages against their sources.
//!
//! A translated message names the event it was made from and a patch; the patch applied to the
//! source has to give the message again.

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::{Body, Message};
use super::patch;

/// Bytes of received messages that are kept. A translated message follows its source closely.
const KEPT: usize = 32 << 20;

/// The messages that were received lately.
#[derive(Debug, Default)]
pub(super) struct Origins {
    heard: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Origins {
    /// Adds the message of event `n`; returns what is wrong with it.
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

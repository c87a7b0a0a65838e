//! The state of a conversation between a v2 agent and a v1 client.

use std::time::Instant;

use super::exchange::Exchange;
use super::traits::{ClientTraits, NewAgentTraits};
use crate::dialect::message::Message;

/// The state.
#[derive(Debug)]
pub(super) struct ToV1 {
    client: ClientTraits,
    agent: NewAgentTraits,
}

impl ToV1 {
    pub(super) const fn new(client: ClientTraits, agent: NewAgentTraits) -> Self {
        Self { client, agent }
    }

    /// A message of the peer, which speaks v2.
    pub(super) fn from_peer<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        out.other(message);
    }

    /// A message of the other side, which speaks v1.
    pub(super) fn from_other<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        out.peer(message);
    }

    /// When [`ToV1::expire`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Does what is due at `out.now`.
    pub(super) fn expire(&mut self, _out: &mut Exchange<'_>) {}
}

//! The state of a conversation between a v2 client and a v1 agent.

use std::time::Instant;

use super::exchange::Exchange;
use super::traits::AgentTraits;
use crate::dialect::message::Message;

/// The state.
#[derive(Debug)]
pub(super) struct ToV2 {
    agent: AgentTraits,
}

impl ToV2 {
    pub(super) const fn new(agent: AgentTraits) -> Self {
        Self { agent }
    }

    /// A message of the peer, which speaks v2.
    pub(super) fn from_peer<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        out.other(message);
    }

    /// A message of the other side, which speaks v1.
    pub(super) fn from_other<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        out.peer(message);
    }

    /// When [`ToV2::expire`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Does what is due at `out.now`.
    pub(super) fn expire(&mut self, _out: &mut Exchange<'_>) {}
}

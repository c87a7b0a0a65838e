//! What is counted of the links of a relay.

use std::fmt;
use std::time::Duration;

use super::RefusalCode;

/// Receives what happens to the links of a relay.
pub trait LinkEvents: Send + Sync + fmt::Debug {
    /// A connection was opened to carry a link.
    fn on_attach(&self, how: Attach);
}

/// What became of a connection that was opened to carry a link, or to return to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// It begins a conversation.
    New,
    /// It continues one that had no connection for so long.
    Resumed(Duration),
    /// The peer was refused.
    Refused(RefusalCode),
}

/// The links of a relay, or a store of conversations whose clients may reconnect.
pub trait LinkSource: Send + Sync + fmt::Debug {
    /// What they hold now.
    fn totals(&self) -> LinkTotals;
}

/// What links, or conversations whose clients may reconnect, hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTotals {
    /// Links to agents.
    pub to_agents: usize,
    /// Those whose peer is lost.
    pub away: usize,
    /// Bytes that were sent over links and not acknowledged.
    pub unacked: usize,
    /// Bytes kept for clients that may reconnect, connected or not.
    pub kept: usize,
    /// The limit of those.
    pub room: usize,
}

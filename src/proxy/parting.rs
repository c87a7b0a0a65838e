//! How a client's link is closed at the end.
//!
//! A socket that is closed with unread bytes is reset, and the client could lose the last messages.
//! So what a client on a network still sends is read, for a while.

use std::time::Duration;

use tokio::time::Instant;

use crate::transport::{Link, PeerKind};

/// What happens to a client's link once everything was sent.
pub(super) enum Parting {
    /// It is closed.
    AtOnce,
    /// It is read to its end first, for at most this time.
    Patient(Duration),
    /// It is being read until then.
    Until(Instant),
}

impl Parting {
    /// How this client's link is closed.
    pub(super) fn of(client: &Link, patience: Duration) -> Self {
        if client.peer.kind == PeerKind::Remote && client.peer.half_close {
            Self::Patient(patience)
        } else {
            Self::AtOnce
        }
    }

    /// Until when the client is read, from the first call on; `None` when it is closed at once.
    pub(super) fn begin(&mut self) -> Option<Instant> {
        if let Self::Patient(patience) = self {
            *self = Self::Until(Instant::now() + *patience);
        }
        self.end()
    }

    /// When the reading ends, once it has begun.
    pub(super) const fn end(&self) -> Option<Instant> {
        match self {
            Self::Until(end) => Some(*end),
            Self::AtOnce | Self::Patient(_) => None,
        }
    }
}

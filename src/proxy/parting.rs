//! How a client is seen off once all is said.
//!
//! A socket that is closed with unread bytes is reset, and the client could lose what it was told
//! last. So what a client on a network still sends is read, for a while. Not here: the reading (see
//! `turn`).

use std::time::Duration;

use tokio::time::Instant;

use crate::transport::{Link, PeerKind};

/// What becomes of a client's link once all is said.
pub(super) enum Parting {
    /// It is closed.
    AtOnce,
    /// What it still sends is read to its end first, for no longer than this.
    Patient(Duration),
    /// That goes on until then.
    Until(Instant),
}

impl Parting {
    /// How this client is to be seen off.
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

    /// When it is over, once it has begun.
    pub(super) const fn end(&self) -> Option<Instant> {
        match self {
            Self::Until(end) => Some(*end),
            Self::AtOnce | Self::Patient(_) => None,
        }
    }
}

//! How a client's link is closed at the end.
//!
//! A socket that is closed with unread bytes is reset, and the client could lose the last messages.
//! So what a client on a network still sends is read, for a while.

use std::time::Duration;

use tokio::time::Instant;

use crate::transport::{Link, PeerKind};

/// What happens to a client's link once everything was sent.
pub(super) enum Closing {
    /// It is closed.
    Immediate,
    /// It is read to its end first, for at most this time.
    Grace(Duration),
    /// It is being read until then.
    Until(Instant),
}

impl Closing {
    /// How this client's link is closed.
    pub(super) fn of(client: &Link, grace: Duration) -> Self {
        if client.peer.kind == PeerKind::Remote && client.peer.half_close {
            Self::Grace(grace)
        } else {
            Self::Immediate
        }
    }

    /// Until when the client is read, from the first call on; `None` when it is closed at once.
    pub(super) fn begin(&mut self) -> Option<Instant> {
        if let Self::Grace(grace) = self {
            *self = Self::Until(Instant::now() + *grace);
        }
        self.end()
    }

    /// When the reading ends, once it has begun.
    pub(super) const fn end(&self) -> Option<Instant> {
        match self {
            Self::Until(end) => Some(*end),
            Self::Immediate | Self::Grace(_) => None,
        }
    }
}

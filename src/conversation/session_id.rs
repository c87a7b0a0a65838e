//! The id of a session, as it is kept with open requests.

use smallvec::SmallVec;

use jsonrpc::{Envelope, Frame, named_session};

/// The id of a session. One of usual length takes no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionId(SmallVec<[u8; 40]>);

impl SessionId {
    /// The session that a message names.
    pub(super) fn named(frame: &Frame, at: &Envelope) -> Option<Self> {
        Some(Self::of(&named_session(frame, at)?))
    }

    /// The session with this id.
    pub(super) fn of(id: &str) -> Self {
        Self(SmallVec::from_slice(id.as_bytes()))
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

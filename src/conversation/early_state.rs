//! The notifications that wait for the answer that names their session.

use std::collections::HashSet;
use std::time::Instant;

use super::summary::SessionHash;
use jsonrpc::{Frame, IdBuf};

/// Known sessions that are remembered. At it all are forgotten: their notifications may wait, too.
const MAX_KNOWN: usize = 4096;

/// What waits, and for what.
#[derive(Debug, Default)]
pub(super) struct EarlyUpdates {
    /// The sessions that the client has named, or has received the ids of.
    pub(super) known: HashSet<SessionHash>,
    /// Requests of the client that make a session and were open when it was last checked.
    pub(super) creating: Vec<IdBuf>,
    /// The sessions that answers to them have named; the client may not have been sent them yet.
    pub(super) created: Vec<SessionHash>,
    pub(super) held: Vec<(SessionHash, Frame)>,
    pub(super) bytes: usize,
    /// Until when the first of them waits.
    pub(super) until: Option<Instant>,
    /// Nothing is held any more while those requests are open.
    pub(super) passes: bool,
}

impl EarlyUpdates {
    /// Remembers a session that the client knows.
    pub(super) fn learn(&mut self, session: Option<SessionHash>) {
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.extend(session);
    }
}

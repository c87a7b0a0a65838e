//! What is known of requests whose answers do not come.

use std::time::Instant;

use super::known_values::Method;
use super::session_id::SessionId;
use jsonrpc::{IdBuf, Side};

/// A request whose answer has not come for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentRequest {
    /// The side that owes the answer.
    pub side: Side,
    /// Its method.
    pub method: Method,
    /// Since when that side has sent nothing.
    pub since: Instant,
    pub(super) id: IdBuf,
}

/// What is known of silence.
#[derive(Debug)]
pub(super) struct Silence {
    /// When to look at the open requests again.
    pub(super) due: Option<Instant>,
    /// Those that were told and are open.
    pub(super) told: Vec<SilentRequest>,
    /// Since when each side no longer waits itself.
    pub(super) resumed: [Instant; 2],
    /// The sessions whose commands run in terminals of the client, once for each terminal.
    pub(super) terminals: Vec<SessionId>,
    pub(super) client_is_away: bool,
}

impl Silence {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            due: None,
            told: Vec::new(),
            resumed: [now; 2],
            terminals: Vec::new(),
            client_is_away: false,
        }
    }

    /// Looks for what is due at this time, or before.
    pub(super) fn look_at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Whether a request is told that `side` owes the answer to.
    #[inline]
    pub(super) fn is_told(&self, side: Side) -> bool {
        self.told.iter().any(|one| one.side == side)
    }

    /// There is no agent any more.
    pub(super) fn forget_agent(&mut self) {
        self.told.retain(|one| one.side != Side::Agent);
        self.terminals.clear();
    }

    /// A request is open no more.
    pub(super) fn forget(&mut self, side: Side, id: &IdBuf) {
        self.told.retain(|one| one.side != side || one.id != *id);
    }
}

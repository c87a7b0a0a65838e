//! The answers that the relay gave in place of a side, until that side's own come, and what waits for
//! those.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::session_id::SessionId;
use jsonrpc::{Frame, Id, IdBuf, Side};

/// How long a prompt waits until the agent has ended the turn before.
pub(super) const NEXT_PROMPT: Duration = Duration::from_secs(30);

/// Answers that are awaited to be dropped, for each side. Of more, the oldest counts as unknown.
const MAX_OWED: usize = 64;

/// The answers that the relay gave in place of a side, until that side's own come.
#[derive(Debug, Default)]
pub(super) struct OwnAnswers {
    /// By the side that owes its own answer.
    pub(super) owed: [VecDeque<Owed>; 2],
    /// Requests of the client that wait for answers of the agent.
    pub(super) waiting: VecDeque<Waiting>,
    /// When to look for what is due; it may be due later.
    pub(super) due: Option<Instant>,
}

/// An answer that a side still owes.
#[derive(Debug)]
pub(super) struct Owed {
    pub(super) id: IdBuf,
    /// The session of a prompt.
    session: Option<SessionId>,
}

/// A request of the client that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: IdBuf,
    /// The session of a prompt.
    pub(super) session: Option<SessionId>,
    pub(super) frame: Frame,
    pub(super) since: Instant,
}

impl OwnAnswers {
    /// The relay has answered the request in place of `side`; `session` is that of a prompt.
    pub(super) fn expect(&mut self, side: Side, id: IdBuf, session: Option<SessionId>) {
        let owed = &mut self.owed[side as usize];
        if owed.len() >= MAX_OWED {
            owed.pop_front();
        }
        owed.push_back(Owed { id, session });
    }

    /// Whether `side` owes an answer with that id.
    pub(super) fn is_owed(&self, side: Side, id: Id<'_>) -> bool {
        self.owed[side as usize]
            .iter()
            .any(|owed| owed.id.as_id() == id)
    }

    /// Whether a request of the client has to wait for an answer of the agent: to the prompt before in
    /// its session, if it is one, or to a request with the same id.
    pub(super) fn holds(&self, id: Id<'_>, session: Option<&SessionId>) -> bool {
        let mut prompts = self.owed[Side::Agent as usize].iter();
        self.is_owed(Side::Agent, id)
            || session.is_some() && prompts.any(|owed| owed.session.as_ref() == session)
    }

    /// Keeps a request that has to wait.
    pub(super) fn hold(
        &mut self,
        id: IdBuf,
        session: Option<SessionId>,
        frame: Frame,
        now: Instant,
    ) {
        self.waiting.push_back(Waiting {
            id,
            session,
            frame,
            since: now,
        });
        self.look_at(now + NEXT_PROMPT);
    }

    pub(super) fn look_at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

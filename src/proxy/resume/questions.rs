//! What the agent has asked the client and not been answered.
//!
//! A permission that was asked for on a connection that broke is asked for again on the next, under
//! the same id: as far as we know nobody has seen it. Not here: the client's requests (see `ids`).

use std::collections::VecDeque;

use crate::jsonrpc::{Frame, Id, IdBuf};

/// The agent's open requests, in the order they were made.
#[derive(Debug, Default)]
pub(super) struct Questions(VecDeque<Question>);

#[derive(Debug)]
struct Question {
    id: IdBuf,
    session: Option<String>,
    frame: Frame,
    /// It was said on this connection.
    said: bool,
}

impl Questions {
    /// Remembers a request; `said` when it has just been passed on.
    pub(super) fn ask(&mut self, id: Id<'_>, session: Option<String>, frame: Frame, said: bool) {
        self.0.push_back(Question {
            id: id.to_owned(),
            session,
            frame,
            said,
        });
    }

    /// Whether the agent waits for nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|question| question.frame.len()).sum()
    }

    /// Forgets the request that the client has answered under `id`.
    pub(super) fn answer(&mut self, id: Id<'_>) {
        let id = id.to_owned();
        if let Some(at) = self.0.iter().position(|question| question.id == id) {
            self.0.remove(at);
        }
    }

    /// Forgets the requests of a session that has ended; nobody can come back for it.
    pub(super) fn forget(&mut self, session: &str) {
        self.0
            .retain(|question| question.session.as_deref() != Some(session));
    }

    /// Nothing has been said on the connection that now begins.
    pub(super) fn begin_anew(&mut self) {
        for question in &mut self.0 {
            question.said = false;
        }
    }

    /// The requests of `session` that are still to be said on this connection.
    pub(super) fn unsaid(&mut self, session: Option<&str>) -> impl Iterator<Item = Frame> {
        let due = self
            .0
            .iter_mut()
            .filter(move |question| !question.said && question.session.as_deref() == session);
        due.map(|question| {
            question.said = true;
            question.frame.clone()
        })
    }
}

//! The agent's open requests to the client.
//!
//! A permission request from a connection that broke is sent again on the next, with the same id:
//! as far as is known no user has seen it.

use std::collections::VecDeque;

use crate::jsonrpc::{Frame, Id, IdBuf};

/// The agent's open requests, in the order they were sent.
#[derive(Debug, Default)]
pub(super) struct AgentRequests(VecDeque<AgentRequest>);

#[derive(Debug)]
struct AgentRequest {
    id: IdBuf,
    session: Option<String>,
    frame: Frame,
    /// It was sent on this connection.
    sent: bool,
}

impl AgentRequests {
    /// Stores a request; `sent` when it has just been passed on.
    pub(super) fn add(&mut self, id: Id<'_>, session: Option<String>, frame: Frame, sent: bool) {
        self.0.push_back(AgentRequest {
            id: id.to_owned(),
            session,
            frame,
            sent,
        });
    }

    /// Whether no request is open.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|question| question.frame.len()).sum()
    }

    /// Removes the request that the client has answered under `id`.
    pub(super) fn remove(&mut self, id: Id<'_>) {
        let id = id.to_owned();
        if let Some(at) = self.0.iter().position(|question| question.id == id) {
            self.0.remove(at);
        }
    }

    /// Removes the requests of a session that has ended; no client can reconnect to it.
    pub(super) fn remove_session(&mut self, session: &str) {
        self.0
            .retain(|question| question.session.as_deref() != Some(session));
    }

    /// A new connection begins, on which nothing was sent.
    pub(super) fn reset_connection(&mut self) {
        for question in &mut self.0 {
            question.sent = false;
        }
    }

    /// Marks and returns the requests of `session` that are still to be sent on this connection.
    pub(super) fn take_unsent(&mut self, session: Option<&str>) -> impl Iterator<Item = Frame> {
        let due = self
            .0
            .iter_mut()
            .filter(move |question| !question.sent && question.session.as_deref() == session);
        due.map(|question| {
            question.sent = true;
            question.frame.clone()
        })
    }
}

//! A session of a remote agent.

use std::collections::HashSet;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::run_event::Interrupt;
use super::sent_content::SentContent;

/// A session.
pub(super) struct RemoteSession {
    pub(super) id: String,
    /// It is a thread of the server, not only local.
    pub(super) is_thread: bool,
    pub(super) state: Mutex<SessionState>,
}

/// The state of a session.
#[derive(Default)]
pub(super) struct SessionState {
    /// Cancels the current turn.
    pub(super) turn: Option<CancellationToken>,
    /// `_meta.agentConnect` of the request that opened it.
    pub(super) meta: Value,
    /// The options that the client has set, with the values for the agent.
    pub(super) options: Map<String, Value>,
    /// The ids of its messages so far.
    pub(super) old_ids: HashSet<String>,
    /// The thread that its first run created, in the prose specification.
    pub(super) thread: Option<String>,
    /// The messages so far, if it is not a thread.
    pub(super) history: Vec<Value>,
    /// The run that waits for the next prompt, its interrupt, and the content sent for it.
    pub(super) open_interrupt: Option<(String, Interrupt, SentContent)>,
}

impl RemoteSession {
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }
}

//! A thread in use: its session and its runs, which take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::sync::Mutex as AsyncMutex;
use uuid::Uuid;

use super::active_run::ActiveRun;
use super::agent_connection::{AgentConnection, LinkId};
use crate::agent_connect::api::agent::AgentInfo;
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::run_request::Strategy;

/// A thread in use.
#[derive(Default)]
pub(super) struct ActiveThread {
    /// Its session, if the agent has it open. Locked by the current run; the lock is fair, so runs
    /// are served in order.
    pub(super) session: AsyncMutex<Option<OpenSession>>,
    /// Runs that have not ended.
    runs: Mutex<Vec<Arc<ActiveRun>>>,
    /// The number of its latest request; the least recently used thread is evicted first.
    last_used: AtomicU64,
}

/// An open session.
#[derive(Clone)]
pub(super) struct OpenSession {
    pub(super) conn: Arc<AgentConnection>,
    /// The link it is open on.
    pub(super) link: LinkId,
    pub(super) agent: Arc<AgentInfo>,
    pub(super) id: String,
}

/// What is lost by evicting a thread: whether its session cannot be reopened, whether a session is
/// open, and when it was last used.
pub(super) type EvictionCost = (bool, bool, u64);

impl ActiveThread {
    /// Adds a run, if the thread is idle or the run's strategy allows a busy one.
    pub(super) fn add_run(&self, live: &Arc<ActiveRun>) -> Result<(), ApiError> {
        let mut runs = self.runs();
        if !runs.is_empty() {
            match live.request.strategy {
                Strategy::Reject | Strategy::Rollback => {
                    return Err(ApiError::conflict("Thread is busy"));
                }
                Strategy::Interrupt => runs.iter().for_each(|other| other.cancel.cancel()),
                Strategy::Enqueue => {}
            }
        }
        runs.push(live.clone());
        Ok(())
    }

    pub(super) fn remove_run(&self, run: Uuid) {
        self.runs().retain(|live| live.id != run);
    }

    /// Whether a run is active or queued.
    pub(super) fn is_busy(&self) -> bool {
        !self.runs().is_empty()
    }

    /// Marks it as used by request number `use_number`.
    pub(super) fn touch(&self, use_number: u64) {
        self.last_used.store(use_number, Ordering::Relaxed);
    }

    /// The cost of evicting it; `None` while it is in use.
    pub(super) fn eviction_cost(&self) -> Option<EvictionCost> {
        let session = self.session.try_lock().ok().filter(|_| !self.is_busy())?;
        let open = session.as_ref().filter(|open| open.is_open());
        let lost = open.is_some_and(|open| open.agent.reopen_method().is_none());
        Some((lost, open.is_some(), self.last_used.load(Ordering::Relaxed)))
    }

    /// Evicts it, and closes its session where the agent supports that.
    pub(super) fn evict(&self) {
        if let Ok(mut session) = self.session.try_lock()
            && let Some(open) = session.take()
        {
            tokio::spawn(async move { open.close().await });
        }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<Arc<ActiveRun>>> {
        self.runs.lock()
    }
}

impl OpenSession {
    /// Whether its link is still open.
    pub(super) fn is_open(&self) -> bool {
        self.conn.is_open(self.link)
    }

    /// Asks the agent to close it, if it supports that. Otherwise the agent keeps it.
    pub(super) async fn close(&self) {
        if self.is_open() && self.agent.supports("close") {
            let params = json!({ "sessionId": self.id });
            let _closed = self.conn.call(self.link, "session/close", &params).await;
        }
    }
}

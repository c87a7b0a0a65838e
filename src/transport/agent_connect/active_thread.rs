//! A thread in use: its session and its runs, which take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::sync::Mutex as AsyncMutex;

use super::active_run::ActiveRun;
use super::line::{Dial, Line};
use crate::agent_connect::agent::Agent;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::run_request::Strategy;
use crate::agent_connect::uuid::Uuid;

/// A thread in use.
#[derive(Default)]
pub(super) struct ActiveThread {
    /// Locked by the run whose turn it is; the lock is fair, so runs are served in order.
    pub(super) session: AsyncMutex<Session>,
    /// Runs that have not ended.
    lives: Mutex<Vec<Arc<ActiveRun>>>,
    /// The number of its latest request; the least recently used thread is evicted first.
    asked: AtomicU64,
}

/// The session of a thread, if the agent has it open.
#[derive(Default)]
pub(super) struct Session {
    pub(super) open: Option<Open>,
}

/// An open session.
#[derive(Clone)]
pub(super) struct Open {
    pub(super) line: Arc<Line>,
    /// The link it is open on.
    pub(super) dial: Dial,
    pub(super) agent: Arc<Agent>,
    pub(super) id: String,
}

/// What is lost by evicting a thread: whether its session cannot be reopened, whether a session is
/// open, and when it was last used.
pub(super) type Worth = (bool, bool, u64);

impl ActiveThread {
    /// Adds a run, if the thread is idle or the run's strategy allows a busy one.
    pub(super) fn enter(&self, live: &Arc<ActiveRun>) -> Result<(), Fault> {
        let mut lives = self.lives();
        if !lives.is_empty() {
            match live.request.strategy {
                Strategy::Reject => return Err(Fault::conflict("Thread is busy")),
                Strategy::Interrupt => lives.iter().for_each(|other| other.cancel.cancel()),
                Strategy::Enqueue => {}
            }
        }
        lives.push(live.clone());
        Ok(())
    }

    pub(super) fn leave(&self, run: Uuid) {
        self.lives().retain(|live| live.id != run);
    }

    /// Whether a run is active or queued.
    pub(super) fn is_busy(&self) -> bool {
        !self.lives().is_empty()
    }

    /// Marks it as used by request number `use_number`.
    pub(super) fn asked_for(&self, turn: u64) {
        self.asked.store(turn, Ordering::Relaxed);
    }

    /// The cost of evicting it; `None` while it is in use.
    pub(super) fn worth(&self) -> Option<Worth> {
        let session = self.session.try_lock().ok().filter(|_| !self.is_busy())?;
        let open = session.open.as_ref().filter(|open| open.is_open());
        let lost = open.is_some_and(|open| open.agent.revives_with().is_none());
        Some((lost, open.is_some(), self.asked.load(Ordering::Relaxed)))
    }

    /// Evicts it, and closes its session where the agent supports that.
    pub(super) fn give_up(&self) {
        if let Ok(mut session) = self.session.try_lock()
            && let Some(open) = session.open.take()
        {
            tokio::spawn(async move { open.close().await });
        }
    }

    fn lives(&self) -> MutexGuard<'_, Vec<Arc<ActiveRun>>> {
        self.lives.lock()
    }
}

impl Open {
    /// Whether its link is still open.
    pub(super) fn is_open(&self) -> bool {
        self.line.is_open(self.dial)
    }

    /// Asks the agent to close it, if it supports that. Otherwise the agent keeps it.
    pub(super) async fn close(&self) {
        if self.is_open() && self.agent.offers("close") {
            let params = json!({ "sessionId": self.id });
            let _closed = self.line.call(self.dial, "session/close", &params).await;
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.open.as_ref().map(|open| &open.id);
        f.debug_struct("Session").field("open", &id).finish()
    }
}

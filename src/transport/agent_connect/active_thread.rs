//! A thread that is in use: its session, its runs, and whose turn it is.
//!
//! Not here: what is kept of it (see `store`).

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

/// A thread that is in use.
#[derive(Default)]
pub(super) struct ActiveThread {
    /// Held by the run whose turn it is; those who wait are served in the order they came.
    pub(super) session: AsyncMutex<Session>,
    /// Runs that are not over.
    lives: Mutex<Vec<Arc<ActiveRun>>>,
    /// When it was asked for last.
    asked: AtomicU64,
}

/// The session of a thread, as far as the agent has it open.
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

/// What is lost when a thread is not active any more: a session that cannot be taken up again, an
/// open one, and how long ago it was in use.
pub(super) type Worth = (bool, bool, u64);

impl ActiveThread {
    /// Takes a run in, if what goes on allows it.
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

    /// Whether a run is going on, or waits.
    pub(super) fn is_busy(&self) -> bool {
        !self.lives().is_empty()
    }

    /// It is asked for, as the number `turn`.
    pub(super) fn asked_for(&self, turn: u64) {
        self.asked.store(turn, Ordering::Relaxed);
    }

    /// What would be lost with it; `None` while it is in use.
    pub(super) fn worth(&self) -> Option<Worth> {
        let session = self.session.try_lock().ok().filter(|_| !self.is_busy())?;
        let open = session.open.as_ref().filter(|open| open.is_open());
        let lost = open.is_some_and(|open| open.agent.revives_with().is_none());
        Some((lost, open.is_some(), self.asked.load(Ordering::Relaxed)))
    }

    /// It makes room for another: the agent may close its session.
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
    /// Whether it still is.
    pub(super) fn is_open(&self) -> bool {
        self.line.is_open(self.dial)
    }

    /// Has the agent close it, if it can. An agent that does not close it keeps it.
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

//! A thread that is in use: its session, its runs, and whose turn it is.
//!
//! Not here: what is kept of it (see `store`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use super::line::Dial;
use super::live::Live;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::uuid::Uuid;
use crate::agent_connect::wish::Strategy;

/// A thread that is in use.
#[derive(Default)]
pub(super) struct Seat {
    /// Held by the run whose turn it is; those who wait are served in the order they came.
    pub(super) session: AsyncMutex<Session>,
    /// Runs that are not over.
    lives: Mutex<Vec<Arc<Live>>>,
}

/// The session of a thread, as far as the agent has it open.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Its id, and the link it is open on.
    pub(super) open: Option<(Dial, String)>,
}

impl Seat {
    /// Takes a run in, if what goes on allows it.
    pub(super) fn enter(&self, live: &Arc<Live>) -> Result<(), Fault> {
        let mut lives = self.lives();
        if !lives.is_empty() {
            match live.wish.strategy {
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

    fn lives(&self) -> MutexGuard<'_, Vec<Arc<Live>>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

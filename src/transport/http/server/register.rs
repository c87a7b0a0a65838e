//! The live connections of a listener, by the names they are asked for.
//!
//! Not here: what a connection does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::connection::{Connection, Manner};
use crate::wire::Limits;

/// Live connections.
#[derive(Debug, Default)]
pub(super) struct Register {
    live: Mutex<HashMap<(bool, String), Arc<Connection>>>,
    /// Told when one has gone.
    pub(super) gone: Notify,
}

/// A new name that nobody can guess: 128 random bits.
///
/// # Errors
/// When the system has no random numbers.
pub(super) fn new_id() -> Result<String, &'static str> {
    let mut bits = [0; 16];
    let filled = SystemRandom::new().fill(&mut bits);
    filled.map_err(|_| "the system has no random numbers")?;
    Ok(HEXLOWER.encode(&bits))
}

impl Register {
    /// A new official connection.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn open(&self, limits: &Arc<Limits>) -> Result<Arc<Connection>, &'static str> {
        let (id, epoch) = (new_id()?, new_epoch()?);
        let connection = Connection::new(id.clone(), Manner::Official, epoch, limits);
        self.live().insert((false, id), connection.clone());
        Ok(connection)
    }

    /// The connection of an elephant.ai client, and whether it is new.
    pub(super) fn client(&self, id: &str, limits: &Arc<Limits>) -> (Arc<Connection>, bool) {
        let mut live = self.live();
        let key = (true, id.to_owned());
        if let Some(connection) = live.get(&key)
            && !connection.state().is_gone()
        {
            return (connection.clone(), false);
        }
        let connection = Connection::new(id.to_owned(), Manner::Elephant, 0, limits);
        live.insert(key, connection.clone());
        (connection, true)
    }

    /// The official connection of that name.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Connection>> {
        let found = self.live().get(&(false, id.to_owned())).cloned();
        found.filter(|connection| !connection.state().is_gone())
    }

    /// Forgets a connection.
    pub(super) fn remove(&self, connection: &Arc<Connection>) {
        let mut live = self.live();
        let key = (connection.manner == Manner::Elephant, connection.id.clone());
        if live
            .get(&key)
            .is_some_and(|one| Arc::ptr_eq(one, connection))
        {
            live.remove(&key);
        }
        drop(live);
        self.gone.notify_waiters();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live().is_empty()
    }

    /// Looks after what only time tells.
    pub(super) fn mend(&self, now: Instant) {
        let live: Vec<_> = self.live().values().cloned().collect();
        for connection in live {
            if connection.mend(now) {
                self.remove(&connection);
            }
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<(bool, String), Arc<Connection>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_epoch() -> Result<u32, &'static str> {
    let mut bits = [0; 4];
    let filled = SystemRandom::new().fill(&mut bits);
    filled.map_err(|_| "the system has no random numbers")?;
    Ok(u32::from_be_bytes(bits))
}

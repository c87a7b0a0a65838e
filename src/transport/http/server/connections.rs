//! The live connections of a listener, by their ids.

use std::collections::HashMap;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use parking_lot::{Mutex, MutexGuard};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::connection::{Connection, StreamMode};
use crate::auth::{AuthMethod, Principal};
use crate::jsonrpc::Limits;

/// Live connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    live: Mutex<HashMap<Key, Arc<Connection>>>,
    /// Notified when one was removed.
    removed: Notify,
}

/// The key of a connection.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    /// An id that the server gave it.
    Official(String),
    /// An id that its client chose; others may have chosen the same.
    Elephant(AuthMethod, Arc<str>, String),
}

/// A new id that cannot be guessed: 128 random bits.
///
/// # Errors
/// When the system has no random numbers.
pub(super) fn new_id() -> Result<String, &'static str> {
    Ok(HEXLOWER.encode(&random::<16>()?))
}

impl Connections {
    /// A new official connection.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn open(
        &self,
        owner: &Arc<Principal>,
        limits: &Arc<Limits>,
    ) -> Result<Arc<Connection>, &'static str> {
        let (id, epoch) = (new_id()?, u32::from_be_bytes(random()?));
        let connection = Connection::new(id, owner, StreamMode::Official, epoch, limits);
        self.live().insert(Key::of(&connection), connection.clone());
        Ok(connection)
    }

    /// The connection of an elephant.ai client, and whether it is new.
    pub(super) fn open_elephant(
        &self,
        id: &str,
        owner: &Arc<Principal>,
        limits: &Arc<Limits>,
    ) -> (Arc<Connection>, bool) {
        let mut live = self.live();
        let key = Key::elephant(owner, id);
        if let Some(connection) = live.get(&key)
            && !connection.state().is_gone()
        {
            return (connection.clone(), false);
        }
        let connection = Connection::new(id.to_owned(), owner, StreamMode::Elephant, 0, limits);
        live.insert(key, connection.clone());
        (connection, true)
    }

    /// The official connection with that id, if it belongs to `owner`.
    pub(super) fn get(&self, id: &str, owner: &Principal) -> Option<Arc<Connection>> {
        let found = self.find(id);
        found.filter(|connection| *connection.owner == *owner)
    }

    /// The same, before the sender is authenticated.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Connection>> {
        let found = self.live().get(&Key::Official(id.to_owned())).cloned();
        found.filter(|connection| !connection.state().is_gone())
    }

    /// Removes a connection.
    pub(super) fn remove(&self, connection: &Arc<Connection>) {
        let mut live = self.live();
        let key = Key::of(connection);
        if live
            .get(&key)
            .is_some_and(|one| Arc::ptr_eq(one, connection))
        {
            live.remove(&key);
        }
        drop(live);
        self.removed.notify_waiters();
    }

    /// Waits until there are none.
    pub(super) async fn ended(&self) {
        loop {
            let removed = self.removed.notified();
            if self.live().is_empty() {
                return;
            }
            removed.await;
        }
    }

    /// Applies the time limits.
    pub(super) fn expire(&self, now: Instant) {
        let live: Vec<_> = self.live().values().cloned().collect();
        for connection in live {
            if connection.expire(now) {
                self.remove(&connection);
            }
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Key, Arc<Connection>>> {
        self.live.lock()
    }
}

impl Key {
    fn of(connection: &Connection) -> Self {
        match connection.mode {
            StreamMode::Official => Self::Official(connection.id.clone()),
            StreamMode::Elephant => Self::elephant(&connection.owner, &connection.id),
        }
    }

    fn elephant(owner: &Principal, id: &str) -> Self {
        Self::Elephant(owner.auth_method, owner.name.clone(), id.to_owned())
    }
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], &'static str> {
    let mut bits = [0; BYTES];
    let filled = SystemRandom::new().fill(&mut bits);
    filled.map_err(|_| "the system has no random numbers")?;
    Ok(bits)
}

//! The live connections of a listener, by their ids.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::connection::{Connection, StreamMode};
use crate::auth::Principal;
use crate::jsonrpc::Limits;

/// Live connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    live: Mutex<HashMap<String, Arc<Connection>>>,
    /// Notified when one was removed.
    removed: Notify,
}

/// A new id that cannot be guessed.
pub(super) fn new_id() -> String {
    Uuid::new_v4().simple().to_string()
}

impl Connections {
    /// A new official connection.
    pub(super) fn open(&self, owner: &Arc<Principal>, limits: &Arc<Limits>) -> Arc<Connection> {
        let connection = Connection::new(new_id(), owner, StreamMode::Official, limits);
        let mut live = self.live.lock();
        live.insert(key(&connection), connection.clone());
        connection
    }

    /// The connection of an elephant.ai client, and whether it is new.
    pub(super) fn open_elephant(
        &self,
        id: &str,
        owner: &Arc<Principal>,
        limits: &Arc<Limits>,
    ) -> (Arc<Connection>, bool) {
        let mut live = self.live.lock();
        let key = elephant_key(owner, id);
        if let Some(connection) = live.get(&key)
            && !connection.state().is_gone
        {
            return (connection.clone(), false);
        }
        let connection = Connection::new(id.to_owned(), owner, StreamMode::Elephant, limits);
        live.insert(key, connection.clone());
        (connection, true)
    }

    /// The official connection with that id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Connection>> {
        let found = self.live.lock().get(id).cloned();
        found.filter(|one| one.mode == StreamMode::Official && !one.state().is_gone)
    }

    /// Removes a connection.
    pub(super) fn remove(&self, connection: &Arc<Connection>) {
        let is_other = |one: &Arc<Connection>| !Arc::ptr_eq(one, connection);
        let mut live = self.live.lock();
        let key = key(connection);
        if !live.get(&key).is_none_or(is_other) {
            live.remove(&key);
        }
        drop(live);
        self.removed.notify_waiters();
    }

    /// Waits until there are none.
    pub(super) async fn ended(&self) {
        loop {
            let removed = self.removed.notified();
            if self.live.lock().is_empty() {
                return;
            }
            removed.await;
        }
    }

    /// Applies the time limits.
    pub(super) fn expire(&self, now: Instant) {
        let live: Vec<_> = self.live.lock().values().cloned().collect();
        for connection in live.iter().filter(|connection| connection.expire(now)) {
            self.remove(connection);
        }
    }
}

fn key(connection: &Connection) -> String {
    match connection.mode {
        StreamMode::Official => connection.id.clone(),
        StreamMode::Elephant => elephant_key(&connection.owner, &connection.id),
    }
}

/// The key of a connection whose client chose its id; others may have chosen the same. The id of an
/// official connection has no space.
fn elephant_key(owner: &Principal, id: &str) -> String {
    format!("{:?} {} {id}", owner.auth_method, owner.name)
}

//! The order of one client's messages that are sent in parallel.
//!
//! On HTTP/2, and on several sockets, a client may send a message before the one before it was
//! answered. They are served in tasks of their own, and only the order in which their heads came is
//! the order in which they were sent: it is recorded before anything is awaited.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::connection::Connection;

/// Time a message waits for those before it: one whose body does not come must not delay the others
/// for as long as that may take.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The turns that have not passed.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: BTreeSet<u64>,
    next: u64,
}

/// One message's turn, which passes when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    connection: Arc<Connection>,
    number: u64,
}

impl Turn {
    /// A turn behind all others.
    pub(super) fn after_all(connection: Arc<Connection>) -> Self {
        let mut state = connection.state();
        let turns = &mut state.turns;
        let number = turns.next;
        turns.next += 1;
        turns.open.insert(number);
        drop(state);
        Self { connection, number }
    }

    /// Waits until all earlier messages are done, or `MAX_WAIT` is over.
    pub(super) async fn wait(&self) {
        let first = async {
            loop {
                let room = self.connection.has_room.notified();
                tokio::pin!(room);
                room.as_mut().enable();
                if self.connection.state().turns.open.first() == Some(&self.number) {
                    return;
                }
                room.await;
            }
        };
        // A timeout is handled like a turn.
        let _ = timeout(MAX_WAIT, first).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.connection.state().turns.open.remove(&self.number);
        self.connection.has_room.notify_waiters();
    }
}

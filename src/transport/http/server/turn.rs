//! The order of one client's messages that come side by side.
//!
//! On HTTP/2, and on sockets of their own, a client may send a message before the one before it
//! was answered. They are served in tasks of their own, and only the order in which their heads
//! came tells what was said first: it is taken down before anything is awaited. Not here: what is
//! done in its turn (see `inbound`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::connection::Connection;

/// Time a message waits for those before it: one whose body does not come must not hold up the
/// others for as long as that may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Those whose turn has not passed.
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
    /// A turn behind all there are.
    pub(super) fn after_all(connection: Arc<Connection>) -> Self {
        let mut state = connection.state();
        let turns = &mut state.turns;
        let number = turns.next;
        turns.next += 1;
        turns.open.insert(number);
        drop(state);
        Self { connection, number }
    }

    /// Waits until all who came before are done, or `PATIENCE` is over.
    pub(super) async fn wait(&self) {
        let passed = async {
            loop {
                let room = self.connection.room.notified();
                tokio::pin!(room);
                room.as_mut().enable();
                if self.connection.state().turns.open.first() == Some(&self.number) {
                    return;
                }
                room.await;
            }
        };
        // Whether it is their turn or they have waited long enough is the same to them.
        let _ = timeout(PATIENCE, passed).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.connection.state().turns.open.remove(&self.number);
        self.connection.room.notify_waiters();
    }
}

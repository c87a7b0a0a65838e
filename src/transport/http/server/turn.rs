//! The order of one client's messages that are sent in parallel.
//!
//! On HTTP/2, and on several sockets, a client may send a message before the one before it was
//! answered. They are served in tasks of their own, and only the order in which their heads came is
//! the order in which they were sent: it is recorded before anything is awaited.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_util::sync::PollSemaphore;

use super::connection::Connection;

/// Time a message waits for those before it: one whose body does not come must not delay the others
/// for as long as that may take.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// One message's turn, which passes when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    /// Its place in the queue of the connection's only permit, which is fair.
    place: PollSemaphore,
    permit: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// A turn behind all others.
    pub(super) fn after_all(connection: &Connection) -> Self {
        let mut place = PollSemaphore::new(connection.turns.clone());
        // The first poll enters the queue.
        let permit = match place.poll_acquire(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit,
            Poll::Pending => None,
        };
        Self { place, permit }
    }

    /// Waits until all earlier messages are done, or `MAX_WAIT` is over.
    pub(super) async fn wait(&mut self) {
        if self.permit.is_none() {
            // A timeout is handled like a turn.
            let acquired = timeout(MAX_WAIT, poll_fn(|cx| self.place.poll_acquire(cx))).await;
            self.permit = acquired.ok().flatten();
        }
    }
}

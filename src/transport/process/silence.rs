//! Tells that an agent writes nothing. It may wait for the header of a message, and the relay for its
//! first bytes, which show its framing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::stderr::Stderr;
use crate::stream::Opening;

/// For how long an agent that was sent a message writes nothing before the log says so.
const WARN_AFTER: Duration = Duration::from_secs(5);
/// The same before another part of the relay is told, and then again and again.
const TELL_AFTER: Duration = Duration::from_secs(15);

/// Waits for the first message to the agent, and then for its first byte. `told` is notified of each
/// span in which it writes nothing; without it the log says so once. Ends when it is dropped.
pub(super) fn watch(
    opening: Arc<Opening>,
    stderr: &Stderr,
    name: String,
    told: Option<Arc<Notify>>,
) -> AbortOnDropHandle<()> {
    let last_write = stderr.last_write();
    AbortOnDropHandle::new(tokio::spawn(async move {
        opening.sent.notified().await;
        let mut since = Instant::now();
        loop {
            sleep_until(since + told.as_ref().map_or(WARN_AFTER, |_| TELL_AFTER)).await;
            if opening.heard.load(Ordering::Relaxed) {
                return;
            }
            if let Some(last) = last_write().filter(|last| *last > since) {
                since = last;
                continue;
            }
            since = Instant::now();
            match &told {
                Some(told) => told.notify_one(),
                None => {
                    let seconds = WARN_AFTER.as_secs();
                    tracing::warn!(
                        "{name} has written nothing for {seconds} s and has not answered its first \
                         message. If it waits for Content-Length headers, it needs \
                         --agent-framing content-length"
                    );
                    return;
                }
            }
        }
    }))
}

//! What has happened to the links of a relay, and the bytes that wait in them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The bytes that may wait for lost clients and servers in all links; half of them for one
/// principal.
pub(super) const TOTAL: usize = 512 << 20;

/// What has happened to the links of a relay.
#[derive(Debug, Default)]
pub struct LinkStats {
    /// Links that were opened.
    pub opened: AtomicU64,
    /// Attachments of links that had lost theirs.
    pub resumed: AtomicU64,
    /// Greetings that were refused.
    pub refused: AtomicU64,
    /// The time without an attachment of links that were resumed, in milliseconds.
    pub downtime_ms: AtomicU64,
    /// The bytes that wait without an attachment.
    kept: AtomicUsize,
}

/// How a link got an attachment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attached {
    /// It is its first one.
    New,
    /// It had none for so long.
    Resumed(Duration),
}

impl LinkStats {
    pub(super) fn attached(&self, how: Attached) {
        match how {
            Attached::New => self.opened.fetch_add(1, Ordering::Relaxed),
            Attached::Resumed(away) => {
                let away = u64::try_from(away.as_millis()).unwrap_or(u64::MAX);
                self.downtime_ms.fetch_add(away, Ordering::Relaxed);
                self.resumed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }

    /// Whether no more bytes may wait.
    pub(super) fn is_full(&self) -> bool {
        self.kept.load(Ordering::Relaxed) >= TOTAL
    }

    pub(super) fn keep(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
    }
}

//! How an agent ended: told once, by whoever reaps it, and waited for by whoever holds it.
//!
//! Not here: the reaping (see `reaper`).

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

use crate::transport::Exit;

/// The end of one agent, shared by the two.
#[derive(Debug, Default)]
pub(super) struct Fate {
    exit: OnceLock<Exit>,
    waker: AtomicWaker,
}

impl Fate {
    /// It has ended so.
    pub(super) fn is(&self, exit: Exit) {
        // It is reaped once.
        let _ = self.exit.set(exit);
        self.waker.wake();
    }

    /// Ready once it has ended.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Exit> {
        if self.exit.get().is_none() {
            self.waker.register(cx.waker());
        }
        // It may have ended before the waker was there.
        self.exit
            .get()
            .map_or(Poll::Pending, |exit| Poll::Ready(*exit))
    }
}

/// What the operating system says of an end.
pub(super) fn how(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

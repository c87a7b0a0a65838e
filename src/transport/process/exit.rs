//! The exit of an agent, set once by the thread that reaps it and awaited by its holder.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

use crate::transport::Exit;

/// The exit of one agent, shared by the thread that reaps it and its holder.
#[derive(Debug, Default)]
pub(super) struct ExitSlot {
    exit: OnceLock<Exit>,
    waker: AtomicWaker,
}

impl ExitSlot {
    /// Stores the exit and wakes the holder.
    pub(super) fn set(&self, exit: Exit) {
        // It is reaped once.
        let _ = self.exit.set(exit);
        self.waker.wake();
    }

    /// Ready once it has exited.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Exit> {
        if self.exit.get().is_none() {
            self.waker.register(cx.waker());
        }
        // It may have exited before the waker was registered.
        self.exit
            .get()
            .map_or(Poll::Pending, |exit| Poll::Ready(*exit))
    }
}

/// Converts the status that the operating system reports.
pub(super) fn to_exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

//! When written data is synced to the disk, to survive a power failure.
//!
//! Written data survives the end of the program, but not that of the machine until it is synced. A
//! sync takes milliseconds, so unless each write has to be durable it is done by a separate thread,
//! once a second for each file that was written to; the writer does not wait. An error of a sync is
//! returned by the next write.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use clap::ValueEnum;
use parking_lot::Mutex;

/// Maximum number of files that wait for the thread. Beyond it a file is synced at once.
const MAX_WAITING: usize = 1024;

/// How long written data may be lost in a power failure.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// When written data is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// When the operating system decides, which may be half a minute later
    #[default]
    #[value(name = "none")]
    System,
    /// A second later, by a separate thread
    #[value(name = "1s")]
    Second,
    /// At each write, for which the recorder waits some milliseconds
    Always,
}

/// A file with its durability.
pub(super) struct Durable {
    how: Durability,
    shared: Arc<Shared>,
}

struct Shared {
    /// It waits for the thread.
    is_waiting: AtomicBool,
    failed: Mutex<Option<io::Error>>,
    file: File,
}

impl Durable {
    pub(super) fn new(file: File, how: Durability) -> Self {
        let shared = Shared {
            is_waiting: AtomicBool::new(false),
            failed: Mutex::new(None),
            file,
        };
        Self {
            how,
            shared: Arc::new(shared),
        }
    }

    /// Schedules one sync for all that is written until it happens.
    fn schedule(&self) {
        if self.shared.is_waiting.swap(true, Ordering::AcqRel) {
            return;
        }
        // A weak reference, because a file that is dropped is synced and closed at once.
        let waiting = Arc::downgrade(&self.shared);
        let scheduled = syncer().is_some_and(|sender| sender.try_send(waiting).is_ok());
        if !scheduled {
            self.shared.sync_pending();
        }
    }
}

impl Write for Durable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = self.shared.failed.lock().take() {
            return Err(error);
        }
        let count = (&self.shared.file).write(bytes)?;
        match self.how {
            Durability::System => {}
            Durability::Second => self.schedule(),
            Durability::Always => self.shared.file.sync_data()?,
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Durable {
    /// Syncs at once: the program may end before the thread does it.
    fn drop(&mut self) {
        self.shared.sync_pending();
        if let Some(error) = self.shared.failed.lock().take() {
            tracing::warn!("the end of a recording may be lost in a power failure: {error}");
        }
    }
}

impl Shared {
    fn sync_pending(&self) {
        // Data written from now on is scheduled again.
        if !self.is_waiting.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.file.sync_data() {
            *self.failed.lock() = Some(error);
        }
    }
}

/// The queue of the thread; `None` when it cannot be started.
fn syncer() -> Option<&'static SyncSender<Weak<Shared>>> {
    static SYNCER: OnceLock<Option<SyncSender<Weak<Shared>>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new().name("syncer".to_owned());
        thread.spawn(move || run(&receiver)).ok().map(|_| sender)
    };
    SYNCER.get_or_init(start).as_ref()
}

fn run(receiver: &Receiver<Weak<Shared>>) {
    while let Ok(first) = receiver.recv() {
        std::thread::sleep(SYNC_INTERVAL);
        let others = receiver.try_iter().collect::<Vec<_>>();
        let all = std::iter::once(first).chain(others);
        for waiting in all.filter_map(|waiting| waiting.upgrade()) {
            waiting.sync_pending();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_sync_fails_this_write_or_a_later_one() {
        // This device takes all that is written and cannot be synced.
        let durable = |how| Durable::new(File::create("/dev/null").unwrap(), how);
        durable(Durability::System).write_all(b"a").unwrap();
        durable(Durability::Always).write_all(b"a").unwrap_err();
        let mut to = durable(Durability::Second);
        to.write_all(b"a").unwrap();
        while to.write_all(b"b").is_ok() {
            std::thread::sleep(SYNC_INTERVAL / 10);
        }
    }
}

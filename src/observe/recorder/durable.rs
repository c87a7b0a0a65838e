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

/// A file that can be written and synced.
pub(super) trait SyncFile: Send + Sync + 'static {
    /// Writes a part of the bytes; returns how many.
    fn put(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Syncs all that was written.
    fn sync(&self) -> io::Result<()>;
}

/// A file with its durability.
pub(super) struct Durable<D: SyncFile> {
    how: Durability,
    shared: Arc<Shared<D>>,
}

struct Shared<D: ?Sized> {
    /// It waits for the thread.
    is_waiting: AtomicBool,
    failed: Mutex<Option<io::Error>>,
    disk: D,
}

/// A file that waits for the thread.
type PendingSync = Weak<Shared<dyn SyncFile>>;

impl SyncFile for File {
    fn put(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self;
        file.write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl<D: SyncFile> Durable<D> {
    pub(super) fn new(disk: D, how: Durability) -> Self {
        let shared = Shared {
            is_waiting: AtomicBool::new(false),
            failed: Mutex::new(None),
            disk,
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
        let waiting = Arc::downgrade(&self.shared) as PendingSync;
        let scheduled = syncer().is_some_and(|sender| sender.try_send(waiting).is_ok());
        if !scheduled {
            self.shared.sync_pending();
        }
    }
}

impl<D: SyncFile> Write for Durable<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = self.shared.failed.lock().take() {
            return Err(error);
        }
        let count = self.shared.disk.put(bytes)?;
        match self.how {
            Durability::System => {}
            Durability::Second => self.schedule(),
            Durability::Always => self.shared.disk.sync()?,
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: SyncFile> Drop for Durable<D> {
    /// Syncs at once: the program may end before the thread does it.
    fn drop(&mut self) {
        self.shared.sync_pending();
        if let Some(error) = self.shared.failed.lock().take() {
            tracing::warn!("the end of a recording may be lost in a power failure: {error}");
        }
    }
}

impl<D: SyncFile + ?Sized> Shared<D> {
    fn sync_pending(&self) {
        // Data written from now on is scheduled again.
        if !self.is_waiting.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.disk.sync() {
            *self.failed.lock() = Some(error);
        }
    }
}

/// The queue of the thread; `None` when it cannot be started.
fn syncer() -> Option<&'static SyncSender<PendingSync>> {
    static SYNCER: OnceLock<Option<SyncSender<PendingSync>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new().name("syncer".to_owned());
        thread.spawn(move || run(&receiver)).ok().map(|_| sender)
    };
    SYNCER.get_or_init(start).as_ref()
}

fn run(receiver: &Receiver<PendingSync>) {
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

    /// Reports what is done to it.
    struct Told(Mutex<SyncSender<&'static str>>, bool);

    impl SyncFile for Told {
        fn put(&self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.lock().try_send("put");
            Ok(bytes.len())
        }

        fn sync(&self) -> io::Result<()> {
            let _ = self.0.lock().try_send("keep");
            match self.1 {
                true => Err(io::Error::from_raw_os_error(5)),
                false => Ok(()),
            }
        }
    }

    fn durable(how: Durability, fails: bool) -> (Durable<Told>, Receiver<&'static str>) {
        let (tx, rx) = sync_channel(16);
        (Durable::new(Told(Mutex::new(tx), fails), how), rx)
    }

    #[test]
    fn each_durability_syncs_as_documented() {
        for (how, expected) in [
            (Durability::System, &["put", "put"][..]),
            (Durability::Always, &["put", "keep", "put", "keep"]),
            (Durability::Second, &["put", "put", "keep"]),
        ] {
            let (mut to, calls) = durable(how, false);
            to.write_all(b"a").unwrap();
            to.write_all(b"b").unwrap();
            // When it is closed, it does not wait for the interval.
            drop(to);
            let calls: Vec<_> = calls.iter().collect();
            assert_eq!(calls, expected, "{how:?}");
        }
    }

    #[test]
    fn failed_sync_fails_the_next_write() {
        let (mut to, _calls) = durable(Durability::Always, true);
        to.write_all(b"a").unwrap_err();
        let (mut to, calls) = durable(Durability::Second, true);
        to.write_all(b"a").unwrap();
        assert_eq!(calls.recv(), Ok("put"));
        assert_eq!(calls.recv(), Ok("keep"));
        // The error is stored after the call is reported.
        while to.write_all(b"b").is_ok() {
            std::thread::yield_now();
        }
    }
}

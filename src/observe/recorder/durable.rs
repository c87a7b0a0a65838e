//! When what was written is made to outlive a power cut.
//!
//! What a program has written outlives the program, but not the machine, until the disk is told to
//! keep it. That takes milliseconds, so unless each write has to be kept it is done by a thread of
//! its own, once a second for each file that was written to; who writes waits for nothing. A disk
//! that cannot is told to who writes next. Not here: files (see `folder`).

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// Files that may wait for the thread. Who finds no room does it at once.
const WAITING: usize = 1024;

/// How long what was written may be lost to a power cut.
const SECOND: Duration = Duration::from_secs(1);

/// When the disk is told to keep what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the system thinks it right, which may take half a minute.
    #[default]
    System,
    /// Within a second or two.
    Second,
    /// Before anything else is written.
    Always,
}

/// What can be written to, and told to keep it.
pub(super) trait Disk: Send + Sync + 'static {
    /// Writes some of it.
    fn put(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Has all of it kept.
    fn keep(&self) -> io::Result<()>;
}

/// A file that is kept so.
pub(super) struct Durable<D: Disk> {
    how: Durability,
    shared: Arc<Shared<D>>,
}

struct Shared<D> {
    disk: D,
    /// It waits for the thread.
    waits: AtomicBool,
    failed: Mutex<Option<io::Error>>,
}

/// What waits for the thread.
trait Waiting: Send + Sync {
    fn keep(&self);
}

impl Disk for File {
    fn put(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self;
        file.write(bytes)
    }

    fn keep(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl<D: Disk> Durable<D> {
    pub(super) fn new(disk: D, how: Durability) -> Self {
        let shared = Shared {
            disk,
            waits: AtomicBool::new(false),
            failed: Mutex::new(None),
        };
        Self {
            how,
            shared: Arc::new(shared),
        }
    }

    /// Has the thread keep it, once for all that is written until then.
    fn leave(&self) {
        if self.shared.waits.swap(true, Ordering::AcqRel) {
            return;
        }
        // Whoever is done with the file has it kept and closed, and not only after a second.
        let waiting = Arc::downgrade(&self.shared) as Weak<dyn Waiting>;
        let left = keeper().is_some_and(|keeper| keeper.try_send(waiting).is_ok());
        if !left {
            Waiting::keep(self.shared.as_ref());
        }
    }
}

impl<D: Disk> Write for Durable<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = self.shared.failed().take() {
            return Err(error);
        }
        let count = self.shared.disk.put(bytes)?;
        match self.how {
            Durability::System => {}
            Durability::Second => self.leave(),
            Durability::Always => self.shared.disk.keep()?,
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Disk> Drop for Durable<D> {
    /// What is done is kept at once: the program may end before the thread has had its second.
    fn drop(&mut self) {
        Waiting::keep(self.shared.as_ref());
        if let Some(error) = self.shared.failed().take() {
            tracing::warn!("the end of a recording may not outlive a power cut: {error}");
        }
    }
}

impl<D> Shared<D> {
    fn failed(&self) -> MutexGuard<'_, Option<io::Error>> {
        self.failed.lock()
    }
}

impl<D: Disk> Waiting for Shared<D> {
    fn keep(&self) {
        // What is written from now on waits anew.
        if !self.waits.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.disk.keep() {
            *self.failed() = Some(error);
        }
    }
}

/// The thread; none when there can be no further one.
fn keeper() -> Option<&'static SyncSender<Weak<dyn Waiting>>> {
    static KEEPER: OnceLock<Option<SyncSender<Weak<dyn Waiting>>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("syncer".to_owned());
        thread.spawn(move || run(&receiver)).ok().map(|_| sender)
    };
    KEEPER.get_or_init(start).as_ref()
}

fn run(receiver: &Receiver<Weak<dyn Waiting>>) {
    while let Ok(first) = receiver.recv() {
        std::thread::sleep(SECOND);
        let others = receiver.try_iter().collect::<Vec<_>>();
        let all = std::iter::once(first).chain(others);
        for waiting in all.filter_map(|waiting| waiting.upgrade()) {
            waiting.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells what is done to it.
    struct Told(Mutex<SyncSender<&'static str>>, bool);

    impl Disk for Told {
        fn put(&self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.lock().try_send("put");
            Ok(bytes.len())
        }

        fn keep(&self) -> io::Result<()> {
            let _ = self.0.lock().try_send("keep");
            match self.1 {
                true => Err(io::Error::from_raw_os_error(5)),
                false => Ok(()),
            }
        }
    }

    fn durable(how: Durability, fails: bool) -> (Durable<Told>, Receiver<&'static str>) {
        let (tell, told) = sync_channel(16);
        (Durable::new(Told(Mutex::new(tell), fails), how), told)
    }

    #[test]
    fn each_write_is_kept_before_the_next_or_all_later_at_once_or_never() {
        for (how, expected) in [
            (Durability::System, &["put", "put"][..]),
            (Durability::Always, &["put", "keep", "put", "keep"]),
            (Durability::Second, &["put", "put", "keep"]),
        ] {
            let (mut to, told) = durable(how, false);
            to.write_all(b"a").unwrap();
            to.write_all(b"b").unwrap();
            // When it is closed, the second is not waited for.
            drop(to);
            let told: Vec<_> = told.iter().collect();
            assert_eq!(told, expected, "{how:?}");
        }
    }

    #[test]
    fn a_disk_that_keeps_nothing_fails_the_next_write() {
        let (mut to, _told) = durable(Durability::Always, true);
        to.write_all(b"a").unwrap_err();
        let (mut to, told) = durable(Durability::Second, true);
        to.write_all(b"a").unwrap();
        assert_eq!(told.recv(), Ok("put"));
        assert_eq!(told.recv(), Ok("keep"));
        // It is remembered right after it is told.
        while to.write_all(b"b").is_ok() {
            std::thread::yield_now();
        }
    }
}

//! The file of a segment, which only our user can read, and when it is synced to the disk.
//!
//! A file is created once and never opened again for writing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

/// How long written data may be lost in a power failure.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes recorded by this program.
static RECORDED: AtomicU64 = AtomicU64::new(0);

/// When written data is synced to the disk. It survives the end of the program, but not that of the
/// machine until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Durability {
    /// When the operating system decides, which may be half a minute later
    #[default]
    #[strum(serialize = "none")]
    System,
    /// A second later
    #[strum(serialize = "1s")]
    Second,
    /// At each write, for which the recorder waits some milliseconds
    Always,
}

/// The file of a segment.
pub(super) struct SegmentFile {
    file: File,
    durability: Durability,
    synced: Instant,
    /// Something was written since.
    is_unsynced: bool,
}

impl SegmentFile {
    pub(super) fn new(file: File, durability: Durability) -> Self {
        Self {
            file,
            durability,
            synced: Instant::now(),
            is_unsynced: false,
        }
    }
}

impl Write for SegmentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        RECORDED.fetch_add(count as u64, Ordering::Relaxed);
        self.is_unsynced = self.durability != Durability::System;
        if self.durability == Durability::Always || self.synced.elapsed() >= SYNC_INTERVAL {
            self.flush()?;
        }
        Ok(count)
    }

    /// Syncs what was written, unless the operating system decides about that.
    fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_unsynced) {
            self.synced = Instant::now();
            self.file.sync_data()?;
        }
        Ok(())
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::warn!("the end of a recording may be lost in a power failure: {error}");
        }
    }
}

/// Bytes recorded by this program so far.
pub(super) fn recorded() -> u64 {
    RECORDED.load(Ordering::Relaxed)
}

/// Creates a new file that only our user can access.
///
/// # Errors
/// When the file exists, or cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(
        path,
        flags,
        Mode::RUSR | Mode::WUSR,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_sync_fails_this_write_or_a_later_one() {
        // This device takes all that is written and cannot be synced.
        let file = |how| SegmentFile::new(File::create("/dev/null").unwrap(), how);
        file(Durability::System).write_all(b"a").unwrap();
        file(Durability::Always).write_all(b"a").unwrap_err();
        let mut to = file(Durability::Second);
        to.write_all(b"a").unwrap();
        while to.write_all(b"b").is_ok() {
            std::thread::sleep(SYNC_INTERVAL / 10);
        }
    }
}

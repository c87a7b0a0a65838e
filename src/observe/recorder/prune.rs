//! Deletes old recordings from a directory, so that it does not fill the disk.
//!
//! Only files that a recorder has made are deleted: files with its names, kinds and user, whose
//! headers agree; never a file that is being written, or was a moment ago, or may be. A recording
//! is deleted as a whole, the one that was written least recently first.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use super::folder::{marks_path, recording_of};
use super::segment_file::recorded;
use jsonrpc::names;
use recording::{PACKED, Parsed, open};

/// The interval at which a directory is checked, and at most [`STEPS`] times as long while little is
/// recorded.
const INTERVAL: Duration = Duration::from_secs(1);
const STEPS: usize = 10;

/// A process that has just written to a file may not have locked it yet, or continues in another
/// one, or compresses it. To hold the bound for the total, files are spared for a shorter time.
const MIN_AGE: Duration = Duration::from_secs(60);
const MIN_AGE_OF_TOTAL: Duration = Duration::from_secs(2);

/// Recordings that this program has deleted: for their age, and for the total size.
static PRUNED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Which recordings in a directory are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The maximum time since the last write.
    pub age: Option<Duration>,
    /// The maximum bytes of all recordings.
    pub total: Option<u64>,
}

names! {
    /// Why a recording is deleted.
    PruneReason {
        /// It is too old.
        Age = "age",
        /// All together are too large.
        Total = "total",
    }
}

/// A recording that was deleted, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedRecording {
    /// The name that its files share.
    pub name: String,
    /// The bytes of its files.
    pub bytes: u64,
    /// The reason.
    pub reason: PruneReason,
}

/// The result of pruning a directory.
#[derive(Debug, Default)]
pub struct PruneReport {
    /// The deleted recordings, the oldest first.
    pub deleted: Vec<PrunedRecording>,
    /// Bytes of the remaining recordings.
    pub remaining: u64,
    /// Files that could not be deleted.
    pub failed: Vec<(PathBuf, io::Error)>,
}

/// Prunes a directory periodically; dropping it stops that.
#[derive(Debug)]
pub struct Pruner {
    _awake: SyncSender<()>,
}

/// The files of a recording.
#[derive(Default)]
struct Stored {
    files: Vec<PathBuf>,
    bytes: u64,
    changed: Option<SystemTime>,
}

impl PruneReason {
    /// How many recordings this program has deleted for this reason.
    #[must_use]
    pub fn count(self) -> u64 {
        PRUNED[self as usize].load(Relaxed)
    }
}

impl Pruner {
    /// Starts a thread that prunes `folder` from now on.
    ///
    /// # Errors
    /// When no further thread can be started.
    pub fn start(folder: &Path, retention: Retention) -> io::Result<Self> {
        let (awake, asleep) = sync_channel(0);
        let folder = folder.to_owned();
        let thread = std::thread::Builder::new().name("sweeper".to_owned());
        thread.spawn(move || sweep(&folder, retention, &asleep))?;
        Ok(Self { _awake: awake })
    }
}

/// Deletes the recordings that are not kept; with `dry_run`, only reports them.
///
/// # Errors
/// When the folder cannot be read.
pub fn prune(
    folder: &Path,
    retention: Retention,
    now: SystemTime,
    dry_run: bool,
) -> io::Result<PruneReport> {
    let mut all: Vec<(String, Stored)> = stored(folder)?.into_iter().collect();
    all.sort_by_key(|(_, stored)| stored.changed);
    let mut pruned = PruneReport {
        remaining: all.iter().map(|(_, stored)| stored.bytes).sum(),
        ..PruneReport::default()
    };
    for (name, stored) in all {
        let age = stored.changed.and_then(|at| now.duration_since(at).ok());
        let Some(age) = age.filter(|age| *age >= MIN_AGE_OF_TOTAL) else {
            continue;
        };
        let is_old = age >= MIN_AGE && retention.age.is_some_and(|most| age > most);
        let reason = match () {
            () if is_old => PruneReason::Age,
            () if retention.total.is_some_and(|most| pruned.remaining > most) => PruneReason::Total,
            () => break,
        };
        if !stored.is_recording(&name) || stored.is_in_use() {
            continue;
        }
        if !dry_run && !stored.delete(&mut pruned.failed) {
            continue;
        }
        pruned.remaining -= stored.bytes;
        let bytes = stored.bytes;
        pruned.deleted.push(PrunedRecording {
            name,
            bytes,
            reason,
        });
    }
    Ok(pruned)
}

fn sweep(folder: &Path, retention: Retention, stop: &Receiver<()>) {
    // An error is logged once, until it is resolved.
    let mut last_error = None;
    loop {
        let before = recorded();
        let now = match prune(folder, retention, SystemTime::now(), false) {
            Ok(pruned) => {
                for PrunedRecording {
                    name,
                    bytes,
                    reason: why,
                } in &pruned.deleted
                {
                    PRUNED[*why as usize].fetch_add(1, Relaxed);
                    tracing::info!(why = why.name(), bytes, "deleted the recording {name}");
                }
                let failed = pruned.failed.first();
                let failed = failed.map(|(path, error)| format!("{}: {error}", path.display()));
                failed.or_else(|| {
                    let most = retention.total.filter(|most| pruned.remaining > *most)?;
                    let left = "what is left cannot be deleted, or is or was just being written";
                    Some(format!("more than {most} bytes of recordings: {left}"))
                })
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = now.as_ref().filter(|_| now != last_error) {
            tracing::warn!("old recordings stay in {}: {why}", folder.display());
        }
        last_error = now;
        for _ in 0..STEPS {
            if stop.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            if retention
                .total
                .is_some_and(|most| recorded() - before > most / 64)
            {
                break;
            }
        }
    }
}

/// The recordings in a directory, recognised by the names of their files, with all files.
fn stored(folder: &Path) -> io::Result<BTreeMap<String, Stored>> {
    let own = rustix::process::geteuid().as_raw();
    let mut all: BTreeMap<String, Stored> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name();
        let Some(name) = file.to_str().and_then(recording_of) else {
            continue;
        };
        // Links are not followed, and the file may have been deleted meanwhile.
        let Ok(data) = entry.metadata() else { continue };
        if !data.is_file() || data.uid() != own {
            continue;
        }
        let stored = all.entry(name.to_owned()).or_default();
        stored.bytes += data.len();
        stored.changed = stored.changed.max(data.modified().ok());
        stored.files.push(entry.path());
    }
    Ok(all)
}

impl Stored {
    /// Whether each file begins as a segment of the recording does. A part of a compressed one
    /// cannot be read, and is deleted with the others.
    fn is_recording(&self, name: &str) -> bool {
        let id = name.rsplit('-').next().unwrap_or_default();
        let mut segments = self.segments().peekable();
        segments.peek().is_some()
            && segments.all(|path| {
                let first = open(path).ok().and_then(|mut reader| reader.next());
                matches!(first, Some(Ok(entry)) if matches!(&entry.parsed,
                    Parsed::Header(header) if header.id.starts_with(id)))
            })
    }

    /// Whether one of the files is being written: the writer holds a lock on it. If the lock cannot
    /// be tested the file counts as being written.
    fn is_in_use(&self) -> bool {
        self.segments()
            .filter(|path| !path.to_string_lossy().ends_with(PACKED))
            .any(|path| match File::open(path) {
                Ok(file) => match file.try_lock_shared() {
                    Ok(()) => false,
                    Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
                },
                Err(_) => true,
            })
    }

    fn segments(&self) -> impl Iterator<Item = &PathBuf> {
        let part = |path: &&PathBuf| !path.to_string_lossy().ends_with(".part");
        self.files.iter().filter(part)
    }

    /// Deletes the files, and marks that were not read. Returns whether all are deleted.
    fn delete(&self, failed: &mut Vec<(PathBuf, io::Error)>) -> bool {
        let before = failed.len();
        for path in &self.files {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    failed.push((path.clone(), error));
                }
                _ => {
                    // In most cases there are none.
                    let _ = fs::remove_file(marks_path(path));
                }
            }
        }
        failed.len() == before
    }
}

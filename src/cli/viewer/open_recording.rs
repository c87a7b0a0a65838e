//! One open recording: its index, its files, and a thread that reads it.
//!
//! The thread reads from the beginning to the end and then polls for more. What has been read is
//! available at any time, so the first events of a large recording can be shown at once.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::findings::LintThread;
use super::index::{Index, Item};
use super::search::Searches;
use crate::recording::lint::Finding;
use crate::recording::{Entry, EventKind, Parsed, Recording, SegmentReader, SegmentSource, open};

/// Time between two polls at the end of a recording.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// A recording younger than this is assumed to be written.
const MIN_AGE: Duration = Duration::from_secs(2);

/// Lines that are added under one lock of the index, so that requests get a turn.
const BATCH: usize = 2_000;

/// Bytes that are read at a time when a whole recording is searched.
const BLOCK: u64 = 1 << 20;

/// One recording.
#[derive(Debug)]
pub(super) struct OpenRecording {
    /// The path of its first file.
    pub(super) path: PathBuf,
    index: Mutex<Index>,
    files: Mutex<Vec<SegmentReader<SegmentSource>>>,
    searches: Mutex<Searches>,
    progress: watch::Sender<Progress>,
    /// Dropping them ends the threads.
    _stop: [SyncSender<()>; 2],
}

/// How far a recording has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Incremented with every change.
    pub(super) revision: u64,
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// Bytes in total.
    pub(super) total: u64,
    /// It has been read to its end, and no process writes it.
    pub(super) complete: bool,
    /// Why reading stopped.
    pub(super) error: Option<String>,
}

impl Progress {
    /// Bytes read, bytes in total, and whether the recording is complete.
    fn status(&self) -> (u64, u64, bool) {
        (self.bytes, self.total, self.complete)
    }
}

/// The state of the reading thread.
struct ReaderThread {
    shared: std::sync::Weak<OpenRecording>,
    recording: Recording,
    stopped: Receiver<()>,
    progress: Progress,
}

impl OpenRecording {
    /// Opens a recording, and starts to read it.
    ///
    /// # Errors
    /// Its first file cannot be opened, or a thread cannot be started.
    pub(super) fn open(recording: Recording) -> io::Result<Arc<Self>> {
        let (reading, stopped) = sync_channel(0);
        let (linting, ended) = sync_channel(0);
        let first = recording.segments.first().ok_or(io::ErrorKind::NotFound)?;
        open(first)?;
        let shared = Arc::new(Self {
            path: fs::canonicalize(first)?,
            index: Mutex::default(),
            files: Mutex::default(),
            searches: Mutex::default(),
            progress: watch::Sender::default(),
            _stop: [reading, linting],
        });
        let reader = ReaderThread {
            shared: Arc::downgrade(&shared),
            recording,
            stopped,
            progress: Progress::default(),
        };
        let thread = thread::Builder::new().name("viewer".to_owned());
        thread.spawn(move || reader.read())?;
        let inspector = LintThread {
            recording: Arc::downgrade(&shared),
            stopped: ended,
        };
        let thread = thread::Builder::new().name("viewer-lint".to_owned());
        thread.spawn(move || inspector.run())?;
        Ok(shared)
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock()
    }

    pub(super) fn searches(&self) -> MutexGuard<'_, Searches> {
        self.searches.lock()
    }

    /// Adds findings of the linter among the first `seen` items, and those that hold if there are
    /// no more items; wakes waiting requests.
    pub(super) fn add_findings(&self, found: &[Finding], late: Vec<Finding>, seen: usize) {
        let mut index = self.index();
        index.set_findings(found, late, seen);
        self.progress.send_modify(|progress| progress.revision += 1);
    }

    /// Some items from the `from`th on, and the bytes from the first to the last of them; `None` if
    /// there are no more.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn block(&self, from: usize) -> io::Result<Option<(Vec<Item>, Bytes)>> {
        let items: Vec<Item> = {
            let index = self.index();
            let rest = index.items.get(from..).unwrap_or_default();
            let Some(first) = rest.first() else {
                return Ok(None);
            };
            let in_block = |item: &&Item| {
                item.segment == first.segment
                    && item.at + u64::from(item.length) - first.at <= BLOCK
            };
            let count = rest.iter().take_while(in_block).count().max(1);
            rest[..count].to_vec()
        };
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return Ok(None);
        };
        let bytes = self.span(first, last)?;
        Ok(Some((items, bytes)))
    }

    /// The progress of reading, to watch.
    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The bytes from the beginning of `first` to the end of `last`, of the same segment.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn span(&self, first: &Item, last: &Item) -> io::Result<Bytes> {
        let mut files = self.files.lock();
        let file = files
            .get_mut(usize::from(first.segment))
            .ok_or(io::ErrorKind::NotFound)?
            .source();
        file.seek(SeekFrom::Start(first.at))?;
        let length = last.at + u64::from(last.length) - first.at;
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(64 << 20));
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl ReaderThread {
    fn read(mut self) {
        let error = self.read_all().err();
        self.progress.error = error.map(|error| error.to_string());
        self.publish(&[], 0);
    }

    /// Reads until the recording is closed.
    fn read_all(&mut self) -> io::Result<()> {
        let mut before = 0;
        for segment in 0.. {
            while self.recording.segments.len() <= usize::from(segment) {
                if !self.wait() {
                    return Ok(());
                }
                self.refresh()?;
                self.update_complete(segment);
            }
            let path = self.recording.segments[usize::from(segment)].clone();
            let (mut reader, random_access) = (open(&path)?, open(&path)?);
            let Some(shared) = self.shared.upgrade() else {
                return Ok(());
            };
            shared.files.lock().push(random_access);
            drop(shared);
            while let Some(read) = self.read_some(&mut reader, segment, before)? {
                if !read && !self.wait() {
                    return Ok(());
                }
            }
            before += reader.at();
        }
        Ok(())
    }

    /// Marks the recording as complete before a missing segment if no process writes the one
    /// before: then the relay ended between the two, or the file was removed.
    fn update_complete(&mut self, missing: u16) {
        let exists = self.recording.segments.len() > usize::from(missing);
        let complete = !exists && !self.is_written(missing.saturating_sub(1));
        if complete != self.progress.complete {
            self.progress.complete = complete;
            self.publish(&[], missing);
        }
    }

    /// Reads some lines. Returns whether there were any, or `None` at the end of the segment.
    fn read_some(
        &mut self,
        reader: &mut SegmentReader<SegmentSource>,
        segment: u16,
        before: u64,
    ) -> io::Result<Option<bool>> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut over = false;
        for entry in reader.take(BATCH) {
            let entry = entry?;
            over = matches!(
                &entry.parsed,
                Parsed::Event(event) if matches!(event.kind, EventKind::End { rotated: true, .. })
            );
            entries.push(entry);
            if over {
                break;
            }
        }
        let read = !entries.is_empty();
        let at_end = entries.len() < BATCH && !over;
        // A compressed segment, and one with a successor, does not grow.
        over |= !read && self.recording.segments.len() > usize::from(segment) + 1;
        let length = length(reader.source())?;
        let (bytes, of) = (before + reader.at(), before + length);
        // If it is complete, this is checked again only after it has grown.
        let complete = at_end && (!read && self.progress.complete || !self.is_written(segment));
        if read || (bytes, of, complete) != self.progress.status() {
            self.progress.bytes = bytes;
            self.progress.total = of.max(bytes);
            self.progress.complete = complete;
            if !self.publish(&entries, segment) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok((!over).then_some(read))
    }

    /// Adds lines and wakes waiting requests. Returns whether the recording is still open.
    fn publish(&mut self, entries: &[Entry], segment: u16) -> bool {
        let Some(shared) = self.shared.upgrade() else {
            return false;
        };
        let mut index = shared.index();
        for entry in entries {
            index.add(segment, entry);
        }
        // The index is still locked, so that it and the progress are of the same moment.
        shared.progress.send_modify(|progress| {
            let revision = progress.revision + 1;
            *progress = Progress {
                revision,
                ..self.progress.clone()
            };
        });
        true
    }

    /// Whether a process writes a segment: the writer has it locked.
    fn is_written(&self, segment: u16) -> bool {
        let Some(shared) = self.shared.upgrade() else {
            return false;
        };
        let (began, ended) = {
            let index = shared.index();
            let began = index.header().map_or(0, |header| header.began);
            (began, index.ended)
        };
        if ended {
            return false;
        }
        // The writer may not have locked a new file yet, and must find it unlocked.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let age = now
            .map_or(0, |now| now.as_micros())
            .checked_sub(began.into());
        if age.is_some_and(|age| age < MIN_AGE.as_micros()) {
            return true;
        }
        let file = File::open(&self.recording.segments[usize::from(segment)]);
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Sleeps. Returns whether the recording is still open.
    fn wait(&self) -> bool {
        self.stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout)
    }

    /// Looks for new segments.
    fn refresh(&mut self) -> io::Result<()> {
        let first = &self.recording.segments[0];
        let now = Recording::of(Path::new(first))?;
        if now.segments.len() > self.recording.segments.len() {
            self.recording = now;
        }
        Ok(())
    }
}

/// The (decompressed) length of a segment; the position is not changed.
fn length(source: &mut SegmentSource) -> io::Result<u64> {
    let at = source.stream_position()?;
    let end = source.seek(SeekFrom::End(0))?;
    source.seek(SeekFrom::Start(at))?;
    Ok(end)
}

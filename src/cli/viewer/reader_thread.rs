//! The thread that reads a recording.
//!
//! It reads from the beginning to the end and then polls for more. What has been read is available
//! at any time, so the first events of a large recording can be shown at once.

use std::fs::{File, TryLockError};
use std::io::{self, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::content::{Content, POLL_INTERVAL, Progress};
use crate::recording::{Entry, EventKind, Parsed, Recording, SegmentReader, SegmentSource, open};

/// A recording younger than this is assumed to be written.
const MIN_AGE: Duration = Duration::from_secs(2);

/// Lines that are added under one lock of the index, so that requests get a turn.
const BATCH: usize = 2_000;

/// The state of the reading thread.
pub(super) struct ReaderThread {
    pub(super) shared: Weak<Content>,
    pub(super) recording: Recording,
    pub(super) stopped: Receiver<()>,
    pub(super) progress: Progress,
}

impl ReaderThread {
    /// Reads until the recording is closed.
    pub(super) fn read(mut self) {
        let error = self.read_all().err();
        self.progress.error = error.map(|error| error.to_string());
        self.publish(&[], 0);
    }

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

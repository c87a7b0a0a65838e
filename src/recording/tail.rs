//! Reads a recording while it grows, across its segments.

use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Entry, Parsed, Recording, SegmentReader, SegmentSource, open};

/// A recording that may grow.
#[derive(Debug)]
pub struct Tail {
    recording: Recording,
    segment: usize,
    reader: SegmentReader<SegmentSource>,
    /// Bytes of the segments before the current one.
    before: u64,
    ended: bool,
}

impl Tail {
    /// Starts at the beginning.
    ///
    /// # Errors
    /// When the first segment cannot be opened.
    pub fn open(recording: Recording) -> io::Result<Self> {
        let first = recording.segments.first().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            reader: open(first)?,
            segment: 0,
            before: 0,
            ended: false,
            recording,
        })
    }

    /// The next line; `None` if there is none yet.
    ///
    /// # Errors
    /// When a segment cannot be read, or its folder.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        loop {
            let mut entry = self.reader.next();
            if entry.is_none() && self.has_next_segment()? {
                // More lines may have been written before the next segment was created.
                entry = self.reader.next();
                if entry.is_none() {
                    self.before += self.reader.at();
                    self.segment += 1;
                    self.reader = open(self.path(self.segment))?;
                    continue;
                }
            }
            let entry = entry.transpose()?;
            if let Some(Entry {
                parsed: Parsed::Event(event),
                ..
            }) = &entry
            {
                self.ended = event.is_end();
            }
            return Ok(entry);
        }
    }

    /// Whether the last event is the end of the recording.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// The index of the current segment.
    #[must_use]
    pub const fn segment(&self) -> usize {
        self.segment
    }

    /// The file of a segment; empty if there is none.
    #[must_use]
    pub fn path(&self, segment: usize) -> &Path {
        let path = self.recording.segments.get(segment);
        path.map_or_else(|| Path::new(""), PathBuf::as_path)
    }

    /// The (decompressed) bytes that were read, and those up to the end of the current segment.
    ///
    /// # Errors
    /// When the length of the segment cannot be found.
    pub fn progress(&mut self) -> io::Result<(u64, u64)> {
        let read = self.before + self.reader.at();
        let source = self.reader.source();
        let position = source.stream_position()?;
        let length = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(position))?;
        Ok((read, self.before + length))
    }

    /// Whether there is a next segment: then the current one no longer grows.
    fn has_next_segment(&mut self) -> io::Result<bool> {
        let next = self.segment + 1;
        if self.recording.segments.len() <= next && !self.ended {
            let now = Recording::of(self.path(0))?;
            // Segments may have been deleted meanwhile.
            if now.segments.len() > next {
                self.recording = now;
            }
        }
        Ok(self.recording.segments.len() > next)
    }
}

//! Reads a segment line by line.
//!
//! A reader has the offset of each line, can start in the middle, and can continue when the file
//! has grown. It never returns an incomplete line.

use std::io::{self, Read, Seek, SeekFrom};

use bytes::{Bytes, BytesMut};

use super::event::RecordedEvent;
use super::parse::{self, LineError, Parsed};

/// Bytes requested by one read.
const CHUNK: usize = 256 << 10;

/// Limit of a line in bytes. A frame may have 64 MiB, and each byte up to six when escaped.
const MAX_LINE: usize = 512 << 20;

/// Reads the lines of a segment. At the end of the file the iterator returns `None`; it may be
/// called again when the file has grown. An error is returned once and ends the iteration.
#[derive(Debug)]
pub struct SegmentReader<R> {
    source: R,
    buffer: BytesMut,
    /// The number of bytes of `buffer` that are known to hold no line break.
    searched: usize,
    /// The offset of `buffer` in the file.
    at: u64,
    /// The rest of a line is being skipped: it was too long, or the reader began inside it.
    skipping: bool,
    /// Reading has failed; further calls return `None`.
    failed: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its offset in the (unpacked) segment, in bytes.
    pub at: u64,
    /// The line, with its line break.
    pub line: Bytes,
    /// The parsed contents.
    pub parsed: Parsed,
}

impl<R: Read> SegmentReader<R> {
    /// Reads from the current position of `source`, which counts as offset 0.
    pub fn new(source: R) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            searched: 0,
            at: 0,
            skipping: false,
            failed: false,
        }
    }

    /// The length of an incomplete line at the end of the file in bytes; 0 when the file ends with
    /// a whole line.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// The offset of the next line.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// The underlying source. Reading from it directly makes the reader miss lines.
    pub const fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// The events only; broken lines and headers are skipped.
    pub fn events(self) -> impl Iterator<Item = io::Result<RecordedEvent>> {
        self.filter_map(|entry| entry.map(|entry| entry.parsed.into_event()).transpose())
    }

    fn drop_buffer(&mut self) {
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        self.searched = 0;
    }
}

impl<R: Read + Seek> SegmentReader<R> {
    /// Continues with the first line that begins at `offset` or after it.
    ///
    /// # Errors
    /// When the file cannot be read there.
    pub fn seek(&mut self, offset: u64) -> io::Result<()> {
        // A line begins at `offset` when the byte before it is a line break.
        let from = offset.saturating_sub(1);
        self.source.seek(SeekFrom::Start(from))?;
        self.buffer.clear();
        self.searched = 0;
        self.at = from;
        self.skipping = offset > 0;
        self.failed = false;
        Ok(())
    }
}

impl<R: Read> Iterator for SegmentReader<R> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            let at = self.at;
            let unread = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', unread) {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                self.at += line.len() as u64;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                let parsed = parse::parse_line(&line);
                return Some(Ok(Entry { at, line, parsed }));
            }
            self.searched = self.buffer.len();
            if self.skipping || self.searched > MAX_LINE {
                self.drop_buffer();
                if !std::mem::replace(&mut self.skipping, true) {
                    let limit = MAX_LINE as u64;
                    let (line, parsed) =
                        (Bytes::new(), Parsed::Invalid(LineError::TooLong { limit }));
                    return Some(Ok(Entry { at, line, parsed }));
                }
            }
            let filled = self.buffer.len();
            self.buffer.resize(filled + CHUNK, 0);
            let room = self.buffer.get_mut(filled..).unwrap_or_default();
            let read = self.source.read(room);
            self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

//! Reads server-sent events from chunks as the network cuts them.
//!
//! After the WHATWG's "Server-sent events", 9.2.6: lines end in CR, LF or both, a byte order mark
//! may stand first, `data` lines of one event are joined by a line feed, an event without
//! an end is dropped. Names of events mean nothing in ACP, and are kept for other callers.

use std::time::Duration;

use bytes::{Buf as _, Bytes};

use jsonrpc::framing::head_len;

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";
/// Longest id, name or comment that is kept, in bytes. An id has to fit a header.
const MAX_VALUE: usize = 1024;
/// Room for a field's name in addition to the longest value, in bytes.
const NAME_ROOM: usize = 16;
/// Memory for lines that is kept from one line to the next, in bytes.
const MAX_RESERVED: usize = 16 << 10;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseEvent {
    /// Its `data` lines, joined.
    Whole(Bytes),
    /// Its data is longer than permitted; these are its first bytes.
    TooLong(Bytes),
}

/// Reads a stream of events. It keeps at most one event, one line and one chunk.
#[derive(Debug, Default)]
pub struct SseReader {
    /// Longest data of an event, in bytes.
    max: usize,
    /// What was fed and is not read yet.
    rest: Bytes,
    /// The line whose end has not come.
    line: Vec<u8>,
    /// The line is too long, and not all of it is kept.
    is_cut: bool,
    /// The last byte was a CR; a LF that follows it belongs to it.
    after_cr: bool,
    /// The position of a byte order mark has passed.
    bom_checked: bool,
    /// The `data` lines of the event that is being read, joined.
    data: Option<Vec<u8>>,
    is_too_long: bool,
    /// The id that becomes `last_id` when the event ends.
    id: Vec<u8>,
    last_id: Vec<u8>,
    /// The name of the event that is being read.
    name: Vec<u8>,
    last_name: Vec<u8>,
    /// The last comment.
    comment: Vec<u8>,
    /// A comment has come since `take_commented` was last called.
    commented: bool,
    retry: Option<Duration>,
}

impl SseReader {
    /// Reads events whose data is at most `max` bytes long.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// Feeds the next chunk, after [`SseReader::next`] has returned `None`.
    pub fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.rest.is_empty(), "the chunk before is not read yet");
        self.rest = chunk;
    }

    /// The next event; `None` when more has to be fed.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is fed in between, which no iterator is"
    )]
    pub fn next(&mut self) -> Option<SseEvent> {
        while !self.rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && self.rest[0] == b'\n' {
                self.rest.advance(1);
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', &self.rest);
            let part = self.rest.split_to(end.unwrap_or(self.rest.len()));
            let room = self
                .max
                .saturating_add(NAME_ROOM)
                .saturating_sub(self.line.len());
            self.is_cut |= part.len() > room;
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if end.is_some() {
                self.after_cr = self.rest[0] == b'\r';
                self.rest.advance(1);
                let mut line = std::mem::take(&mut self.line);
                let event = self.read_line(&line);
                self.is_cut = false;
                line.clear();
                line.shrink_to(MAX_RESERVED);
                self.line = line;
                if event.is_some() {
                    return event;
                }
            }
        }
        None
    }

    /// The id of the last complete event; empty when the server gives none.
    #[must_use]
    pub fn last_id(&self) -> &[u8] {
        &self.last_id
    }

    /// The name of the last complete event; empty when it has none.
    #[must_use]
    pub fn last_name(&self) -> &[u8] {
        &self.last_name
    }

    /// The last comment, if it is not too long.
    #[must_use]
    pub fn last_comment(&self) -> &[u8] {
        &self.comment
    }

    /// Whether a comment has come since this was last called.
    pub fn take_commented(&mut self) -> bool {
        std::mem::take(&mut self.commented)
    }

    /// How long the server asks clients to wait before a broken stream is opened again.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The stream was opened again: an unfinished event is dropped, the last id is kept.
    pub fn reopened(&mut self) {
        let last_id = std::mem::take(&mut self.last_id);
        *self = Self {
            id: last_id.clone(),
            last_id,
            retry: self.retry,
            ..Self::new(self.max)
        };
    }

    fn read_line(&mut self, mut line: &[u8]) -> Option<SseEvent> {
        if !std::mem::replace(&mut self.bom_checked, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        // One that is too long is not kept.
        let kept = match value.len() <= MAX_VALUE && !self.is_cut {
            true => value,
            false => &[],
        };
        match field {
            b"data" => self.add(value),
            b"id" if !value.contains(&0) => self.id = kept.to_vec(),
            b"event" => self.name = kept.to_vec(),
            b"" => {
                self.commented = true;
                self.comment = kept.to_vec();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value).ok().and_then(|d| d.parse().ok());
                self.retry = Some(Duration::from_millis(millis.unwrap_or(u64::MAX)));
            }
            _ => {}
        }
        None
    }

    /// Adds a line to the event's data.
    fn add(&mut self, value: &[u8]) {
        if self.is_too_long {
            return;
        }
        let data = match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
                data
            }
            none => none.insert(value.to_vec()),
        };
        self.is_too_long = self.is_cut || data.len() > self.max;
        if self.is_too_long {
            data.truncate(head_len(self.max));
        }
    }

    fn end_of_event(&mut self) -> Option<SseEvent> {
        self.last_id.clone_from(&self.id);
        self.last_name = std::mem::take(&mut self.name);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        let data = self.data.take().filter(|data| !data.is_empty())?;
        Some(match is_too_long {
            true => SseEvent::TooLong(data.into()),
            false => SseEvent::Whole(data.into()),
        })
    }
}

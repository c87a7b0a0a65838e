//! Reads server-sent events from chunks as the network cuts them.
//!
//! After the WHATWG's "Server-sent events", 9.2.6: lines end in CR, LF or both, a byte order mark
//! may stand first, `data` lines of one event are joined by a line feed, an event without
//! an end is dropped. Names of events mean nothing in ACP, and are kept for other callers.

use std::time::Duration;

use bytes::{Buf as _, Bytes};

use crate::jsonrpc::framing::head_len;

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";
/// Longest id of an event that is kept, in bytes. It has to fit a header.
const MAX_ID: usize = 1024;
/// Length from which data may share the memory of its chunk, in bytes.
const MIN_SHARED: usize = 16 << 10;
/// Room for a field's name in addition to the longest value, in bytes.
const NAME_ROOM: usize = 16;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseEvent {
    /// Its `data` lines, joined.
    Whole(Bytes),
    /// Its data is longer than permitted; these are its first bytes.
    TooLong(Bytes),
}

/// The data of an event whose end has not come.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// One line, the usual case.
    Line(Bytes),
    /// Several lines.
    Lines(Vec<u8>),
}

/// Reads a stream of events. It keeps at most one event and one chunk.
#[derive(Debug)]
pub struct SseReader {
    /// Longest data of an event, in bytes.
    max: usize,
    /// What was fed and is not read yet.
    rest: Bytes,
    /// The length of its chunk.
    chunk: usize,
    /// The line whose end has not come.
    line: Vec<u8>,
    /// The rest of the line is skipped: it is too long.
    skipping: bool,
    /// The last byte was a CR; a LF that follows it belongs to it.
    after_cr: bool,
    /// The position of a byte order mark has passed.
    bom_checked: bool,
    data: Data,
    too_long: bool,
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
            rest: Bytes::new(),
            chunk: 0,
            line: Vec::new(),
            skipping: false,
            after_cr: false,
            bom_checked: false,
            data: Data::None,
            too_long: false,
            id: Vec::new(),
            last_id: Vec::new(),
            name: Vec::new(),
            last_name: Vec::new(),
            comment: Vec::new(),
            commented: false,
            retry: None,
        }
    }

    /// Feeds the next chunk, after [`SseReader::next`] has returned `None`.
    pub fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.rest.is_empty(), "the chunk before is not read yet");
        self.chunk = chunk.len();
        self.rest = chunk;
    }

    /// The next event; `None` when more has to be fed.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is fed in between, which no iterator is"
    )]
    pub fn next(&mut self) -> Option<SseEvent> {
        while !self.rest.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if self.rest[0] == b'\n' {
                    self.rest.advance(1);
                    continue;
                }
            }
            let Some(end) = memchr::memchr2(b'\r', b'\n', &self.rest) else {
                let rest = std::mem::take(&mut self.rest);
                self.extend(&rest);
                return None;
            };
            let mut line = self.rest.split_to(end);
            self.after_cr = self.rest[0] == b'\r';
            self.rest.advance(1);
            let whole = self.line.is_empty() && !self.skipping && self.fits(line.len());
            if !whole {
                self.extend(&line);
                line = std::mem::take(&mut self.line).into();
            }
            // The event may wait for long, so it must not hold a chunk of which it is a small part.
            let is_small = line.len() < MIN_SHARED || 2 * line.len() < self.chunk;
            let event = self.end_of_line(line, whole && is_small);
            if event.is_some() {
                return event;
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
        let fresh = Self::new(self.max);
        let old = std::mem::replace(self, fresh);
        self.id.clone_from(&old.last_id);
        self.last_id = old.last_id;
        self.retry = old.retry;
    }

    /// Whether a line may grow by `more` bytes.
    fn fits(&self, more: usize) -> bool {
        let room = (self.max.saturating_add(NAME_ROOM)).saturating_sub(self.line.len());
        more <= room
    }

    fn extend(&mut self, part: &[u8]) {
        if self.skipping {
            return;
        }
        if self.fits(part.len()) {
            self.line.extend_from_slice(part);
        } else {
            // Nothing after its head is ever used.
            let head = head_len(self.max) + NAME_ROOM;
            let more = head.saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(&part[..more]);
            self.skipping = true;
            self.line.truncate(head);
            self.line.shrink_to_fit();
        }
    }

    /// Handles a line; with `copy` its memory is not shared.
    fn end_of_line(&mut self, mut line: Bytes, copy: bool) -> Option<SseEvent> {
        let skipped = std::mem::take(&mut self.skipping);
        if !std::mem::replace(&mut self.bom_checked, true) && line.starts_with(BOM) {
            line.advance(BOM.len());
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let space = usize::from(line.get(colon + 1) == Some(&b' '));
        let start = (colon + 1 + space).min(line.len());
        let value = &line[start..];
        match &line[..colon] {
            b"data" if copy => {
                let value = Bytes::copy_from_slice(value);
                self.add(value, skipped);
            }
            b"data" => {
                line.advance(start);
                self.add(line, skipped);
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                // An id that fits no header cannot be sent back, so none is kept.
                if value.len() <= MAX_ID && !skipped {
                    self.id.extend_from_slice(value);
                }
            }
            b"event" if !skipped && value.len() <= MAX_ID => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"" if colon < line.len() => {
                self.commented = true;
                self.comment.clear();
                if value.len() <= MAX_ID && !skipped {
                    self.comment.extend_from_slice(value);
                }
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
    fn add(&mut self, value: Bytes, skipped: bool) {
        if self.too_long {
            return;
        }
        let mut data = match std::mem::take(&mut self.data) {
            Data::None => Data::Line(value),
            Data::Line(first) => Data::Lines([&first[..], b"\n", &value].concat()),
            Data::Lines(mut lines) => {
                lines.push(b'\n');
                lines.extend_from_slice(&value);
                Data::Lines(lines)
            }
        };
        let bytes = match &data {
            Data::None => &[][..],
            Data::Line(line) => line,
            Data::Lines(lines) => lines,
        };
        self.too_long |= skipped || bytes.len() > self.max;
        if self.too_long {
            let head = &bytes[..bytes.len().min(head_len(self.max))];
            data = Data::Line(Bytes::copy_from_slice(head));
        }
        self.data = data;
    }

    fn end_of_event(&mut self) -> Option<SseEvent> {
        self.last_id.clone_from(&self.id);
        std::mem::swap(&mut self.name, &mut self.last_name);
        self.name.clear();
        let too_long = std::mem::take(&mut self.too_long);
        let data = match std::mem::take(&mut self.data) {
            Data::None => return None,
            Data::Line(line) => line,
            Data::Lines(lines) => lines.into(),
        };
        if data.is_empty() {
            return None;
        }
        Some(if too_long {
            SseEvent::TooLong(data)
        } else {
            SseEvent::Whole(data)
        })
    }
}

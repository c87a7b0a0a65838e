//! Server-sent events, read from chunks as the network cuts them.
//!
//! After the WHATWG's "Server-sent events", 9.2.6: lines end in CR, LF or both, a byte order mark
//! may stand first, `data` lines of one event are joined by a line feed, an event whose end never
//! came is no event. Names of events are not looked at: ACP has none. Not here: where the chunks
//! come from, and when a broken stream is opened again (see `stream`).

use std::time::Duration;

use bytes::{Buf as _, Bytes};

use crate::wire::framing::wanted;

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";
/// Longest id of an event that is kept, in bytes. It has to fit a header.
const ID: usize = 1024;
/// Room for a field's name beside the longest value, in bytes.
const NAME: usize = 16;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What its `data` lines say.
    Whole(Bytes),
    /// Its data is longer than permitted; these are its first bytes.
    TooLong(Bytes),
}

/// Reads a stream of events. It keeps at most one event and one chunk.
#[derive(Debug)]
pub struct Sse {
    /// Longest data of an event, in bytes.
    max: usize,
    /// What was given and is not read yet.
    rest: Bytes,
    /// The line whose end has not come.
    line: Vec<u8>,
    /// The rest of the line is passed over: it is too long.
    passing: bool,
    /// The last byte was a CR; a LF that follows it belongs to it.
    after_cr: bool,
    /// The place of a byte order mark is behind us.
    begun: bool,
    data: Option<Vec<u8>>,
    too_long: bool,
    /// The id that counts once the event has ended.
    id: Vec<u8>,
    last_id: Vec<u8>,
    retry: Option<Duration>,
}

impl Sse {
    /// Reads events whose data is at most `max` bytes long.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            rest: Bytes::new(),
            line: Vec::new(),
            passing: false,
            after_cr: false,
            begun: false,
            data: None,
            too_long: false,
            id: Vec::new(),
            last_id: Vec::new(),
            retry: None,
        }
    }

    /// Gives the next chunk, after [`Sse::next`] has said `None`.
    pub fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.rest.is_empty(), "the chunk before is not read yet");
        self.rest = chunk;
    }

    /// The next event; `None` when more has to be fed.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is fed in between, which no iterator is"
    )]
    pub fn next(&mut self) -> Option<Event> {
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
            let part = self.rest.split_to(end);
            self.extend(&part);
            self.after_cr = self.rest[0] == b'\r';
            self.rest.advance(1);
            let event = self.end_of_line();
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// The id of the last event that came whole; empty when the server gives none.
    #[must_use]
    pub fn last_id(&self) -> &[u8] {
        &self.last_id
    }

    /// How long the server wants us to wait before a broken stream is opened again.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The stream was opened again: what was begun is forgotten, the last id is not.
    pub fn reopened(&mut self) {
        let fresh = Self::new(self.max);
        let old = std::mem::replace(self, fresh);
        self.id.clone_from(&old.last_id);
        self.last_id = old.last_id;
        self.retry = old.retry;
    }

    fn extend(&mut self, part: &[u8]) {
        if self.passing {
            return;
        }
        let room = (self.max.saturating_add(NAME)).saturating_sub(self.line.len());
        if part.len() <= room {
            self.line.extend_from_slice(part);
        } else {
            self.line.extend_from_slice(&part[..room]);
            self.passing = true;
            // Nothing after its head is ever looked at.
            self.line.truncate(wanted(self.max) + NAME);
            self.line.shrink_to_fit();
        }
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        let passed = std::mem::take(&mut self.passing);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let space = usize::from(line.get(colon + 1) == Some(&b' '));
        let begins = (colon + 1 + space).min(line.len());
        let value = &line[begins..];
        match &line[..colon] {
            b"data" => {
                line.drain(..begins);
                self.add(line, passed);
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                // An id that fits no header cannot be asked for; without one nothing is pretended.
                if value.len() <= ID && !passed {
                    self.id.extend_from_slice(value);
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

    /// One more line of the event's data.
    fn add(&mut self, value: Vec<u8>, passed: bool) {
        let data = match &mut self.data {
            None => self.data.insert(value),
            Some(data) if self.too_long => data,
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(&value);
                data
            }
        };
        self.too_long |= passed || data.len() > self.max;
        if self.too_long {
            data.truncate(wanted(self.max));
            data.shrink_to_fit();
        }
    }

    fn end_of_event(&mut self) -> Option<Event> {
        self.last_id.clone_from(&self.id);
        let too_long = std::mem::take(&mut self.too_long);
        let data = self.data.take().filter(|data| !data.is_empty())?;
        Some(if too_long {
            Event::TooLong(data.into())
        } else {
            Event::Whole(data.into())
        })
    }
}

//! Cuts a stream of messages with `Content-Length` headers, as in the base protocol of the Language
//! Server Protocol.
//!
//! A declared length reserves nothing: memory is used for what was received. Header lines may end
//! in LF or CRLF, unknown fields are ignored. A line that is neither a field nor JSON is passed on
//! as a stray line. A block without a usable length ends the stream, because the start of the next
//! message is unknown.

use bytes::{Buf as _, BytesMut};

use super::{Decoded, partial};
use crate::{Frame, FrameError, Limits};

/// The position in the stream.
#[derive(Debug, Default)]
pub(super) struct ContentLengthDecoder {
    state: State,
    /// Bytes of the buffer that hold no line feed; for header lines.
    searched: usize,
}

/// The part of a message that comes next.
#[derive(Debug)]
enum State {
    /// A line of the header block.
    Header(Header),
    /// The message.
    Body { length: usize },
    /// An over-long message, of which `left` bytes are still to come.
    Discard {
        left: u64,
        error: Option<Box<FrameError>>,
    },
}

/// A header block so far.
#[derive(Debug, Default)]
struct Header {
    bytes: usize,
    fields: usize,
    length: Option<u64>,
}

impl ContentLengthDecoder {
    /// Takes the next message; `None` when more bytes are needed.
    pub(super) fn next(
        &mut self,
        buffer: &mut BytesMut,
        max: usize,
        limits: &Limits,
    ) -> Result<Option<Decoded>, Box<FrameError>> {
        loop {
            match &mut self.state {
                State::Header(header) => {
                    let Some(place) = memchr::memchr(b'\n', &buffer[self.searched..]) else {
                        self.searched = buffer.len();
                        header.fits(buffer.len(), limits)?;
                        return Ok(None);
                    };
                    let end = self.searched + place + 1;
                    self.searched = 0;
                    header.fits(end, limits)?;
                    let line = buffer[..end].trim_ascii_end();
                    if !line.is_empty() && field(line).is_none() {
                        return stray(buffer, end).map(Some);
                    }
                    let state = header.line(line, end, max, limits)?;
                    buffer.advance(end);
                    if let Some(state) = state {
                        self.state = state;
                    }
                }
                State::Body { length } => {
                    if buffer.len() < *length {
                        return Ok(None);
                    }
                    let body = buffer.split_to(*length).freeze();
                    self.state = State::default();
                    return Ok(Some(Decoded::Frame(Frame::new(body))));
                }
                State::Discard { left, error } => {
                    if error.is_none() {
                        if buffer.len() < partial::head_len(max) {
                            return Ok(None);
                        }
                        *error = Some(partial::too_long(buffer, max, limits));
                    }
                    let here = usize::try_from(*left).map_or(buffer.len(), |n| n.min(buffer.len()));
                    buffer.advance(here);
                    *left -= here as u64;
                    if *left > 0 {
                        return Ok(None);
                    }
                    let error = error.take();
                    self.state = State::default();
                    return Ok(error.map(Decoded::Error));
                }
            }
        }
    }

    /// Takes the rest when the stream has ended.
    pub(super) fn finish(&mut self, buffer: &mut BytesMut, limits: &Limits) -> Option<Decoded> {
        self.searched = 0;
        let rest = buffer.split();
        let error = match std::mem::take(&mut self.state) {
            State::Header(header) if header.fields == 0 && rest.trim_ascii().is_empty() => {
                return None;
            }
            State::Header(_) => partial::cut_short(b"", limits),
            State::Body { .. } | State::Discard { error: None, .. } => {
                partial::cut_short(&rest, limits)
            }
            State::Discard {
                error: Some(error), ..
            } => error,
        };
        Some(Decoded::Error(error))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::Header(Header::default())
    }
}

impl Header {
    /// Whether the block may have so many more bytes.
    fn fits(&self, more: usize, limits: &Limits) -> Result<(), Box<FrameError>> {
        if self.bytes.saturating_add(more) > limits.header_bytes {
            return Err(partial::bad_header("the header block is too long"));
        }
        Ok(())
    }

    /// Takes one line, of `bytes` bytes with its end; returns what comes next when it ends the
    /// block.
    fn line(
        &mut self,
        line: &[u8],
        bytes: usize,
        max: usize,
        limits: &Limits,
    ) -> Result<Option<State>, Box<FrameError>> {
        let Some((name, value)) = field(line) else {
            // An empty line. Some peers write one after a message too.
            return if self.fields == 0 {
                Ok(None)
            } else {
                self.end(max).map(Some)
            };
        };
        self.bytes += bytes;
        self.fields += 1;
        if self.fields > limits.header_fields {
            return Err(partial::bad_header("the header block has too many fields"));
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value)
                .ok_or_else(|| partial::bad_header("Content-Length is not a number of bytes"))?;
            if self.length.is_some_and(|before| before != length) {
                return Err(partial::bad_header("two Content-Length fields disagree"));
            }
            self.length = Some(length);
        }
        Ok(None)
    }

    fn end(&self, max: usize) -> Result<State, Box<FrameError>> {
        let length = self
            .length
            .ok_or_else(|| partial::bad_header("there is no Content-Length"))?;
        Ok(match usize::try_from(length) {
            Ok(0) => State::default(),
            Ok(length) if length <= max => State::Body { length },
            _ => State::Discard {
                left: length,
                error: None,
            },
        })
    }
}

/// Takes a line that is not a header field out of the stream.
fn stray(buffer: &mut BytesMut, end: usize) -> Result<Decoded, Box<FrameError>> {
    let mut line = buffer.split_to(end);
    line.truncate(line.trim_ascii_end().len());
    if crate::scan::json_like(&line) {
        return Err(partial::bad_header("a message has no header"));
    }
    Ok(Decoded::Frame(Frame::new(line.freeze())))
}

/// The name and the value of a header field. Names are tokens (RFC 9110, section 5.6.2).
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let name = line[..colon].trim_ascii();
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    (!name.is_empty() && name.iter().all(token)).then(|| (name, line[colon + 1..].trim_ascii()))
}

/// Decimal digits and nothing else, or `None`.
fn number(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

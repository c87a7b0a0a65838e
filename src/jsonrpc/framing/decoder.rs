//! Cuts a byte stream into messages.
//!
//! It owns no bytes: the caller reads into a buffer, and the decoder takes messages from its front.

use bytes::{Buf as _, BytesMut};

use super::content_length::ContentLengthDecoder;
use super::ndjson::{Line, LineDecoder};
use super::{Decoded, Framing, sniff};
use crate::{FrameError, Limits};

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Cuts a stream into messages; one for each link and direction.
///
/// Messages share memory with the buffer they were cut from.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// Longest message, in bytes.
    max: usize,
    /// Whether the start of the stream, where a byte order mark may be, was handled.
    bom_checked: bool,
    framing: Option<Framing>,
    lines: LineDecoder,
    content_length: ContentLengthDecoder,
}

impl Decoder {
    /// `max` is the longest message in bytes; `framing` is detected when it is not given.
    #[must_use]
    pub fn new(framing: Option<Framing>, max: usize, limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            max,
            bom_checked: false,
            framing,
            lines: LineDecoder::default(),
            content_length: ContentLengthDecoder::default(),
        }
    }

    /// The peer's framing, once it is known.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Whether it is within a line that is discarded.
    #[must_use]
    pub fn is_discarding(&self) -> bool {
        self.lines.is_discarding()
    }

    /// Takes the next message out of `buffer`; `None` when more bytes are needed.
    ///
    /// # Errors
    /// When the start of the next message is unknown: the link has to be closed.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Decoded>, Box<FrameError>> {
        if !self.bom_checked {
            if buffer.len() < BOM.len() && BOM.starts_with(buffer) {
                return Ok(None);
            }
            if buffer.starts_with(BOM) {
                buffer.advance(BOM.len());
            }
            self.bom_checked = true;
        }
        loop {
            // While a long line is discarded, the buffer does not begin with a line.
            if self.framing.is_none() && !self.lines.is_discarding() {
                self.framing = sniff::sniff(buffer);
            }
            if self.framing == Some(Framing::ContentLength) {
                return self.content_length.next(buffer, self.max, &self.limits);
            }
            match self.lines.next(buffer, self.max, &self.limits) {
                Line::Open => return Ok(None),
                Line::Blank => {}
                Line::Decoded(decoded) => return Ok(Some(decoded)),
            }
        }
    }

    /// Takes an unfinished last message when the stream has ended, after [`Decoder::decode`] has
    /// returned `None`.
    pub fn finish(&mut self, buffer: &mut BytesMut) -> Option<Decoded> {
        match self.framing {
            Some(Framing::ContentLength) => self.content_length.finish(buffer, &self.limits),
            Some(Framing::Ndjson) | None => self.lines.finish(buffer, self.max, &self.limits),
        }
    }
}

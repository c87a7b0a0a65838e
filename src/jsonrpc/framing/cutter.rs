//! Cuts a stream of bytes into messages.
//!
//! It owns no bytes: the caller reads into a buffer and the cutter takes messages from its front.
//! Not here: reading, and judging what was cut out.

use bytes::{Buf as _, BytesMut};

use super::length::Blocks;
use super::ndjson::{Line, Lines};
use super::{Framing, sniff};
use crate::jsonrpc::{Flaw, Frame, Limits};

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A message longer than this, in bytes, leaves a buffer behind that is not kept.
const LARGE: usize = 64 << 10;

/// A buffer with more room than this, in bytes, is not kept while little waits in it.
const ROOMY: usize = 128 << 10;

/// One thing cut out of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A message, or a stray line; `scan` tells.
    Frame(Frame),
    /// Something that could not be cut out whole. The stream goes on.
    Flaw(Box<Flaw>),
}

/// Cuts a stream into messages; one for each link and direction.
///
/// Messages share memory with the buffer they were cut from. So that one large message does not
/// hold its memory for as long as the link lives, the cutter replaces a buffer that has become too
/// roomy; readers should reserve 64 KiB at a time, or less.
#[derive(Debug)]
pub struct Cutter {
    limits: Limits,
    /// Longest message, in bytes.
    max: usize,
    /// Whether the place of a byte order mark is behind us.
    begun: bool,
    framing: Option<Framing>,
    lines: Lines,
    blocks: Blocks,
    /// Whether the buffer may share memory with a large message.
    shares: bool,
}

impl Cutter {
    /// `max` is the longest message in bytes; `framing` is sniffed when it is not given.
    #[must_use]
    pub fn new(framing: Option<Framing>, max: usize, limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            max,
            begun: false,
            framing,
            lines: Lines::default(),
            blocks: Blocks::default(),
            shares: false,
        }
    }

    /// The framing the peer speaks, once it has shown it.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Takes the next message out of `buffer`; `None` when more bytes are needed.
    ///
    /// # Errors
    /// When the stream cannot be followed any more: the link has to be closed.
    pub fn cut(&mut self, buffer: &mut BytesMut) -> Result<Option<Cut>, Box<Flaw>> {
        let cut = self.next(buffer)?;
        match &cut {
            Some(Cut::Frame(frame)) => self.shares |= frame.len() > LARGE,
            Some(Cut::Flaw(_)) => {}
            None => self.slim(buffer),
        }
        Ok(cut)
    }

    /// Takes what is left when the stream has ended, after [`Cutter::cut`] has said `None`.
    pub fn finish(&mut self, buffer: &mut BytesMut) -> Option<Cut> {
        match self.framing {
            Some(Framing::ContentLength) => self.blocks.finish(buffer, &self.limits),
            Some(Framing::Ndjson) | None => self.lines.finish(buffer, self.max, &self.limits),
        }
    }

    fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Cut>, Box<Flaw>> {
        if !self.begun {
            if buffer.len() < BOM.len() && BOM.starts_with(buffer) {
                return Ok(None);
            }
            if buffer.starts_with(BOM) {
                buffer.advance(BOM.len());
            }
            self.begun = true;
        }
        loop {
            if self.framing.is_none() && !self.lines.inside() {
                self.framing = sniff::sniff(buffer);
            }
            if self.framing == Some(Framing::ContentLength) {
                return self.blocks.next(buffer, self.max, &self.limits);
            }
            match self.lines.next(buffer, self.max, &self.limits) {
                Line::Open => return Ok(None),
                Line::Blank => {}
                Line::Cut(cut) => return Ok(Some(cut)),
            }
        }
    }

    /// Lets go of a large message's memory, when little waits in the buffer.
    fn slim(&mut self, buffer: &mut BytesMut) {
        if (self.shares || buffer.capacity() > ROOMY) && buffer.len() <= LARGE {
            *buffer = BytesMut::from(&buffer[..]);
            self.shares = false;
        }
    }
}

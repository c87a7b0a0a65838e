//! Cuts a stream into lines.
//!
//! A line is split off the buffer without a copy, and no byte is searched twice for its end. An
//! over-long line is discarded as it arrives, in constant memory.

use bytes::{Buf as _, BytesMut};

use super::{Decoded, partial, sniff};
use crate::{Frame, FrameError, Limits};

/// The position in the stream.
#[derive(Debug, Default)]
pub(super) struct LineDecoder {
    /// Bytes of the buffer that hold no line feed.
    searched: usize,
    /// The error for an over-long line, to be returned at its end.
    discarding: Option<Box<FrameError>>,
}

/// The result of looking for a line.
#[derive(Debug)]
pub(super) enum Line {
    /// Its end was not received yet.
    Open,
    /// It was empty and was dropped.
    Blank,
    /// Something to pass on.
    Decoded(Decoded),
}

impl LineDecoder {
    /// Whether the buffer begins in the middle of a line.
    pub(super) fn is_discarding(&self) -> bool {
        self.discarding.is_some()
    }

    /// Takes one line, without the line feed and a carriage return before it.
    pub(super) fn next(&mut self, buffer: &mut BytesMut, max: usize, limits: &Limits) -> Line {
        let Some(place) = memchr::memchr(b'\n', &buffer[self.searched..]) else {
            self.wait(buffer, max, limits);
            return Line::Open;
        };
        let end = self.searched + place;
        self.searched = 0;
        if let Some(error) = self.discarding.take() {
            buffer.advance(end + 1);
            return Line::Decoded(Decoded::Error(error));
        }
        let line = buffer.split_to(end);
        buffer.advance(1);
        whole(line, max, limits)
    }

    /// Takes the last line, which the end of the stream ends.
    pub(super) fn finish(
        &mut self,
        buffer: &mut BytesMut,
        max: usize,
        limits: &Limits,
    ) -> Option<Decoded> {
        self.searched = 0;
        let rest = buffer.split();
        if let Some(error) = self.discarding.take() {
            return Some(Decoded::Error(error));
        }
        match whole(rest, max, limits) {
            Line::Decoded(cut) => Some(cut),
            Line::Open | Line::Blank => None,
        }
    }

    /// The buffer holds no line feed.
    fn wait(&mut self, buffer: &mut BytesMut, max: usize, limits: &Limits) {
        if self.discarding.is_some() {
            buffer.clear();
        } else if buffer.len() > max.saturating_add(1).max(sniff::REACH) {
            // One more than `max` may be a carriage return that is not counted; the bytes that
            // sniffing needs are kept however low the limit is.
            self.discarding = Some(partial::too_long(buffer, max, limits));
            *buffer = BytesMut::new();
        }
        self.searched = buffer.len();
    }
}

fn whole(mut line: BytesMut, max: usize, limits: &Limits) -> Line {
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
    if line.len() > max {
        return Line::Decoded(Decoded::Error(partial::too_long(&line, max, limits)));
    }
    if line.trim_ascii_start().is_empty() {
        return Line::Blank;
    }
    Line::Decoded(Decoded::Frame(Frame::new(line.freeze())))
}

//! Writes messages into a byte stream.

use std::fmt::Write as _;

use bytes::BytesMut;

use crate::Frame;

/// A way to delimit messages in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One message a line.
    Ndjson,
    /// A `Content-Length` header block before each message.
    ContentLength,
}

impl Framing {
    /// Appends `frame` to `out` in this framing. NDJSON replaces the line breaks of a
    /// pretty-printed message by spaces, which are the same in JSON: in strings they are escaped.
    pub fn encode(self, frame: &Frame, out: &mut BytesMut) {
        let text = frame.as_bytes();
        match self {
            Self::Ndjson => {
                out.reserve(text.len() + 1);
                let mut rest = text;
                while let Some(place) = memchr::memchr2(b'\n', b'\r', rest) {
                    out.extend_from_slice(&rest[..place]);
                    out.extend_from_slice(b" ");
                    rest = &rest[place + 1..];
                }
                out.extend_from_slice(rest);
                out.extend_from_slice(b"\n");
            }
            Self::ContentLength => {
                // The longest header is 16 + 20 + 4 bytes.
                out.reserve(text.len() + 40);
                write!(out, "Content-Length: {}\r\n\r\n", text.len())
                    .expect("a buffer in memory takes what is written");
                out.extend_from_slice(text);
            }
        }
    }
}

//! As much of HTTP/1.1 as opens a WebSocket: the server's head, bounded in bytes and in fields.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use httparse::{EMPTY_HEADER, Header, Response};
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::handshake::HandshakeError;
use crate::jsonrpc::Limits;

/// A head that was read.
#[derive(Debug)]
pub(super) struct Start {
    /// `404 Not Found`.
    pub(super) first: String,
    pub(super) fields: Fields,
}

/// The fields of a head.
#[derive(Debug)]
pub(super) struct Fields(Vec<(String, Bytes)>);

impl Fields {
    /// The values of all fields of that name, which is given in lower case.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.0.iter().filter(move |(given, _)| given == name);
        named.map(|(_, value)| &value[..])
    }

    /// The value of the only field of that name.
    pub(super) fn only<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        let mut all = self.all(name);
        all.next().filter(|_| all.next().is_none())
    }

    /// Whether `token` is among the comma-separated values of the fields of that name.
    pub(super) fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|one| one.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }
}

/// Reads a head and takes it out of `buffer`. The inner error says what is wrong with it.
pub(super) async fn read_head<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
    limits: &Limits,
) -> Result<Result<Start, &'static str>, HandshakeError> {
    // Something else is noticed long before its end; but a head that comes byte by byte is not
    // parsed with each of them.
    let mut parse_at = 1;
    loop {
        let searched = buffer.len().saturating_sub(3);
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let whole = memmem::find(&buffer[searched..], b"\r\n\r\n").map(|at| searched + at + 4);
        if whole.unwrap_or(buffer.len()) > limits.header_bytes {
            return Ok(Err("the head is too long"));
        }
        if whole.is_some() || buffer.len() >= parse_at {
            match parse(buffer, limits) {
                Ok(Some((start, taken))) => {
                    buffer.advance(taken);
                    return Ok(Ok(start));
                }
                Ok(None) => parse_at = buffer.len() * 2,
                Err(why) => return Ok(Err(why)),
            }
        }
    }
}

fn parse(bytes: &[u8], limits: &Limits) -> Result<Option<(Start, usize)>, &'static str> {
    let mut room = vec![EMPTY_HEADER; limits.header_fields];
    let mut head = Response::new(&mut room);
    let status = head.parse(bytes);
    let (code, reason) = (head.code.unwrap_or(0), head.reason.unwrap_or(""));
    let (first, headers) = (format!("{code} {reason}"), head.headers);
    match status {
        Ok(httparse::Status::Complete(taken)) => {
            let first = first.trim_end().to_owned();
            let fields = Fields(headers.iter().map(owned).collect());
            Ok(Some((Start { first, fields }, taken)))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err("the head has too many fields"),
        Err(_) => Err("it is not HTTP/1.1"),
    }
}

fn owned(header: &Header<'_>) -> (String, Bytes) {
    let value = Bytes::copy_from_slice(header.value.trim_ascii());
    (header.name.to_ascii_lowercase(), value)
}

/// The first line of a text, for a person: at most 120 characters, none that a terminal would
/// act on.
pub(super) fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().next().unwrap_or_default();
    let plain = line.chars().filter(|character| !character.is_control());
    plain.take(120).collect()
}

//! The opening of a WebSocket (RFC 6455, section 4), from the client's end.
//!
//! No extension is offered. Not here: the HTTP around it (see `http`), how long it may take, which
//! is the caller's, and the server's end (see `http::server::upgrade`).

use std::io;

use bytes::BytesMut;
use data_encoding::BASE64;
use hyper::HeaderMap;
use ring::digest::{Context as Hash, SHA1_FOR_LEGACY_USE_ONLY};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::http::{Fields, Start, first_line, read_head};
use crate::jsonrpc::Limits;

/// What every server adds to a client's key before it hashes it (1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// How much of a refusal's body is read for its first line, in bytes.
const BODY: usize = 1 << 10;

/// Why no WebSocket was opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The peer speaks something else, or its HTTP is broken.
    #[error("{0}")]
    Http(&'static str),
    /// The server said no.
    #[error("{status}: {why}")]
    Refused {
        /// What it answered, such as `404 Not Found`.
        status: String,
        /// The first line of its reasons, which may be empty.
        why: String,
    },
}

/// Opens a WebSocket over a connected stream, and returns what the server has sent behind its
/// answer. `authority` is the host as the `Host` header has it, `target` the path and the query,
/// `headers` what the server is told besides.
///
/// # Errors
/// When the server refuses, or does not speak the protocol.
pub async fn connect_stream<S>(
    stream: &mut S,
    authority: &str,
    target: &str,
    headers: &HeaderMap,
    limits: &Limits,
) -> Result<BytesMut, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut nonce = [0; 16];
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    let key = BASE64.encode(&nonce);
    let mut request = format!(
        "GET {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
    )
    .into_bytes();
    for (name, value) in headers {
        request.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    request.extend(b"\r\n");
    stream.write_all(&request).await?;
    stream.flush().await?;
    let mut buffer = BytesMut::new();
    let Start { first, fields } = read_head(stream, &mut buffer, limits)
        .await?
        .map_err(HandshakeError::Http)?;
    if !first.starts_with("101") {
        let mut why = reason(stream, buffer, &fields).await;
        if let Some(to) = fields.only("location").filter(|_| first.starts_with('3')) {
            let to = first_line(to);
            why = format!("it points to {to}; redirects are not followed, so name that address");
        }
        return Err(HandshakeError::Refused { status: first, why });
    }
    let only = |name, value: &str| fields.only(name) == Some(value.as_bytes());
    if !fields.lists("upgrade", "websocket") || !fields.lists("connection", "upgrade") {
        return Err(HandshakeError::Http("its 101 upgrades to something else"));
    }
    if !only("sec-websocket-accept", &accept_key(key.as_bytes())) {
        return Err(HandshakeError::Http("its answer is not to our request"));
    }
    let unasked = ["sec-websocket-extensions", "sec-websocket-protocol"];
    if unasked.iter().any(|name| fields.all(name).next().is_some()) {
        let what = "it chose an extension or a protocol that was not offered";
        return Err(HandshakeError::Http(what));
    }
    Ok(buffer)
}

/// What a server answers to a client's key (1.3).
#[must_use]
pub fn accept_key(key: &[u8]) -> String {
    let mut hash = Hash::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key);
    hash.update(GUID);
    BASE64.encode(hash.finish().as_ref())
}

/// The first line of a refusal's body. It is only said to a person, so whatever fails here ends it.
async fn reason<S: AsyncRead + Unpin>(
    stream: &mut S,
    mut body: BytesMut,
    fields: &Fields,
) -> String {
    let length = fields.only("content-length").and_then(|value| {
        let digits = std::str::from_utf8(value).ok()?;
        digits.parse::<usize>().ok()
    });
    let length = length.unwrap_or(0).min(BODY);
    while body.len() < length {
        match stream.read_buf(&mut body).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    first_line(&body[..body.len().min(BODY)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, 1.3.
    #[test]
    fn the_accept_key_is_that_of_the_rfc() {
        assert_eq!(
            accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }
}

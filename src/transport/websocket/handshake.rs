//! The opening of a WebSocket (RFC 6455, section 4) as a client. tungstenite makes the request and
//! the key; the answer is read here, because its bounds are ours, a refusal is reported with the
//! server's own words, and `Connection` may be a list. No extension is offered.

use std::io;

use bytes::BytesMut;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::handshake::client::{Request, generate_key, generate_request};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::http::{Fields, Start, first_line, read_head};
use crate::jsonrpc::Limits;

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
    /// The server refused.
    #[error("{status}: {why}")]
    Refused {
        /// Its status, such as `404 Not Found`.
        status: String,
        /// The first line of its body, which may be empty.
        why: String,
    },
}

/// Opens a WebSocket over a connected stream, and returns what the server has sent behind its
/// answer. `authority` is the host as the `Host` header has it, `target` the path and the query,
/// `headers` what else is sent.
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
    let mut request = Request::builder()
        .uri(target)
        .header(HOST, authority)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, generate_key())
        .body(())
        .map_err(io::Error::other)?;
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    let (request, key) = generate_request(request).map_err(io::Error::other)?;
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
    if !only("sec-websocket-accept", &derive_accept_key(key.as_bytes())) {
        return Err(HandshakeError::Http("its answer is not to our request"));
    }
    let unoffered = ["sec-websocket-extensions", "sec-websocket-protocol"];
    if unoffered
        .iter()
        .any(|name| fields.all(name).next().is_some())
    {
        let what = "it chose an extension or a protocol that was not offered";
        return Err(HandshakeError::Http(what));
    }
    Ok(buffer)
}

/// The first line of a refusal's body. It is only shown to a person, so
/// that any fault here just ends it.
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

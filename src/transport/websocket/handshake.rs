//! The opening of a WebSocket, from both ends, and the one configuration we use.
//!
//! No extension is negotiated: compression across messages of different trust leaks them, and
//! costs memory for each connection.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderMap, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, client_async_with_config};

use crate::guard::origin::Door;
use crate::wire::Limits;

/// Allocated for each connection at once, so that many idle ones cost little.
const READ_BUFFER: usize = 8 << 10;
/// Small messages are gathered up to this size before they are written.
const WRITE_BUFFER: usize = 64 << 10;

/// What a WebSocket listener asks of its clients.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// The one path that is served.
    pub path: String,
    /// Who may come in.
    pub door: Door,
}

/// How every WebSocket of ours is set up.
#[must_use]
pub fn config(limits: &Limits) -> WebSocketConfig {
    let longest = limits.frame_from_network;
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        // What waits, one message, and the pongs a peer may be owed.
        .max_write_buffer_size(longest.saturating_add(2 * WRITE_BUFFER))
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest))
}

/// Answers a client that opens a WebSocket: 404 for another path, 403 for those who may not come
/// in. The request's header block is bounded by the library at 64 KiB; the time is the caller's.
///
/// # Errors
/// When the client was refused, or does not speak the protocol.
pub async fn accept_stream<S>(
    stream: S,
    entrance: &Entrance,
    limits: &Limits,
) -> Result<WebSocketStream<S>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    #[expect(
        clippy::result_large_err,
        reason = "the library's callback has this type"
    )]
    let judge = |request: &Request, response: Response| match refusal(request, entrance) {
        None => Ok(response),
        Some((status, why)) => Err(refused(status, why)),
    };
    accept_hdr_async_with_config(stream, judge, Some(config(limits))).await
}

/// Opens a WebSocket to `url` over a connected stream.
///
/// # Errors
/// When the server refuses, or does not speak the protocol.
pub async fn connect_stream<S>(
    stream: S,
    url: &str,
    limits: &Limits,
) -> Result<WebSocketStream<S>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (stream, _) = client_async_with_config(url, stream, Some(config(limits))).await?;
    Ok(stream)
}

fn refusal(request: &Request, entrance: &Entrance) -> Option<(StatusCode, String)> {
    let values = |name| {
        let headers: &HeaderMap = request.headers();
        headers
            .get_all(name)
            .into_iter()
            .map(|value| value.as_bytes())
    };
    let admitted = entrance
        .door
        .admit(values(header::ORIGIN), values(header::HOST));
    if let Err(refusal) = admitted {
        return Some((StatusCode::FORBIDDEN, refusal.to_string()));
    }
    if request.uri().path() != entrance.path {
        let why = format!("only {} is served here", entrance.path);
        return Some((StatusCode::NOT_FOUND, why));
    }
    None
}

fn refused(status: StatusCode, why: String) -> ErrorResponse {
    tracing::debug!(%status, why, "a WebSocket client was refused");
    let length = why.len() + 1;
    let mut response = ErrorResponse::new(Some(why + "\n"));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length.into());
    let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, text);
    let close = header::HeaderValue::from_static("close");
    headers.insert(header::CONNECTION, close);
    response
}

//! Sends one HTTP request on a connection of its own, for requests outside a conversation.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Endpoint, HttpEndpoint, OpenError, OpenErrorKind, Setup, tcp, tls};

/// Longest response body that is read, in bytes.
const MAX_BODY: usize = 1 << 20;

/// Sends `request`, whose URI has a host, to the server at `to`. The response's extensions hold the
/// socket address of the server.
///
/// # Errors
/// When the server cannot be reached, is not authentic, or breaks the connection.
pub async fn one_shot(
    to: &Endpoint,
    setup: &Setup,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, OpenError> {
    let Endpoint::Http(HttpEndpoint {
        host, port, tls, ..
    }) = to
    else {
        return Err(OpenError::wrong_scheme(to));
    };
    let stream = tcp::dial(to, host, *port, setup).await?;
    let dialed = stream.peer_addr();
    let mut answer = if *tls {
        let connector = tls::connector(to, &setup.tls, &[b"http/1.1"])?;
        let stream = tls::handshake(to, host, &connector, stream, setup.limits.handshake).await?;
        send(to, stream, request).await?
    } else {
        send(to, stream, request).await?
    };
    if let Ok(dialed) = dialed {
        answer.extensions_mut().insert(dialed);
    }
    Ok(answer)
}

async fn send(
    to: &Endpoint,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, OpenError> {
    let broken = |fault: &dyn std::fmt::Display| {
        OpenError::new(OpenErrorKind::Protocol, to, fault.to_string())
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|fault| broken(&fault))?;
    tokio::spawn(connection);
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().map(ToString::to_string);
    let authority = HeaderValue::try_from(authority.unwrap_or_default());
    head.headers
        .insert(HOST, authority.map_err(|fault| broken(&fault))?);
    head.headers
        .insert(CONNECTION, HeaderValue::from_static("close"));
    if let Some(path) = head.uri.path_and_query().cloned() {
        head.uri = path.into();
    }
    let response = sender.send_request(Request::from_parts(head, Full::new(body)));
    let (head, body) = response.await.map_err(|fault| broken(&fault))?.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await;
    let body = body.map_err(|fault| broken(&fault))?.to_bytes();
    Ok(Response::from_parts(head, body))
}

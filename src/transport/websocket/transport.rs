//! Connecting: sockets, TLS, the opening, and what is reported when one of them fails. Listening
//! begins with HTTP (see `http::listen`).

use hyper::StatusCode;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::handshake::{HandshakeError, connect_stream};
use super::link::link;
use crate::transport::http;
use crate::transport::{ConnectFuture, Endpoint, ListenFuture, OpenError, OpenErrorKind};
use crate::transport::{HttpEndpoint, Setup, Transport, open_error, tcp, tls};

/// The transport behind `ws://` and `wss://`.
#[derive(Debug)]
pub(in crate::transport) struct WebSocket;

impl Transport for WebSocket {
    fn schemes(&self) -> &'static [&'static str] {
        &["ws", "wss"]
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(async move {
            let Endpoint::Http(web) = to else {
                return Err(OpenError::wrong_scheme(to));
            };
            let HttpEndpoint { host, path, .. } = web;
            let connector = if web.tls {
                Some(tls::connector(to, &setup.tls, &[b"http/1.1"])?)
            } else {
                None
            };
            let mut stream = tcp::dial(to, host, web.port, setup).await?;
            let within = setup.limits.handshake;
            let name = to.to_string();
            let authority = web.authority();
            let headers = &setup.request_headers.headers;
            let open = async {
                let Some(connector) = connector else {
                    let opened =
                        connect_stream(&mut stream, &authority, path, headers, &setup.limits).await;
                    let begun = opened.map_err(|fault| not_opened(to, &fault))?;
                    return Ok(link(stream, &begun, Role::Client, name, setup));
                };
                let certified = tls::name(to, host)?;
                let mut stream = connector
                    .connect(certified, stream)
                    .await
                    .map_err(|fault| open_error::not_encrypted(to, &fault))?;
                let opened =
                    connect_stream(&mut stream, &authority, path, headers, &setup.limits).await;
                let begun = opened.map_err(|fault| not_opened(to, &fault))?;
                Ok(link(stream, &begun, Role::Client, name, setup))
            };
            let opened = timeout(within, open).await;
            opened.unwrap_or_else(|_| Err(open_error::timed_out(to, "the handshake", within)))
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(http::listen(at, setup))
    }
}

fn not_opened(to: &Endpoint, fault: &HandshakeError) -> OpenError {
    let (kind, what, remedy) = match fault {
        HandshakeError::Refused { status, why } => {
            let colon = if why.is_empty() { "" } else { ": " };
            let what = format!("it answered {status} to a WebSocket{colon}{why}");
            let code = status.get(..3).and_then(|code| code.parse().ok());
            let (kind, remedy) = match code {
                Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                    (OpenErrorKind::Forbidden, open_error::CHECK_TOKEN)
                }
                Some(code) if open_error::is_transient(code) => {
                    (OpenErrorKind::Unavailable, "Try again later")
                }
                _ => (OpenErrorKind::Protocol, "Check the path; /acp is usual"),
            };
            (kind, what, remedy)
        }
        fault => (
            OpenErrorKind::Protocol,
            format!("it does not speak WebSocket ({fault})"),
            "Check the port and the scheme",
        ),
    };
    OpenError::new(kind, to, what).with_remedy(remedy)
}

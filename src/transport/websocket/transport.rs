//! The transport behind `ws://` and `wss://`. Listening begins with HTTP (see `http::listen`).

use tokio_tungstenite::tungstenite::protocol::Role;

use super::handshake::open;
use super::link::link;
use crate::transport::http;
use crate::transport::{ConnectFuture, Endpoint, ListenFuture, Setup, Transport};

/// The transport behind `ws://` and `wss://`.
#[derive(Debug)]
pub(in crate::transport) struct WebSocket;

impl Transport for WebSocket {
    fn schemes(&self) -> &'static [&'static str] {
        &["ws", "wss"]
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(async move {
            let (stream, begun) = open(to, setup).await?;
            Ok(link(stream, &begun, Role::Client, to.to_string(), setup))
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(http::listen(at, setup))
    }
}

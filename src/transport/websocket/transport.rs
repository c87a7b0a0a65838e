//! Connecting to `ws://` and `wss://`. Listening begins with HTTP (see `http::listen`).

use tokio_tungstenite::tungstenite::protocol::Role;

use super::handshake::open;
use super::link::link;
use crate::transport::{Endpoint, Link, OpenError, Setup};

/// Opens a WebSocket as a client.
pub(in crate::transport) async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    let (stream, begun) = open(to, setup).await?;
    Ok(link(stream, &begun, Role::Client, to.to_string(), setup))
}

//! WebSockets: which requests are upgraded, which frames are rejected, and how a connection is
//! closed.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

mod buffers;
mod closing;
mod messages;
mod opening;

use acp_relay::transport::{Endpoint, HttpEndpoint, Link, Setup};
use futures_util::StreamExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::link::{accept, listen};

pub(super) type Client = WebSocketStream<TcpStream>;

pub(super) async fn dial(address: &Endpoint) -> TcpStream {
    let Endpoint::Http(HttpEndpoint { host, port, .. }) = address else {
        panic!("{address}");
    };
    TcpStream::connect((host.as_str(), *port)).await.unwrap()
}

/// A client made with `tungstenite`, and our end.
pub(super) async fn open(setup: &Setup) -> (Client, Link) {
    let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), setup).await;
    let address = listener.address();
    let stream = dial(&address).await;
    let opening = client_async(address.to_string(), stream);
    let (client, server) = tokio::join!(opening, accept(&mut *listener));
    (client.unwrap().0, server)
}

/// The close frame that our end sends.
pub(super) async fn close_frame(client: &mut Client) -> CloseFrame {
    loop {
        match client.next().await {
            Some(Ok(Message::Close(Some(frame)))) => return frame,
            Some(Ok(_)) => {}
            other => panic!("no close frame: {other:?}"),
        }
    }
}

pub(super) fn text(text: &str) -> Message {
    Message::Text(text.into())
}

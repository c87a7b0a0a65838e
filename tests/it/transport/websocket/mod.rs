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

use acp_relay::transport::{Link, Setup};
use futures_util::StreamExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::http::place;
use crate::support::link::{accept, listen};

pub(super) type Client = WebSocketStream<TcpStream>;

/// A client made with `tungstenite`, and our end.
pub(super) async fn open(setup: &Setup) -> (Client, Link) {
    let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), setup).await;
    let address = listener.address().to_string();
    let stream = TcpStream::connect(place(&address)).await.unwrap();
    let opening = client_async(address, stream);
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

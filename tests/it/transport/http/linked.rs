//! A client's end of a connection as a link, for the conformance suite: messages are posted one
//! after the other, and read from the connection's stream.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use acp_relay::jsonrpc::Frame;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::transport::{CloseReason, FrameSink, FrameStream, Link, LinkError, Peer, PeerKind};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::caller::{Events, Open, Site};

type Sender = SendRequest<Full<Bytes>>;
type Posting = Pin<Box<dyn Future<Output = Result<Sender, LinkError>> + Send>>;

/// Reads the connection's stream.
struct EventReceiver {
    reading: Pin<Box<dyn Future<Output = (Events, Option<String>)> + Send>>,
    ended: bool,
}

/// Posts on one socket.
struct PostSender {
    sender: Option<Sender>,
    posting: Option<Posting>,
    host: String,
    id: String,
    closed: bool,
}

/// Both ends of a fresh connection: the client's and the relay's.
pub(in super::super) async fn pair(site: &mut Site) -> (Link, Link) {
    let Open { id, link } = site.initialize().await;
    let events = site.caller.events(&[("acp-connection-id", &id)]).await;
    let stream = TcpStream::connect(("127.0.0.1", site.caller.port))
        .await
        .unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let client = Link {
        peer: Peer {
            name: "http".to_owned(),
            half_close: false,
            kind: PeerKind::Remote,
            principal: None,
            wanted_agent: None,
        },
        rx: Box::new(EventReceiver {
            reading: Box::pin(read(events)),
            ended: false,
        }),
        tx: Box::new(PostSender {
            sender: Some(sender),
            posting: None,
            host: format!("localhost:{}", site.caller.port),
            id,
            closed: false,
        }),
        guard: Box::new(()),
    };
    (client, link)
}

async fn read(mut events: Events) -> (Events, Option<String>) {
    loop {
        match events.next().await {
            Some(event) if event.data.is_empty() => {}
            Some(event) => return (events, Some(event.data)),
            None => return (events, None),
        }
    }
}

impl FrameStream for EventReceiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let (events, data) = ready!(self.reading.as_mut().poll(cx));
        self.reading = Box::pin(read(events));
        self.ended = data.is_none();
        Poll::Ready(data.map(|text| Ok(Decoded::Frame(Frame::from(text)))))
    }
}

impl PostSender {
    fn send(&mut self, method: &str, body: Bytes) -> Result<(), LinkError> {
        let mut sender = self
            .sender
            .take()
            .ok_or_else(|| failed("the socket is gone"))?;
        let request = Request::builder()
            .method(method)
            .uri("/acp")
            .header("host", &self.host)
            .header("content-type", "application/json")
            .header("acp-connection-id", &self.id)
            .body(Full::new(body))
            .unwrap();
        self.posting = Some(Box::pin(async move {
            let posted = async {
                sender.ready().await?;
                let answer = sender.send_request(request).await?;
                let status = answer.status();
                answer.into_body().collect().await?;
                Ok::<_, hyper::Error>(status)
            };
            match posted.await {
                Ok(StatusCode::ACCEPTED) => Ok(sender),
                Ok(status) => Err(failed(&format!("it answered {status}"))),
                Err(fault) => Err(failed(&fault.to_string())),
            }
        }));
        Ok(())
    }
}

impl FrameSink for PostSender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.poll_flush(cx)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.send("POST", frame.into_bytes())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if let Some(posting) = &mut self.posting {
            let posted = ready!(posting.as_mut().poll(cx));
            self.posting = None;
            self.sender = Some(posted?);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_flush(cx))?;
        if !self.closed {
            self.closed = true;
            self.send("DELETE", Bytes::new())?;
        }
        self.poll_flush(cx)
    }
}

fn failed(why: &str) -> LinkError {
    LinkError::Io {
        context: "posting",
        source: io::Error::other(why.to_owned()),
    }
}

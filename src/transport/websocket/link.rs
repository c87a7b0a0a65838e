//! The two halves of an open WebSocket, and the link that they make.
//!
//! Pings and the peer's close frame are answered by the receiving half, for the relay polls the
//! sending half only when there is something to send. Both share the connection behind a lock.
//!
//! # Why
//! **Code 1000, or none, is the end of a client that is done; any other end may be a break.**
//! It is what the official SDKs send when a program closes its connection (TypeScript and Rust no
//! code, Python and acpremote 1000), where over HTTP they send DELETE. A page that is reloaded sends
//! 1001, a process that is killed nothing.

use std::io;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data};

use super::connection::Connection;
use super::handshake::{Opened, upgrade};
use crate::http::client::HttpClient;
use crate::resumable::{self, Carrier, Contact, ContactSource, SUBPROTOCOL};
use crate::{
    CloseReason, Endpoint, FrameSink, FrameStream, HttpEndpoint, HttpProtocol, Link, LinkError,
    Links, OpenError, OpenErrorKind, Peer, Setup, SinkPoll, forward,
};
use jsonrpc::framing::{Decoded, Decoder, Framing};
use jsonrpc::{Frame, Limits, is_json};

/// Binary messages that are skipped before the link is closed with 1003.
const BINARIES: u32 = 10;

/// One half of a WebSocket; the receiving and the sending one are of one type.
#[derive(Debug)]
pub struct Half<S> {
    connection: Arc<Mutex<Connection<S>>>,
    /// How binary messages are read; `None` where only text is taken.
    binary: Option<Binary>,
    /// Binary messages that were skipped.
    skipped: u32,
}

/// What a peer sends in binary messages.
#[derive(Debug)]
struct Binary {
    limits: Arc<Limits>,
    /// The peer has sent a text message, so that its binary ones are no byte stream.
    has_text: bool,
    /// The byte stream, and what of it waits to be cut.
    stream: Option<Box<(Decoder, BytesMut)>>,
}

/// Makes the two halves of an open WebSocket. `begun` is what was read behind the handshake.
#[must_use]
pub fn halves<S>(stream: S, begun: &[u8], role: Role, limits: &Arc<Limits>) -> [Half<S>; 2]
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let connection = Arc::new(Mutex::new(Connection::new(stream, begun, role, limits)));
    let binary = Binary {
        limits: Arc::clone(limits),
        has_text: false,
        stream: None,
    };
    [(connection.clone(), Some(binary)), (connection, None)].map(|(connection, binary)| Half {
        connection,
        binary,
        skipped: 0,
    })
}

/// Connects to `ws://` and `wss://`; by a resumable link if the server is a relay that keeps it.
pub async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    let name = to.to_string();
    let offered = setup.links.as_ref().map(|_| SUBPROTOCOL);
    let http = HttpClient::new(to, setup)?;
    let greeting = offered.map(|_| resumable::first_greeting(&setup.limits));
    let opened = upgrade(&http, to, offered, greeting.as_ref()).await?;
    match &setup.links {
        Some(links) if opened.is_chosen => {
            Box::pin(resume(opened, http, to, name, setup, links)).await
        }
        _ => Ok(client(opened, name, &setup.limits, false)),
    }
}

/// Opens a resumable link to a server of Streamable HTTP, if it is a relay that keeps it. None is kept
/// for a client without credentials.
///
/// # Errors
/// It does, and the connection was lost.
pub async fn connect_link(
    to: &Endpoint,
    address: &HttpEndpoint,
    setup: &Setup,
) -> Result<Option<Link>, OpenError> {
    let headers = &setup.request_headers;
    let is_kept = !headers.headers.is_empty() && !headers.http2;
    let Some(links) = setup.links.as_ref().filter(|_| is_kept) else {
        return Ok(None);
    };
    let at = Endpoint::Http(HttpEndpoint {
        protocol: HttpProtocol::WebSocket,
        ..address.clone()
    });
    let http = HttpClient::new(&at, setup)?;
    let greeting = resumable::first_greeting(&setup.limits);
    let opened = upgrade(&http, &at, Some(SUBPROTOCOL), Some(&greeting)).await;
    let opened = opened.ok();
    let Some(opened) = opened.filter(|opened| opened.is_chosen) else {
        return Ok(None);
    };
    match resume(opened, http, &at, to.to_string(), setup, links).await {
        Err(error) if error.kind != OpenErrorKind::Lost => Ok(None),
        link => link.map(Some),
    }
}

/// A resumable link, whose first connection is open. All its connections share the cookies of `http`,
/// by which a balancer finds the relay again.
async fn resume(
    opened: Opened,
    http: HttpClient,
    to: &Endpoint,
    name: String,
    setup: &Setup,
    links: &Links,
) -> Result<Link, OpenError> {
    let limits = resumable::carrier_limits(&setup.limits);
    let first = carrier(opened, name.clone(), &limits);
    let (http, to) = (Arc::new(http), to.clone());
    let (contact, jar) = (Contact::of(&to, setup), Arc::clone(&http));
    let contact: ContactSource = Box::new(move || contact.clone().with_cookies(jar.cookies()));
    let dial: resumable::Dial = Arc::new(move |greeting| {
        let (http, to) = (Arc::clone(&http), to.clone());
        let (name, limits) = (name.clone(), Arc::clone(&limits));
        Box::pin(async move {
            let opened = upgrade(&http, &to, Some(SUBPROTOCOL), Some(&greeting)).await?;
            Ok(opened.is_chosen.then(|| carrier(opened, name, &limits)))
        })
    });
    let contact = setup.serves_parent.then_some(contact);
    resumable::connect(first, dial, contact, links, &setup.limits).await
}

/// A connection for a resumable link.
fn carrier(opened: Opened, name: String, limits: &Arc<Limits>) -> Carrier {
    let is_greeted = opened.is_greeted;
    let link = client(opened, name, limits, true);
    Carrier { link, is_greeted }
}

/// A link over a WebSocket that was opened as a client, which may carry a resumable link.
pub(super) fn client(opened: Opened, name: String, limits: &Arc<Limits>, is_carrier: bool) -> Link {
    let (stream, begun) = (opened.stream, opened.begun);
    let mut link = link(stream, &begun, Role::Client, name, limits, is_carrier);
    link.peer.longest = opened.longest;
    link
}

/// A link over an open WebSocket, which may carry a resumable link.
pub fn link<S>(
    stream: S,
    begun: &[u8],
    role: Role,
    name: String,
    limits: &Arc<Limits>,
    is_carrier: bool,
) -> Link
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let [mut rx, tx] = halves(stream, begun, role, limits);
    rx.binary.take_if(|_| is_carrier);
    Link::new(Peer::remote(name, false), rx, tx, ())
}

impl Binary {
    /// Takes a message; `Some` is what to do instead of skipping it.
    fn take(&mut self, message: &Bytes) -> Option<Poll<Decoded>> {
        let is_between = self
            .stream
            .as_deref()
            .is_none_or(|(decoder, bytes)| bytes.is_empty() && !decoder.is_discarding());
        let text = message.trim_ascii();
        let begins = matches!(text.first(), Some(b'{' | b'['));
        if begins && is_between && is_json(text, &self.limits) {
            let frame = Frame::new(message.slice_ref(text));
            return Some(Poll::Ready(Decoded::Frame(frame)));
        }
        if self.has_text {
            return None;
        }
        let stream = self.stream.get_or_insert_with(|| {
            let max = self.limits.frame_from_network;
            let decoder = Decoder::new(Some(Framing::Ndjson), max, &self.limits);
            Box::new((decoder, BytesMut::new()))
        });
        stream.1.extend_from_slice(message);
        Some(Poll::Pending)
    }

    /// The next message of the byte stream.
    fn cut(&mut self) -> Option<Decoded> {
        let (decoder, bytes) = &mut **self.stream.as_mut()?;
        // Lines have no fault that ends the stream.
        let cut = decoder.decode(bytes).ok().flatten();
        if cut.is_none() && bytes.is_empty() {
            *bytes = BytesMut::new();
        }
        cut
    }

    /// The last one, which the end of the connection ends.
    fn finish(&mut self) -> Option<Decoded> {
        let (mut decoder, mut bytes) = *self.stream.take()?;
        decoder.finish(&mut bytes)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Half<S> {
    /// The next message, text or binary, as it is.
    pub fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Data, Bytes), LinkError>>> {
        self.connection.lock().poll_next(cx)
    }

    /// Gives a message of either kind, as `start_send` gives a frame.
    ///
    /// # Errors
    /// When a text is not UTF-8, which the peer would have to answer with 1007 (RFC 6455, 8.1);
    /// nothing is sent then.
    pub fn start_message(&mut self, kind: Data, message: Bytes) -> Result<(), LinkError> {
        if kind == Data::Text && simdutf8::basic::from_utf8(&message).is_err() {
            return Err(LinkError::Io {
                context: "sending a message that is not UTF-8",
                source: io::ErrorKind::InvalidData.into(),
            });
        }
        self.connection.lock().start_send(kind, message)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> FrameStream for Half<S> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let mut connection = self.connection.lock();
        loop {
            if let Some(cut) = self.binary.as_mut().and_then(Binary::cut) {
                return Poll::Ready(Some(Ok(cut)));
            }
            let message = match ready!(connection.poll_next(cx)) {
                Some(Ok((Data::Text, text))) => {
                    if let Some(binary) = &mut self.binary {
                        binary.has_text = true;
                    }
                    return Poll::Ready(Some(Ok(Decoded::Frame(Frame::new(text)))));
                }
                Some(Ok((_, message))) => message,
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                None => {
                    let last = self.binary.as_mut().and_then(Binary::finish);
                    return Poll::Ready(last.map(Ok));
                }
            };
            let taken = self
                .binary
                .as_mut()
                .and_then(|binary| binary.take(&message));
            match taken {
                Some(Poll::Ready(decoded)) => return Poll::Ready(Some(Ok(decoded))),
                Some(Poll::Pending) => continue,
                None => self.skipped += 1,
            }
            let (count, bytes) = (self.skipped, message.len());
            tracing::warn!(count, bytes, "a binary message was skipped");
            if count >= BINARIES {
                let what = "too many binary messages; only text is taken";
                let fault = connection.refuse(CloseCode::Unsupported, what, cx);
                return Poll::Ready(Some(Err(fault)));
            }
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.connection.lock().poll_silence(true, cx)
    }

    fn ended_cleanly(&self) -> bool {
        self.connection.lock().is_orderly
    }

    fn has_progressed(&mut self) -> bool {
        mem::take(&mut self.connection.lock().has_progressed)
    }

    forward!(self => (); tells_loss);
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> FrameSink for Half<S> {
    forward!(self => self.connection.lock(); poll_ready, poll_flush);

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if frame.is_text() {
            self.connection
                .lock()
                .start_send(Data::Text, frame.into_bytes())
        } else {
            self.start_message(Data::Text, frame.into_bytes())
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> SinkPoll {
        self.connection.lock().poll_close(why, cx)
    }
}

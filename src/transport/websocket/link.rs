//! Frames in and out of one open WebSocket, and the way it is closed.
//!
//! The library does not come in halves, so both share it behind a lock that is never held across
//! a wait; the relay polls both from one task and never contends for it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as Part;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::transport::{
    Farewell, FrameSink, FrameStream, Hold, Link, LinkError, Peer, PeerKind, Setup,
};
use crate::wire::Frame;
use crate::wire::framing::Cut;

/// Longer messages go out in pieces of this size. The library keeps what it sends in one buffer,
/// which never shrinks and is moved with every partial write; whole messages of many megabytes
/// would cost their size for as long as the connection lives.
const PIECE: usize = 128 << 10;
/// Binary messages that are passed over before the link is closed with 1003.
const BINARIES: u32 = 10;
/// Time the peer has to answer our close frame.
const GOODBYE: Duration = Duration::from_secs(2);

/// Makes a link of an open WebSocket.
pub(super) fn link<S>(stream: WebSocketStream<S>, name: String, setup: &Setup) -> Link
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shared = Arc::new(Mutex::new(Shared {
        stream,
        state: State::Open,
        listening: None,
        closing: None,
    }));
    let hold: Box<dyn Hold> = Box::new(());
    Link {
        peer: Peer {
            name,
            half_close: false,
            kind: PeerKind::Remote,
        },
        rx: Box::new(Ear {
            shared: shared.clone(),
            binaries: 0,
            max: setup.limits.frame_from_network,
        }),
        tx: Box::new(Mouth {
            shared,
            rest: Bytes::new(),
            begun: false,
            goodbye: Goodbye::Not,
        }),
        hold,
    }
}

struct Shared<S> {
    stream: WebSocketStream<S>,
    state: State,
    /// Who waits for a message.
    listening: Option<Waker>,
    /// Who waits for the peer's close frame.
    closing: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The peer broke the protocol; we have said so and cannot follow what it says any more.
    Broken,
    /// Nothing more will come.
    Ended,
}

struct Ear<S> {
    shared: Arc<Mutex<Shared<S>>>,
    binaries: u32,
    max: usize,
}

struct Mouth<S> {
    shared: Arc<Mutex<Shared<S>>>,
    /// What is still to be sent of a long message.
    rest: Bytes,
    /// Whether the first piece of it has been sent.
    begun: bool,
    goodbye: Goodbye,
}

/// How far the closing has come.
enum Goodbye {
    Not,
    /// Our close frame is being written.
    Saying(Pin<Box<Sleep>>),
    /// The peer's answer, or the end of its stream, is awaited.
    Hearing(Pin<Box<Sleep>>),
    /// The socket is being shut down.
    Leaving(Pin<Box<Sleep>>),
    Done,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Shared<S> {
    fn end(&mut self, state: State) {
        self.state = state;
        let waiting = [self.listening.take(), self.closing.take()];
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Gives the close frame to the library; a peer that has gone already does not need it.
    fn say_close(&mut self, code: CloseCode, reason: &'static str) {
        let reason = Utf8Bytes::from_static(reason);
        let frame = Message::Close(Some(CloseFrame { code, reason }));
        if let Err(fault) = Pin::new(&mut self.stream).start_send(frame) {
            tracing::debug!(%fault, "no close frame could be sent");
        }
    }

    /// The peer broke the protocol: says so, as far as the socket takes it at once. What is left
    /// of it goes out with `poll_close`.
    fn accuse(&mut self, cx: &mut Context<'_>, code: CloseCode, detail: String) -> LinkError {
        self.say_close(code, "");
        let _ = Pin::new(&mut self.stream).poll_flush(cx);
        self.end(State::Broken);
        LinkError::Protocol {
            protocol: "WebSocket",
            detail,
        }
    }

    /// Reads and forgets what a peer says that we cannot follow. Closing a socket with unread
    /// bytes resets the connection, and the peer would not see our close frame.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = Pin::new(self.stream.get_mut()).poll_read(cx, &mut buffer);
            if ready!(read).is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl<S> FrameStream for Ear<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        let mut shared = lock(&self.shared);
        loop {
            if shared.state != State::Open {
                return Poll::Ready(None);
            }
            let next = match Pin::new(&mut shared.stream).poll_next(cx) {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    remember(&mut shared.listening, cx);
                    return Poll::Pending;
                }
            };
            match next {
                Some(Ok(Message::Text(text))) => {
                    let frame = Frame::new(Bytes::from(text));
                    return Poll::Ready(Some(Ok(Cut::Frame(frame))));
                }
                Some(Ok(Message::Binary(message))) => {
                    self.binaries += 1;
                    let (count, bytes) = (self.binaries, message.len());
                    tracing::warn!(count, bytes, "a binary message was passed over");
                    if self.binaries >= BINARIES {
                        let detail = format!("{BINARIES} binary messages; only text is taken");
                        let fault = shared.accuse(cx, CloseCode::Unsupported, detail);
                        return Poll::Ready(Some(Err(fault)));
                    }
                }
                Some(Ok(Message::Close(_))) => {
                    // Our answer waits in the library and goes out with the next read.
                    let _ = Pin::new(&mut shared.stream).poll_next(cx);
                    shared.end(State::Ended);
                }
                // The library answers pings.
                Some(Ok(_)) => {}
                None => shared.end(State::Ended),
                Some(Err(fault)) => match judge(&fault, self.max) {
                    Judged::Gone => shared.end(State::Ended),
                    Judged::Broken(code, detail) => {
                        return Poll::Ready(Some(Err(shared.accuse(cx, code, detail))));
                    }
                    Judged::Failed => {
                        shared.end(State::Ended);
                        let fault = failed("reading from the peer", fault);
                        return Poll::Ready(Some(Err(fault)));
                    }
                },
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Mouth<S> {
    /// Hands the rest of a long message to the library, piece by piece, each when the one before
    /// has left.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut shared = lock(&self.shared);
        let mut stream = Pin::new(&mut shared.stream);
        loop {
            ready!(stream.as_mut().poll_ready(cx))?;
            if self.rest.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let piece = self.rest.split_to(PIECE.min(self.rest.len()));
            let kind = if self.begun {
                Data::Continue
            } else {
                Data::Text
            };
            self.begun = !self.rest.is_empty();
            let part = Part::message(piece, OpCode::Data(kind), self.rest.is_empty());
            stream.as_mut().start_send(Message::Frame(part))?;
        }
    }

    fn poll_goodbye(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared = lock(&self.shared);
        loop {
            // Every wait but the timer's is given up when the time is over.
            let over = match &mut self.goodbye {
                Goodbye::Saying(timer) | Goodbye::Hearing(timer) | Goodbye::Leaving(timer) => {
                    timer.as_mut().poll(cx).is_ready()
                }
                Goodbye::Not | Goodbye::Done => true,
            };
            if over {
                self.goodbye = Goodbye::Done;
                return Poll::Ready(());
            }
            let heard = match &self.goodbye {
                Goodbye::Saying(_) => {
                    let said = ready!(Pin::new(&mut shared.stream).poll_flush(cx));
                    said.map_err(|fault| tracing::debug!(%fault, "no close frame was sent"))
                        .is_err()
                }
                Goodbye::Hearing(_) => match shared.state {
                    State::Ended => true,
                    State::Broken => {
                        ready!(shared.poll_drain(cx));
                        true
                    }
                    State::Open => match Pin::new(&mut shared.stream).poll_next(cx) {
                        Poll::Ready(Some(Ok(Message::Close(_)) | Err(_)) | None) => {
                            shared.end(State::Ended);
                            true
                        }
                        // Both sides have said all; what comes now is for nobody.
                        Poll::Ready(Some(Ok(_))) => false,
                        Poll::Pending => {
                            remember(&mut shared.closing, cx);
                            return Poll::Pending;
                        }
                    },
                },
                _ => {
                    let _ = ready!(Pin::new(shared.stream.get_mut()).poll_shutdown(cx));
                    true
                }
            };
            self.goodbye = match std::mem::replace(&mut self.goodbye, Goodbye::Done) {
                Goodbye::Saying(timer) if heard => Goodbye::Leaving(timer),
                Goodbye::Saying(timer) => Goodbye::Hearing(timer),
                Goodbye::Hearing(timer) if heard => Goodbye::Leaving(timer),
                Goodbye::Hearing(timer) => Goodbye::Hearing(timer),
                _ => Goodbye::Done,
            };
        }
    }
}

impl<S> FrameSink for Mouth<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.poll_rest(cx).map_err(not_written)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        // RFC 6455, 5.6: a text message is UTF-8. The peer would have to close with 1007.
        if simdutf8::basic::from_utf8(frame.as_bytes()).is_err() {
            return Err(LinkError::Io {
                context: "sending a message that is not UTF-8",
                source: io::ErrorKind::InvalidData.into(),
            });
        }
        if frame.len() > PIECE {
            self.rest = frame.into_bytes();
            return Ok(());
        }
        let whole = Part::message(frame.into_bytes(), OpCode::Data(Data::Text), true);
        let mut shared = lock(&self.shared);
        Pin::new(&mut shared.stream)
            .start_send(Message::Frame(whole))
            .map_err(not_written)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_rest(cx)).map_err(not_written)?;
        let mut shared = lock(&self.shared);
        Pin::new(&mut shared.stream)
            .poll_flush(cx)
            .map_err(not_written)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, why: Farewell) -> Poll<Result<(), LinkError>> {
        if matches!(self.goodbye, Goodbye::Not) {
            let state = lock(&self.shared).state;
            if state == State::Open {
                ready!(self.poll_flush(cx))?;
                let (code, reason) = farewell(why);
                lock(&self.shared).say_close(code, reason);
            }
            self.goodbye = Goodbye::Saying(Box::pin(sleep(GOODBYE)));
        }
        self.poll_goodbye(cx).map(Ok)
    }
}

/// What an error of the library means.
enum Judged {
    /// The peer has gone without a word, as several real ones do.
    Gone,
    /// The peer broke the protocol; the code says how.
    Broken(CloseCode, String),
    /// The operating system failed us.
    Failed,
}

fn judge(fault: &Error, max: usize) -> Judged {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match fault {
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Judged::Gone,
        Error::Io(fault) => match fault.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => Judged::Gone,
            _ => Judged::Failed,
        },
        Error::Capacity(_) => Judged::Broken(
            CloseCode::Size,
            format!("a message longer than {max} bytes"),
        ),
        Error::Utf8(_) => Judged::Broken(
            CloseCode::Invalid,
            "a text message that is not UTF-8".to_owned(),
        ),
        fault => Judged::Broken(CloseCode::Protocol, fault.to_string()),
    }
}

/// The close codes of RFC 6455, 7.4.1.
const fn farewell(why: Farewell) -> (CloseCode, &'static str) {
    match why {
        Farewell::Done => (CloseCode::Normal, ""),
        Farewell::PeerFailed => (CloseCode::Error, "the other side failed"),
        Farewell::Shutdown => (CloseCode::Away, "the relay is going away"),
        Farewell::Violation => (CloseCode::Policy, "protocol violation"),
    }
}

fn not_written(fault: Error) -> LinkError {
    failed("writing to the peer", fault)
}

fn failed(context: &'static str, fault: Error) -> LinkError {
    let source = match fault {
        Error::Io(source) => source,
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(_) => {
            io::ErrorKind::BrokenPipe.into()
        }
        other => io::Error::other(other),
    };
    LinkError::Io { context, source }
}

fn remember(slot: &mut Option<Waker>, cx: &Context<'_>) {
    if !slot
        .as_ref()
        .is_some_and(|waker| waker.will_wake(cx.waker()))
    {
        *slot = Some(cx.waker().clone());
    }
}

fn lock<S>(shared: &Mutex<Shared<S>>) -> MutexGuard<'_, Shared<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

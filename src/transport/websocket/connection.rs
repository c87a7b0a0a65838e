//! An open WebSocket: a `WebSocketStream` of tokio-tungstenite, and what it leaves to its user.
//!
//! That is: giving memory back, sending long messages in fragments, close codes for faults, the
//! closing, and signs of life.
//!
//! # Why
//! **A fresh `WebSocketStream` takes the place of one whose buffers have grown**, once the
//! connection was silent for a second: the library never shrinks a buffer, and most connections are
//! idle most of the time. While a read is pending the library has consumed every whole frame, so
//! that at most part of a head goes over to the next stream.
//!
//! **Long messages go in fragments.** Sent whole, they are copied into one buffer, and each partial
//! write moves what is left of it to the front.

use std::io::{self, ErrorKind};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use super::byte_stream::{ByteStream, READ_BUFFER};
use crate::liveness::{Due, Liveness};
use crate::{CloseReason, LinkError, SinkPoll, closing};
use jsonrpc::Limits;

/// Longer messages are sent in fragments of this size. 64 KiB of text with what is around it is one
/// frame and one system call.
const FRAGMENT: usize = 80 << 10;
/// Bytes that may wait in the library before it writes them.
const WRITE_BUFFER: usize = 64 << 10;
/// Silence after which grown buffers are given back.
const QUIET: Duration = Duration::from_secs(1);
/// Time the peer has to answer our close frame.
const CLOSING: Duration = Duration::from_secs(2);
/// What the library makes of a close frame whose code is not allowed.
const BAD_CLOSE: (CloseCode, &str) = (CloseCode::Protocol, "Protocol violation");

/// A peer has gone without a close frame.
const GONE: [ErrorKind; 4] = [
    ErrorKind::BrokenPipe,
    ErrorKind::ConnectionAborted,
    ErrorKind::ConnectionReset,
    ErrorKind::UnexpectedEof,
];

/// A message of either kind, with its opcode.
pub(super) type Received = (Data, Bytes);
type Next = Poll<Option<Result<Received, LinkError>>>;

/// An open WebSocket.
#[derive(Debug)]
pub(super) struct Connection<S> {
    /// `None` only within [`Connection::renew`].
    stream: Option<WebSocketStream<ByteStream<S>>>,
    role: Role,
    state: State,
    /// The peer has closed with code 1000, or none.
    pub(super) is_orderly: bool,
    /// What is still to be sent of a long message, and the opcode of its next fragment.
    unsent: Option<Received>,
    /// A control frame of the receiving half is to be flushed by it.
    is_owed: bool,
    liveness: Liveness,
    /// Bytes have come since this was last cleared.
    pub(super) has_progressed: bool,
    /// Runs while grown buffers wait to be given back.
    quiet: Option<Pin<Box<Sleep>>>,
    closing: Option<Pin<Box<Sleep>>>,
    receiver: Option<Waker>,
    sender: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The peer broke the protocol and was sent a close frame; it cannot be followed any more.
    Broken,
    /// Nothing more will come.
    Ended,
    /// Both directions are closed.
    Closed,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// `begun` is what was read of the stream behind the handshake.
    pub(super) fn new(io: S, begun: &[u8], role: Role, limits: &Limits) -> Self {
        let max = limits.frame_from_network;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            // Room for a fragment on top of a full buffer, and for pongs of a peer that reads
            // nothing; the library drops further pongs.
            .max_write_buffer_size(2 * WRITE_BUFFER + FRAGMENT)
            .max_message_size(Some(max))
            .max_frame_size(Some(max));
        let mut io = ByteStream::new(io, max);
        let begun = begun[..io.follow(begun)].to_vec();
        Self {
            stream: Some(stream(io, begun, role, config)),
            role,
            state: State::Open,
            is_orderly: false,
            unsent: None,
            is_owed: false,
            liveness: Liveness::new(limits.http_keepalive),
            has_progressed: false,
            quiet: None,
            closing: None,
            receiver: None,
            sender: None,
        }
    }

    fn stream(&mut self) -> &mut WebSocketStream<ByteStream<S>> {
        self.stream.as_mut().expect("renew() puts it back")
    }

    fn io(&mut self) -> &mut ByteStream<S> {
        self.stream().get_mut()
    }

    fn end(&mut self, state: State) {
        self.state = state;
        let waiting = [self.receiver.take(), self.sender.take()];
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// The next message, for the receiving half.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Next {
        if self.is_owed {
            self.flush_control(cx);
        }
        loop {
            if let Poll::Ready(received) = self.poll_receive(cx) {
                return Poll::Ready(received);
            }
            self.receiver = Some(cx.waker().clone());
            if !self.renew(cx) {
                return self.poll_silence(false, cx).map(|lost| Some(Err(lost)));
            }
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Next {
        while self.state == State::Open {
            if self.io().is_all_returned() {
                ready!(self.io().poll_fill(cx));
            }
            let Poll::Ready(received) = self.stream().poll_next_unpin(cx) else {
                self.io().unreturned = 0;
                return Poll::Pending;
            };
            return Poll::Ready(match received {
                Some(Ok(Message::Text(text))) => Some(Ok((Data::Text, self.own(text.into())))),
                Some(Ok(Message::Binary(bytes))) => Some(Ok((Data::Binary, self.own(bytes)))),
                Some(Ok(Message::Close(close))) => self.closed_by(close.as_ref(), cx).map(Err),
                Some(Ok(_)) => continue,
                Some(Err(error)) => self.fault(error, cx).map(Err),
                None => self.fault(Error::ConnectionClosed, cx).map(Err),
            });
        }
        Poll::Ready(None)
    }

    /// Gives a small message memory of its own where it would hold much more of the read buffer
    /// while it waits for a slow reader.
    fn own(&mut self, message: Bytes) -> Bytes {
        let returned = &mut self.io().unreturned;
        *returned = returned.saturating_sub(1);
        let received = self.count_received();
        let is_small = message.len() < READ_BUFFER / 2;
        if is_small && (self.io().has_grown || 4 * message.len() < received) {
            return Bytes::copy_from_slice(&message);
        }
        message
    }

    fn count_received(&mut self) -> usize {
        let received = mem::take(&mut self.io().received);
        self.liveness.received |= received > 0;
        self.has_progressed |= received > 0;
        received
    }

    /// The peer has closed; the library answers. Returns what is wrong with that.
    fn closed_by(&mut self, close: Option<&CloseFrame>, cx: &mut Context<'_>) -> Option<LinkError> {
        self.flush_control(cx);
        let (code, reason) = match close {
            None => (CloseCode::Normal, ""),
            Some(close) => (close.code, close.reason.as_str()),
        };
        if (code, reason) == BAD_CLOSE {
            self.end(State::Broken);
            return Some(broken("a close frame holds no valid code"));
        }
        self.is_orderly = code == CloseCode::Normal;
        self.end(State::Ended);
        // A client's codes are its own business; a server's are the only sign of why it closes.
        let is_server = self.role == Role::Client;
        closing::close_error(code.into(), reason.as_bytes()).filter(|_| is_server)
    }

    /// What ends the connection; `None` when the peer has just gone.
    fn fault(&mut self, error: Error, cx: &mut Context<'_>) -> Option<LinkError> {
        // The byte stream is ahead of the library: other faults may come before that frame.
        let is_too_long = matches!(error, Error::Capacity(_)) || self.io().is_too_long;
        let source = match error {
            Error::Capacity(_) | Error::Io(_) if is_too_long => {
                let what = "a message is longer than --limit frame-from-network allows";
                return Some(self.refuse(CloseCode::Size, what, cx));
            }
            Error::Utf8(_) => {
                return Some(self.refuse(CloseCode::Invalid, "a text that is not UTF-8", cx));
            }
            // Several real peers go without a close frame.
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
            | Error::ConnectionClosed => ErrorKind::UnexpectedEof.into(),
            Error::Protocol(error) => {
                return Some(self.refuse(CloseCode::Protocol, &error.to_string(), cx));
            }
            Error::Io(error) => error,
            error => io::Error::other(error),
        };
        self.end(State::Ended);
        // A server does not go without a close frame unless something has happened to it.
        let is_fault = self.role == Role::Client || !GONE.contains(&source.kind());
        let context = "reading from the peer";
        is_fault.then_some(LinkError::Io { context, source })
    }

    /// Closes the connection because of what the peer sent. What the socket does not take at once
    /// goes with `poll_close`.
    pub(super) fn refuse(
        &mut self,
        code: CloseCode,
        what: &str,
        cx: &mut Context<'_>,
    ) -> LinkError {
        self.send_close(code, what);
        self.flush_control(cx);
        self.end(State::Broken);
        broken(what)
    }

    fn send_close(&mut self, code: CloseCode, reason: &str) {
        let reason = reason.into();
        self.send_control(Message::Close(Some(CloseFrame { code, reason })));
    }

    fn send_control(&mut self, message: Message) {
        self.io().is_unflushed = true;
        if let Err(error) = self.stream().start_send_unpin(message) {
            tracing::debug!(%error, "a control frame was not sent");
        }
    }

    /// Flushes a control frame for the receiving half, unless the sending half waits for the
    /// socket: then that flushes it, and its waker must stay in its place.
    fn flush_control(&mut self, cx: &mut Context<'_>) {
        if self.io().is_blocked && !self.is_owed {
            return;
        }
        // A fault shows where the peer is read.
        self.is_owed = self.stream().poll_flush_unpin(cx).is_pending();
    }

    /// Takes a fresh stream after a second of silence, where a buffer has grown. Called while a
    /// read is pending.
    fn renew(&mut self, cx: &mut Context<'_>) -> bool {
        let (role, config) = (self.role, *self.stream().get_config());
        let io = self.io();
        if !io.has_grown || io.is_unflushed || io.part_of_head().is_none() {
            return false;
        }
        let mut quiet = self.quiet.take().unwrap_or_else(|| {
            self.io().is_active = false;
            Box::pin(sleep(QUIET))
        });
        while quiet.as_mut().poll(cx).is_ready() {
            if mem::take(&mut self.io().is_active) {
                quiet.as_mut().reset(Instant::now() + QUIET);
                continue;
            }
            if let Some(old) = self.stream.take() {
                let mut io = old.into_inner();
                io.has_grown = false;
                let part = io.part_of_head().unwrap_or_default().to_vec();
                self.stream = Some(stream(io, part, role, config));
            }
            return true;
        }
        self.quiet = Some(quiet);
        false
    }

    /// Sends the pings that are due; ready when the peer was silent for too long. A peer that is
    /// not read (`paused`), or whose socket is full, is not judged.
    pub(super) fn poll_silence(&mut self, paused: bool, cx: &mut Context<'_>) -> Poll<LinkError> {
        while self.state == State::Open {
            self.count_received();
            let is_full = self.io().is_blocked;
            match ready!(self.liveness.poll(paused || is_full, cx)) {
                Due::Ping => self.send_control(Message::Ping(Bytes::new())),
                Due::Pong if is_full => {}
                Due::Pong => self.send_control(Message::Pong(Bytes::new())),
                Due::Loss => {
                    self.end(State::Ended);
                    return Poll::Ready(self.liveness.loss());
                }
            }
            self.flush_control(cx);
        }
        Poll::Pending
    }

    /// Gives a message, after [`Connection::poll_ready`] was ready.
    pub(super) fn start_send(&mut self, kind: Data, message: Bytes) -> Result<(), LinkError> {
        self.unsent = Some((kind, message));
        self.send_fragment().map_err(failed)
    }

    /// Gives the next fragment, or all of a short message, to the library.
    fn send_fragment(&mut self) -> Result<(), Error> {
        let Some((opcode, rest)) = &mut self.unsent else {
            return Ok(());
        };
        let payload = rest.split_to(rest.len().min(FRAGMENT));
        let opcode = OpCode::Data(mem::replace(opcode, Data::Continue));
        let is_final = rest.is_empty();
        if is_final {
            self.unsent = None;
        }
        self.io().is_unflushed = true;
        let frame = Frame::message(payload, opcode, is_final);
        self.stream().start_send_unpin(Message::Frame(frame))
    }

    /// Gives all fragments to the library; ready when the socket has taken enough.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        loop {
            if self.state != State::Open {
                return Poll::Ready(Err(failed(Error::ConnectionClosed)));
            }
            if self.io().is_blocked {
                // From here on it is the sending half that waits for the socket.
                self.is_owed = false;
                ready!(self.stream().poll_flush_unpin(cx)).map_err(failed)?;
            }
            if self.unsent.is_none() {
                return Poll::Ready(Ok(()));
            }
            self.send_fragment().map_err(failed)?;
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        ready!(self.poll_ready(cx))?;
        self.is_owed = false;
        ready!(self.stream().poll_flush_unpin(cx)).map_err(failed)?;
        // The timer of `renew` runs where the receiving half waits.
        if self.io().has_grown
            && self.quiet.is_none()
            && let Some(receiver) = self.receiver.take()
        {
            receiver.wake();
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_close(&mut self, why: CloseReason, cx: &mut Context<'_>) -> SinkPoll {
        if self.closing.is_none() {
            if self.state == State::Open {
                let flushed = ready!(self.poll_flush(cx));
                // The peer may have closed meanwhile.
                if self.state == State::Open {
                    flushed?;
                    let (code, reason) = closing::code(why);
                    self.send_close(code.into(), reason);
                }
            }
            self.closing = Some(Box::pin(sleep(CLOSING)));
        }
        if self.state != State::Closed {
            let timer = self.closing.as_mut().map(|timer| timer.as_mut().poll(cx));
            if timer.is_some_and(|timer| timer.is_pending()) {
                ready!(self.poll_last(cx));
            }
            self.end(State::Closed);
        }
        Poll::Ready(Ok(()))
    }

    /// Sends our close frame, waits for the peer's, and shuts the socket down.
    fn poll_last(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sender = Some(cx.waker().clone());
        let flushed = self.stream().poll_flush_unpin(cx);
        if let Poll::Ready(Err(error)) = &flushed {
            tracing::debug!(%error, "no close frame was sent");
        } else {
            // Messages are dropped: a peer that does not read before it has written must not be
            // waited for.
            while self.state == State::Open {
                ready!(self.poll_receive(cx));
            }
            let _ = ready!(flushed);
        }
        let mut drains = self.state == State::Broken;
        let io = &mut self.io().io;
        let _ = ready!(Pin::new(&mut *io).poll_shutdown(cx));
        // Closing a socket with unread bytes resets the connection, and the peer would not see our
        // close frame.
        let mut room = [0; 4 << 10];
        while drains {
            let mut buffer = ReadBuf::new(&mut room);
            let read = ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer));
            drains = read.is_ok() && !buffer.filled().is_empty();
        }
        Poll::Ready(())
    }
}

/// A fresh `WebSocketStream`. `part` is what was read and not consumed.
fn stream<S: AsyncRead + AsyncWrite + Unpin>(
    io: ByteStream<S>,
    part: Vec<u8>,
    role: Role,
    config: WebSocketConfig,
) -> WebSocketStream<ByteStream<S>> {
    let stream = WebSocketStream::from_partially_read(io, part, role, Some(config));
    stream.now_or_never().expect("it waits for nothing")
}

fn broken(what: &str) -> LinkError {
    LinkError::Protocol {
        protocol: "WebSocket",
        detail: what.to_owned(),
    }
}

fn failed(error: Error) -> LinkError {
    let source = match error {
        Error::Io(error) => error,
        _ => ErrorKind::BrokenPipe.into(),
    };
    let context = "writing to the peer";
    LinkError::Io { context, source }
}

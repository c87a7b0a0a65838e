//! What the peer of a WebSocket says.
//!
//! Pings and the peer's close frame are answered here, for nobody asks the mouth to speak while
//! the relay has nothing to say. The mouth listens in when it has closed and waits for the answer;
//! that is why the reading side is behind a lock, taken once for each message. Not here: bytes
//! into messages (see `assembly`).
//!
//! # Why
//! **Code 1000, or none, is the end of a client that wants no more; any other end may be a break.**
//! It is what the official SDKs send when a program closes its connection (TypeScript and Rust no
//! code, Python and acpremote 1000), where over HTTP they send DELETE. A page that is reloaded says
//! 1001, a process that is killed nothing.
//!
//! **A server's other codes are said to whoever waits.** They are all that tells an editor why its
//! agent has gone: 4401 of a relay, 1011 of a server that failed.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use super::assembly::{Assembly, Heard, Kind};
use super::frame::{Broken, Role};
use super::liveness::{Due, Liveness};
use super::voice::Voice;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Frame, Limits};
use crate::transport::stream::Intake;
use crate::transport::{FrameStream, LinkError, parting};

/// Binary messages that are passed over before the link is closed with 1003.
const BINARIES: u32 = 10;

/// The receiving half of a WebSocket.
#[derive(Debug)]
pub struct Ear<R, W> {
    shared: Arc<Shared<R, W>>,
    binaries: u32,
}

/// What the two halves share. Where both locks are taken, `hearing` is first.
#[derive(Debug)]
pub(super) struct Shared<R, W> {
    pub(super) hearing: Mutex<Hearing<R>>,
    pub(super) voice: Mutex<Voice<W>>,
}

/// The reading side of the socket.
#[derive(Debug)]
pub(super) struct Hearing<R> {
    /// Which side we are.
    role: Role,
    intake: Intake<R>,
    assembly: Assembly,
    liveness: Liveness,
    pub(super) state: State,
    /// The peer has closed, and wants no more.
    purpose: bool,
    /// Whether an answer is to be written that the socket did not take.
    owes: bool,
    /// Who waits for a message.
    listening: Option<Waker>,
    /// Who waits for the peer's close frame.
    closing: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// The peer broke the protocol; we have said so and cannot follow what it says any more.
    Broken,
    /// Nothing more will come.
    Ended,
}

impl<R, W> Ear<R, W> {
    pub(super) fn new(shared: Arc<Shared<R, W>>) -> Self {
        let binaries = 0;
        Self { shared, binaries }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Ear<R, W> {
    /// The next message of either kind. For those who want more than the relay, which takes only
    /// text.
    pub fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Kind, Bytes), LinkError>>> {
        let mut hearing = self.shared.hearing.lock();
        hearing.poll_listen(&self.shared.voice, cx)
    }
}

impl<R, W> FrameStream for Ear<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        loop {
            let mut hearing = self.shared.hearing.lock();
            let bytes = match ready!(hearing.poll_listen(&self.shared.voice, cx)) {
                Some(Ok((Kind::Text, text))) => {
                    return Poll::Ready(Some(Ok(Cut::Frame(Frame::new(text)))));
                }
                Some(Ok((Kind::Binary, message))) => message.len(),
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                None => return Poll::Ready(None),
            };
            self.binaries += 1;
            let count = self.binaries;
            tracing::warn!(count, bytes, "a binary message was passed over");
            if count >= BINARIES {
                let broken = Broken {
                    code: 1003,
                    what: "too many binary messages; only text is taken",
                };
                let fault = hearing.accuse(broken, &self.shared.voice, cx);
                return Poll::Ready(Some(Err(fault)));
            }
        }
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        let mut hearing = self.shared.hearing.lock();
        hearing.poll_silence(true, &self.shared.voice, cx)
    }

    fn ended_on_purpose(&self) -> bool {
        self.shared.hearing.lock().purpose
    }
}

/// A message of a peer.
type Said = (Kind, Bytes);

impl<R> Hearing<R> {
    /// `begun` is what was read of the stream before.
    pub(super) fn new(io: R, begun: BytesMut, role: Role, limits: &Limits) -> Self {
        Self {
            intake: Intake::new(io, begun),
            role,
            assembly: Assembly::new(role, limits.frame_from_network),
            liveness: Liveness::new(limits.http_keepalive),
            state: State::Open,
            purpose: false,
            owes: false,
            listening: None,
            closing: None,
        }
    }

    fn end(&mut self, state: State) {
        self.state = state;
        self.intake.done();
        let waiting = [self.listening.take(), self.closing.take()];
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl<R: AsyncRead + Unpin> Hearing<R> {
    /// The next message, for the ear.
    fn poll_listen<W: AsyncWrite + Unpin>(
        &mut self,
        voice: &Mutex<Voice<W>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Said, LinkError>>> {
        let heard = self.poll_heard(voice, cx);
        if heard.is_pending() {
            remember(&mut self.listening, cx);
        }
        heard
    }

    /// Reads and forgets what is still said, until the peer has closed; for the mouth.
    pub(super) fn poll_last_words<W: AsyncWrite + Unpin>(
        &mut self,
        voice: &Mutex<Voice<W>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            match self.poll_heard(voice, cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => {
                    remember(&mut self.closing, cx);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Reads and forgets what a peer says that we cannot follow, until it hangs up. Closing a
    /// socket with unread bytes resets the connection, and the peer would not see our close frame.
    pub(super) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.intake.buffer.clear();
            match ready!(self.intake.poll_read(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {}
            }
        }
    }

    fn poll_heard<W: AsyncWrite + Unpin>(
        &mut self,
        voice: &Mutex<Voice<W>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Said, LinkError>>> {
        loop {
            if self.state != State::Open {
                return Poll::Ready(None);
            }
            let said = match self.assembly.next(&mut self.intake.buffer) {
                Ok(None) => None,
                Ok(Some(Heard::Message(kind, message))) => Some((kind, message)),
                Ok(Some(Heard::Shared(kind, message))) => {
                    Some((kind, self.intake.memory.share(message)))
                }
                Ok(Some(Heard::Ping(payload))) => {
                    voice.lock().pong(&payload);
                    self.owes = true;
                    continue;
                }
                Ok(Some(Heard::Pong)) => continue,
                Ok(Some(Heard::Close(payload))) => {
                    self.purpose = is_farewell(&payload);
                    // Its code is echoed, as is usual (5.5.1).
                    voice.lock().close(&payload[..payload.len().min(2)]);
                    self.answer(voice, cx);
                    self.end(State::Ended);
                    if self.role == Role::Client
                        && let Some(fault) = complaint(&payload)
                    {
                        return Poll::Ready(Some(Err(fault)));
                    }
                    continue;
                }
                Err(broken) => return Poll::Ready(Some(Err(self.accuse(broken, voice, cx)))),
            };
            if self.owes {
                self.answer(voice, cx);
            }
            if let Some(said) = said {
                return Poll::Ready(Some(Ok(said)));
            }
            let Poll::Ready(more) = self.poll_more(cx) else {
                let lost = ready!(self.poll_silence(false, voice, cx));
                return Poll::Ready(Some(Err(lost)));
            };
            match more {
                Ok(Ok(())) => self.liveness.received = true,
                Ok(Err(broken)) => return Poll::Ready(Some(Err(self.accuse(broken, voice, cx)))),
                Err(source) => {
                    self.end(State::Ended);
                    // A server does not go without a word unless something has happened to it.
                    if self.role == Role::Client || !is_gone(&source) {
                        let context = "reading from the peer";
                        return Poll::Ready(Some(Err(LinkError::Io { context, source })));
                    }
                }
            }
        }
    }

    /// Reads once.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Result<(), Broken>>> {
        if self.intake.buffer.is_empty()
            && let Some((target, most)) = self.assembly.room()
        {
            let read = ready!(self.intake.poll_read_past(target, most, cx))?;
            if read > 0 {
                return Poll::Ready(Ok(self.assembly.filled(read)));
            }
        } else {
            let Poll::Ready(read) = self.intake.poll_read(cx) else {
                self.intake.rest(cx);
                return Poll::Pending;
            };
            if read? > 0 {
                return Poll::Ready(Ok(Ok(())));
            }
        }
        // Several real peers go without a close frame.
        Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Sends the pings that are due; ready when the peer has been silent for too long. While it is
    /// not read (`paused`) or its socket is full, it is not judged.
    fn poll_silence<W: AsyncWrite + Unpin>(
        &mut self,
        paused: bool,
        voice: &Mutex<Voice<W>>,
        cx: &mut Context<'_>,
    ) -> Poll<LinkError> {
        while self.state == State::Open {
            let full = voice.lock().is_full();
            match ready!(self.liveness.poll(paused || full, cx)) {
                Due::Ping => voice.lock().ping(),
                Due::Pong if full => {}
                Due::Pong => voice.lock().pong(&[]),
                Due::Loss => {
                    self.end(State::Ended);
                    let silent = 2 * self.liveness.interval;
                    let what = format!(
                        "it was silent for {silent:?} and did not answer a ping; it hangs, or a \
                         tunnel, proxy or network on the way does. Check these and connect again"
                    );
                    return Poll::Ready(LinkError::Io {
                        context: "waiting for the peer",
                        source: io::Error::new(io::ErrorKind::TimedOut, what),
                    });
                }
            }
            self.answer(voice, cx);
        }
        Poll::Pending
    }

    /// Writes what is owed, as far as the socket takes it at once.
    fn answer<W: AsyncWrite + Unpin>(&mut self, voice: &Mutex<Voice<W>>, cx: &mut Context<'_>) {
        self.owes = match voice.lock().poll_answer(cx) {
            Poll::Pending => true,
            Poll::Ready(answered) => {
                if let Err(fault) = answered {
                    tracing::debug!(%fault, "a control frame was not sent");
                }
                false
            }
        };
    }

    /// The peer broke the protocol: says so. What the socket does not take goes with `poll_close`.
    fn accuse<W: AsyncWrite + Unpin>(
        &mut self,
        Broken { code, what }: Broken,
        voice: &Mutex<Voice<W>>,
        cx: &mut Context<'_>,
    ) -> LinkError {
        let said = [&code.to_be_bytes()[..], what.as_bytes()].concat();
        voice.lock().close(&said);
        self.answer(voice, cx);
        self.end(State::Broken);
        LinkError::Protocol {
            protocol: "WebSocket",
            detail: what.to_owned(),
        }
    }
}

/// Whether a close frame says that its sender is done.
fn is_farewell(payload: &[u8]) -> bool {
    payload.is_empty() || payload.starts_with(&1000_u16.to_be_bytes())
}

/// What is wrong, when a server's close frame says that something is.
fn complaint(payload: &[u8]) -> Option<LinkError> {
    let (code, why) = payload.split_first_chunk()?;
    parting::complaint(u16::from_be_bytes(*code), why)
}

/// Whether the peer has gone without a word.
fn is_gone(fault: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        fault.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

fn remember(slot: &mut Option<Waker>, cx: &Context<'_>) {
    if !slot
        .as_ref()
        .is_some_and(|waker| waker.will_wake(cx.waker()))
    {
        *slot = Some(cx.waker().clone());
    }
}

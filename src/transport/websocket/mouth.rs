//! What we say over a WebSocket: one frame for each message, and the closing.
//!
//! A batch of small messages is one write. A server passes a large one on without a copy; a client
//! has to mask it, which is done piece by piece as the socket takes it, so that its memory is
//! bounded. Not here: pongs (see `voice`), and which message comes next (see `relay`).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep};

use super::assembly::Kind;
use super::ear::{Shared, State};
use super::frame::{Header, LONGEST_HEADER, Mask, Opcode, Role};
use super::masks::Masks;
use crate::jsonrpc::Frame;
use crate::transport::stream::{BOUND, LARGE, Pile};
use crate::transport::{Farewell, FrameSink, LinkError, parting};

/// A client's longer messages are masked in pieces of this size.
const PIECE: usize = 64 << 10;
/// Time the peer has to answer our close frame.
const GOODBYE: Duration = Duration::from_secs(2);

/// The sending half of a WebSocket.
#[derive(Debug)]
pub struct Mouth<R, W> {
    shared: Arc<Shared<R, W>>,
    role: Role,
    masks: Masks,
    pile: Pile,
    /// What is still to be masked of a long message.
    rest: Option<(Bytes, Mask)>,
    /// Whether what waits was begun: the socket may be within a frame.
    begun: bool,
    goodbye: Option<(Goodbye, Pin<Box<Sleep>>)>,
    gone: bool,
}

/// How far the closing has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goodbye {
    /// Our close frame is being written.
    Saying,
    /// The peer's answer, or the end of its stream, is awaited.
    Hearing,
    /// The socket is being shut down.
    Leaving,
    /// The peer did not follow the protocol; it is to hang up.
    Draining,
}

impl<R, W> Mouth<R, W> {
    pub(super) fn new(shared: Arc<Shared<R, W>>, role: Role) -> Self {
        Self {
            shared,
            role,
            masks: Masks::new(),
            pile: Pile::default(),
            rest: None,
            begun: false,
            goodbye: None,
            gone: false,
        }
    }

    /// Gives a message of either kind, as `start_send` gives a frame.
    ///
    /// # Errors
    /// When a text is not UTF-8, which the peer would have to answer with 1007 (RFC 6455, 8.1);
    /// nothing is sent then.
    pub fn start_message(&mut self, kind: Kind, message: Bytes) -> Result<(), LinkError> {
        if kind == Kind::Text && simdutf8::basic::from_utf8(&message).is_err() {
            return Err(LinkError::Io {
                context: "sending a message that is not UTF-8",
                source: io::ErrorKind::InvalidData.into(),
            });
        }
        self.lay(kind, message)
    }

    /// Lays a message behind all that waits.
    fn lay(&mut self, kind: Kind, message: Bytes) -> Result<(), LinkError> {
        let mask = match self.role {
            Role::Server => None,
            Role::Client => Some(self.masks.next().map_err(failed)?),
        };
        let header = Header {
            last: true,
            opcode: match kind {
                Kind::Text => Opcode::Text,
                Kind::Binary => Opcode::Binary,
            },
            mask,
            length: message.len() as u64,
        };
        let tail = &mut self.pile.tail;
        if message.len() < LARGE {
            tail.reserve(LONGEST_HEADER + message.len());
        }
        header.encode(tail);
        match mask {
            Some(mask) => {
                self.rest = Some((message, mask));
                self.lay_piece();
            }
            None if message.len() >= LARGE => self.pile.push(message),
            None => tail.extend_from_slice(&message),
        }
        Ok(())
    }

    /// Masks the next piece of a long message.
    fn lay_piece(&mut self) {
        let Some((message, mask)) = &mut self.rest else {
            return;
        };
        let tail = &mut self.pile.tail;
        let from = tail.len();
        let length = message.len().min(PIECE);
        tail.extend_from_slice(&message[..length]);
        mask.apply(&mut tail[from..]);
        message.advance(length);
        if message.is_empty() {
            self.rest = None;
        }
    }
}

impl<R, W: AsyncWrite + Unpin> Mouth<R, W> {
    /// Writes until no more than `left` bytes wait, and what the ear has left for us.
    fn poll_write_down(&mut self, cx: &mut Context<'_>, left: usize) -> Poll<io::Result<()>> {
        let shared = self.shared.clone();
        let mut voice = shared.voice.lock();
        // From here on it is the mouth that waits for the socket.
        voice.engaged = true;
        loop {
            if !self.begun {
                ready!(voice.poll_answers(cx))?;
                if voice.is_closed() {
                    voice.engaged = false;
                    return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                }
            }
            if self.pile.waiting() < PIECE {
                self.lay_piece();
            }
            if self.pile.waiting() <= left && self.rest.is_none() {
                voice.engaged = self.begun;
                return Poll::Ready(Ok(()));
            }
            ready!(self.pile.poll_write(&mut voice.io, cx))?;
            self.begun = self.pile.waiting() > 0 || self.rest.is_some();
        }
    }

    fn poll_flush_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_down(cx, 0))?;
        self.pile.shrink();
        self.shared.voice.lock().poll_flush(cx)
    }

    /// Sends our close frame, behind what was begun.
    fn poll_say_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = ready!(self.poll_write_down(cx, 0));
        let mut voice = self.shared.voice.lock();
        if !voice.is_said() {
            return Poll::Ready(written);
        }
        voice.poll_flush(cx)
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Mouth<R, W> {
    fn poll_goodbye(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        while let Some((stage, timer)) = &mut self.goodbye {
            let stage = *stage;
            // Every wait but the timer's is given up when the time is over.
            if timer.as_mut().poll(cx).is_ready() {
                break;
            }
            let next = match stage {
                Goodbye::Saying => {
                    // A peer that does not read before it has written must not be waited for.
                    let _ = shared.hearing.lock().poll_last_words(&shared.voice, cx);
                    match ready!(self.poll_say_close(cx)) {
                        Ok(()) => Goodbye::Hearing,
                        Err(fault) => {
                            tracing::debug!(%fault, "no close frame was sent");
                            Goodbye::Leaving
                        }
                    }
                }
                Goodbye::Hearing => {
                    ready!(shared.hearing.lock().poll_last_words(&shared.voice, cx));
                    Goodbye::Leaving
                }
                Goodbye::Leaving => {
                    let _ = ready!(Pin::new(&mut shared.voice.lock().io).poll_shutdown(cx));
                    if shared.hearing.lock().state != State::Broken {
                        break;
                    }
                    Goodbye::Draining
                }
                Goodbye::Draining => {
                    ready!(shared.hearing.lock().poll_drain(cx));
                    break;
                }
            };
            if let Some((stage, _)) = &mut self.goodbye {
                *stage = next;
            }
        }
        self.goodbye = None;
        self.gone = true;
        self.pile = Pile::default();
        self.rest = None;
        Poll::Ready(())
    }
}

impl<R, W> FrameSink for Mouth<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if self.rest.is_none() && self.pile.waiting() <= BOUND {
            return Poll::Ready(Ok(()));
        }
        self.poll_write_down(cx, BOUND).map_err(failed)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if frame.is_text() {
            self.lay(Kind::Text, frame.into_bytes())
        } else {
            self.start_message(Kind::Text, frame.into_bytes())
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.poll_flush_all(cx).map_err(failed)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, why: Farewell) -> Poll<Result<(), LinkError>> {
        if self.gone {
            return Poll::Ready(Ok(()));
        }
        if self.goodbye.is_none() {
            if !self.shared.voice.lock().is_closed() {
                let flushed = ready!(self.poll_flush_all(cx));
                // The peer may have closed meanwhile.
                if let Err(fault) = flushed
                    && !self.shared.voice.lock().is_closed()
                {
                    return Poll::Ready(Err(failed(fault)));
                }
                let (code, reason) = parting::code(why);
                let said = [&code.to_be_bytes()[..], reason.as_bytes()].concat();
                self.shared.voice.lock().close(&said);
            }
            self.goodbye = Some((Goodbye::Saying, Box::pin(sleep(GOODBYE))));
        }
        self.poll_goodbye(cx).map(Ok)
    }
}

fn failed(source: io::Error) -> LinkError {
    let context = "writing to the peer";
    LinkError::Io { context, source }
}

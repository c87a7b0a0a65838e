//! A pair of links in this process.
//!
//! It behaves as a transport: bounded, ordered, half-closable, and with a limit on the length of a
//! message. Frames are passed without a byte stream.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Frame, FrameError, FrameFault, IdBuf, Limits};
use acp_relay::transport::{CloseReason, FrameSink, FrameStream, Link, LinkError, Peer, PeerKind};
use parking_lot::Mutex;

/// Bytes that may be queued, beyond one frame.
const MAX_BYTES: usize = 64 << 10;
/// Frames that may be queued.
const MAX_FRAMES: usize = 256;

/// One direction.
#[derive(Debug, Default)]
struct Direction {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The sender has closed the stream or was dropped.
    ended: bool,
    /// The receiver was dropped.
    receiver_dropped: bool,
    receiver: Option<Waker>,
    sender: Option<Waker>,
}

type Shared = Arc<Mutex<Direction>>;

struct Receiver {
    direction: Shared,
    max: usize,
}

struct Sender {
    direction: Shared,
}

/// Two connected links.
pub(crate) fn pair(limits: &Limits) -> (Link, Link) {
    let (there, back) = (Shared::default(), Shared::default());
    let end = |rx: &Shared, tx: &Shared, name: &str| Link {
        peer: Peer {
            name: format!("memory:{name}"),
            half_close: true,
            kind: PeerKind::Remote,
            principal: None,
            wanted_agent: None,
            longest: usize::MAX,
            is_direct: false,
        },
        rx: Box::new(Receiver {
            direction: rx.clone(),
            max: limits.frame_from_network,
        }),
        tx: Box::new(Sender {
            direction: tx.clone(),
        }),
        guard: Box::new(()),
        login: None,
        sessions: None,
    };
    (end(&back, &there, "left"), end(&there, &back, "right"))
}

impl Direction {
    fn wake_receiver(&mut self) {
        if let Some(waker) = self.receiver.take() {
            waker.wake();
        }
    }

    fn wake_sender(&mut self) {
        if let Some(waker) = self.sender.take() {
            waker.wake();
        }
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let mut direction = self.direction.lock();
        let Some(frame) = direction.frames.pop_front() else {
            if direction.ended {
                return Poll::Ready(None);
            }
            direction.receiver = Some(cx.waker().clone());
            return Poll::Pending;
        };
        direction.bytes -= frame.len();
        direction.wake_sender();
        let cut = if frame.len() > self.max {
            Decoded::Error(Box::new(FrameError {
                fault: FrameFault::TooLong { limit: self.max },
                at: self.max,
                id: IdBuf::default(),
                role: None,
                json_like: frame.as_bytes().first().is_some_and(|b| b"{[".contains(b)),
            }))
        } else {
            Decoded::Frame(frame)
        };
        Poll::Ready(Some(Ok(cut)))
    }

    fn poll_lost(&mut self, _cx: &mut Context<'_>) -> Poll<LinkError> {
        Poll::Pending
    }

    fn ended_cleanly(&self) -> bool {
        true
    }

    fn has_progressed(&mut self) -> bool {
        false
    }

    fn tells_loss(&self) -> bool {
        false
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut direction = self.direction.lock();
        if direction.receiver_dropped {
            return Poll::Ready(Err(disconnected()));
        }
        if direction.frames.len() >= MAX_FRAMES || direction.bytes >= MAX_BYTES {
            direction.sender = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let mut direction = self.direction.lock();
        if direction.receiver_dropped || direction.ended {
            return Err(disconnected());
        }
        direction.bytes += frame.len();
        direction.frames.push_back(frame);
        direction.wake_receiver();
        Ok(())
    }

    // Queued frames can be read by the peer, so they count as flushed.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let direction = self.direction.lock();
        if direction.receiver_dropped && !direction.frames.is_empty() {
            return Poll::Ready(Err(disconnected()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        {
            let mut direction = self.direction.lock();
            direction.ended = true;
            direction.wake_receiver();
        }
        self.poll_flush(cx)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut direction = self.direction.lock();
        direction.receiver_dropped = true;
        direction.wake_sender();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut direction = self.direction.lock();
        direction.ended = true;
        direction.wake_receiver();
    }
}

fn disconnected() -> LinkError {
    LinkError::Io {
        context: "writing to the peer",
        source: io::ErrorKind::BrokenPipe.into(),
    }
}

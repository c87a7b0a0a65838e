//! A link: one live connection to one side, as a stream of incoming and a sink of outgoing frames,
//! with a guard for the resources behind it.
//!
//! Every transport yields links, and the proxy uses nothing else of transports. The traits are
//! poll-based because one task owns a whole conversation: nothing is in flight across an await, so
//! cancelling loses nothing.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::LoginEnd;
use auth::Principal;
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Exit, Frame, FrameError};

/// How far a sink is.
pub type SinkPoll = Poll<Result<(), LinkError>>;

/// One live connection to one side.
pub struct Link {
    /// The peer, for logs.
    pub peer: Peer,
    /// The frames from the peer.
    pub rx: Box<dyn FrameStream>,
    /// The frames to the peer.
    pub tx: Box<dyn FrameSink>,
    /// Keeps resources alive as long as the link: a child process, a socket file.
    pub guard: Box<dyn LinkGuard>,
    /// The relay's part in the logins of an agent.
    pub login: Option<LoginEnd>,
    /// Claims the sessions of a client, where other relays may have them.
    pub sessions: Option<Box<dyn SessionClaims>>,
}

/// Claims sessions, one after the other.
pub trait SessionClaims: Send {
    /// Begins to claim a session.
    fn claim(&mut self, session: &str);
    /// Ready when that is done; the error says why it is not.
    fn poll_claimed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>>;
    /// Gives up the claim of a session.
    fn release(&mut self, session: &str);
}

/// The program at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, for a person: `ws://127.0.0.1:50122`, `process 4711 (goose)`.
    pub name: String,
    /// Whether one direction can end while the other continues.
    pub half_close: bool,
    /// Its relation to this process.
    pub kind: PeerKind,
    /// Its principal, if it connected to a listener with a gate. `None` for a peer that this
    /// process has started or connected to, and for the parent process.
    pub principal: Option<Arc<Principal>>,
    /// The agent that it requests by name, where agents have names.
    pub wanted_agent: Option<Arc<str>>,
    /// The longest message that it takes, if it has announced that; see also [`LinkGuard::longest`].
    pub longest: usize,
    /// Whether it is connected, as far as that shows, without anything in between.
    pub is_direct: bool,
}

impl Link {
    /// A link of these parts.
    pub fn new(
        peer: Peer,
        rx: impl FrameStream + 'static,
        tx: impl FrameSink + 'static,
        guard: impl LinkGuard + 'static,
    ) -> Self {
        let (rx, tx, guard) = (Box::new(rx), Box::new(tx), Box::new(guard));
        Self {
            peer,
            rx,
            tx,
            guard,
            login: None,
            sessions: None,
        }
    }

    /// The next item from the peer.
    pub async fn receive(&mut self) -> Option<Result<Decoded, LinkError>> {
        poll_fn(|cx| self.rx.poll_next(cx)).await
    }

    /// Sends a frame and waits until it is flushed.
    pub async fn send(&mut self, frame: Frame) -> Result<(), LinkError> {
        poll_fn(|cx| self.tx.poll_ready(cx)).await?;
        self.tx.start_send(frame)?;
        poll_fn(|cx| self.tx.poll_flush(cx)).await
    }

    /// Ends the stream to the peer.
    pub async fn close(&mut self, why: CloseReason) -> Result<(), LinkError> {
        poll_fn(|cx| self.tx.poll_close(cx, why)).await
    }
}

impl Peer {
    /// A program of which only the address is known.
    pub const fn remote(name: String, half_close: bool) -> Self {
        Self {
            name,
            half_close,
            kind: PeerKind::Remote,
            principal: None,
            wanted_agent: None,
            longest: usize::MAX,
            is_direct: false,
        }
    }
}

/// The relation of a peer to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    /// The parent process; it receives the exit code.
    Parent,
    /// A child process; its exit is observed.
    Child,
    /// A recording that plays the agent, mistakes included.
    Replayed,
    /// An ACP client in this process, on behalf of clients of another protocol. It uses canonical
    /// ACP, whatever dialect the listener's other clients use.
    Internal,
    /// A program of the same user on this machine, over a Unix socket.
    SameUser,
    /// Another relay's connection that carries a resumable link, which ends elsewhere.
    Carrier,
    /// Anything else.
    Remote,
}

/// The frames from a peer. Cancel-safe: a dropped poll loses nothing. `()` has ended.
pub trait FrameStream: Send {
    /// The next frame or framing error; `None` when the peer has ended its stream.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>>;
    /// The error that ended the link, if it shows without reading. Polled while the side is not
    /// read.
    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError>;
    /// Whether the peer ended its stream deliberately, rather than by a broken connection.
    fn ended_cleanly(&self) -> bool;
    /// Whether bytes have come since the last call, of whole messages or of a part of one.
    fn has_progressed(&mut self) -> bool;
    /// Whether [`FrameStream::ended_cleanly`] also distinguishes a peer that is gone from one that
    /// has ended its stream and still reads.
    fn tells_loss(&self) -> bool;
}

/// The frames to a peer, in order. `()` drops them.
pub trait FrameSink: Send {
    /// Ready when another frame is accepted; until then it writes queued frames to the peer.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll;
    /// Queues a frame. Only after `poll_ready` was ready; the queue is bounded.
    ///
    /// # Errors
    /// When the peer is lost.
    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError>;
    /// Ready when all queued frames have left the process.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> SinkPoll;
    /// Flushes, then ends the stream to the peer: end of file, or a close frame with the reason
    /// `why`.
    fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> SinkPoll;
}

/// The resources of a link. Dropping it releases them at once and completely. `()` has none.
pub trait LinkGuard: Send {
    /// Ready when the process behind the link has exited. Other links are never ready.
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit>;
    /// Signals the whole process tree behind the link, if there is one.
    fn signal(&mut self, step: StopStep);
    /// Passes everything that the process writes to stderr to `callback`, beginning with the
    /// earlier output that was kept.
    fn capture_stderr(&mut self, callback: StderrCallback);
    /// Reports to `callback` when the peer's connection is lost and when it is restored, if the
    /// link outlives connections.
    fn watch_presence(&mut self, callback: PresenceCallback);
    /// The longest message that the peer takes now, where another peer may have taken the place of
    /// the first one.
    fn longest(&self) -> Option<usize>;
    /// Since when the peer's connection is lost, and the bytes that wait for the next one, if the
    /// link outlives connections.
    fn away(&self) -> Option<(Instant, usize)>;
    /// How many messages the peer has not acknowledged, where it does.
    fn unacknowledged(&self) -> usize;
    /// Redacts the process's output for logs.
    fn log_redaction(&self) -> fn(&str) -> String;
    /// Opens a further link to the same peer, in place of this one; `None` if that cannot be done.
    fn restart(&mut self) -> Option<Restart>;
    /// When [`LinkGuard::restart`] may be used.
    fn restarts(&self) -> Restarts;
    /// Whether the peer is known to be another relay: by a resumable link, or by a header of its
    /// server. Its own errors are not the agent's.
    fn is_relay(&self) -> bool;
    /// The end of the process's stderr: at most 4 KiB, control characters escaped.
    fn stderr_tail(&self) -> String;
}

/// When a further link to the same peer may take the place of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restarts {
    /// Not at all.
    #[default]
    Never,
    /// Before the two sides have agreed on a version.
    Handshake,
    /// Also when the peer has ended.
    Always,
}

/// A further link to the same peer; the error describes why there is none.
pub type Restart = Pin<Box<dyn Future<Output = Result<Link, String>> + Send>>;

/// Receives the stderr of a process. Must return quickly.
pub type StderrCallback = Box<dyn Fn(&[u8]) + Send>;

/// Receives the state of a peer's connection. Must return quickly.
pub type PresenceCallback = Box<dyn Fn(Presence<'_>) + Send>;

/// The state of a peer's connection, on a link that outlives connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence<'a> {
    /// The connection is lost, for this reason.
    Lost(&'a str),
    /// The connection is restored, from this address.
    Restored(&'a str),
}

/// The steps of stopping a process whose stdin is already closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopStep {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// An error of a link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An error of the operating system or of the peer's transport.
    #[error("{context}: {source}")]
    Io {
        /// The operation.
        context: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The peer violated the transport's protocol.
    #[error("the peer broke the {protocol} protocol: {detail}")]
    Protocol {
        /// The protocol.
        protocol: &'static str,
        /// The violation.
        detail: String,
    },
    /// The peer's server rejected the connection, or does not support the protocol.
    #[error("{0}")]
    Refused(String),
    /// The peer's server denied access.
    #[error("{0}")]
    Forbidden(String),
    /// The peer's server is temporarily unavailable.
    #[error("{0}")]
    Unavailable(String),
    /// The peer's host has lost the session.
    #[error("reading from the peer: {0}")]
    SessionLost(String),
    /// The peer's process was killed, as its own relay reports.
    #[error("its process was killed")]
    Killed,
    /// The byte stream cannot be framed any more.
    #[error("{0}")]
    Framing(Box<FrameError>),
}

impl FrameStream for () {
    fn poll_next(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        Poll::Ready(None)
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

impl FrameSink for () {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> SinkPoll {
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, _frame: Frame) -> Result<(), LinkError> {
        Ok(())
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> SinkPoll {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>, _: CloseReason) -> SinkPoll {
        Poll::Ready(Ok(()))
    }
}

impl LinkGuard for () {
    fn poll_exit(&mut self, _cx: &mut Context<'_>) -> Poll<Exit> {
        Poll::Pending
    }

    fn signal(&mut self, _step: StopStep) {}

    fn capture_stderr(&mut self, _callback: StderrCallback) {}

    fn watch_presence(&mut self, _callback: PresenceCallback) {}

    fn longest(&self) -> Option<usize> {
        None
    }

    fn away(&self) -> Option<(Instant, usize)> {
        None
    }

    fn unacknowledged(&self) -> usize {
        0
    }

    fn log_redaction(&self) -> fn(&str) -> String {
        str::to_owned
    }

    fn restart(&mut self) -> Option<Restart> {
        None
    }

    fn is_relay(&self) -> bool {
        false
    }

    fn restarts(&self) -> Restarts {
        Restarts::Never
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }
}

impl LinkError {
    /// Whether it only means that the peer has disconnected.
    #[must_use]
    pub fn is_disconnect(&self) -> bool {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, NetworkDown,
            NetworkUnreachable, NotConnected, TimedOut,
        };
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            BrokenPipe
                | ConnectionAborted
                | ConnectionReset
                | HostUnreachable
                | NetworkDown
                | NetworkUnreachable
                | NotConnected
                | TimedOut
        )
    }

    /// The peer can be sent nothing any more.
    pub fn broken_pipe(context: &'static str) -> Self {
        let source = io::ErrorKind::BrokenPipe.into();
        Self::Io { context, source }
    }

    /// The framing error, if that is what ended the link.
    #[must_use]
    pub fn into_frame_error(self) -> Option<Box<FrameError>> {
        match self {
            Self::Framing(error) => Some(error),
            _ => None,
        }
    }
}

jsonrpc::opaque_debug!(Link(peer));

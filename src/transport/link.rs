//! One live connection to one side: a stream of frames in, a sink of frames out, and whatever
//! must be kept alive meanwhile.
//!
//! Every transport yields this and the relay knows nothing else about transports. The traits are
//! poll-shaped because one task owns a whole conversation: nothing is in flight across an await,
//! so cancelling loses nothing. Not here: what the frames mean, when a link is to be stopped.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::auth::Principal;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Exit, Farewell, Flaw, Frame};

/// One live connection to one side.
pub struct Link {
    /// Who is there, for logs.
    pub peer: Peer,
    /// What the peer says.
    pub rx: Box<dyn FrameStream>,
    /// What is said to the peer.
    pub tx: Box<dyn FrameSink>,
    /// What lives as long as the link: a child process, a socket file.
    pub hold: Box<dyn Hold>,
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it is, for a person: `ws://127.0.0.1:50122`, `process 4711 (goose)`.
    pub name: String,
    /// Whether one direction can end while the other goes on.
    pub half_close: bool,
    /// How it is related to us.
    pub kind: PeerKind,
    /// Who it is, if it came to a listener with a gate. `None` for what we have started or reached
    /// ourselves, and for the program that started us.
    pub principal: Option<Arc<Principal>>,
    /// The agent that it asks for by name, if it came where agents have names.
    pub wanted_agent: Option<Arc<str>>,
}

impl Peer {
    /// A program elsewhere, of which no more is known than its address.
    pub(super) const fn remote(name: String, half_close: bool) -> Self {
        Self {
            name,
            half_close,
            kind: PeerKind::Remote,
            principal: None,
            wanted_agent: None,
        }
    }
}

/// How a peer is related to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    /// The program that started us; it sees our exit code.
    Parent,
    /// A process we started; we see its exit.
    Child,
    /// A recording that plays the agent, mistakes included.
    Played,
    /// We ourselves, as the ACP client of others who do not speak ACP. It speaks canonical ACP,
    /// whatever dialect the listener's other clients speak.
    Ours,
    /// A program of our own user on this machine, at the other end of a Unix socket.
    SameUser,
    /// Anything else.
    Remote,
}

/// What a peer says. Cancel-safe: a dropped poll loses nothing.
pub trait FrameStream: Send {
    /// The next thing heard; `None` when the peer has ended its stream.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>>;
    /// Why the link is over, if that shows without reading. Asked while the side is not being read.
    fn poll_over(&mut self, _cx: &mut Context<'_>) -> Poll<LinkError> {
        Poll::Pending
    }
    /// Whether the peer ended its stream on purpose, rather than that a connection broke.
    fn ended_on_purpose(&self) -> bool {
        true
    }
}

/// What is said to a peer, in the order it was given.
pub trait FrameSink: Send {
    /// Ready when another frame may be given; pushes what waits towards the peer until then.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>>;
    /// Gives a frame. Only after `poll_ready` was ready; the sink may keep a bounded amount.
    ///
    /// # Errors
    /// When the peer is gone.
    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError>;
    /// Ready when all that was given has left the process.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>>;
    /// Flushes, then ends our stream to the peer: end of file, a close frame that says `why`.
    fn poll_close(&mut self, cx: &mut Context<'_>, why: Farewell) -> Poll<Result<(), LinkError>>;
}

/// What lives as long as a link. Dropping it ends that at once and leaves nothing behind.
pub trait Hold: Send {
    /// Ready when the process behind the link has exited. Other links are never ready.
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        let _ = cx;
        Poll::Pending
    }
    /// Signals the whole process tree behind the link, if there is one.
    fn signal(&mut self, step: StopStep) {
        let _ = step;
    }
    /// Has `ear` hear all that the process writes to stderr; what it wrote before comes first, as
    /// far as it was kept.
    fn hear_stderr(&mut self, ear: Ear) {
        let _ = ear;
    }
    /// Has `watch` learn when the peer's connection breaks and when it comes back over another one,
    /// where a link outlives connections.
    fn watch(&mut self, watch: Watch) {
        let _ = watch;
    }
    /// What takes secrets out of the process's words before others see them.
    fn discretion(&self) -> fn(&str) -> String {
        str::to_owned
    }
    /// The end of what the process wrote to stderr: at most 4 KiB, control characters escaped.
    fn stderr_tail(&self) -> String {
        String::new()
    }
}

/// Hears what a process writes to stderr. Must return quickly.
pub type Ear = Box<dyn Fn(&[u8]) + Send>;

/// Learns where a peer is. Must return quickly.
pub type Watch = Box<dyn Fn(Presence<'_>) + Send>;

/// Where a peer is whose link outlives its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence<'a> {
    /// Its connection is gone; how, for a person.
    Lost(&'a str),
    /// It is back, from there.
    Back(&'a str),
}

/// A link that keeps nothing alive.
impl Hold for () {}

/// The steps of stopping a process whose stdin is already closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopStep {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// What went wrong on a link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The operating system or the peer's transport said no.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The peer broke the transport's own protocol.
    #[error("the peer broke the {protocol} protocol: {detail}")]
    Protocol {
        /// Which one.
        protocol: &'static str,
        /// What it did.
        detail: String,
    },
    /// The peer's server said no, or cannot be what it was taken for.
    #[error("{0}")]
    Refused(String),
    /// The peer's server does not let us in.
    #[error("{0}")]
    Forbidden(String),
    /// The peer's server serves nobody at present.
    #[error("{0}")]
    Unavailable(String),
    /// The byte stream cannot be cut into messages any more.
    #[error("{0}")]
    Framing(Box<Flaw>),
}

impl LinkError {
    /// Whether it only says that the peer has gone.
    #[must_use]
    pub fn is_departure(&self) -> bool {
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

    /// The flaw in what the peer sent, if that is what broke the link.
    #[must_use]
    pub fn into_flaw(self) -> Option<Box<Flaw>> {
        match self {
            Self::Framing(flaw) => Some(flaw),
            _ => None,
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

//! How links come to be: the traits a transport implements, and what can keep one from opening.
//!
//! A transport is one file that implements [`Transport`] and one line in `registry`. Accepting is
//! split in two so that a slow TLS or WebSocket handshake never holds up the next client. Not
//! here: what is done with a link once it is open.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{AgentConnect, Endpoint, Greeting, Inherited, Launch, Link};
use super::{Pin as Fingerprint, Worker, Workers};
use crate::auth::{Gate, LocalKey};
use crate::jsonrpc::Limits;
use crate::jsonrpc::framing::Framing;

/// A future that owns what it needs, or borrows for `'a`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// What [`Transport::connect`] returns.
pub type Connecting<'a> = BoxFuture<'a, Result<Link, OpenError>>;
/// What [`Transport::listen`] returns.
pub type Binding<'a> = BoxFuture<'a, Result<Box<dyn Listener>, OpenError>>;
/// What [`Listener::accept`] returns.
pub type Accepting<'a> = BoxFuture<'a, Option<io::Result<Arrival>>>;

/// A way to move frames.
pub trait Transport: Send + Sync {
    /// The endpoint schemes it serves, without `:`.
    fn schemes(&self) -> &'static [&'static str];
    /// Checks what can be checked about `to` before anybody needs it.
    ///
    /// # Errors
    /// When connecting could not succeed.
    fn check(&self, to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
        let _ = (to, setup);
        Ok(())
    }
    /// Opens a link to a peer that listens (or starts it).
    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> Connecting<'a>;
    /// Binds `at` and waits for peers.
    fn listen<'a>(&'a self, at: &'a Endpoint, setup: &'a Setup) -> Binding<'a>;
}

/// A bound endpoint.
pub trait Listener: Send {
    /// Waits for the next peer; `None` when there will be no more. Cancel-safe.
    fn accept(&mut self) -> Accepting<'_>;
    /// Where it is bound, with the real port.
    fn address(&self) -> Endpoint;
    /// Takes over the settings that can change while it is bound, for those who come from now on.
    ///
    /// # Errors
    /// When it cannot; then it stays as it was.
    fn renew(&mut self, setup: &Setup) -> Result<(), OpenError> {
        let _ = setup;
        Ok(())
    }
}

/// A peer that has arrived and may still have to shake hands.
pub struct Arrival {
    /// Who it is, for logs.
    pub from: String,
    /// The rest of the handshake, to be run in a task of its own.
    pub finish: BoxFuture<'static, Result<Link, OpenError>>,
    /// Where that task belongs, and all that is done for this peer.
    pub worker: Worker,
}

/// What opening a link needs to know besides the endpoint.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The bounds in force.
    pub limits: Arc<Limits>,
    /// The framing of byte streams; sniffed from the peer's first bytes when not given.
    pub framing: Option<Framing>,
    /// Who may come in.
    pub gate: Gate,
    /// Certificates and keys.
    pub tls: Tls,
    /// With which an HTTP listener proves to its own user's programs that it is on their machine.
    pub local_key: Option<Arc<LocalKey>>,
    /// How an HTTP listener receives strangers.
    pub front: Front,
    /// What a remote agent's server is told with every HTTP request.
    pub greeting: Greeting,
    /// How Agent Connect is served.
    pub agent_connect: AgentConnect,
    /// How an agent is started.
    pub launch: Launch,
    /// Sockets that somebody else has bound for us.
    pub inherited: Inherited,
    /// Cancelled once nobody is served any more, so that a transport can tell those who come.
    pub draining: CancellationToken,
    /// Where those who arrive are served.
    pub workers: Workers,
}

/// How a listener that begins with HTTP receives those who come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// Origins of web pages that may come in, exactly as browsers spell them.
    pub origins: Vec<String>,
    /// Names under which the listener may be asked for besides its own: `NAME` or `NAME:PORT`.
    pub hosts: Vec<String>,
    /// A cookie, `NAME=VALUE`, that every new connection is given, for balancers to go by.
    pub affinity_cookie: Option<String>,
    /// Whether elephant.ai's routes are left out beside the official ones.
    pub no_elephant: bool,
    /// The names of agents below which there is an endpoint: `/agents/NAME` before the listener's
    /// own path.
    pub agents: BTreeSet<String>,
    /// The agent for clients that name none.
    pub default_agent: Option<String>,
    /// Whether there is no such agent, so that the listener's own path is no endpoint.
    pub names_only: bool,
}

/// Files for TLS, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain of a `wss://` listener.
    pub cert: Option<std::path::PathBuf>,
    /// Private key of a `wss://` listener.
    pub key: Option<std::path::PathBuf>,
    /// Authorities whose certificates clients of such a listener may show.
    pub client_ca: Option<std::path::PathBuf>,
    /// Certificates a connector trusts instead of the system's.
    pub ca: Option<std::path::PathBuf>,
    /// The one certificate or key a connector trusts, whoever signed it.
    pub pin: Option<Fingerprint>,
}

/// Why an endpoint could not be opened: what, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub struct OpenError {
    /// What kind of failure it is, for the exit code.
    pub kind: OpenErrorKind,
    /// The endpoint, as given.
    pub endpoint: String,
    /// What happened, as a clause: `nothing listens there (connection refused)`.
    pub what: String,
    /// What to do about it, as a sentence, when we know.
    pub remedy: Option<String>,
}

/// Kinds of [`OpenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// The endpoint makes no sense here (sysexits 64).
    Usage,
    /// A recording cannot be read (66).
    NoInput,
    /// The host's name does not resolve (68).
    NoHost,
    /// The peer, program or port is not to be had (69).
    Unavailable,
    /// The operating system failed us (71).
    System,
    /// A socket file cannot be made (73).
    CannotCreate,
    /// The peer does not speak the transport's protocol (76).
    Protocol,
    /// Not permitted (77).
    Forbidden,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.endpoint, self.what)?;
        if let Some(remedy) = &self.remedy {
            write!(f, ". {remedy}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

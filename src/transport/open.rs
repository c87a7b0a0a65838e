//! Opening links: settings and listeners.
//!
//! Accepting is split in two so
//! that a slow TLS or WebSocket handshake does not delay the next client.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use hyper::http::Extensions;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Endpoint, Inherited, Launch, Link, OpenError, RequestHeaders};
use super::{Links, Pin as Fingerprint, SshInstall, Worker, Workers};
use auth::address::Reach;
use auth::{Gate, LocalKey};
use jsonrpc::Limits;
use jsonrpc::framing::Framing;

/// A future that owns what it needs, or borrows for `'a`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// What [`AddedTransport::connect`] returns.
pub type ConnectFuture<'a> = BoxFuture<'a, Result<Link, OpenError>>;
/// What [`AddedTransport::listen`] returns.
pub type ListenFuture<'a> = BoxFuture<'a, Result<Box<dyn Listener>, OpenError>>;
/// What [`Listener::accept`] returns.
pub type AcceptFuture<'a> = BoxFuture<'a, Option<io::Result<IncomingLink>>>;

/// The functions of a transport that a module above this one adds.
#[derive(Clone, Copy, Debug)]
pub struct AddedTransport {
    /// Checks an endpoint as far as possible before it is needed.
    pub check: fn(&Endpoint) -> Result<(), OpenError>,
    /// Opens a link to a peer that listens.
    pub connect: for<'a> fn(&'a Endpoint, &'a Setup) -> ConnectFuture<'a>,
    /// Binds an endpoint and waits for peers.
    pub listen: for<'a> fn(&'a Endpoint, &'a Setup) -> ListenFuture<'a>,
}

/// A bound endpoint.
pub trait Listener: Send {
    /// Waits for the next peer; `None` when the listener has ended. Cancel-safe.
    fn accept(&mut self) -> AcceptFuture<'_>;
    /// Its bound address, with the actual port.
    fn address(&self) -> Endpoint;
    /// Updates the settings that can change while it is bound, for new peers.
    ///
    /// # Errors
    /// When the settings are invalid; then the old ones stay.
    fn update(&mut self, setup: &Setup) -> Result<(), OpenError> {
        let _ = setup;
        Ok(())
    }
}

/// An accepted peer whose handshake may not be finished.
pub struct IncomingLink {
    /// Its address, for logs.
    pub from: String,
    /// The rest of the handshake, to be run in a task of its own. There is no link when the peer
    /// has resumed one.
    pub finish: BoxFuture<'static, Result<Option<Link>, OpenError>>,
    /// The worker for that task and for everything done for this peer.
    pub worker: Worker,
}

/// The settings for opening links.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The limits.
    pub limits: Arc<Limits>,
    /// The framing of byte streams; detected from the peer's first bytes if not given.
    pub framing: Option<Framing>,
    /// Notified every 15 s while an agent's process that was sent a message writes nothing, if its
    /// framing is not given. Without it the log says so after 5 s.
    pub silence: Option<Arc<Notify>>,
    /// Authenticates clients.
    pub gate: Gate,
    /// The addresses that are connected over TCP, for those that come from other machines.
    pub reach: Reach,
    /// Certificates and keys.
    pub tls: Tls,
    /// The key with which an HTTP listener proves to programs of its own user that it is on their
    /// machine.
    pub local_key: Option<Arc<LocalKey>>,
    /// The options of HTTP listeners.
    pub http: HttpOptions,
    /// The resumable links of the relay; `None` if it offers and accepts none.
    pub links: Option<Arc<Links>>,
    /// Whether the first message of a client of a Unix socket may open a link, and is awaited before
    /// the client is served.
    pub detects_links: bool,
    /// Whether the client is the process that has started this one, and no other: errors name the
    /// agent's address, and another process ends the agent's link if this one is killed.
    pub serves_parent: bool,
    /// The headers of every HTTP request to a remote agent's server.
    pub request_headers: RequestHeaders,
    /// The transport for Agent Connect.
    pub agent_connect: Option<AddedTransport>,
    /// The transport for agents and gateways on other machines.
    pub cluster: Option<AddedTransport>,
    /// The transport for recordings that play an agent.
    pub replay: Option<AddedTransport>,
    /// The settings of modules above this one, by type.
    pub extensions: Extensions,
    /// How an agent is started.
    pub launch: Launch,
    /// What is done where the relay is missing on the machine of an `ssh://` agent.
    pub ssh_install: SshInstall,
    /// Sockets inherited from the service manager.
    pub inherited: Inherited,
    /// Cancelled when no more clients are served, so that transports can reject new ones with a
    /// reason.
    pub draining: CancellationToken,
    /// The threads that serve clients.
    pub workers: Workers,
}

/// The options of HTTP and WebSocket listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpOptions {
    /// Origins of web pages that may connect, exactly as browsers send them.
    pub origins: Vec<String>,
    /// Accepted names in `Host`, besides the listener's own: `NAME` or `NAME:PORT`.
    pub hosts: Vec<String>,
    /// A cookie, `NAME=VALUE`, that every new connection receives, for load balancers.
    pub affinity_cookie: Option<String>,
    /// Whether elephant.ai's routes are disabled.
    pub no_elephant: bool,
    /// The names of agents with an endpoint at `/agents/NAME` before the listener's own path.
    pub agents: BTreeSet<String>,
    /// The agent for clients that name none.
    pub default_agent: Option<String>,
    /// Whether there is no default agent, so that the listener's own path is not an endpoint.
    pub names_only: bool,
}

/// Files for TLS, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain of a `wss://` listener.
    pub cert: Option<std::path::PathBuf>,
    /// Private key of a `wss://` listener.
    pub key: Option<std::path::PathBuf>,
    /// Authorities for client certificates of such a listener.
    pub client_ca: Option<std::path::PathBuf>,
    /// Authorities that a connector trusts instead of the system's.
    pub ca: Option<std::path::PathBuf>,
    /// The only certificate or key that a connector trusts, whatever its issuer.
    pub pin: Option<Fingerprint>,
}

impl fmt::Debug for IncomingLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

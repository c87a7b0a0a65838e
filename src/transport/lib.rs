//! Byte streams, network protocols and other carriers of frames.
//!
//! Each transport opens [`Link`]s; the [`registry`] opens endpoints. Transports depend on
//! nothing of dialects, sessions or the conversation.
//!
//! - `endpoint` parses addresses, `open` holds settings and listeners, `link` the link itself,
//!   `forward` what its decorators pass on, and `open_error` the errors of opening one.
//! - [`stream`] frames byte streams: `stdio`, `tcp`, `unix`, and the pipes of [`process`].
//!   `admission` authenticates their clients, and `owner` finds the user of a local TCP socket.
//! - `ssh` is the standard input and output of an ssh process, and copies the relay to where it leads.
//! - [`http`] and [`websocket`] are network protocols, which share the HTTP client in
//!   [`http::client`]; `tls`, `certificate` and `pin` are TLS, `request_headers` the configured
//!   headers, `closing` the close codes, and
//!   `liveness` decides when a silent peer gets a ping and when it is lost.
//! - `resumable` is a link between two relays that outlives its connections.
//!   [`link_watchdog`] is the process that ends such a link when its client was killed, and `contact`
//!   what it knows of the server.
//! - [`replay`] is a client or an agent in this process.
//! - `workers` are the threads that serve clients, `inherited` the sockets passed by the service
//!   manager, and `clock` reads the time.

mod admission;
mod certificate;
mod clock;
mod closing;
mod contact;
mod endpoint;
mod forward;
pub mod http;
mod inherited;
mod link;
pub mod link_watchdog;
mod liveness;
mod login;
mod open;
mod open_error;
pub mod owner;
mod pin;
pub mod process;
mod published;
mod queued_link;
pub mod registry;
pub mod replay;
mod request_headers;
mod resumable;
mod ssh;
mod ssh_install;
mod stdio;
pub mod stream;
mod tcp;
mod tls;
mod unix;
pub mod websocket;
mod workers;

pub use clock::current_time;
pub use endpoint::{
    DEFAULT_PATH, Endpoint, EndpointError, HttpEndpoint, HttpProtocol, SshEndpoint,
};
pub use http::client::{HttpClient, NoResponse, https_proxy};
pub use inherited::Inherited;
pub use jsonrpc::{CloseReason, Exit};
pub use link::{
    FrameSink, FrameStream, Link, LinkError, LinkGuard, Peer, PeerKind, Presence, PresenceCallback,
    Restart, Restarts, SessionClaims, SinkPoll, StderrCallback, StopStep,
};
pub use login::{LoginEnd, OpenPage};
pub use open::{
    AcceptFuture, AddedTransport, BoxFuture, ConnectFuture, HttpOptions, IncomingLink,
    ListenFuture, Listener, Setup, Tls,
};
pub use open_error::CHECK_TOKEN;
pub use open_error::{OpenError, OpenErrorKind};
pub use pin::Pin;
pub use process::Launch;
pub(crate) use published::IS_PUBLISHED;
pub use queued_link::QueuedLink;
pub use request_headers::RequestHeaders;
pub use resumable::{Carrier, Dial, LinkPlace, Links, connect as connect_link};
pub use ssh::{
    READY as SSH_READY, VARIABLES as SSH_VARIABLES, join as join_ssh, version as ssh_version,
};
pub use ssh_install::{SshConsent, SshInstall};
pub use tls::{check_authorities, check_certificates};
pub use unix::{SocketFile, bind_unix};
pub use workers::{Worker, Workers};

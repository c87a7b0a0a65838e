//! Bytes in and out.
//!
//! Each transport makes [`Link`]s; the [`registry`] knows them all. Transports do not know that
//! dialects, sessions or the core exist.
//!
//! - `endpoint` is what an address looks like, `open` the traits of a transport, `link` what it
//!   yields, and `failure` why it could not, in words for a person.
//! - [`stream`] is what all byte streams have in common: `stdio`, `tcp`, `unix`, and the pipes of
//!   [`process`]. `wide` makes room in pipes that are found full. `admission` judges who comes by
//!   one, and `owner` knows whose program that is.
//! - [`http`] and [`websocket`] are for networks. `tls`, `certificate` and `pin` are trust,
//!   `greeting` is what a server is told besides messages, `parting` are close codes, and `errand`
//!   is a request of our own.
//! - `agent_connect` and [`replay`] are clients and agents by themselves; [`memory`] is for tests.
//! - `workers` are the threads that serve, `inherited` are sockets that somebody else has bound, and
//!   `moment` is what time it is.

mod admission;
mod agent_connect;
mod certificate;
mod endpoint;
mod errand;
mod failure;
mod greeting;
pub mod http;
mod inherited;
mod link;
pub mod memory;
mod moment;
mod open;
mod parting;
pub mod owner;
mod pin;
pub mod process;
pub mod registry;
pub mod replay;
mod stdio;
pub mod stream;
mod tcp;
mod tls;
mod unix;
pub mod websocket;
mod wide;
mod workers;

pub use crate::jsonrpc::{Exit, Farewell};
pub use agent_connect::{AgentConnect, Offer};
pub use endpoint::{DEFAULT_PATH, Endpoint, EndpointError, Manner, Web};
pub use errand::errand;
pub use greeting::Greeting;
pub use inherited::Inherited;
pub use link::{
    Ear, FrameSink, FrameStream, Hold, Link, LinkError, Peer, PeerKind, Presence, StopStep, Watch,
};
pub use moment::moment;
pub use open::{
    Accepting, Arrival, Binding, BoxFuture, Connecting, Front, Listener, OpenError, OpenErrorKind,
    Setup, Tls, Transport,
};
pub use pin::Pin;
pub use process::Launch;
pub use tls::{check_authorities, check_certificates};
pub use unix::{SocketFile, bind_unix};
pub use workers::{Worker, Workers};

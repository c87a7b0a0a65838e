//! Bytes in and out.
//!
//! Each transport makes [`Link`]s; the [`registry`] knows them all. Transports do not know that
//! dialects, sessions or the core exist.

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
mod workers;

pub use crate::wire::{Exit, Farewell};
pub use agent_connect::{AgentConnect, Offer};
pub use certificate::check_certificates;
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
pub use unix::{SocketFile, bind_unix};
pub use workers::{Worker, Workers};

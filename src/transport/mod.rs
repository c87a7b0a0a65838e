//! Bytes in and out.
//!
//! Each transport makes [`Link`]s; the [`registry`] knows them all. Transports do not know that
//! dialects, sessions or the core exist.

mod endpoint;
mod failure;
mod link;
pub mod memory;
mod open;
pub mod process;
pub mod registry;
mod stdio;
pub mod stream;
mod tcp;
mod tls;
mod unix;
pub mod websocket;

pub use crate::wire::{Exit, Farewell};
pub use endpoint::{DEFAULT_PATH, Endpoint, EndpointError};
pub use link::{Ear, FrameSink, FrameStream, Hold, Link, LinkError, Peer, PeerKind, StopStep};
pub use open::{Arrival, BoxFuture, Listener, OpenError, OpenErrorKind, Setup, Tls, Transport};

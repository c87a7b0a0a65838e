//! Bytes in and out.
//!
//! Each transport makes [`Link`]s; the registry knows them all. Transports do not know that
//! dialects, sessions or the core exist.

mod endpoint;
mod link;
mod open;
pub mod process;

pub use endpoint::Endpoint;
pub use link::{Exit, Farewell, FrameSink, FrameStream, Hold, Link, LinkError, Peer, StopStep};
pub use open::{Arrival, BoxFuture, Listener, OpenError, OpenErrorKind, Setup, Tls, Transport};

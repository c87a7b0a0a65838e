//! The one integration binary, a module per capability.

mod endpoint;
mod framing;
mod support;
mod transport;
mod wire;

//! The one integration binary, a module per capability.

mod core;
mod endpoint;
mod framing;
mod house;
mod process;
mod support;
mod transport;
mod wire;

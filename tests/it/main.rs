//! The one integration binary, a module per capability.

mod endpoint;
mod support;
mod transport;

//! The one integration binary, a module per capability.

mod framing;
mod wire;

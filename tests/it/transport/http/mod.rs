//! ACP over HTTP, as seen from the network: what is answered, what comes on which stream, and what
//! becomes of clients that vanish.

mod bodies;
pub(crate) mod caller;
mod codes;
mod elephant;
mod endings;
pub(super) mod linked;
mod streams;

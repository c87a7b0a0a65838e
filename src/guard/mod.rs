//! Who may come in.
//!
//! Pure judgements about what a peer says of itself, and about where it would have us call. Not here: sockets, and what is answered to
//! those who may not (see `transport`).

pub mod inner;
pub mod origin;

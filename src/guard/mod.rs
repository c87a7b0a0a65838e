//! Who may come in.
//!
//! Pure judgements about what a peer says of itself. Not here: sockets, and what is answered to
//! those who may not (see `transport`).

pub mod origin;

//! A port that serves HTTP: sockets, TLS, authentication, and what all responses have in common.
//!
//! `bind` opens it and `listen` serves its sockets, each a `socket` on a worker. A client is a
//! `caller`, which counts as `unauthenticated` until its credentials are accepted. Its request
//! passes `origin_check`, which distinguishes pages from programs, and `credentials`; `handle` runs
//! both, and then the [`Handler`] of the port, which gives an `answer`, or a `refusal` is sent
//! (`bare_refusal` completes those of hyper). `body` reads request bodies, and `rules` are the
//! settings that can change meanwhile. `linger` closes a socket that the client still writes to,
//! and `either` puts two handlers on one port.

pub(in crate::transport) mod answer;
mod bare_refusal;
mod bind;
pub(in crate::transport) mod body;
pub(in crate::transport) mod caller;
pub(in crate::transport) mod credentials;
mod either;
mod handle;
mod linger;
mod listen;
pub(in crate::transport) mod origin_check;
pub(in crate::transport) mod refusal;
pub(in crate::transport) mod rules;
pub(in crate::transport) mod socket;
mod unauthenticated;

pub(in crate::transport) use bind::{Port, bind};
pub(in crate::transport::http) use either::EitherHandler;
pub(in crate::transport) use handle::handle;
pub(in crate::transport) use listen::Handler;

//! A port that serves HTTP: sockets, TLS, authentication, and what all responses have in common.
//!
//! `bind` opens it, `shared` is its state, and `listen` serves its sockets, each a `socket` on a
//! worker. A client is a `caller`, which counts as `unauthenticated` until its credentials are
//! accepted. Its request passes `origin_check`, which distinguishes pages from programs, and `credentials`;
//! `handle` runs both, and then the [`HttpService`] of the port, which gives an `answer`, or a
//! `refusal` is sent (`bare_refusal` completes those of hyper). `body` reads request bodies, and
//! `rules` are the settings that can change meanwhile. `linger` closes a socket that the client
//! still writes to. A `service` of a module above this one has its own port or shares one with ACP.

pub(crate) mod answer;
mod bare_refusal;
mod bind;
pub(crate) mod body;
pub(crate) mod caller;
pub(in crate::transport) mod credentials;
mod handle;
mod linger;
mod listen;
pub(in crate::transport) mod origin_check;
pub(crate) mod refusal;
pub(in crate::transport) mod rules;
pub(crate) mod service;
mod shared;
pub(in crate::transport) mod socket;
mod unauthenticated;

pub(crate) use bind::bind;
pub(crate) use handle::handle;
pub(crate) use service::HttpService;
pub(crate) use shared::Port;

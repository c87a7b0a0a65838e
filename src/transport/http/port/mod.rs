//! A port that serves HTTP: sockets, TLS, authentication, and what all responses have in common.
//!
//! `listener` opens it and serves its sockets, each a `socket` on a worker; `shared` is its state.
//! A client is a `caller`. Each of its requests passes `admission`, with the `credentials` of its
//! sender, and is answered by an [`HttpService`] or with a `refusal`. `body` reads request bodies.

mod admission;
pub(crate) mod body;
pub(crate) mod caller;
pub(in crate::transport::http) mod credentials;
mod listener;
pub(crate) mod refusal;
pub(in crate::transport::http) mod shared;
pub(crate) mod socket;

pub(crate) use admission::handle;
pub(crate) use listener::{HttpService, ServeBeside, StartedService, bind};
pub(crate) use shared::Port;

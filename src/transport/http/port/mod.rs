//! A port that serves HTTP: sockets, TLS, authentication, and what all responses have in common.
//!
//! `listener` opens it and serves its sockets, each a `socket` on a worker; `shared` is its state.
//! A client is a `caller`. Each of its requests passes `admission`, with the `credentials` of its
//! sender, and is answered by an [`HttpService`] or with a `refusal`. `body` reads request bodies.

mod admission;
pub mod body;
pub mod caller;
pub(in crate::http) mod credentials;
mod listener;
pub mod refusal;
pub(in crate::http) mod shared;
pub mod socket;

pub use admission::handle;
pub use listener::{HttpService, ServeBeside, StartedService, bind};
pub use shared::Port;

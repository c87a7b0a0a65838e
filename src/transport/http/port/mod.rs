//! A port at which HTTP is spoken: sockets, TLS, who may ask, and what every answer has in common.
//!
//! `bind` opens it and `listen` serves the sockets that come, each a `socket` on a worker. A client
//! is a `caller`, which counts among the `strangers` until it is known. Its request passes `door`,
//! where pages are told from programs, and shows its `credential`; `reception` has both done, and
//! then has it answered by whoever is `Served` there, with an `answer`, or refused (`refuse`;
//! `bare` is what hyper refuses). `body` reads what it brings, and `rules` are what can change
//! meanwhile. `linger` is how a socket is closed that the client still writes to, and `beside` serves
//! two at one port. Not here: what is served (see `http::server`, `transport::agent_connect`).

pub(in crate::transport) mod answer;
mod bare;
mod beside;
mod bind;
pub(in crate::transport) mod body;
pub(in crate::transport) mod caller;
pub(in crate::transport) mod credential;
pub(in crate::transport) mod door;
mod linger;
mod listen;
mod reception;
pub(in crate::transport) mod refuse;
pub(in crate::transport) mod rules;
pub(in crate::transport) mod socket;
mod strangers;

pub(in crate::transport::http) use beside::Beside;
pub(in crate::transport) use bind::{Port, bind};
pub(in crate::transport) use listen::Served;
pub(in crate::transport) use reception::receive;

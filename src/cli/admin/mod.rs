//! The admin listener, for monitoring systems, containers and people.
//!
//! Off by default (`serve --admin`), and only on this machine. `address` is where it listens,
//! `address_file` how the user's other commands find it, `server` checks requests, `routes` answers
//! them from the `shared` state and `report` is `/status`. `pending_metrics` counts
//! conversations, `gauge_source` reads the metrics of the program itself, and `client` queries a
//! listener. `observe::metrics` has the metrics.
//!
//! # Why
//!
//! **No credentials.** It serves metrics and the addresses of clients, never a body or a secret,
//! and changes nothing; checks of `Host`, `Origin` and `Sec-Fetch-Site` keep web pages out, and a
//! Unix socket keeps other users out where that matters. Recordings have bodies, so the viewer
//! below it is at an address that cannot be guessed.

mod address;
mod address_file;
mod client;
mod pending_metrics;
mod gauge_source;
mod report;
mod routes;
mod server;
mod shared;

pub(super) use address::{AdminAddress, AdminArgs};
pub(super) use client::{fetch, find};
pub(super) use pending_metrics::PendingMetrics;
pub(super) use server::Admin;

//! The admin listener, for monitoring systems, containers and people.
//!
//! Off by default (`serve --admin`), and only on this machine. `address` is where it listens and how
//! the user's other commands find it, `server` runs it, and `routes` answers requests.
//! `pending_metrics` counts conversations. `observe::metrics` has the metrics.
//!
//! # Why
//!
//! **No credentials.** It serves metrics and the addresses of clients, never a body or a secret,
//! and changes nothing; checks of `Host`, `Origin` and `Sec-Fetch-Site` keep web pages out, and a
//! Unix socket keeps other users out where that matters. Recordings have bodies, so the viewer
//! below it is at an address that cannot be guessed.

mod address;
mod pending_metrics;
mod routes;
mod server;

pub(super) use address::{AdminAddress, AdminArgs};
pub(super) use pending_metrics::PendingMetrics;
pub(super) use server::Admin;

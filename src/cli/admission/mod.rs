//! Admission to `serve`: which credentials are required, which clients are connected, and how long.
//!
//! `options` has the flags and rejects unsafe listeners, `control` creates the gate and updates it,
//! `client_registry` counts clients, and `guarded_link` enforces each client's credentials and rate.
//! `listener_file` records for this user's `connect` where relays listen. `auth` makes the
//! decisions; `token` stores tokens.

mod client_registry;
mod control;
mod guarded_link;
mod listener_file;
mod options;

pub(super) use client_registry::Permit;
pub(super) use control::AdmissionControl;
pub use guarded_link::guarded;
pub(super) use listener_file::{announce, announced_ports, local_key, verify_local};
pub(super) use options::{AdmissionArgs, check as check_exposure};

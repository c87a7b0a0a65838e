//! Admission to `serve`: which credentials are required, who is connected, and for how long.
//!
//! `options` are the flags, `exposure` rejects unsafe listeners, `control` creates the gate and
//! updates it, `client_registry` counts clients, and `guarded_link` enforces each client's
//! credentials and rate. `listener_file` tells this user's `connect` where relays listen. `auth`
//! makes the decisions; `token` stores tokens.

mod exposure;
mod guests;
mod open;
mod options;
mod pass;
mod sign;

pub(super) use exposure::check as check_exposure;
pub(super) use guests::Stay;
pub(super) use open::Door;
pub(super) use options::DoorArgs;
pub(super) use sign::{Sign, greet};

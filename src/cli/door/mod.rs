//! The door of `serve`: what has to be shown there, who has come in, and for how long.
//!
//! `options` are the flags, `exposure` what must not be begun with them, `open` makes the gate and
//! keeps it up to date, `guests` counts those who are in, and `pass` watches over each of them.
//! `sign` tells this user's `connect` where its relays listen. Not here: the judgement (see
//! `guard`), and tokens as files (see `token`).

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

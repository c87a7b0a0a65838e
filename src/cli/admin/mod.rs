//! The admin listener: how the relay is, for monitoring systems, containers and people.
//!
//! Off unless asked for (`serve --admin`), and never beyond this machine. [`place`] is where it may
//! listen, [`sign`] how the user's other commands find it, [`server`] who may ask, [`routes`] what
//! is answered and [`report`] how conversations are told of. [`account`] opens the figures of a
//! conversation, [`around`] tells of the program itself, and [`ask()`] is the other end of all
//! that. Not here: what is counted (see `observe::metrics`).
//!
//! # Why
//!
//! **No credential.** What it tells are figures and the addresses of clients, never a body or a
//! secret, and it changes nothing; `Host`, `Origin` and `Sec-Fetch-Site` keep web pages out, and a
//! Unix socket keeps other users out where that matters. Recordings are bodies, so the viewer that
//! stands below it is behind an address that nobody can guess, as ever.

mod account;
mod around;
mod ask;
mod place;
mod report;
mod routes;
mod server;
mod sign;

pub(super) use account::{Account, Turnstile};
pub(super) use ask::{Asked, ask, find};
pub(super) use place::Place;
pub(super) use server::Admin;

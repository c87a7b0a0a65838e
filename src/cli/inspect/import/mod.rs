//! `acp-relay inspect import`: makes recordings from captures of other programs.
//!
//! [`formats`] detects the formats and reads them into a [`capture`], [`writer`] turns its messages
//! into events.

mod capture;
mod command;
mod formats;
mod names;
mod trace;
mod writer;
mod zed;

pub(super) use command::{Import, run};

//! `acp-relay inspect import`: makes recordings from captures of other programs.
//!
//! [`formats`] detects and reads the formats, [`writer`] turns their messages into events.

mod command;
mod formats;
mod names;
mod trace;
mod writer;
mod zed;

pub(super) use command::{Import, run};

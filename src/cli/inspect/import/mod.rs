//! `acp-relay inspect import`: makes recordings from captures of other programs.

mod capture;
mod command;
mod formats;

pub(super) use command::{Import, run};

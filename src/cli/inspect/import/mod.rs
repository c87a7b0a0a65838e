//! `acp-relay inspect import`: makes recordings from captures of other programs.

mod capture;
mod command;
mod formats;

pub(in crate::cli) use command::of_capture;
pub(super) use command::{Import, run};

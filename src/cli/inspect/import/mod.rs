//! `acp-relay inspect import`: makes recordings from captures of other programs.

mod capture;
mod command;
mod formats;

pub(in crate::cli) use capture::{Capture, Item};
pub(super) use command::{Import, run};
pub(in crate::cli) use command::{encode, of_capture, redactor};

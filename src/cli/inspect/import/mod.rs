//! `acp-relay inspect import`: recordings made of what other programs have captured.
//!
//! [`forms`] tells the forms apart and reads them, [`writer`] makes events of what they hold.
//! Not here: the other direction (see `export`).

mod command;
mod forms;
mod names;
mod trace;
mod writer;
mod zed;

pub(super) use command::{Import, run};

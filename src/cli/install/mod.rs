//! `acp-relay install`: an editor's entry for an agent, in the editor's own settings.
//!
//! `editors` knows the editors, their files and formats; `settings` edits a file of JSON with
//! comments; `command` is the command line.

mod command;
mod editors;
mod settings;

pub(super) use command::{EXAMPLES, Install, installed, run};

//! The configuration file, `acp-relay.toml`: several agents, several listeners, and the options
//! that are also flags. Flags override the environment, which overrides the file.
//!
//! `file` finds the file, `table_reader` reads one table of it with positions, and `agents`,
//! `listeners`, `sections` and `read` make a [`Config`] of it, or report all its faults;
//! `local_checks` finds what is missing on this machine. `command` is `acp-relay config`; `show`
//! and `report` print the effective configuration, with the `source` of each value.
//!
//! # Why
//!
//! **A file in the current directory is never used.** The file says which programs run. Starting
//! the relay inside a checkout, an unpacked archive or `/tmp` would otherwise run programs that
//! another user chose.
//!
//! **A file that others may write to is rejected**, for the same reason, as ssh does with its own.
//!
//! **The file of the user or of the system is read only when the command line does not say what to
//! serve.** A command line that names an agent or a listener is complete; a forgotten file must not
//! add a listener to it.
//!
//! **The tree is walked here, not by `serde`**, which stops at the first fault; a first version of
//! such a file has several, and all of them are reported, each with its position.

mod agents;
mod command;
mod context;
mod fault;
mod file;
mod listeners;
mod local_checks;
mod model;
mod read;
mod report;
mod sections;
mod show;
mod source;
mod table_reader;

pub(super) use command::{ConfigArgs, run};
pub(super) use context::CheckLevel;
pub(super) use file::ConfigFile;
pub(super) use model::{AgentPart, Config, ListenerPart, Source};
pub use read::faults;
pub(super) use read::read;
pub(super) use table_reader::nearest;

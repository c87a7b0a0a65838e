//! The configuration file, `acp-relay.toml`: several agents, several listeners, and the options
//! that are also flags. Flags override the environment, which overrides the file.
//!
//! `file` finds the file. `model` has the keys besides the options of the command line, and
//! `declared` the declarations of all keys, by which `option` reads values. `reader` reads one table
//! into `keys`, which become options as the defaults of their declarations; `agents`, `listeners`,
//! `options` and `read` make a [`Config`] of all, or report all faults; `local_checks` finds what is
//! missing on this machine. `merge` puts the command line over the file. `command` is `acp-relay
//! config`; `show` prints the effective configuration, and `describe` the example and the JSON
//! Schema.
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
//! such a file has several, and all of them are reported, each with its position. The declarations
//! are those of `clap`, whose parsers read the values of both: an option has one.

mod agents;
mod command;
mod declared;
mod describe;
mod fault;
mod file;
mod keys;
mod listeners;
mod local_checks;
mod merge;
mod model;
mod option;
mod options;
mod read;
mod reader;
mod show;

pub(super) use command::{ConfigArgs, run};
pub(super) use describe::example;
pub(super) use fault::CheckLevel;
pub(super) use file::ConfigFile;
pub(super) use merge::{CommandLine, Effective};
pub(super) use model::{AgentPart, Config, ListenerPart, Source};
pub use read::faults;
pub(super) use read::{load, read, read_with_notes};

//! The configuration file, `acp-relay.toml`: several agents, several listeners, and all that flags
//! can say.
//!
//! `place` finds the file, `sheet` reads one table of it and knows the place of everything, and
//! `agents`, `listeners`, `sections` and `read` make a [`Config`] of it, or all its faults at once;
//! `here` finds what this machine lacks. `command` is `acp-relay config`; `show` says what is in
//! force, `page` how it looks, and `source` who has said so. Not here: what is done with it (see
//! `serve`), and flags, which are stronger than the environment, which is stronger than the file.
//!
//! # Why
//!
//! **A file in the current directory is never picked up.** The file says which programs run.
//! Whoever starts the relay inside a checkout, an unpacked archive or `/tmp` would otherwise run
//! what a stranger has put there.
//!
//! **A file that others may write to is refused**, for the same reason, as ssh does with its own.
//!
//! **The file of the user or of the system is read only when the command line says nothing** of
//! what to serve. A command line that names an agent or a listener says all; a file that somebody
//! has forgotten must not add a door to it.
//!
//! **The tree is walked here, not by `serde`**, which gives up at the first fault; people who write
//! such a file for the first time have several, and want all of them, each with its place.

mod agents;
mod command;
mod fault;
mod here;
mod listeners;
mod page;
mod place;
mod plan;
mod read;
mod sections;
mod sheet;
mod show;
mod source;

pub(super) use command::{ConfigArgs, run};
pub(super) use place::Place;
pub(super) use plan::{AgentPart, Config, ListenerPart, Source};
pub use read::faults;
pub(super) use read::{Look, read};
pub(super) use sheet::nearest;

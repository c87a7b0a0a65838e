//! Agents by name: the syntax of names, and how well-known agents are started.
//!
//! `profiles.json` has the data of each; `profile` reads it and those that `import` keeps, and `list`
//! is `acp-relay agents`.
//!
//! # Why
//!
//! **Nothing is downloaded.** The registry says how an agent is fetched and run in one go
//! (`npx PACKAGE@VERSION`); that would run whatever the network has today. A profile names the
//! program that an installation leaves on PATH, and how to install it.
//!
//! **A profile does not fix a dialect.** It depends on the version of the agent, which shows in its
//! messages; `agents list` prints the table that it usually needs.

mod import;
mod list;
mod profile;

pub(super) use list::{AgentsArgs, installed_names, run};
pub(super) use profile::{Profile, Program, check_name, profile, profile_names, read_profile};

//! Agents by name: how a name may be spelled, and how well-known agents are started.
//!
//! `profiles.json` has the words of each; `profile` reads it, and `list` is `acp-relay agents`.
//! Not here: the agents of a configuration file (see `config`), and starting one (see
//! `transport::process`).
//!
//! # Why
//!
//! **Nothing is downloaded.** The registry says how an agent is fetched and run in one go
//! (`npx PACKAGE@VERSION`); that would run what the network holds today. A profile names the
//! program that an installation leaves on PATH, and how to install it.
//!
//! **A profile does not fix a dialect.** It depends on the version of the agent, which shows in
//! what it says; the table that is usually met is told by `agents list`.

mod list;
mod name;
mod profile;

pub(super) use list::{AgentsArgs, run};
pub(super) use name::check_name;
pub(super) use profile::{Profile, Program, profile, profile_names, read_profile};

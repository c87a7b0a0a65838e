//! `acp-relay serve`: listens for clients and gives each an agent of its own.
//!
//! `args` is its command line; `command` starts and stops it. `plan` makes listeners and an
//! `agent_pool` of the effective configuration. `listening` keeps the listeners open, changes them
//! on a reload and accepts clients; `server` finds each one its agent, or sends an error. `systemd`
//! notifies the service manager, and `terminal` informs a person.
//!
//! # Why
//!
//! **Reload, not restart.** On SIGHUP a new plan is made from the current file. If anything is
//! wrong with it, nothing changes. Otherwise listeners that are in both plans stay bound, and
//! change what can change (admission, certificates, agents); conversations continue, each with the
//! plan that it began with.

mod agent_pool;
mod args;
mod command;
mod listening;
#[cfg(feature = "cluster")]
mod many;
mod on_disconnect;
mod part;
mod plan;
mod server;
mod systemd;
mod terminal;

pub(super) use args::Serve;
pub(super) use command::{config_file, run, sockets};
pub(super) use on_disconnect::{DisconnectArgs, OnDisconnect};

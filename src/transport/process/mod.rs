//! A child process as an agent link.
//!
//! The agent gets its arguments, the relay's environment (without the relay's own variables), three
//! pipes, and a process group of its own, so that a Ctrl-C meant for the relay does not reach it.
//! None of its processes are left behind, however it or the relay ends.
//!
//! - [`child`] starts it and is its [`LinkGuard`](super::LinkGuard): exit, signals, the end of its stderr;
//! - [`launch`] is its working directory and environment; [`lease`] bounds its time;
//! - [`program`] checks that it can be started, and explains why not; [`search_path`] looks for it where
//!   `PATH` does not lead;
//! - [`stderr`] reads its stderr; [`silence`] tells that it writes nothing;
//! - [`browser`] takes the pages that it opens;
//! - [`watchdog`] is a small process between the relay and the agent, which ends all that the agent
//!   started; [`tree`] finds the processes below one;
//! - [`children`] starts the watchdogs and reaps them.
//!
//! # Why
//!
//! **A process between, for each agent.** The most common daemon, `(setsid daemon &)`, has lost its
//! parent within a millisecond of its start, and its session with it. Linux gives such a process to
//! the nearest ancestor that adopts (`PR_SET_CHILD_SUBREAPER`). If that is the relay, it cannot tell
//! which agent a daemon comes from, and the kernel gives all of them away when the relay is killed.
//! A process of its own for each agent has them all and no others, and outlives the relay by the
//! time that it takes to end them. It takes 0.5 MiB, and nothing while it waits. Rejected: marks
//! that children inherit (variables, resource limits), which programs may clear; control groups,
//! which need a right that the relay mostly does not have; frequent scans of `/proc`.
//!
//! **Four descriptors for each agent**: its pipes and the socket to its watchdog. Rejected: one
//! stderr for all agents, because a pipe does not show which process wrote; one socket for stdin
//! and stdout, because programs check what kind of file those are, and closing stdin would take a
//! `shutdown`.

pub mod browser;
mod child;
mod children;
mod launch;
mod lease;
mod program;
mod search_path;
mod silence;
mod stderr;
mod tree;
pub mod watchdog;

pub use browser::{AgentBrowser, PageCall};
pub use child::connect;
pub use child::{Child, Process, spawn};
pub use children::start_outliving;
pub use children::{adopt_orphans, set_watchdog, settle};
pub use launch::{ALLOCATOR_VARS, Launch};
pub use lease::Lease;
pub use program::find_program;
pub use search_path::search_program;

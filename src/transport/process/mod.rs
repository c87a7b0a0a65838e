//! A child process as an agent link.
//!
//! The agent gets its arguments, the relay's environment (without the relay's own variables), three
//! pipes, and a process group of its own, so that a Ctrl-C meant for the relay does not reach it.
//! None of its processes are left behind, however it or the relay ends.
//!
//! - [`exec`] makes it a transport;
//! - [`child`] starts it and is its [`LinkGuard`](super::LinkGuard): exit, signals, the end of its stderr;
//! - [`launch`] is its working directory and environment;
//! - [`program`] checks that it can be started, and explains why not;
//! - [`stderr`] reads its stderr;
//! - [`process_id`] is one process; [`tree`] finds the descendants of one and signals exactly those;
//! - [`mark`] makes its descendants recognizable, even when they have lost their parents;
//! - [`agents`] is the interface to the thread that reaps agents, ends whole trees and reaps
//!   orphans: [`reaper`], whose list is [`child_table`];
//! - [`watchdog`] is the small process that does the same when the relay itself was killed.
//!
//! # Why
//!
//! **Marks rather than memory.** To remember which process was seen below which agent takes
//! frequent scans, and fails for the most common daemon all the same: `(setsid daemon &)` has lost
//! its parent within a millisecond of its start, and its adoption is not signalled. The mark is
//! there from the start, costs two system calls for each agent and nothing while it runs. Rejected:
//! a variable in the environment, which agents would see and some clear; control groups, which need
//! a right that the relay mostly does not have; the pipe a process has as its stderr, which a
//! proper daemon closes.
//!
//! **Three descriptors for each agent**: its pipes. tokio has a fourth for each child, a pidfd, to
//! wait for it; `reaper` gets SIGCHLD anyhow, for orphans, and checks for every agent whether it is
//! the one. Rejected: one stderr for all agents, because a pipe
//! does not show which process wrote, and what does (a datagram socket with credentials) cannot be
//! opened as `/dev/stderr` and names processes that are gone; one socket for stdin and stdout,
//! because programs check what kind of file those are, and closing stdin would take a `shutdown`.

mod agents;
mod child;
mod child_table;
mod exec;
mod launch;
mod mark;
mod process_id;
mod program;
mod reaper;
mod stderr;
mod tree;
pub mod watchdog;

pub use agents::{adopt_orphans, forbid_agents, settle, shut_down};
pub use child::{Child, Process, spawn};
pub(super) use exec::Exec;
pub use launch::{ALLOCATOR_VARS, Launch};
pub use program::find_program;

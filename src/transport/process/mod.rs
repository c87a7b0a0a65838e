//! A child process as an agent link.
//!
//! The agent gets its words, our environment (but what is ours alone), three pipes, and a process
//! group of its own, so that a Ctrl-C meant for the relay does not reach it. In return nothing of it
//! is left behind, however it or the relay ends.
//!
//! - [`exec`] makes it a transport;
//! - [`child`] starts it and is its [`Hold`](super::Hold): exit, signals, the end of its stderr;
//! - [`fate`] tells how it ended;
//! - [`launch`] says where it starts and what it finds in its environment;
//! - [`program`] looks for it before anything is started, to say what is wrong in words;
//! - [`stderr`] reads what it complains about;
//! - [`family`] finds its descendants, wherever they moved, and signals exactly those; [`walk`]
//!   looks for them below us alone;
//! - [`mark`] makes its descendants known, when they have lost their parents, too;
//! - [`agents`] is what is asked of the thread that reaps agents, ends whole trees and reaps what
//!   we inherit from them: [`reaper`], whose list is [`roll`];
//! - [`keeper`] is the small process that does the same when the relay itself was killed.
//!
//! Not here: frames (see `transport::stream`), and when an agent is to be stopped (see `relay`).
//!
//! # Why
//!
//! **Marks rather than memory.** To remember whom one has seen below which agent takes looking
//! often, and fails for the most common daemon all the same: `(setsid daemon &)` has lost its
//! parent within a millisecond of its birth, and its adoption is not signalled to anybody. The
//! mark is there from birth, costs two system calls for each agent and nothing while it runs.
//! Refused: a variable in the environment, which agents would see and some clear; control
//! groups, which need a right we mostly do not have; whose pipe a process has as its stderr,
//! which a proper daemon closes.
//!
//! **Three descriptors for each agent**: its pipes. tokio has a fourth for each child, a pidfd, to
//! wait for it; `reaper` hears SIGCHLD anyhow, for orphans, and asks every agent whether it is
//! the one, at most every few milliseconds. Refused: one stderr for all agents, because a pipe
//! does not tell who wrote, and what does (a datagram socket with credentials) cannot be opened
//! as `/dev/stderr` and names processes that are gone; one socket for stdin and stdout, because
//! programs look at what kind of file those are, and closing stdin would take a `shutdown`.

mod agents;
mod child;
mod exec;
mod family;
mod fate;
pub mod keeper;
mod launch;
mod mark;
mod program;
mod reaper;
mod roll;
mod stderr;
mod walk;

pub use agents::{answer_for_orphans, bar, farewell, settle};
pub use child::{Child, Process, spawn};
pub(super) use exec::Exec;
pub use launch::{ALLOCATOR, Launch};
pub use program::find_program;

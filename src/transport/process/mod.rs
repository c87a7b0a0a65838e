//! A child process as an agent link.
//!
//! The agent gets its words, our environment and three pipes, and its own process group, so that
//! a Ctrl-C meant for the relay does not reach it. In return nothing of it is left on any way out:
//!
//! - [`exec`] makes it a transport;
//! - [`child`] starts it and is its [`Hold`](super::Hold): exit, signals, the end of its stderr;
//! - [`program`] looks for it before anything is started, to say what is wrong in words;
//! - [`stderr`] reads what it complains about;
//! - [`family`] finds its descendants, wherever they moved, and signals exactly those;
//! - [`household`] is the thread that ends whole trees and reaps what we inherit from them;
//! - [`keeper`] is the small process that does the same when the relay itself was killed.
//!
//! Not here: frames (see `transport::stream`), and when an agent is to be stopped (see `relay`).

mod child;
mod exec;
mod family;
mod household;
pub mod keeper;
mod program;
mod stderr;

pub use child::{Child, Process, spawn};
pub(super) use exec::Exec;
pub use household::{answer_for_orphans, settle};
pub use program::find_program;

//! Where I/O meets the mind.
//!
//! One task owns a conversation: both links, the core, the taps. It reads a frame, lets the core
//! decide, and writes what the core says.
//!
//! # Why
//! *One task, no channels.* Nothing is in flight between tasks, so nothing can be lost when a
//! conversation is cancelled, nothing needs a lock, and a message costs no wake-up beyond those of
//! its sockets. The loop is written with `poll` and not with `select!`, because reading and
//! writing of both sides must go on side by side while they share the core.
//!
//! *All that waits is written before a flush.* A burst of small messages then costs one system
//! call, not one each.

mod alarm;
mod end;
mod parting;
mod pauses;
mod resume;
mod turn;
mod turn_away;
mod writer;

pub use end::{End, Refused};
pub use resume::{Harbour, Received};
pub use turn::{Stop, run};
pub use turn_away::turn_away;

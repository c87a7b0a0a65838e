//! Joins two links and a conversation.
//!
//! One task owns a conversation: both links, the sans-IO core, the observers. It reads a frame,
//! passes it to the core, and writes what the core has queued.
//!
//! # Why
//! *One task, no channels.* Nothing is in flight between tasks, so nothing is lost when a
//! conversation is cancelled, nothing needs a lock, and a message costs no wake-up beyond those of
//! its sockets. The loop is written with `poll` and not with `select!`, because reading and writing
//! of both sides must run concurrently while they share the core.
//!
//! *Everything queued is written before a flush.* A burst of small messages then costs one system
//! call, not one each.

mod end;
mod login;
mod reject;
mod resume;
mod run;
mod timer;
mod writer;

pub use end::{ConnectRefusal, End};
pub use reject::reject;
pub use resume::ConversationStore;
pub use run::{StopSignals, run};

//! Our own stdin and stdout: `stdio:`.
//!
//! Only this room touches them. Pipes and sockets are waited for by the runtime, all else by
//! threads. Not here: stderr, which belongs to the log.

mod pollable;
mod threads;
mod transport;

pub(super) use transport::Stdio;

//! `acp-relay demo`: a complete turn through two relays.
//!
//! A recorded agent (`acp-relay replay agent`) runs behind `acp-relay serve`, the client of `try` starts
//! `acp-relay connect`, and one turn passes through both relays over a WebSocket: real processes, the
//! real message path.

mod command;

pub(super) use command::{Demo, run};

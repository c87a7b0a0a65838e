//! `acp-relay demo`: the main job on embedded parts.
//!
//! A small agent runs behind `acp-relay serve`, a small client starts `acp-relay connect`, and one
//! whole turn passes through both relays over a WebSocket: real processes, the real message path.
//! Only the agent's mind is made up. Not here: anything the relay itself needs.

mod agent;
mod client;
mod play;
mod talk;

pub(super) use play::{Demo, run};

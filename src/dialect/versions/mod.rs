//! ACP v1 ↔ v2: a v1 client with a v2 agent, or a v2 client with a v1 agent.
//!
//! The versions differ in more than spelling: the answer to a prompt ends a turn in v1 and begins it
//! in v2, where the end is an update; messages, tool calls and terminals are patched in v2 and
//! appended or repeated in v1. So a message is converted with the state of its session.
//!
//! ```text
//! v2 peer ⇄ table `acp-v2` (spelling) ⇄ to_v1 or to_v2 (state) ⇄ canonical v1
//! ```
//!
//! [`VersionBridge`] is that chain, on the side of the peer that speaks v2. The rest of the
//! conversation is canonical v1, so that the other side may use a dialect of its own.
//! `negotiation` sees from `initialize` who speaks what. A state is handed each message with an
//! `out` to write into; both states share `content`, `methods` and `waiting`. None has a clock or I/O: the time is an
//! argument, and the conversation asks for the next deadline.

mod bridge;
mod content;
mod initialize;
mod methods;
mod negotiation;
mod out;
mod policies;
mod to_v1;
mod to_v2;
mod waiting;

pub use bridge::VersionBridge;
pub use initialize::Version;
pub use negotiation::{Negotiation, Step};
pub use out::V2_DIALECT;
pub use policies::{HybridInitialize, PolicyError, TerminalDisplay, VersionPolicies};

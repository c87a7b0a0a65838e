//! The address of a recording that plays the agent, `replay:PATH`. The crate `replay` plays it.

mod address;
mod rules;

pub use address::ReplayAddress;
pub use rules::{FaultKind, InjectedFault, MatchRule, ReplayRules, Speed, Unmatched};

//! The loop of the relay between two scripted peers, in virtual time.

mod closing;
mod flow;
mod invariants;
mod resume;

//! ACP v1 ↔ v2: the scripted conversations, and random ones in virtual time.

mod choices;
mod conversations;
mod interleavings;
mod memory;

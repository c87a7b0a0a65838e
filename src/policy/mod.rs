//! What crosses between the machine of a client and an agent elsewhere.
//!
//! A remote agent is a program of somebody else's that asks for files and commands *here*. A
//! [`Border`] hears every canonical message that passes and says of each whether it passes as it
//! is, changed, or not at all: calls are allowed or denied by method, files are confined to the
//! folders of the session, what is not to be used is not announced, and paths are given the names
//! they have on the other machine ([`Map`]).
//!
//! Pure but for one question, where a path leads, which [`Disk`] answers. Not here: dialects (what
//! comes here is canonical), and which agents are remote (see `app`).
//!
//! # Why
//! *In the core, between the two translators.* A dialect can spell a call in another way; judged on
//! the wire, it would slip through.
//!
//! *A name that only the client's dialect has is refused, whatever it stands for.* Nothing
//! translates it on its way to the client, which understands it as a call; and what the call says
//! there is in the dialect's words, which nobody here can judge.
//!
//! *A path is judged, not opened.* Between our look and the client's a symbolic link can be
//! exchanged, by somebody who can already write here; the agent cannot make links, unless it was
//! allowed commands. What the client opens is the path that was judged.
//!
//! *`..` is refused in paths to files.* What it leads to depends on links, and no agent needs it.

mod crossing;
mod map;
mod masks;
mod path;
mod places;
mod roots;
mod rules;

pub use crossing::{Border, Crossing};
pub use map::{Map, Pair};
pub use places::Places;
pub use roots::Disk;
pub use rules::{Pattern, Rules};

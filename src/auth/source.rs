//! Where keys come from: whoever can tell whether there are new ones.
//!
//! A token that was made a moment ago is good at once, so somebody whose token is not known has the
//! source asked before it is called wrong. Not here: the files (see `cli::door`).

use std::fmt;

use super::Keys;

/// Gives the keys that a gate opens with. Asked during a judgement, so it must return quickly.
pub trait Source: Send + Sync + fmt::Debug {
    /// The keys, if they have changed since they were given last.
    fn changed(&self) -> Option<Keys>;
}

//! The seam to whatever can repair a deviation.
//!
//! `check` names, beside each deviation, the rules that repair it. Whoever knows such rules
//! listens to the same conversation and is asked. Not here: any rule.

use super::Deviation;
use crate::jsonrpc::{Frame, Side};

/// One who knows rules that repair deviations.
pub trait Remedies {
    /// Hears every message of the conversation, in order, before it is asked about it.
    fn hear(&mut self, from: Option<Side>, message: &Frame);

    /// The rules that repair `deviation` in the message heard last, in the order in which they
    /// work; none when it stays.
    fn rules(&self, deviation: &Deviation) -> Vec<Remedy>;
}

/// A rule that repairs a deviation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Its id, as `table/rule`.
    pub rule: String,
    /// The reason why there is such a rule.
    pub why: String,
}

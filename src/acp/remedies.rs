//! The interface to rules that repair a violation.
//!
//! `check` names, beside each violation, the rules that repair it. An implementation receives the
//! same conversation and is asked for them.

use super::Violation;
use crate::jsonrpc::{Frame, Side};

/// A source of rules that repair violations.
pub trait Remedies {
    /// Receives every message of the conversation, in order, before [`Remedies::rules`] is called
    /// for it.
    fn receive(&mut self, from: Option<Side>, message: &Frame);

    /// The rules that repair `violation` in the last message, in the order in which they apply;
    /// none when it remains.
    fn rules(&self, violation: &Violation) -> Vec<Remedy>;
}

/// A rule that repairs a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Its id, as `table/rule`.
    pub rule: String,
    /// Why the rule exists.
    pub why: String,
}

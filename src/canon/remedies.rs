//! The seam to whatever can repair a deviation.
//!
//! `check` names, beside each deviation, the rule that would repair it. Whoever knows such rules
//! listens to the same conversation and is asked. Not here: any rule.

use super::Deviation;
use crate::wire::{Frame, Side};

/// One who knows rules that repair deviations.
pub trait Remedies {
    /// Hears every message of the conversation, in order, before it is asked about it.
    fn hear(&mut self, from: Option<Side>, message: &Frame);

    /// The id of the rule that repairs `deviation` in the message heard last, if there is one.
    fn rule(&mut self, deviation: &Deviation) -> Option<String>;
}

/// Nobody knows a rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRemedies;

impl Remedies for NoRemedies {
    fn hear(&mut self, _from: Option<Side>, _message: &Frame) {}

    fn rule(&mut self, _deviation: &Deviation) -> Option<String> {
        None
    }
}

//! What the client said in the recording, and has not yet: the agent spoke after it, and does so
//! again, so that what crossed each other in the recording comes in the same order.
//!
//! A step waits for what the client said between the cause of the step and the step itself, and
//! not for ever: a client may go its own way. Not here: what one scene waits for by itself (see
//! `plan`).

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use super::script::Script;
use crate::jsonrpc::Side;

/// How long a step waits, without a word of the client.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// What is still to be said by the client.
#[derive(Debug)]
pub(super) struct Order {
    /// By step.
    unheard: BTreeSet<usize>,
    /// When the client was heard last.
    pub(super) last: Duration,
}

impl Order {
    /// Nothing was said yet.
    pub(super) fn of(script: &Script) -> Self {
        let steps = script.steps.iter().enumerate();
        let of_client = steps.filter(|(_, step)| step.from == Side::Client);
        Self {
            unheard: of_client.map(|(at, _)| at).collect(),
            last: Duration::ZERO,
        }
    }

    /// The client has said what it said in this step.
    pub(super) fn heard(&mut self, step: usize) {
        self.unheard.remove(&step);
    }

    /// Whether something is to come before `step`, which follows from `cause`. Of answers, those
    /// count whose request the client has.
    pub(super) fn is_early(
        &self,
        script: &Script,
        cause: Option<usize>,
        step: usize,
        is_open: impl Fn(usize) -> bool,
    ) -> bool {
        let mut before = self.unheard.range(between(cause, step));
        before.any(|at| {
            let said = &script.steps[*at];
            match said.answers {
                Some(ask) => is_open(ask),
                None => said.is_request() || said.is_notification(),
            }
        })
    }

    /// What a step has waited for in vain is not waited for again.
    pub(super) fn give_up(&mut self, cause: Option<usize>, step: usize) {
        let before = between(cause, step);
        self.unheard.retain(|at| !before.contains(at));
    }
}

fn between(cause: Option<usize>, step: usize) -> Range<usize> {
    cause.map_or(0, |at| at + 1)..step
}

//! Keeps the recorded order of the agent's steps relative to the client's messages.
//!
//! A step waits for what the client sent between the cause of the step and the step itself, with a
//! timeout, because a live client may behave differently. See `scenes` for the waits within one
//! scene.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use super::script::Script;
use crate::jsonrpc::Side;

/// How long a step waits while the client sends nothing.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);

/// The messages that the client has not sent yet.
#[derive(Debug)]
pub(super) struct ClientOrder {
    /// By step.
    missing: BTreeSet<usize>,
    /// When the client sent the last frame.
    pub(super) last_received: Duration,
}

impl ClientOrder {
    /// Nothing was sent yet.
    pub(super) fn new(script: &Script) -> Self {
        let steps = script.steps.iter().enumerate();
        let of_client = steps.filter(|(_, step)| step.from == Side::Client);
        Self {
            missing: of_client.map(|(at, _)| at).collect(),
            last_received: Duration::ZERO,
        }
    }

    /// The client has sent the message of this step.
    pub(super) fn receive(&mut self, step: usize) {
        self.missing.remove(&step);
    }

    /// Whether a message of the client is missing before `step`, which follows from `cause`.
    /// Answers count only if the client has their request.
    pub(super) fn is_early(
        &self,
        script: &Script,
        cause: Option<usize>,
        step: usize,
        is_open: impl Fn(usize) -> bool,
    ) -> bool {
        let mut before = self.missing.range(between(cause, step));
        before.any(|at| {
            let step = &script.steps[*at];
            match step.answers {
                Some(request) => is_open(request),
                None => step.is_request() || step.is_notification(),
            }
        })
    }

    /// Gives up the messages that a step has waited for.
    pub(super) fn give_up(&mut self, cause: Option<usize>, step: usize) {
        let before = between(cause, step);
        self.missing.retain(|at| !before.contains(at));
    }
}

fn between(cause: Option<usize>, step: usize) -> Range<usize> {
    cause.map_or(0, |at| at + 1)..step
}

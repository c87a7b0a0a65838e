//! Handles cancellations by the client.

use std::time::Duration;

use serde_json::Value;

use super::Actor;
use crate::jsonrpc::{Id, reply};
use crate::recording::replay::scenes::Part;

impl Actor {
    /// The run of the turn that a `session/cancel` is about.
    pub(super) fn cancelled_turn(&self, body: &Value) -> Option<usize> {
        let session = body.get("sessionId")?.as_str()?;
        let recorded = self.names.recorded_session(session).unwrap_or(session);
        self.running.iter().rposition(|run| {
            let cause = self.scene_index.cause(run.scene);
            !run.answered && cause.is_some_and(|step| step.session.as_deref() == Some(recorded))
        })
    }

    /// The run of the request that a `$/cancel_request` is about.
    pub(super) fn cancelled_request(&self, body: &Value) -> Option<usize> {
        let id = body.get("requestId")?.to_string();
        let mut running = self.running.iter();
        running.position(|run| !run.answered && run.id.as_id() == Id::of_json(id.as_bytes()))
    }

    /// Continues after the recorded cancellation; if there is none, ends the turn here.
    pub(super) fn cancel(&mut self, index: usize, now: Duration) {
        let run = &mut self.running[index];
        let parts = &self.scene_index.parts(run.scene);
        let recorded = parts[run.at..]
            .iter()
            .position(|part| matches!(part, Part::Cancelled(_)));
        if let Some(ahead) = recorded {
            run.at += ahead + 1;
            let step = parts[run.at - 1].step();
            self.order.receive(step);
            (run.since, run.after) = (now, Some(step));
            self.arm_faults(self.script.steps[step].n);
            return;
        }
        let run = self.running.remove(index);
        for (_, id) in &run.open {
            self.pending.remove(id);
        }
        self.urgent.push_back(if run.method == "session/prompt" {
            reply::cancelled_turn(run.id.as_id())
        } else {
            reply::cancelled_request(run.id.as_id())
        });
    }
}

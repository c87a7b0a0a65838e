//! Finds the scene of a recording for a live message.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::Value;

use super::matching::{matches, similarity};
use super::rules::MatchRule;
use super::scenes::{Part, Scene, scenes};
use super::script::{Script, ScriptStep};
use crate::jsonrpc::Kind;

/// The scenes of a script, and which were played.
#[derive(Debug)]
pub(super) struct SceneIndex {
    script: Arc<Script>,
    pub(super) scenes: Vec<Scene>,
    /// Whether each was played.
    pub(super) played: Vec<bool>,
}

impl SceneIndex {
    pub(super) fn new(script: Arc<Script>) -> Self {
        let scenes = scenes(&script);
        Self {
            played: vec![false; scenes.len()],
            scenes,
            script,
        }
    }

    /// The parts of a scene.
    pub(super) fn parts(&self, scene: usize) -> &[Part] {
        &self.scenes[scene].parts
    }

    /// The message that begins a scene.
    pub(super) fn cause(&self, scene: usize) -> Option<&ScriptStep> {
        let cause = self.scenes[scene].cause?;
        Some(&self.script.steps[cause])
    }

    /// The first scene of a matching message that was not played yet. The body has the recorded
    /// names.
    pub(super) fn find(
        &self,
        by: MatchRule,
        method: &str,
        body: &Value,
        kind: Kind,
    ) -> Option<usize> {
        let mut all = self.causes(method, kind);
        let found = all.find(|(scene, step)| {
            !self.played[*scene] && matches(by, method, &with_live_cwd(&step.body, body), body)
        });
        found.map(|(scene, _)| scene)
    }

    /// The scene of the most similar request; of equally similar ones, those not played come first.
    pub(super) fn nearest(&self, method: &str, body: &Value) -> Option<usize> {
        let all = self.causes(method, Kind::Request);
        let best = all.max_by_key(|(scene, step)| {
            let fresh = !self.played[*scene];
            (similarity(&step.body, body), fresh, Reverse(*scene))
        });
        best.map(|(scene, _)| scene)
    }

    /// Why there is no scene for a request, for the error.
    pub(super) fn why_not_found(&self, by: MatchRule, method: &str) -> String {
        let all = self.causes(method, Kind::Request);
        let (mut count, mut left) = (0, 0);
        for (scene, _) in all {
            count += 1;
            left += usize::from(!self.played[scene]);
        }
        match (count, left) {
            (0, _) => format!("not recorded: no {method} is in the recording"),
            (_, 0) => format!(
                "not recorded: {method} is in the recording {count} times, and was asked more often"
            ),
            (_, _) => format!(
                "not recorded: {method} is in the recording {left} times more, but not with these \
                 params (match={by})"
            ),
        }
    }

    fn causes<'a>(
        &'a self,
        method: &'a str,
        kind: Kind,
    ) -> impl Iterator<Item = (usize, &'a ScriptStep)> + 'a {
        let scenes = (0..self.scenes.len()).filter_map(|scene| Some((scene, self.cause(scene)?)));
        scenes.filter(move |(_, step)| step.method == method && step.kind() == Some(kind))
    }
}

/// The recorded params with the live working directory, which is not compared.
fn with_live_cwd(recorded: &Value, live: &Value) -> Value {
    let mut recorded = recorded.clone();
    if let (Some(recorded_cwd @ Value::String(_)), Some(live_cwd @ Value::String(_))) =
        (recorded.get_mut("cwd"), live.get("cwd"))
    {
        live_cwd.clone_into(recorded_cwd);
    }
    recorded
}

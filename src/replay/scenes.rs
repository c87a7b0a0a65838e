//! Divides a conversation into scenes, and finds the scene for a live message.
//!
//! Each request or notification of the client begins a scene: what the agent sent because of it,
//! and what it waited for in between. An update belongs to the request that was open in its
//! session, else to the client's latest message. `actor` plays the scenes.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::Value;

use super::matching::{matches, similarity};
use super::script::{Script, ScriptStep};
use jsonrpc::{Id, Kind, Side};
use transport::replay::MatchRule;

/// The scenes of a script, in the order in which they begin.
#[derive(Debug, Default)]
pub(super) struct Scenes {
    script: Arc<Script>,
    pub(super) list: Vec<Scene>,
}

/// What was sent because of one message of the client; the first scene has no such message.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    /// The client's message.
    pub(super) cause: Option<usize>,
    /// What followed, in order.
    pub(super) parts: Vec<Part>,
    /// It was played.
    pub(super) played: bool,
}

/// A part of a scene, with its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The agent sends this step.
    Send(usize),
    /// The agent waits for the client's answer to its request in step `request`.
    Answered {
        /// The request.
        request: usize,
        /// The client's answer.
        at: usize,
    },
    /// The agent waits for the client to cancel.
    Cancelled(usize),
}

impl Scenes {
    pub(super) fn new(script: Arc<Script>) -> Self {
        let list = divide(&script);
        Self { script, list }
    }

    /// The message that begins a scene.
    pub(super) fn cause(&self, scene: usize) -> Option<&ScriptStep> {
        let cause = self.list[scene].cause?;
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
            !self.list[*scene].played && matches(by, method, &with_live_cwd(&step.body, body), body)
        });
        found.map(|(scene, _)| scene)
    }

    /// The scene of the most similar request; of equally similar ones, those not played come first.
    pub(super) fn nearest(&self, method: &str, body: &Value) -> Option<usize> {
        let all = self.causes(method, Kind::Request);
        let best = all.max_by_key(|(scene, step)| {
            let fresh = !self.list[*scene].played;
            (similarity(&step.body, body), fresh, Reverse(*scene))
        });
        best.map(|(scene, _)| scene)
    }

    /// Why there is no scene for a request, for the error.
    pub(super) fn why_not_found(&self, by: MatchRule, method: &str) -> String {
        let all: Vec<usize> = (self.causes(method, Kind::Request))
            .map(|(scene, _)| scene)
            .collect();
        let left = all.iter().filter(|scene| !self.list[**scene].played);
        match (all.len(), left.count()) {
            (0, _) => format!("not recorded: no {method} is in the recording"),
            (count, 0) => format!(
                "not recorded: {method} is in the recording {count} times, and was asked more often"
            ),
            (_, left) => {
                format!(
                    "not recorded: {method} is in the recording {left} times more, but not with \
                     these params (match={by})"
                )
            }
        }
    }

    fn causes<'a>(
        &'a self,
        method: &'a str,
        kind: Kind,
    ) -> impl Iterator<Item = (usize, &'a ScriptStep)> + 'a {
        let scenes = (0..self.list.len()).filter_map(|scene| Some((scene, self.cause(scene)?)));
        scenes.filter(move |(_, step)| step.method == method && step.kind() == Some(kind))
    }
}

impl Part {
    /// Its step.
    pub(super) const fn step(self) -> usize {
        match self {
            Self::Send(at) | Self::Cancelled(at) | Self::Answered { at, .. } => at,
        }
    }
}

fn divide(script: &Script) -> Vec<Scene> {
    let mut scenes = vec![Scene::default()];
    // The scenes whose request is not answered yet.
    let mut open: Vec<usize> = Vec::new();
    // The scene of each step.
    let mut scene_of = Vec::with_capacity(script.steps.len());
    for (at, step) in script.steps.iter().enumerate() {
        let cause = |scene: &usize| scenes[*scene].cause.map(|cause| &script.steps[cause]);
        let in_session = || {
            let of_session = |scene: &&usize| {
                step.session.is_some()
                    && cause(scene).is_some_and(|one| one.session == step.session)
            };
            open.iter().rev().find(of_session).copied()
        };
        let of_request = || {
            let id = step.body.get("requestId")?.to_string();
            let is_it = |one: &ScriptStep| Id::of_json(one.id()) == Id::of_json(id.as_bytes());
            let mut open = open.iter();
            open.find(|scene| cause(scene).is_some_and(is_it)).copied()
        };
        let latest = scenes.len() - 1;
        let (scene, part) = match (step.from, step.answers) {
            (Side::Agent, Some(request)) => (scene_of[request], Some(Part::Send(at))),
            (Side::Agent, None) => (in_session().unwrap_or(latest), Some(Part::Send(at))),
            (Side::Client, Some(request)) => {
                (scene_of[request], Some(Part::Answered { request, at }))
            }
            // An answer to no request, or an invalid line, causes nothing.
            (Side::Client, None) if !step.is_request() && !step.is_notification() => (latest, None),
            (Side::Client, None) => {
                let cancelled = match step.method.as_str() {
                    "session/cancel" => in_session(),
                    "$/cancel_request" => of_request(),
                    _ => None,
                };
                match cancelled {
                    Some(scene) => (scene, Some(Part::Cancelled(at))),
                    None => {
                        let cause = Some(at);
                        scenes.push(Scene {
                            cause,
                            ..Scene::default()
                        });
                        open.extend(step.is_request().then_some(latest + 1));
                        (latest + 1, None)
                    }
                }
            }
        };
        if step.from == Side::Agent && step.answers.is_some() {
            open.retain(|open| *open != scene);
        }
        scenes[scene].parts.extend(part);
        scene_of.push(scene);
    }
    scenes
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

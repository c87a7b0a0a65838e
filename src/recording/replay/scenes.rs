//! Divides a recorded conversation into scenes, from the agent's point of view.
//!
//! Each request or notification of the client begins a scene: what the agent sent because of it,
//! and what it waited for in between. An update belongs to the request that was open in its
//! session, else to the client's latest message. `actor` plays the scenes.

use super::script::Script;
use crate::jsonrpc::{Id, Side};

/// What was sent because of one message of the client; the first scene has no such message.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    /// The client's message.
    pub(super) cause: Option<usize>,
    /// What followed, in order.
    pub(super) parts: Vec<Part>,
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

impl Part {
    /// Its step.
    pub(super) const fn step(self) -> usize {
        match self {
            Self::Send(at) | Self::Cancelled(at) | Self::Answered { at, .. } => at,
        }
    }
}

/// The scenes, in the order in which they begin.
pub(super) fn scenes(script: &Script) -> Vec<Scene> {
    let mut scenes = vec![Scene::default()];
    // The scenes whose request is not answered yet.
    let mut open: Vec<usize> = Vec::new();
    // The scene of each step.
    let mut scene_of = vec![0; script.steps.len()];
    for (at, step) in script.steps.iter().enumerate() {
        let session_of = |scene: usize| {
            let cause = scenes[scene].cause.map(|cause| &script.steps[cause]);
            cause.and_then(|cause| cause.session.as_deref())
        };
        let in_session = || {
            let session = step.session.as_deref()?;
            let mut open = open.iter().rev().copied();
            open.find(|scene| session_of(*scene) == Some(session))
        };
        let latest = scenes.len() - 1;
        let scene = match (step.from, step.answers) {
            (Side::Agent, Some(request)) => {
                open.retain(|scene| *scene != scene_of[request]);
                let scene = scene_of[request];
                scenes[scene].parts.push(Part::Send(at));
                scene
            }
            (Side::Agent, None) => {
                let scene = in_session().unwrap_or(latest);
                scenes[scene].parts.push(Part::Send(at));
                scene
            }
            (Side::Client, Some(request)) => {
                let scene = scene_of[request];
                scenes[scene].parts.push(Part::Answered { request, at });
                scene
            }
            // An answer to no request, or an invalid line, causes nothing.
            (Side::Client, None) if !step.is_request() && !step.is_notification() => latest,
            (Side::Client, None) => {
                let cancels = cancelled(script, at, &open, &scenes).or_else(|| {
                    let cancels = step.method == "session/cancel";
                    cancels.then(in_session).flatten()
                });
                match cancels {
                    Some(scene) => {
                        scenes[scene].parts.push(Part::Cancelled(at));
                        scene
                    }
                    None => {
                        scenes.push(Scene {
                            cause: Some(at),
                            parts: Vec::new(),
                        });
                        if step.is_request() {
                            open.push(latest + 1);
                        }
                        latest + 1
                    }
                }
            }
        };
        scene_of[at] = scene;
    }
    scenes
}

/// The open scene that a `$/cancel_request` is about.
fn cancelled(script: &Script, at: usize, open: &[usize], scenes: &[Scene]) -> Option<usize> {
    let step = &script.steps[at];
    if step.method != "$/cancel_request" {
        return None;
    }
    let id = step.body.get("requestId")?.to_string();
    let mut open = open.iter().copied();
    open.find(|scene| {
        let cause = scenes[*scene].cause.map(|cause| &script.steps[cause]);
        cause.is_some_and(|cause| Id::of_json(cause.id()) == Id::of_json(id.as_bytes()))
    })
}

//! A conversation as steps: what was said, without ids, times and the borders of chunks.
//!
//! Not here: which values have names (see `names`), comparing (see `compare`).

use std::collections::HashMap;

use serde_json::{Value, json};

use super::names::Names;
use crate::jsonrpc::Side;
use crate::recording::surrogates::{join, tree};
use crate::recording::{Body, Event, Message, MessageKind, Scene, View, What};

/// Updates that come when they please; a text goes on across them.
const ASIDE: [&str; 6] = [
    "usage_update",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "plan",
];

/// Something that one side said.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The event it begins with.
    pub n: u64,
    /// When that was, in microseconds since the recording began.
    pub t: u64,
    /// Who said it.
    pub from: Side,
    /// The name of the session it is about; of an answer, that of its request.
    pub session: Option<String>,
    /// What it is; `None` when it was no message.
    pub kind: Option<MessageKind>,
    /// Its method, or that of the request it answers; empty when there is none.
    pub method: String,
    /// Of a request: its number among those of its side and session, from 1; of an answer: that
    /// of its request. `None` also for an answer to nobody.
    pub number: Option<u64>,
    /// The params, the result or the error, normal; what was no message as a text; and of a body
    /// that was not recorded, nothing.
    pub body: Value,
    /// It comes when it pleases: an update of what is on offer or used up, or of a plan.
    pub aside: bool,
    /// How many frames it was.
    pub frames: u64,
}

/// Makes events into steps.
#[derive(Debug, Default)]
pub struct Steps {
    names: Names,
    steps: Vec<Step>,
    /// Requests by event, of either edge, as they are called in the scene.
    asked: HashMap<u64, Asked>,
    counts: HashMap<(Side, Option<String>), u64>,
    /// The run of chunks that is going on in a lane.
    runs: HashMap<(Side, Option<String>), Run>,
}

/// Chunks that are one text.
#[derive(Clone, Debug)]
struct Run {
    /// The step.
    at: usize,
    /// What they have in common: their kind, their message, and their content but for the text.
    kind: String,
    message: Value,
    content: Value,
}

/// A request in the scene.
#[derive(Clone, Debug)]
struct Asked {
    session: Option<String>,
    number: u64,
    method: String,
}

/// The steps of a conversation, seen from `view`.
#[must_use]
pub fn steps(view: View, events: &[Event]) -> Vec<Step> {
    let scene = Scene::new(view, events);
    let mut steps = Steps::default();
    let mut order = scene.in_order();
    for event in events {
        order.take(event.clone(), |event| steps.see(&scene, event));
    }
    order.end(|event| steps.see(&scene, event));
    steps.done()
}

impl Step {
    /// Whether both say the same.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.from == other.from
            && self.kind == other.kind
            && self.method == other.method
            && self.session == other.session
            && self.number == other.number
            && self.body == other.body
    }

    /// The kind of a `session/update`, such as `tool_call`.
    #[must_use]
    pub fn update(&self) -> Option<&str> {
        self.body["update"]["sessionUpdate"].as_str()
    }

    /// What is compared, as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "from": self.from.name(),
            "kind": self.kind.map(MessageKind::name),
            "method": self.method,
            "session": self.session,
            "number": self.number,
            "body": self.body,
        })
    }
}

impl Steps {
    /// Takes an event in. One that is not in the scene is passed over.
    pub fn see(&mut self, scene: &Scene, event: &Event) {
        let What::Message(message) = &event.what else {
            return;
        };
        // A translated request has an event for each edge, and answers name either.
        if message.kind == Some(MessageKind::Request)
            && let Some(of) = message.of
            && let Some(known) = self.asked.get(&of).cloned()
        {
            self.asked.insert(event.n, known);
        }
        if scene.shows(event.n, message) {
            self.message(event, message);
            if message.kind == Some(MessageKind::Request)
                && let Some(of) = message.of
                && let Some(known) = self.asked.get(&event.n).cloned()
            {
                self.asked.insert(of, known);
            }
        }
    }

    /// All steps so far.
    #[must_use]
    pub fn done(mut self) -> Vec<Step> {
        for run in self.runs.values() {
            settle(&mut self.steps[run.at]);
        }
        self.steps
    }

    fn message(&mut self, event: &Event, message: &Message) {
        let from = message.to.other();
        let answered = message.answers.and_then(|n| self.asked.get(&n).cloned());
        let about = message.session.as_deref().map(|id| self.names.session(id));
        let is_answer = message.kind.is_some_and(MessageKind::is_answer);
        let mut method = message.method.clone().unwrap_or_default();
        let (session, number) = match (message.kind, answered) {
            (Some(_), Some(asked)) if is_answer => {
                // The other edge may call it otherwise.
                method = asked.method;
                (asked.session, Some(asked.number))
            }
            (Some(MessageKind::Request), _) => {
                let count = self.counts.entry((from, about.clone())).or_default();
                *count += 1;
                let asked = Asked {
                    session: about.clone(),
                    number: *count,
                    method: method.clone(),
                };
                self.asked.insert(event.n, asked);
                (about.clone(), Some(*count))
            }
            _ => (about, None),
        };
        let step = Step {
            n: event.n,
            t: event.t,
            from,
            kind: message.kind,
            number,
            body: self.body(message, &method, session.as_deref()),
            method,
            session,
            aside: false,
            frames: 1,
        };
        self.put(step);
    }

    fn body(&mut self, message: &Message, method: &str, session: Option<&str>) -> Value {
        let bytes = match &message.body {
            Body::Absent(_) => return Value::Null,
            body => body.bytes().map_or(&b""[..], |bytes| bytes),
        };
        let loose = || Value::String(String::from_utf8_lossy(bytes).into_owned());
        let Some(kind) = message.kind else {
            return loose();
        };
        let Some(whole) = tree(bytes) else {
            return loose();
        };
        let part = match kind {
            MessageKind::Result => "result",
            MessageKind::Error => "error",
            MessageKind::Request | MessageKind::Notification => "params",
        };
        let part = whole.get(part).unwrap_or(&Value::Null);
        match (kind, method) {
            (MessageKind::Result, "session/list") => self.names.listed(part),
            _ => self.names.normal(part, session),
        }
    }

    /// Adds a step, or its text to the run of chunks it belongs to.
    fn put(&mut self, mut step: Step) {
        let lane = (step.from, step.session.clone());
        let update = &step.body["update"];
        let is_update =
            step.method == "session/update" && step.kind == Some(MessageKind::Notification);
        let kind = update["sessionUpdate"].as_str().filter(|_| is_update);
        let text = update.pointer("/content/text").and_then(Value::as_str);
        if let (Some(kind), Some(text)) = (kind, text)
            && kind.ends_with("_chunk")
        {
            let message = &update["messageId"];
            let content = textless(&update["content"]);
            if let Some(run) = self.runs.get(&lane)
                && run.kind == kind
                && run.message == *message
                && run.content == content
            {
                let run = &mut self.steps[run.at];
                run.frames += 1;
                if let Some(Value::String(all)) = run.body.pointer_mut("/update/content/text") {
                    all.push_str(text);
                }
                return;
            }
            let run = Run {
                at: self.steps.len(),
                kind: kind.to_owned(),
                message: message.clone(),
                content,
            };
            if let Some(before) = self.runs.insert(lane, run) {
                settle(&mut self.steps[before.at]);
            }
        } else if kind.is_some_and(|kind| ASIDE.contains(&kind)) {
            step.aside = true;
        } else if let Some(run) = self.runs.remove(&lane) {
            settle(&mut self.steps[run.at]);
        }
        self.steps.push(step);
    }
}

/// What a content is besides its text, such as its type. What `_meta` has may be of one chunk.
fn textless(content: &Value) -> Value {
    let Value::Object(members) = content else {
        return Value::Null;
    };
    let mut members = members.clone();
    members.retain(|name, _| name != "text" && name != "_meta");
    Value::Object(members)
}

/// Ends a run of chunks: characters that were cut in two are whole again.
fn settle(run: &mut Step) {
    if let Some(Value::String(text)) = run.body.pointer_mut("/update/content/text") {
        *text = join(text);
    }
}

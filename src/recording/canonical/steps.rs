//! Turns a conversation into steps, without ids, times and the borders of chunks.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::names::Names;
use crate::jsonrpc::Side;
use crate::recording::surrogates::{join, tree};
use crate::recording::{Body, Event, Message, MessageKind, Scene, View, What};

/// Updates that may come at any time; a text continues across them.
const ASIDE: [&str; 6] = [
    "usage_update",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "plan",
];

/// A message or a run of chunks of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The number of its first event.
    pub n: u64,
    /// Its time, in microseconds since the recording began.
    pub t: u64,
    /// The sender.
    pub from: Side,
    /// The name of its session; of an answer, that of its request.
    pub session: Option<String>,
    /// The kind of message; `None` for an invalid line.
    pub kind: Option<MessageKind>,
    /// Its method, or that of the request it answers; empty when there is none.
    pub method: String,
    /// Of a request, its number among those of its side and session, from 1; of an answer, that of
    /// its
    /// request. `None` for an answer to no request.
    pub number: Option<u64>,
    /// The normalized params, result or error; an invalid line as a string; null when the body was
    /// not
    /// recorded.
    pub body: Value,
    /// It may come at any time: an update of options, usage or a plan.
    pub aside: bool,
    /// The number of its frames.
    pub frames: u64,
}

/// Turns events into steps.
#[derive(Debug, Default)]
pub struct Steps {
    names: Names,
    steps: Vec<Step>,
    /// Requests by event, of either edge, with their properties in the view.
    asked: HashMap<u64, Asked>,
    counts: HashMap<(Side, Option<String>), u64>,
    /// The current run of chunks of each sequence.
    runs: HashMap<(Side, Option<String>), Run>,
}

/// Chunks that form one text.
#[derive(Clone, Debug)]
struct Run {
    /// The index of the step.
    at: usize,
    /// Their common properties: the kind, the message, and the content except for the text.
    kind: String,
    message: Value,
    content: Value,
}

/// A request in the view.
#[derive(Clone, Debug)]
struct Asked {
    session: Option<String>,
    number: u64,
    method: String,
}

/// The steps of a conversation in `view`.
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
    /// Whether both have the same contents.
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

    /// The properties that are compared, as JSON.
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
    /// Adds an event. One that is not in the view is ignored.
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
                // The other edge may use a different method name.
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

/// A content without its text; `_meta` is removed, because it may belong to one chunk.
fn textless(content: &Value) -> Value {
    let Value::Object(members) = content else {
        return Value::Null;
    };
    let mut members = members.clone();
    members.retain(|name, _| name != "text" && name != "_meta");
    Value::Object(members)
}

/// Ends a run of chunks and joins characters that were cut in two.
fn settle(run: &mut Step) {
    if let Some(Value::String(text)) = run.body.pointer_mut("/update/content/text") {
        *text = join(text);
    }
}

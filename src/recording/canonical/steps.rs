//! Turns a conversation into steps, without ids, times and the borders of chunks.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::names::NameTable;
use crate::surrogates::{join_halves, parse_json};
use crate::{Message, Payload, RecordedEvent, View, ViewFilter};
use jsonrpc::{Kind, Side};

/// Updates that may come at any time; a text continues across them.
const UNORDERED: [&str; 6] = [
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
    pub kind: Option<Kind>,
    /// Its method, or that of the request it answers; empty when there is none.
    pub method: String,
    /// Of a request, its number among those of its side and session, from 1; of an answer, that of
    /// its request. `None` for an answer to no request.
    pub number: Option<u64>,
    /// The normalized params, result or error; an invalid line as a string; null when the body was
    /// not recorded.
    pub body: Value,
    /// It may come at any time: an update of options, usage or a plan.
    pub unordered: bool,
    /// The number of its frames.
    pub frames: u64,
}

/// Turns events into steps.
#[derive(Debug, Default)]
pub struct Steps {
    names: NameTable,
    steps: Vec<Step>,
    /// Requests by event, of either edge, with their properties in the view.
    requests: HashMap<u64, RequestInfo>,
    counts: HashMap<(Side, Option<String>), u64>,
    /// The current run of chunks of each sequence.
    runs: HashMap<(Side, Option<String>), ChunkRun>,
}

/// Chunks that form one text.
#[derive(Clone, Debug)]
struct ChunkRun {
    /// The index of the step.
    at: usize,
    /// Their common properties: the kind, the message, and the content except for the text.
    kind: String,
    message: Value,
    content: Value,
}

/// A request in the view.
#[derive(Clone, Debug)]
struct RequestInfo {
    session: Option<String>,
    number: u64,
    method: String,
}

/// The steps of a conversation in `view`.
#[must_use]
pub fn steps(view: View, events: &[RecordedEvent]) -> Vec<Step> {
    let mut filter = ViewFilter::new(view, events);
    if !events.last().is_some_and(RecordedEvent::is_end) {
        filter.set_open();
    }
    let mut steps = Steps::default();
    let mut order = filter.in_order();
    for event in events {
        order.push(event.clone(), |event| steps.add(&filter, event));
    }
    order.end(|event| steps.add(&filter, event));
    steps.finish()
}

impl Step {
    /// The kind of a `session/update`, such as `tool_call`.
    #[must_use]
    pub fn update(&self) -> Option<&str> {
        self.body.pointer("/update/sessionUpdate")?.as_str()
    }

    /// Removes what counts: the numbers of requests, tool calls and the like. In a conversation with
    /// one turn more, all later ones would differ.
    pub fn forget_counts(&mut self) {
        self.number = None;
        without_counts(&mut self.body);
    }

    /// The properties that are compared, as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "from": self.from.name(),
            "kind": self.kind.map(Kind::name),
            "method": self.method,
            "session": self.session,
            "number": self.number,
            "body": self.body,
        })
    }
}

impl Steps {
    /// Adds an event. One that is not in the view is ignored.
    pub fn add(&mut self, filter: &ViewFilter, event: &RecordedEvent) {
        let Some(message) = event.message() else {
            return;
        };
        // A translated request has an event for each edge, and answers name either.
        if message.kind == Some(Kind::Request)
            && let Some(source) = message.source
            && let Some(known) = self.requests.get(&source).cloned()
        {
            self.requests.insert(event.n, known);
        }
        if filter.shows(event.n, message) {
            self.message(event, message);
            if message.kind == Some(Kind::Request)
                && let Some(of) = message.source
                && let Some(known) = self.requests.get(&event.n).cloned()
            {
                self.requests.insert(of, known);
            }
        }
    }

    /// All steps so far.
    #[must_use]
    pub fn finish(mut self) -> Vec<Step> {
        for run in self.runs.values() {
            self.steps.get_mut(run.at).map(finish_run);
        }
        self.steps
    }

    fn message(&mut self, event: &RecordedEvent, message: &Message) {
        let from = message.to.other();
        let request = message.answers.and_then(|n| self.requests.get(&n).cloned());
        let about = message.session.as_deref().map(|id| self.names.session(id));
        let is_answer = message.kind.is_some_and(Kind::is_answer);
        let mut method = message.method.clone().unwrap_or_default();
        let (session, number) = match (message.kind, request) {
            (Some(_), Some(request)) if is_answer => {
                // The other edge may use a different method name.
                method = request.method;
                (request.session, Some(request.number))
            }
            (Some(Kind::Request), _) => {
                let count = self.counts.entry((from, about.clone())).or_default();
                *count += 1;
                let request = RequestInfo {
                    session: about.clone(),
                    number: *count,
                    method: method.clone(),
                };
                self.requests.insert(event.n, request);
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
            unordered: false,
            frames: 1,
        };
        self.push(step);
    }

    fn body(&mut self, message: &Message, method: &str, session: Option<&str>) -> Value {
        let bytes = match &message.body {
            Payload::Omitted(_) => return Value::Null,
            body => body.bytes().map_or(&b""[..], |bytes| bytes),
        };
        let as_text = || Value::String(String::from_utf8_lossy(bytes).into_owned());
        let Some(kind) = message.kind else {
            return as_text();
        };
        let Some(whole) = parse_json(bytes) else {
            return as_text();
        };
        let part = match kind {
            Kind::Result => "result",
            Kind::Error => "error",
            Kind::Request | Kind::Notification => "params",
        };
        let part = whole.get(part).unwrap_or(&Value::Null);
        match (kind, method) {
            (Kind::Result, "session/list") => self.names.normalize_list(part),
            _ => self.names.normalize(part, session),
        }
    }

    /// Adds a step, or its text to the run of chunks it belongs to.
    fn push(&mut self, mut step: Step) {
        let key = (step.from, step.session.clone());
        let update = step.body.get("update").unwrap_or(&Value::Null);
        let is_update = step.method == "session/update" && step.kind == Some(Kind::Notification);
        let kind = update["sessionUpdate"].as_str().filter(|_| is_update);
        let text = update.pointer("/content/text").and_then(Value::as_str);
        if let (Some(kind), Some(text)) = (kind, text)
            && kind.ends_with("_chunk")
        {
            let message = &update["messageId"];
            let content = without_text(&update["content"]);
            if let Some(run) = self.runs.get(&key)
                && run.kind == kind
                && run.message == *message
                && run.content == content
                && let Some(run) = self.steps.get_mut(run.at)
            {
                run.frames += 1;
                if let Some(Value::String(all)) = run.body.pointer_mut("/update/content/text") {
                    all.push_str(text);
                }
                return;
            }
            let run = ChunkRun {
                at: self.steps.len(),
                kind: kind.to_owned(),
                message: message.clone(),
                content,
            };
            if let Some(before) = self.runs.insert(key, run) {
                self.steps.get_mut(before.at).map(finish_run);
            }
        } else if kind.is_some_and(|kind| UNORDERED.contains(&kind)) {
            step.unordered = true;
        } else if let Some(run) = self.runs.remove(&key) {
            self.steps.get_mut(run.at).map(finish_run);
        }
        self.steps.push(step);
    }
}

/// Makes `‹tool›` of `‹tool 3›`.
fn without_counts(value: &mut Value) {
    match value {
        Value::String(text) => {
            let name = text
                .strip_prefix('‹')
                .and_then(|text| text.strip_suffix('›'));
            if let Some((kind, count)) = name.and_then(|name| name.split_once(' '))
                && count.bytes().all(|byte| byte.is_ascii_digit())
            {
                *text = format!("‹{kind}›");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_counts),
        Value::Object(members) => members.values_mut().for_each(without_counts),
        _ => {}
    }
}

/// A content without its text; `_meta` is removed, because it may belong to one chunk.
fn without_text(content: &Value) -> Value {
    let Value::Object(members) = content else {
        return Value::Null;
    };
    let mut members = members.clone();
    members.retain(|name, _| name != "text" && name != "_meta");
    Value::Object(members)
}

/// Ends a run of chunks and joins characters that were cut in two.
fn finish_run(run: &mut Step) {
    if let Some(Value::String(text)) = run.body.pointer_mut("/update/content/text") {
        *text = join_halves(text);
    }
}

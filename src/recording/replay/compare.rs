//! Compares a live conversation with the recorded one.
//!
//! Both are made canonical first (see `recording::canonical`), so that ids, times, folders and the
//! borders of chunks are no differences. Also ignored: redacted values, the model's usage, where a
//! text ends in a cancelled session, and what the caller ignores.

use std::collections::HashSet;

use serde_json::Value;

use super::normal;
use super::rules::Match;
use super::script::Script;
use crate::jsonrpc::Side;
use crate::recording::canonical::{self, Step};
use crate::recording::redact::Pattern;
use crate::recording::{Event, MessageKind, View, What};

/// Values that vary in every run and say nothing about the agent: the usage of its model.
const VOLATILE: [&str; 3] = [
    "/params/update/used",
    "/params/update/cost/amount",
    "/result/usage/*",
];

/// The number of characters of an error message that are shown.
const MESSAGE: usize = 120;

/// Differences to ignore.
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    /// Places in messages, such as `/params/update/rawOutput`.
    pub places: Vec<Pattern>,
    /// Texts; a notification that contains one of them, in its JSON spelling, is ignored.
    pub messages: Vec<String>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// The number of steps of the recorded conversation; the chunks of one text are one step.
    pub steps: usize,
    /// The event at which each of its turns begins.
    pub turns: Vec<u64>,
    /// The differences.
    pub differences: Vec<Difference>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `missing`, `extra` or `changed`.
    pub kind: &'static str,
    /// The event of the recording; `None` for an extra step.
    pub event: Option<u64>,
    /// Its turn, from 1; 0 is before the first prompt.
    pub turn: usize,
    /// The sender.
    pub from: Side,
    /// A description for people: `session/update tool_call`, `result of session/prompt`.
    pub what: String,
    /// A patch (RFC 6902) from the recorded message to the live one; null unless it is `changed`.
    pub patch: Value,
}

/// Compares a live conversation with the recorded one.
#[must_use]
pub fn compare(recorded: &Script, live: &Script, ignore: &Ignored) -> Compared {
    let volatile = VOLATILE.iter().filter_map(|place| place.parse().ok());
    let places: Vec<Pattern> = volatile.chain(ignore.places.iter().cloned()).collect();
    let canonical = |script: &Script| {
        let mut events = script.events();
        events.retain(|event| !is_ignored(event, &ignore.messages));
        let mut steps = canonical::steps(View::Heard, &events);
        for step in &mut steps {
            leave_out(step, &places);
        }
        steps
    };
    let (left, right) = (canonical(recorded), canonical(live));
    let begins = |script: &Script| -> Vec<u64> {
        let turns = script.turns().into_iter();
        turns.map(|at| script.steps[at].n).collect()
    };
    let (turns, live_turns) = (begins(recorded), begins(live));
    let turn_of = |turns: &[u64], n: u64| turns.partition_point(|begin| *begin <= n);
    let cancels = left.iter().filter(|step| step.method == "session/cancel");
    let cancelled: HashSet<Option<String>> = cancels.map(|step| step.session.clone()).collect();
    let found = canonical::compare(&left, &right).into_iter();
    // Lines besides messages may change or be missing; extra ones are differences.
    let found = found.filter(|difference| match difference {
        canonical::Difference::Missing(at) | canonical::Difference::Changed { left: at, .. } => {
            left[*at].kind.is_some()
        }
        _ => true,
    });
    let differences = found.filter_map(|difference| {
        let of = |kind, step: &Step, in_live: bool, patch| Difference {
            kind,
            event: (!in_live).then_some(step.n),
            turn: turn_of(if in_live { &live_turns } else { &turns }, step.n),
            from: step.from,
            what: title(step),
            patch,
        };
        Some(match difference {
            canonical::Difference::Missing(at) => of("missing", &left[at], false, Value::Null),
            canonical::Difference::Extra(at) => of("extra", &right[at], true, Value::Null),
            canonical::Difference::Changed {
                left: a,
                right: b,
                patch,
            } => {
                let (a, b) = (&left[a], &right[b]);
                let alone = a.kind == b.kind && a.number == b.number && a.session == b.session;
                if alone && normal::matches(Match::Strict, "", &a.body, &b.body) {
                    return None;
                }
                if cancelled.contains(&a.session) && is_cut_short(a, b) {
                    return None;
                }
                of("changed", a, false, patch)
            }
        })
    });
    Compared {
        steps: left.len(),
        differences: differences.collect(),
        turns,
    }
}

/// Whether both are texts of which one continues the other: a cancelled agent gets differently far
/// in every run.
fn is_cut_short(one: &Step, other: &Step) -> bool {
    let text = |step: &'_ Step| {
        let is_chunk = step.update().is_some_and(|kind| kind.ends_with("_chunk"));
        let text = step.body.pointer("/update/content/text")?.as_str()?;
        is_chunk.then(|| text.to_owned())
    };
    match (text(one), text(other)) {
        (Some(one), Some(other)) => one.starts_with(&other) || other.starts_with(&one),
        _ => false,
    }
}

fn title(step: &Step) -> String {
    let method = &step.method;
    match (step.kind, step.update()) {
        (None, _) => "a line that is no message".to_owned(),
        (Some(MessageKind::Error), _) => {
            let message = step.body["message"].as_str().unwrap_or_default();
            let message: String = message.chars().take(MESSAGE).collect();
            format!("error of {method}: {message}")
        }
        (Some(kind), _) if kind.is_answer() => format!("{} of {method}", kind.name()),
        (Some(_), Some(update)) => format!("{method} {update}"),
        (Some(_), None) => method.clone(),
    }
}

fn is_ignored(event: &Event, texts: &[String]) -> bool {
    let What::Message(message) = &event.what else {
        return false;
    };
    let bytes = message.body.bytes().map_or(&b""[..], |bytes| bytes);
    let mut texts = texts.iter();
    message.kind == Some(MessageKind::Notification)
        && texts.any(|text| memchr::memmem::find(bytes, text.as_bytes()).is_some())
}

/// Removes the ignored places from a step.
fn leave_out(step: &mut Step, ignore: &[Pattern]) {
    if ignore.is_empty() {
        return;
    }
    let member = match step.kind {
        Some(MessageKind::Result) => "result",
        Some(MessageKind::Error) => "error",
        _ => "params",
    };
    walk(&mut step.body, &mut vec![member.to_owned()], ignore);
}

fn walk(value: &mut Value, path: &mut Vec<String>, ignore: &[Pattern]) {
    let steps: Vec<String> = match value {
        Value::Object(members) => members.keys().cloned().collect(),
        Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
        _ => return,
    };
    for step in steps {
        path.push(step);
        let name = path.last().map(String::as_str).unwrap_or_default();
        let ignored = ignore
            .iter()
            .any(|one| one.is_at(path.iter().map(String::as_str)));
        match value {
            Value::Object(members) if ignored => {
                members.remove(name);
            }
            // The element stays as null, so that the indices of the others are unchanged.
            Value::Array(items) if ignored => {
                if let Some(item) = name.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                    *item = Value::Null;
                }
            }
            Value::Object(members) => {
                if let Some(inner) = members.get_mut(name) {
                    walk(inner, path, ignore);
                }
            }
            Value::Array(items) => {
                if let Some(inner) = name.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                    walk(inner, path, ignore);
                }
            }
            _ => {}
        }
        path.pop();
    }
}

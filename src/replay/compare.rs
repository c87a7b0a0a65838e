//! Compares a live conversation with the recorded one.
//!
//! Both are made canonical first (see `recording::canonical`), so that ids, times, folders and the
//! borders of chunks are no differences. Also ignored: redacted values, the model's usage, where a
//! text ends in a cancelled session, and what the caller ignores.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use super::level::CompareLevel;
use super::matching;
use super::script::Script;
use jsonrpc::{Kind, Side};
use recording::canonical::{self, Step};
use recording::patch::{self, Change};
use recording::redact::PointerPattern;
use recording::{RecordedEvent, View};
use transport::replay::MatchRule;

/// Values that vary in every run and say nothing about the agent: the usage of its model.
const VOLATILE: [&str; 3] = [
    "/params/update/used",
    "/params/update/cost/amount",
    "/result/usage/*",
];

/// The number of characters of an error message that are shown.
const MAX_MESSAGE: usize = 120;

/// Differences to ignore.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRules {
    /// What is compared at all.
    pub level: CompareLevel,
    /// Places in messages, such as `/params/update/rawOutput`.
    pub places: Vec<PointerPattern>,
    /// Texts; a notification that contains one of them, in its JSON spelling, is ignored.
    pub messages: Vec<String>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of steps of the recorded conversation; the chunks of one text are one step.
    pub steps: usize,
    /// The event at which each of its turns begins.
    pub turns: Vec<u64>,
    /// The differences.
    pub differences: Vec<ReplayDifference>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayDifference {
    /// `missing`, `extra` or `changed`.
    pub kind: &'static str,
    /// The event of the recording; `None` for an extra step.
    pub event: Option<u64>,
    /// Its turn, from 1; 0 is before the first prompt.
    pub turn: usize,
    /// The sender.
    pub from: Side,
    /// A description for people: `session/update tool_call`, `result of session/prompt`.
    #[serde(rename = "what")]
    pub title: String,
    /// A patch (RFC 6902) from the recorded message to the live one; null unless it is `changed`.
    pub patch: Value,
    /// The same as the places that are changed, with both values.
    #[serde(skip)]
    pub changes: Vec<Change>,
}

/// Compares a live conversation with the recorded one.
#[must_use]
pub fn compare(recorded: &Script, live: &Script, ignore: &IgnoreRules) -> Comparison {
    let volatile = VOLATILE.iter().filter_map(|place| place.parse().ok());
    let places: Vec<PointerPattern> = volatile.chain(ignore.places.iter().cloned()).collect();
    let canonical = |script: &Script| {
        let mut events = script.events();
        events.retain(|event| !is_ignored(event, &ignore.messages));
        let mut steps = canonical::steps(View::Received, &events);
        for step in &mut steps {
            remove_ignored(step, &places);
        }
        ignore.level.reduce(steps)
    };
    let (left, right) = (canonical(recorded), canonical(live));
    let turn_starts = |script: &Script| -> Vec<u64> {
        let turns = script.turns().into_iter();
        turns.map(|at| script.steps[at].n).collect()
    };
    let (turns, live_turns) = (turn_starts(recorded), turn_starts(live));
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
        let of = |kind, step: &Step, in_live: bool, patch| ReplayDifference {
            kind,
            event: (!in_live).then_some(step.n),
            turn: turn_of(if in_live { &live_turns } else { &turns }, step.n),
            from: step.from,
            title: title(step),
            changes: patch::changes(&step.json(), &patch),
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
                let comparable = a.kind == b.kind && a.number == b.number && a.session == b.session;
                if comparable && matching::matches(MatchRule::Strict, "", &a.body, &b.body) {
                    return None;
                }
                if cancelled.contains(&a.session) && is_cut_short(a, b) {
                    return None;
                }
                of("changed", a, false, patch)
            }
        })
    });
    Comparison {
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
        (Some(Kind::Error), _) => {
            let message = step.body["message"].as_str().unwrap_or_default();
            let message: String = message.chars().take(MAX_MESSAGE).collect();
            format!("error of {method}: {message}")
        }
        (Some(kind), _) if kind.is_answer() => format!("{} of {method}", kind.name()),
        (Some(_), Some(update)) => format!("{method} {update}"),
        (Some(_), None) => method.clone(),
    }
}

fn is_ignored(event: &RecordedEvent, texts: &[String]) -> bool {
    let Some(message) = event.message() else {
        return false;
    };
    let bytes = message.body.bytes().map_or(&b""[..], |bytes| bytes);
    let mut texts = texts.iter();
    message.kind == Some(Kind::Notification)
        && texts.any(|text| memchr::memmem::find(bytes, text.as_bytes()).is_some())
}

/// Removes the ignored places from a step.
fn remove_ignored(step: &mut Step, ignore: &[PointerPattern]) {
    let member = match step.kind {
        Some(Kind::Result) => "result",
        Some(Kind::Error) => "error",
        _ => "params",
    };
    for pattern in ignore {
        if let Some((first, rest)) = pattern.steps().split_first()
            && (first == "*" || first == member)
        {
            remove_at(&mut step.body, rest);
        }
    }
}

/// Removes what `steps` lead to in a value.
fn remove_at(value: &mut Value, steps: &[String]) {
    let Some((step, rest)) = steps.split_first() else {
        return;
    };
    let fits = |name: &str| step == "*" || step == name;
    match value {
        Value::Object(members) if rest.is_empty() => members.retain(|name, _| !fits(name)),
        Value::Object(members) => {
            let inner = members.iter_mut().filter(|(name, _)| fits(name));
            inner.for_each(|(_, inner)| remove_at(inner, rest));
        }
        Value::Array(items) => {
            let inner = items.iter_mut().enumerate();
            for (_, item) in inner.filter(|(at, _)| fits(&at.to_string())) {
                match rest {
                    // The element stays as null, so that the indices of the others are unchanged.
                    [] => *item = Value::Null,
                    rest => remove_at(item, rest),
                }
            }
        }
        _ => {}
    }
}

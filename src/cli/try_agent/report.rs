//! What the relay observes while a client tries an agent: the agent's dialect, its deviations from
//! the schema, and what became of the messages.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use acp::{Checker, Violation};
use analysis::text::counted;
use conversation::Note;
use jsonrpc::{Side, printable};
use observe::{Counts, Event, Observer, RuleCount};

/// Most different deviations that are kept.
const MAX_DEVIATIONS: usize = 100;

/// The notes about messages that did not reach the other side as they were, or at all.
const STOPPED: [&str; 10] = [
    "stray_line",
    "refused",
    "batch",
    "unknown_answer",
    "reused_id",
    "overloaded",
    "answered_for_peer",
    "undeliverable",
    "denied",
    "adjusted",
];

/// What was observed so far.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// How the agent's dialect was recognised.
    pub(super) dialect: Option<String>,
    /// The framing that has to be chosen for the agent.
    pub(super) framing: Option<&'static str>,
    /// Each kind of deviation once, with its count.
    deviations: Vec<(Deviation, usize)>,
}

/// A deviation of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Deviation {
    method: String,
    violation: Violation,
}

/// The observer of the conversation.
pub(super) struct Watcher {
    checker: Checker,
    into: Arc<Mutex<Observations>>,
}

/// What the relay did to the messages.
pub(super) struct Report<'r> {
    pub(super) counts: &'r Counts,
    pub(super) seen: &'r Observations,
}

impl Watcher {
    pub(super) fn new(into: Arc<Mutex<Observations>>) -> Self {
        Self {
            checker: Checker::new(false),
            into,
        }
    }
}

impl Observer for Watcher {
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Received(from, frame) => {
                let checked = self.checker.check(Some(*from), frame);
                if *from == Side::Agent {
                    let method = checked.method.unwrap_or_default();
                    let mut seen = self.into.lock();
                    for violation in checked.violations {
                        let method = method.clone();
                        seen.add(Deviation { method, violation });
                    }
                }
            }
            Event::Note(Note::Recognised {
                side: Side::Agent,
                dialect,
                by,
            }) => {
                self.into.lock().dialect = Some(format!("{dialect}, which its {by} shows"));
            }
            _ => {}
        }
    }
}

impl Observations {
    fn add(&mut self, new: Deviation) {
        let is_same = |(one, _): &(Deviation, usize)| {
            one.method == new.method
                && one.violation.kind == new.violation.kind
                && one.violation.pointer == new.violation.pointer
        };
        match self.deviations.iter().position(is_same) {
            Some(known) => self.deviations[known].1 += 1,
            None if self.deviations.len() < MAX_DEVIATIONS => self.deviations.push((new, 1)),
            None => {}
        }
    }
}

impl Report<'_> {
    fn dialect(&self) -> &str {
        let dialect = self.seen.dialect.as_deref();
        dialect.unwrap_or("ACP v1 as published, as far as its messages show")
    }

    fn received(&self) -> u64 {
        let received = [Side::Client, Side::Agent].map(|side| self.counts.received(side).frames);
        received.iter().sum()
    }

    fn changed(&self) -> u64 {
        self.counts.note("translated")
    }

    fn rules(&self) -> impl Iterator<Item = &RuleCount> {
        let rules = self.counts.rules().iter();
        rules.filter(|rule| rule.what == "translated")
    }

    fn stopped(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let notes = self.counts.notes();
        notes.filter(|(name, _)| STOPPED.contains(name))
    }

    fn unchanged(&self) -> u64 {
        let stopped: u64 = self.stopped().map(|(_, count)| count).sum();
        self.received().saturating_sub(self.changed() + stopped)
    }

    /// The deviations, a line each, and five or six lines about the messages.
    pub(super) fn lines(&self) -> (Vec<String>, Vec<String>) {
        let deviations = self.seen.deviations.iter().map(|(one, count)| {
            let Violation {
                pointer,
                found,
                expected,
                ..
            } = &one.violation;
            let found = found.as_deref().unwrap_or("nothing");
            let times = if *count > 1 {
                format!(" ({count} times)")
            } else {
                String::new()
            };
            let line = format!(
                "{} {pointer}: {found}, expected {expected}{times}",
                one.method
            );
            printable(line.as_bytes())
        });
        let rules: Vec<String> = self.rules().map(RuleCount::to_string).collect();
        let stopped = self.stopped();
        let stopped = stopped.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
        let stopped: Vec<String> = stopped.collect();
        let list = |list: &[String]| match list {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        let mut lines = vec![
            format!("agent's dialect    {}", self.dialect()),
            format!(
                "passed unchanged   {} of {}",
                self.unchanged(),
                counted(self.received(), "message")
            ),
            format!("changed by rules   {} ({})", self.changed(), list(&rules)),
            format!("stopped, answered  {}", list(&stopped)),
            match self.seen.deviations.len() {
                0 => "deviations         none from the schema of ACP v1".to_owned(),
                count => format!("deviations         {count} from the schema of ACP v1, above"),
            },
        ];
        if let Some(framing) = self.seen.framing {
            lines.push(format!("needed option      --agent-framing {framing}"));
        }
        (deviations.collect(), lines)
    }

    /// The same for a program.
    pub(super) fn json(&self) -> Value {
        let rules = self.rules().map(
            |rule| json!({ "side": rule.side.to_string(), "rule": rule.rule, "count": rule.count }),
        );
        let stopped = self.stopped();
        let stopped = stopped.map(|(name, count)| (name.to_owned(), json!(count)));
        let deviations = self.seen.deviations.iter().map(|(one, count)| {
            let Violation {
                kind,
                consequence,
                pointer,
                found,
                expected,
            } = &one.violation;
            json!({
                "method": one.method, "kind": kind, "consequence": consequence,
                "pointer": pointer, "found": found, "expected": expected, "count": count,
            })
        });
        json!({
            "dialect": self.dialect(),
            "framing": self.seen.framing,
            "received": self.received(),
            "unchanged": self.unchanged(),
            "changed": self.changed(),
            "rules": rules.collect::<Vec<_>>(),
            "stopped": stopped.collect::<serde_json::Map<_, _>>(),
            "deviations": deviations.collect::<Vec<_>>(),
        })
    }
}

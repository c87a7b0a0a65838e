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
pub(super) struct Report {
    dialect: String,
    framing: Option<&'static str>,
    received: u64,
    changed: u64,
    rules: Vec<RuleCount>,
    stopped: Vec<(&'static str, u64)>,
    deviations: Vec<(Deviation, usize)>,
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

impl Report {
    pub(super) fn new(counts: &Counts, seen: &Observations) -> Self {
        let rules = counts.rules().iter();
        let rules = rules.filter(|rule| rule.what == "translated").cloned();
        let stopped = counts.notes().filter(|(name, _)| STOPPED.contains(name));
        let stopped: Vec<_> = stopped.collect();
        let changed = counts.note("translated");
        let received = [Side::Client, Side::Agent].map(|side| counts.received(side).frames);
        Self {
            dialect: seen
                .dialect
                .clone()
                .unwrap_or_else(|| "ACP v1 as published, as far as its messages show".to_owned()),
            framing: seen.framing,
            received: received.iter().sum(),
            changed,
            rules: rules.collect(),
            stopped,
            deviations: seen.deviations.clone(),
        }
    }

    fn unchanged(&self) -> u64 {
        let stopped = self.stopped.iter().map(|(_, count)| count);
        self.received
            .saturating_sub(self.changed + stopped.sum::<u64>())
    }

    /// The deviations, a line each, and five or six lines about the messages.
    pub(super) fn lines(&self) -> (Vec<String>, Vec<String>) {
        let deviations = self.deviations.iter().map(|(one, count)| {
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
        let rules: Vec<String> = self.rules.iter().map(RuleCount::to_string).collect();
        let stopped = self
            .stopped
            .iter()
            .map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
        let stopped: Vec<String> = stopped.collect();
        let list = |list: &[String]| match list {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        let mut lines = vec![
            format!("agent's dialect    {}", self.dialect),
            format!(
                "passed unchanged   {} of {}",
                self.unchanged(),
                counted(self.received, "message")
            ),
            format!("changed by rules   {} ({})", self.changed, list(&rules)),
            format!("stopped, answered  {}", list(&stopped)),
            match self.deviations.len() {
                0 => "deviations         none from the schema of ACP v1".to_owned(),
                count => format!("deviations         {count} from the schema of ACP v1, above"),
            },
        ];
        if let Some(framing) = self.framing {
            lines.push(format!("needed option      --agent-framing {framing}"));
        }
        (deviations.collect(), lines)
    }

    /// The same for a program.
    pub(super) fn json(&self) -> Value {
        let rules = self.rules.iter().map(
            |rule| json!({ "side": rule.side.to_string(), "rule": rule.rule, "count": rule.count }),
        );
        let stopped = self
            .stopped
            .iter()
            .map(|(name, count)| ((*name).to_owned(), json!(count)));
        let deviations = self.deviations.iter().map(|(one, count)| {
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
            "dialect": self.dialect,
            "framing": self.framing,
            "received": self.received,
            "unchanged": self.unchanged(),
            "changed": self.changed,
            "rules": rules.collect::<Vec<_>>(),
            "stopped": stopped.collect::<serde_json::Map<_, _>>(),
            "deviations": deviations.collect::<Vec<_>>(),
        })
    }
}

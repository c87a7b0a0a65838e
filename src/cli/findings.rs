//! The results of `check` as text and JSON: each violation, and the summary of a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::console::counted;
use super::repairs::{Remedy, Repairs};
use crate::acp::{CheckedMessage, Consequence, Violation, ViolationKind};
use crate::jsonrpc::{Kind, Side, printable};

/// Most groups in the summary of a file.
const MAX_GROUPS: usize = 1000;

/// One violation and its place.
#[derive(Debug)]
pub(super) struct Finding<'v> {
    pub(super) line: u64,
    pub(super) verdict: &'v CheckedMessage,
    pub(super) violation: &'v Violation,
    /// The rules that repair it.
    pub(super) remedies: Vec<Remedy>,
}

/// The totals so far.
#[derive(Debug, Default)]
pub(super) struct CheckSummary {
    messages: u64,
    unchecked: u64,
    refused: u64,
    ignored: u64,
    repaired: u64,
    kinds: BTreeMap<ViolationKind, u64>,
    groups: BTreeMap<Group, u64>,
}

/// Violations that differ only in an array index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: ViolationKind,
    place: String,
    pointer: String,
    /// The rules that repair it.
    rules: String,
}

impl Finding<'_> {
    /// One JSON object.
    pub(super) fn json(&self, path: &Path) -> Value {
        let (verdict, violation) = (self.verdict, self.violation);
        let rules: Vec<Value> = self
            .remedies
            .iter()
            .map(|remedy| json!({"rule": remedy.rule, "why": remedy.why}))
            .collect();
        json!({
            "file": path.to_string_lossy(),
            "line": self.line,
            "side": verdict.from.map(Side::name),
            "role": verdict.kind.map(Kind::name),
            "method": verdict.method,
            "kind": violation.kind,
            "severity": violation.consequence,
            "pointer": violation.pointer,
            "found": violation.found,
            "expected": violation.expected,
            "repaired": !rules.is_empty(),
            "rules": rules,
        })
    }

    /// A line of text, and one more for each rule that repairs the violation.
    pub(super) fn text(&self) -> String {
        let (verdict, violation) = (self.verdict, self.violation);
        let mut text = format!(
            "line {:<4} {:<6} {}  {}  {}  expected {}",
            self.line,
            verdict.from.map_or("?", Side::name),
            place(verdict),
            pointer(&violation.pointer),
            violation.kind,
            violation.expected,
        );
        if let Some(found) = &violation.found {
            text.push_str("; found ");
            text.push_str(found);
        }
        if violation.consequence == Consequence::Ignored {
            text.push_str(" (ignored)");
        }
        let mut text = printable(text.as_bytes());
        for Remedy { rule, why } in &self.remedies {
            text.push_str(&format!(
                "\n          repaired by {rule}: {}",
                printable(why.as_bytes())
            ));
        }
        text
    }
}

impl CheckSummary {
    pub(super) const fn violations(&self) -> u64 {
        self.refused + self.ignored
    }

    /// The violations that no rule repairs.
    pub(super) const fn unrepaired(&self) -> u64 {
        self.violations() - self.repaired
    }

    pub(super) fn add_message(&mut self, verdict: &CheckedMessage) {
        self.messages += 1;
        self.unchecked += u64::from(!verdict.checked);
    }

    pub(super) fn add_violation(&mut self, finding: &Finding<'_>) {
        let violation = finding.violation;
        match violation.consequence {
            Consequence::Refused => self.refused += 1,
            Consequence::Ignored => self.ignored += 1,
        }
        self.repaired += u64::from(!finding.remedies.is_empty());
        *self.kinds.entry(violation.kind).or_default() += 1;
        let rules = finding.remedies.iter().map(|remedy| remedy.rule.as_str());
        let group = Group {
            kind: violation.kind,
            place: place(finding.verdict),
            pointer: without_indexes(&violation.pointer),
            rules: rules.collect::<Vec<_>>().join(", "),
        };
        if self.groups.len() < MAX_GROUPS || self.groups.contains_key(&group) {
            *self.groups.entry(group).or_default() += 1;
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.unchecked += other.unchecked;
        self.refused += other.refused;
        self.ignored += other.ignored;
        self.repaired += other.repaired;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }

    /// The totals of one file and the dialects its sides were read as, as JSON.
    pub(super) fn file_json(&self, path: &Path, repairs: &Repairs) -> Value {
        let read_as = |side| {
            repairs.dialect(side).map(
                |(dialect, found)| json!({"dialect": dialect, "by": found.map(|found| &found.by)}),
            )
        };
        json!({"file": path.to_string_lossy(), "checked": {
            "messages": self.messages,
            "violations": self.violations(),
            "repaired": self.repaired,
            "client": read_as(Side::Client),
            "agent": read_as(Side::Agent),
        }})
    }

    /// The totals of all files, as JSON.
    pub(super) fn json(&self) -> Value {
        json!({"summary": {
            "messages": self.messages,
            "unchecked": self.unchecked,
            "violations": self.violations(),
            "refused": self.refused,
            "ignored": self.ignored,
            "repaired": self.repaired,
            "unrepaired": self.unrepaired(),
            "kinds": self.kinds,
        }})
    }

    /// The totals of one file, as text.
    pub(super) fn text(&self, path: &Path, repairs: &Repairs) -> String {
        let gap = if self.groups.is_empty() { "" } else { "\n" };
        let name = path.display().to_string();
        let messages = counted(self.messages, "message");
        let mut text = format!("{gap}{}: {messages}", printable(name.as_bytes()));
        if self.unchecked > 0 {
            text.push_str(&format!(" ({} of no known type)", self.unchecked));
        }
        if self.violations() == 0 {
            text.push_str(", no violation");
            return text;
        }
        let violations = counted(self.violations(), "violation");
        text.push_str(&format!(
            ", {violations}: {} refused, {} ignored; {} repaired by rules",
            self.refused, self.ignored, self.repaired
        ));
        for (kind, total) in &self.kinds {
            text.push_str(&format!("\n{total:>6}  {kind}"));
            for (group, count) in self.groups.iter().filter(|(group, _)| group.kind == *kind) {
                let what = format!("{}  {}", group.place, pointer(&group.pointer));
                text.push_str(&format!("\n{count:>14}  {}", printable(what.as_bytes())));
                if !group.rules.is_empty() {
                    text.push_str(&format!("  repaired by {}", group.rules));
                }
            }
        }
        for side in [Side::Client, Side::Agent] {
            let (dialect, found) = match repairs.dialect(side) {
                None | Some(("canonical", _)) => continue,
                Some(read_as) => read_as,
            };
            text.push_str(&format!("\nthe {side} was read as {dialect}"));
            if let Some(found) = found {
                let by = printable(found.by.as_bytes());
                text.push_str(&format!(", recognised by its {by}"));
            }
        }
        text
    }
}

/// The method, and whether this is its response.
fn place(verdict: &CheckedMessage) -> String {
    let method = verdict.method.as_deref().unwrap_or("-");
    match verdict.kind {
        Some(Kind::Result) => format!("{method} (result)"),
        Some(Kind::Error) => format!("{method} (error)"),
        _ => method.to_owned(),
    }
}

const fn pointer(pointer: &str) -> &str {
    if pointer.is_empty() {
        "(the whole value)"
    } else {
        pointer
    }
}

/// A pointer with `*` for each index, so that the items of an array are one group.
fn without_indexes(pointer: &str) -> String {
    let steps: Vec<&str> = pointer
        .split('/')
        .map(|step| match step.parse::<u64>() {
            Ok(_) => "*",
            Err(_) => step,
        })
        .collect();
    steps.join("/")
}

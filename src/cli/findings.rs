//! Prints findings as text, as JSON and as JUnit XML: those of `inspect lint`, by event, and those of
//! `check`, by line, with the summary of a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::console::note;
use super::junit::{Case, Suite};
use acp::{Consequence, Violation, ViolationKind};
use analysis::Repairs;
use analysis::lint::{Finding, RULES, Remedy};
use analysis::text::{counted, excerpt, timestamp};
use jsonrpc::{Kind, Side, printable};

/// Most groups in the summary of a file.
const MAX_GROUPS: usize = 1000;

/// A finding of the linter in one line.
pub(super) fn event_line(finding: &Finding) -> String {
    let mut text = format!(
        "{:>6} {:>12}  {:<7} {} {}",
        finding.n,
        timestamp(finding.t),
        finding.rule.severity.name(),
        finding.rule.id,
        finding.side.map_or("", Side::name),
    );
    for more in [finding.method.as_deref().unwrap_or_default(), &finding.what] {
        if !more.is_empty() {
            text += " ";
            text += &excerpt(more.as_bytes());
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// A finding of the linter as one JSON object.
pub(super) fn event_json(file: &str, finding: &Finding) -> Value {
    json!({
        "file": file,
        "n": finding.n,
        "t": finding.t as f64 / 1e6,
        "id": finding.rule.id,
        "severity": finding.rule.severity,
        "side": finding.side,
        "method": finding.method,
        "what": finding.what,
    })
}

/// The findings in a file as a test suite: for each rule a case, which fails by those that count.
pub(super) fn suite<'f>(
    name: String,
    took: Duration,
    counting: &(impl Iterator<Item = &'f Finding> + Clone),
) -> Suite {
    let cases = RULES.iter().map(|rule| {
        let own = counting.clone().filter(|finding| finding.rule == *rule);
        Case {
            name: rule.id.to_owned(),
            faults: own
                .map(|finding| event_line(finding).trim().to_owned())
                .collect(),
            broken: false,
        }
    });
    Suite {
        name,
        took,
        cases: cases.collect(),
    }
}

/// A violation in a capture as one JSON object.
pub(super) fn line_json(path: &Path, finding: &Finding, violation: &Violation) -> Value {
    json!({
        "file": path.to_string_lossy(),
        "line": finding.n,
        "side": finding.side,
        "role": finding.kind.map(Kind::name),
        "method": finding.method,
        "kind": violation.kind,
        "severity": violation.consequence,
        "pointer": violation.pointer,
        "found": violation.found,
        "expected": violation.expected,
        "repaired": !finding.remedies.is_empty(),
        "rules": finding.remedies,
    })
}

/// A violation in a capture as a line of text, and one more for each rule that repairs it.
pub(super) fn line_text(finding: &Finding, violation: &Violation) -> String {
    let mut text = format!(
        "line {:<4} {:<6} {}  {}  {}  expected {}",
        finding.n,
        finding.side.map_or("?", Side::name),
        place(finding),
        pointer(&violation.pointer),
        violation.kind,
        violation.expected,
    );
    if let Some(found) = &violation.found {
        text += &format!("; found {found}");
    }
    if violation.consequence == Consequence::Ignored {
        text += " (ignored)";
    }
    let mut text = printable(text.as_bytes());
    for Remedy { rule, why } in &finding.remedies {
        let why = printable(why.as_bytes());
        let gap = if why.is_empty() { "" } else { ": " };
        text += &format!("\n          repaired by {rule}{gap}{why}");
    }
    text
}

/// The totals of `check` so far.
#[derive(Debug, Default)]
pub(super) struct CheckSummary {
    pub(super) messages: u64,
    /// Messages that are of no known type.
    pub(super) unchecked: u64,
    refused: u64,
    ignored: u64,
    repaired: u64,
    /// The first file with a violation of the agent that a rule of a table could repair and none does.
    pub(super) of_dialect: Option<PathBuf>,
    kinds: BTreeMap<ViolationKind, u64>,
    /// By kind, place, pointer without indexes, and the rules that repair it.
    groups: BTreeMap<(ViolationKind, String, String, String), u64>,
}

impl CheckSummary {
    pub(super) const fn violations(&self) -> u64 {
        self.refused + self.ignored
    }

    /// The violations that no rule repairs.
    pub(super) const fn unrepaired(&self) -> u64 {
        self.violations() - self.repaired
    }

    pub(super) fn add_violation(&mut self, finding: &Finding, violation: &Violation) {
        match violation.consequence {
            Consequence::Refused => self.refused += 1,
            Consequence::Ignored => self.ignored += 1,
        }
        self.repaired += u64::from(!finding.remedies.is_empty());
        *self.kinds.entry(violation.kind).or_default() += 1;
        // The items of an array are one group.
        let steps = violation.pointer.split('/');
        let steps = steps.map(|step| step.parse::<u64>().map_or(step, |_| "*"));
        let rules = finding.remedies.iter().map(|remedy| remedy.rule.as_str());
        let group = (
            violation.kind,
            place(finding),
            steps.collect::<Vec<_>>().join("/"),
            rules.collect::<Vec<_>>().join(", "),
        );
        if self.groups.len() < MAX_GROUPS || self.groups.contains_key(&group) {
            *self.groups.entry(group).or_default() += 1;
        }
    }

    /// Adds the totals of a file, without its groups.
    pub(super) fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.unchecked += other.unchecked;
        self.refused += other.refused;
        self.ignored += other.ignored;
        self.repaired += other.repaired;
        self.of_dialect = self.of_dialect.take().or(other.of_dialect);
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
            text += &format!(" ({} of no known type)", self.unchecked);
        }
        if self.violations() == 0 {
            return text + ", no violation";
        }
        text += &format!(
            ", {}: {} refused, {} ignored; {} repaired by rules",
            counted(self.violations(), "violation"),
            self.refused,
            self.ignored,
            self.repaired
        );
        for (kind, total) in &self.kinds {
            text += &format!("\n{total:>6}  {kind}");
            for ((_, place, at, rules), count) in
                self.groups.iter().filter(|(one, _)| one.0 == *kind)
            {
                let what = format!("{place}  {}", pointer(at));
                text += &format!("\n{count:>14}  {}", printable(what.as_bytes()));
                if !rules.is_empty() {
                    text += &format!("  repaired by {rules}");
                }
            }
        }
        for side in [Side::Client, Side::Agent] {
            let (dialect, found) = match repairs.dialect(side) {
                None | Some(("canonical", _)) => continue,
                Some(read_as) => read_as,
            };
            text += &format!("\nthe {side} was read as {dialect}");
            if let Some(found) = found {
                text += &format!(", recognised by its {}", printable(found.by.as_bytes()));
            }
        }
        text
    }
}

/// Whether it is what the agent says differently, and no rule repairs it although one could.
pub(super) fn is_of_dialect(finding: &Finding) -> bool {
    let violation = finding.violation.as_ref();
    finding.side == Some(Side::Agent)
        && finding.remedies.is_empty()
        && finding.repaired_from.is_none()
        && violation.is_some_and(|violation| violation.kind.is_of_dialect())
}

/// Says on stderr how to repair what the agent in a file says differently.
pub(super) fn hint_at_table(path: &Path) {
    let path = path.to_string_lossy();
    let path = shell_words::quote(&path);
    note(&printable(
        format!("hint: a mapping table can repair this: acp-relay dialect new --from {path}")
            .as_bytes(),
    ));
}

/// The method, and whether this is its response.
fn place(finding: &Finding) -> String {
    let method = finding.method.as_deref().unwrap_or("-");
    match finding.kind {
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

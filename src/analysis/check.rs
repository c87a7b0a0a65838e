//! Checks captures against the official schemas of ACP, and shows the violations by line.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::lint::{Finding, Remedy};
use crate::repairs::Repairs;
use crate::text::counted;
use acp::{Checker, Consequence, Schema, Violation, ViolationKind};
use conversation::DialectChoice;
use dialect::{DialectError, Library};
use jsonrpc::{Kind, Side, printable};
use recording::capture::{Line, LineContent};

/// Most groups in the summary of a file.
const MAX_GROUPS: usize = 1000;

/// The check of one file.
#[derive(Debug)]
pub struct FileCheck {
    conversation: Checker,
    repairs: Repairs,
    /// The only sender.
    from: Option<Side>,
    /// The totals so far.
    pub summary: CheckSummary,
    /// The agent has a violation that a rule of a table could repair and none does.
    pub needs_table: bool,
}

/// The totals of `check` so far.
#[derive(Debug, Default)]
pub struct CheckSummary {
    messages: u64,
    /// Messages that are of no known type.
    unchecked: u64,
    refused: u64,
    ignored: u64,
    repaired: u64,
    kinds: BTreeMap<ViolationKind, u64>,
    /// By kind, place, pointer without indexes, and the rules that repair it.
    groups: BTreeMap<(ViolationKind, String, String, String), u64>,
}

impl FileCheck {
    /// For a client and an agent that speak these dialects, or for messages of one side.
    ///
    /// # Errors
    /// A dialect is not known.
    pub fn new(
        library: &Arc<Library>,
        client: &DialectChoice,
        agent: &DialectChoice,
        from: Option<Side>,
    ) -> Result<Self, DialectError> {
        let one_sided = from.is_some();
        Ok(Self {
            conversation: Checker::new(one_sided),
            repairs: Repairs::new(library, client, agent, one_sided)?,
            from,
            summary: CheckSummary::default(),
            needs_table: false,
        })
    }

    /// Checks the message of a line; returns its violations.
    pub fn line(&mut self, line: &Line) -> Vec<Finding> {
        let LineContent::Message { from, message, .. } = &line.content else {
            return Vec::new();
        };
        let (from, conversation) = (from.or(self.from), &mut self.conversation);
        if let Some(answer) = &line.negotiated {
            let answer: Value = serde_json::from_slice(answer.as_bytes()).unwrap_or_default();
            conversation.speaks(Side::Client, Schema::of_initialize(&answer["result"]));
        }
        let mut verdict = conversation.check_as(from, message, line.request_method.as_deref());
        let is_v1 = conversation.spoken(Side::Agent) == Schema::V1;
        match verdict.from {
            Some(side) if conversation.spoken(side) == Schema::V2 => self.repairs.skip(side),
            from => self.repairs.receive(from, message),
        }
        self.summary.messages += 1;
        self.summary.unchecked += u64::from(!verdict.checked);
        let violations = std::mem::take(&mut verdict.violations).into_iter();
        let finding = |violation: Violation| {
            let finding = Finding {
                remedies: self.repairs.rules(&violation),
                ..Finding::of_violation(line.number, &verdict, violation.clone())
            };
            self.summary.add_violation(&finding, &violation);
            self.needs_table |= is_v1 && finding.is_of_dialect();
            finding
        };
        violations.map(finding).collect()
    }

    /// The totals of one file and the dialects its sides were read as, as JSON.
    pub fn json(&self, path: &Path) -> Value {
        let read_as = |side| {
            self.repairs.dialect(side).map(
                |(dialect, found)| json!({"dialect": dialect, "by": found.map(|found| &found.by)}),
            )
        };
        json!({"file": path.to_string_lossy(), "checked": {
            "messages": self.summary.messages,
            "violations": self.summary.violations(),
            "repaired": self.summary.repaired,
            "client": read_as(Side::Client),
            "agent": read_as(Side::Agent),
        }})
    }

    /// The totals of one file, as text.
    pub fn text(&self, path: &Path) -> String {
        let summary = &self.summary;
        let gap = if summary.groups.is_empty() { "" } else { "\n" };
        let name = path.display().to_string();
        let messages = counted(summary.messages, "message");
        let mut text = format!("{gap}{}: {messages}", printable(name.as_bytes()));
        if summary.unchecked > 0 {
            text += &format!(" ({} of no known type)", summary.unchecked);
        }
        if summary.violations() == 0 {
            return text + ", no violation";
        }
        text += &format!(
            ", {}: {} refused, {} ignored; {} repaired by rules",
            counted(summary.violations(), "violation"),
            summary.refused,
            summary.ignored,
            summary.repaired
        );
        for (kind, total) in &summary.kinds {
            text += &format!("\n{total:>6}  {kind}");
            for ((_, place, at, rules), count) in
                summary.groups.iter().filter(|(one, _)| one.0 == *kind)
            {
                let what = format!("{place}  {}", pointer(at));
                text += &format!("\n{count:>14}  {}", printable(what.as_bytes()));
                if !rules.is_empty() {
                    text += &format!("  repaired by {rules}");
                }
            }
        }
        for side in [Side::Client, Side::Agent] {
            let (dialect, found) = match self.repairs.dialect(side) {
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

impl CheckSummary {
    /// The number of violations.
    pub const fn violations(&self) -> u64 {
        self.refused + self.ignored
    }

    /// The violations that no rule repairs.
    pub const fn unrepaired(&self) -> u64 {
        self.violations() - self.repaired
    }

    /// Adds the totals of a file, without its groups.
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.unchecked += other.unchecked;
        self.refused += other.refused;
        self.ignored += other.ignored;
        self.repaired += other.repaired;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }

    /// The totals of all files, as JSON.
    pub fn json(&self) -> Value {
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

    fn add_violation(&mut self, finding: &Finding, violation: &Violation) {
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
}

/// A violation in a capture as one JSON object.
pub fn line_json(path: &Path, finding: &Finding) -> Value {
    let violation = finding.violation.as_ref();
    json!({
        "file": path.to_string_lossy(),
        "line": finding.n,
        "side": finding.side,
        "role": finding.kind.map(Kind::name),
        "method": finding.method,
        "kind": violation.map(|one| one.kind),
        "severity": violation.map(|one| one.consequence),
        "pointer": violation.map(|one| &one.pointer),
        "found": violation.and_then(|one| one.found.as_ref()),
        "expected": violation.map(|one| &one.expected),
        "repaired": !finding.remedies.is_empty(),
        "rules": finding.remedies,
    })
}

/// A violation in a capture as a line of text, and one more for each rule that repairs it.
pub fn line_text(finding: &Finding) -> String {
    let Some(violation) = &finding.violation else {
        return String::new();
    };
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

//! The linter's findings in an open recording.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::recording::lint::{Finding, RULES};

/// Maximum findings kept; further ones are only counted.
const MAX_FINDINGS: usize = 100_000;

/// Maximum characters of a finding's text for the page.
const MAX_TEXT: usize = 400;

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// By the number of the event.
    by_event: BTreeMap<u64, Vec<Finding>>,
    /// Number of findings by the rule's id.
    counts: BTreeMap<&'static str, u64>,
    pub(super) total: usize,
    /// Those that hold only if no event follows; they are also in `found`.
    pub(super) provisional: Vec<Finding>,
    /// Number of items checked.
    pub(super) checked: usize,
}

impl Findings {
    /// The findings of the event with number `n`.
    pub(super) fn of_event(&self, n: u64) -> &[Finding] {
        self.by_event.get(&n).map_or(&[], Vec::as_slice)
    }

    /// Adds a finding. Returns whether it is kept.
    pub(super) fn add(&mut self, finding: &Finding) -> bool {
        if let Some(was) = finding.repaired_from {
            self.total -= 1;
            *self.counts.entry(was.id).or_default() -= 1;
            let of = self.by_event.get_mut(&finding.n);
            let is_old = |known: &Finding| known.rule == was && finding.what.ends_with(&known.what);
            if let Some(of) = of
                && let Some(at) = of.iter().position(is_old)
            {
                of.remove(at);
            }
        }
        self.total += 1;
        *self.counts.entry(finding.rule.id).or_default() += 1;
        let is_listed = self.total <= MAX_FINDINGS;
        if is_listed {
            let of = self.by_event.entry(finding.n).or_default();
            of.push(finding.clone());
        }
        is_listed
    }

    /// Removes a finding.
    pub(super) fn remove(&mut self, finding: &Finding) {
        self.total -= 1;
        *self.counts.entry(finding.rule.id).or_default() -= 1;
        if let Some(of) = self.by_event.get_mut(&finding.n) {
            of.retain(|known| known.rule != finding.rule);
        }
    }

    /// The rules with findings, the most severe first, with the number of findings.
    pub(super) fn rules(&self) -> Value {
        let mut rules: Vec<_> = RULES
            .iter()
            .filter(|rule| self.counts.get(rule.id).is_some_and(|count| *count > 0))
            .collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.severity));
        let rules = rules.into_iter().map(|rule| {
            json!({
                "id": rule.id,
                "severity": rule.severity.name(),
                "message": rule.description,
                "count": self.counts[rule.id],
            })
        });
        rules.collect()
    }

    /// `count` findings from the `from`th on, of one rule, or of all if `id` is empty.
    pub(super) fn list(&self, id: &str, from: usize, count: usize) -> Value {
        let all = self.by_event.values().flatten();
        let of = all.filter(|finding| id.is_empty() || finding.rule.id == id);
        of.skip(from).take(count).map(as_json).collect()
    }
}

/// A finding as the page gets it.
pub(super) fn as_json(finding: &Finding) -> Value {
    let what: String = finding.what.chars().take(MAX_TEXT).collect();
    json!({
        "n": finding.n,
        "t": finding.t,
        "id": finding.rule.id,
        "severity": finding.rule.severity.name(),
        "message": finding.rule.description,
        "side": finding.side.map(crate::jsonrpc::Side::name),
        "method": finding.method,
        "what": what,
    })
}

//! The linter's findings in an open recording.
//!
//! Linting takes many times longer than reading, so it has its own thread, which starts when the
//! recording has been read to its end and then follows it. A request without an answer becomes a
//! finding once no process writes the recording; until then the answer may come.

use std::collections::BTreeMap;
use std::io;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use serde_json::{Value, json};

use super::open_recording::{OpenRecording, POLL_INTERVAL};
use super::search::line_bytes;
use crate::recording::lint::{Finding, Linter, RULES};
use crate::recording::{Parsed, parse_line};

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
    provisional: Vec<Finding>,
    /// Number of items linted.
    pub(super) linted: usize,
}

/// The state of the linting thread.
pub(super) struct LintThread {
    pub(super) recording: Weak<OpenRecording>,
    pub(super) stopped: Receiver<()>,
}

impl Findings {
    /// The findings of the event with number `n`.
    pub(super) fn of_event(&self, n: u64) -> &[Finding] {
        self.by_event.get(&n).map_or(&[], Vec::as_slice)
    }

    /// Adds a finding. Returns whether it is kept.
    fn add(&mut self, finding: &Finding) -> bool {
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
    fn remove(&mut self, finding: &Finding) {
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
                "weight": rule.severity.name(),
                "says": rule.description,
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
        "weight": finding.rule.severity.name(),
        "says": finding.rule.description,
        "side": finding.side.map(crate::jsonrpc::Side::name),
        "method": finding.method,
        "what": what,
    })
}

impl LintThread {
    /// Lints until the recording is closed.
    pub(super) fn run(self) {
        // An error is reported by the thread that reads.
        let _ = self.lint();
    }

    fn lint(self) -> io::Result<()> {
        let mut linter = Linter::default();
        let (mut begun, mut settled) = (false, false);
        let (mut seen, mut headers) = (0, 0);
        while let Some(recording) = self.recording.upgrade() {
            let (whole, at_rest) = {
                let progress = recording.progress();
                let now = progress.borrow();
                (now.bytes >= now.total && now.revision > 0, now.complete)
            };
            let block = if whole || begun {
                recording.block(seen)?
            } else {
                None
            };
            begun |= block.is_some();
            // Headers of the segments up to this one; at the end also of one without events so far.
            let until = match &block {
                Some((items, _)) => items.first().map_or(0, |item| item.segment),
                None => u16::MAX,
            };
            if block.is_some() || at_rest && begun {
                for (segment, header) in &recording.index().headers[headers..] {
                    if *segment > until {
                        break;
                    }
                    linter.begin(header);
                    headers += 1;
                }
            }
            if let Some((items, block)) = block {
                let begin = items.first().map_or(0, |item| item.at);
                let mut found = Vec::new();
                for item in &items {
                    match parse_line(&line_bytes(&block, begin, item)) {
                        Parsed::Event(event) => found.extend(linter.add(&event)),
                        Parsed::Invalid(_) => linter.skip_line(),
                        Parsed::Header(_) => {}
                    }
                }
                seen += items.len();
                recording.add_findings(&found, Vec::new(), seen);
                settled = false;
                continue;
            }
            if at_rest && !settled {
                recording.add_findings(&[], linter.unanswered(), seen);
                settled = true;
            }
            drop(recording);
            if self.stopped.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl super::index::Index {
    /// Adds findings among the first `seen` items, and those that hold if there are no more items
    /// (`late`), which replace the previous ones.
    pub(super) fn set_findings(
        &mut self,
        found: &[Finding],
        provisional: Vec<Finding>,
        seen: usize,
    ) {
        self.findings.linted = seen;
        for finding in std::mem::take(&mut self.findings.provisional) {
            self.findings.remove(&finding);
            self.revise(finding.n);
        }
        for finding in found.iter().chain(&provisional) {
            if self.findings.add(finding) {
                self.revise(finding.n);
            }
        }
        self.findings.provisional = provisional;
    }

    fn revise(&mut self, n: u64) {
        let at = self.item_of(n);
        self.revised.push(u32::try_from(at).unwrap_or(u32::MAX));
    }
}

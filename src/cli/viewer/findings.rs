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

use super::book::{Book, NAP};
use super::search::part;
use crate::recording::lint::{Finding, Linter, RULES};
use crate::recording::{Found, line};

/// Maximum findings kept; further ones are only counted.
const KEPT: usize = 100_000;

/// Maximum characters of a finding's text for the page.
const SAYS: usize = 400;

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// By the number of the event.
    found: BTreeMap<u64, Vec<Finding>>,
    /// Number of findings by the rule's id.
    counts: BTreeMap<&'static str, u64>,
    pub(super) total: usize,
    /// Those that hold only if no event follows; they are also in `found`.
    late: Vec<Finding>,
    /// Number of items linted.
    pub(super) seen: usize,
}

/// The state of the linting thread.
pub(super) struct Inspector {
    pub(super) book: Weak<Book>,
    pub(super) stopped: Receiver<()>,
}

impl Findings {
    /// The findings of the event with number `n`.
    pub(super) fn about(&self, n: u64) -> &[Finding] {
        self.found.get(&n).map_or(&[], Vec::as_slice)
    }

    /// Adds a finding. Returns whether it is kept.
    fn add(&mut self, finding: &Finding) -> bool {
        if let Some(was) = finding.was {
            self.total -= 1;
            *self.counts.entry(was.id).or_default() -= 1;
            let of = self.found.get_mut(&finding.n);
            let is_old = |known: &Finding| known.rule == was && finding.what.ends_with(&known.what);
            if let Some(of) = of
                && let Some(at) = of.iter().position(is_old)
            {
                of.remove(at);
            }
        }
        self.total += 1;
        *self.counts.entry(finding.rule.id).or_default() += 1;
        let kept = self.total <= KEPT;
        if kept {
            let of = self.found.entry(finding.n).or_default();
            of.push(finding.clone());
        }
        kept
    }

    /// Removes a finding.
    fn remove(&mut self, finding: &Finding) {
        self.total -= 1;
        *self.counts.entry(finding.rule.id).or_default() -= 1;
        if let Some(of) = self.found.get_mut(&finding.n) {
            of.retain(|known| known.rule != finding.rule);
        }
    }

    /// The rules with findings, the most severe first, with the number of findings.
    pub(super) fn rules(&self) -> Value {
        let mut rules: Vec<_> = RULES
            .iter()
            .filter(|rule| self.counts.get(rule.id).is_some_and(|count| *count > 0))
            .collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.weight));
        let rules = rules.into_iter().map(|rule| {
            json!({
                "id": rule.id,
                "weight": rule.weight.name(),
                "says": rule.says,
                "count": self.counts[rule.id],
            })
        });
        rules.collect()
    }

    /// `count` findings from the `from`th on, of one rule, or of all if `id` is empty.
    pub(super) fn list(&self, id: &str, from: usize, count: usize) -> Value {
        let all = self.found.values().flatten();
        let of = all.filter(|finding| id.is_empty() || finding.rule.id == id);
        of.skip(from).take(count).map(as_json).collect()
    }
}

/// A finding as the page gets it.
pub(super) fn as_json(finding: &Finding) -> Value {
    let what: String = finding.what.chars().take(SAYS).collect();
    json!({
        "n": finding.n,
        "t": finding.t,
        "id": finding.rule.id,
        "weight": finding.rule.weight.name(),
        "says": finding.rule.says,
        "side": finding.side.map(crate::jsonrpc::Side::name),
        "method": finding.method,
        "what": what,
    })
}

impl Inspector {
    /// Lints until the recording is closed.
    pub(super) fn work(self) {
        // An error is reported by the thread that reads.
        let _ = self.inspect();
    }

    fn inspect(self) -> io::Result<()> {
        let mut linter = Linter::default();
        let (mut begun, mut settled) = (false, false);
        let (mut seen, mut headers) = (0, 0);
        while let Some(book) = self.book.upgrade() {
            let (whole, at_rest) = {
                let progress = book.progress();
                let now = progress.borrow();
                (now.bytes >= now.of && now.revision > 0, now.at_rest)
            };
            let block = if whole || begun {
                book.block(seen)?
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
                for (segment, header) in &book.index().headers[headers..] {
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
                    match line(&part(&block, begin, item)) {
                        Found::Event(event) => found.extend(linter.see(&event)),
                        Found::Broken(_) => linter.miss(),
                        Found::Header(_) => {}
                    }
                }
                seen += items.len();
                book.found(&found, Vec::new(), seen);
                settled = false;
                continue;
            }
            if at_rest && !settled {
                book.found(&[], linter.rest(), seen);
                settled = true;
            }
            drop(book);
            if self.stopped.recv_timeout(NAP) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl super::index::Index {
    /// Adds findings among the first `seen` items, and those that hold if there are no more items
    /// (`late`), which replace the previous ones.
    pub(super) fn find(&mut self, found: &[Finding], late: Vec<Finding>, seen: usize) {
        self.findings.seen = seen;
        for finding in std::mem::take(&mut self.findings.late) {
            self.findings.remove(&finding);
            self.revise(finding.n);
        }
        for finding in found.iter().chain(&late) {
            if self.findings.add(finding) {
                self.revise(finding.n);
            }
        }
        self.findings.late = late;
    }

    fn revise(&mut self, n: u64) {
        let at = self.item_of(n);
        self.revised.push(u32::try_from(at).unwrap_or(u32::MAX));
    }
}

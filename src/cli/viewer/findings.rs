//! What the linter finds in a recording that is being looked at.
//!
//! It takes many times longer than reading, so it has a thread of its own, which begins when the
//! recording has been read to its end and waits for more as that does. That a request has no answer
//! is a finding once nobody writes the recording any more; until then the answer may come. Not here:
//! what is looked for (see `recording::lint`).

use std::collections::BTreeMap;
use std::io;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use serde_json::{Value, json};

use super::book::{Book, NAP};
use super::search::part;
use crate::recording::lint::{Finding, Linter, RULES};
use crate::recording::{Found, line};

/// Findings that are kept; of what comes after them, the number.
const KEPT: usize = 100_000;

/// Characters of what a finding says that are given to the page.
const SAYS: usize = 400;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// By the number of the event.
    found: BTreeMap<u64, Vec<Finding>>,
    /// How many, by the rule's id.
    counts: BTreeMap<&'static str, u64>,
    pub(super) total: usize,
    /// Those that hold only as long as nothing comes after them; they are among `found`.
    late: Vec<Finding>,
    /// Items that were looked at.
    pub(super) seen: usize,
}

/// What the thread holds.
pub(super) struct Inspector {
    pub(super) book: Weak<Book>,
    pub(super) stopped: Receiver<()>,
}

impl Findings {
    /// What was found about the event with number `n`.
    pub(super) fn about(&self, n: u64) -> &[Finding] {
        self.found.get(&n).map_or(&[], Vec::as_slice)
    }

    /// Takes some in. Whether it is kept.
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

    /// Takes one out again.
    fn remove(&mut self, finding: &Finding) {
        self.total -= 1;
        *self.counts.entry(finding.rule.id).or_default() -= 1;
        if let Some(of) = self.found.get_mut(&finding.n) {
            of.retain(|known| known.rule != finding.rule);
        }
    }

    /// The rules that were broken, the worst first, each with how often.
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

    /// The findings of one rule, or of all when there is no id: from the `from`th, so many.
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
    /// Looks at events until the recording is over, or nobody looks at it any more.
    pub(super) fn work(self) {
        // What cannot be read is said by the thread that reads.
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
            // Those of segments that have begun; at the end also of one that has no event yet.
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
    /// Takes in what was found among the first `seen` items, and what is so if they are all
    /// (`late`), which stands for what was late before.
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

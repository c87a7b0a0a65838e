//! Searches: the lines of a recording that match a filter.
//!
//! Filtering a large recording takes longer than a page waits, so each request continues a search
//! where the last one stopped. An answer or a finding may become known after an event was checked:
//! the index lists such events, and they are checked again.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::content::Content;
use super::index::{Class, Index, Item, insert_key};
use crate::recording::filter::{DerivedFields, Field, Filter};
use crate::recording::{Parsed, parse_line};

/// Time that one request may search.
const TIME_BUDGET: Duration = Duration::from_millis(120);

/// Maximum number of searches kept.
const MAX_SEARCHES: usize = 6;

/// Changed items that are checked again between two checks of the clock.
const RECHECK_BATCH: usize = 64;

/// The most recent searches.
#[derive(Debug, Default)]
pub(super) struct Searches(VecDeque<Search>);

/// A filter and its matches.
#[derive(Clone, Debug)]
pub(super) struct Search {
    filter: Filter,
    all: bool,
    /// The filter depends on facts that may become known later.
    needs_recheck: bool,
    /// Number of items checked.
    pub(super) checked: usize,
    /// The keys of the matches, in order.
    pub(super) keys: Vec<u64>,
    /// Number of the index's changes that were processed.
    revised: usize,
}

/// Facts about an event that are not in its line.
#[derive(Debug, Default)]
struct Known {
    duration: Option<u64>,
    lint: Vec<&'static str>,
}

impl Searches {
    /// The matches so far, after some more searching; among all events (`all`) or those shown while
    /// runs are folded.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(super) fn run(
        &mut self,
        recording: &Content,
        filter: &Filter,
        all: bool,
    ) -> io::Result<&Search> {
        let text = filter.to_string();
        let known = |search: &Search| search.filter.to_string() == text && search.all == all;
        let search = match self.0.iter().position(known) {
            Some(at) => self.0.remove(at).expect("it was just found there"),
            None => Search::new(filter.clone(), all),
        };
        self.0.push_front(search);
        self.0.truncate(MAX_SEARCHES);
        self.0[0].advance(recording)?;
        Ok(&self.0[0])
    }
}

impl Search {
    fn new(filter: Filter, all: bool) -> Self {
        Self {
            needs_recheck: filter.uses(Field::Dur) || filter.uses(Field::Lint),
            filter,
            all,
            checked: 0,
            keys: Vec::new(),
            revised: 0,
        }
    }

    /// Whether every item is checked.
    pub(super) const fn is_done(&self, index: &Index) -> bool {
        self.checked >= index.items.len()
            && (!self.needs_recheck || self.revised >= index.revised.len())
    }

    /// Continues for a while.
    fn advance(&mut self, recording: &Content) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < TIME_BUDGET
            && (self.recheck(recording)? || self.check_next(recording)?)
        {}
        Ok(())
    }

    /// Checks the next events. Returns whether there were any.
    fn check_next(&mut self, recording: &Content) -> io::Result<bool> {
        let block = recording.block(self.checked)?;
        let known: Vec<Known> = if self.needs_recheck {
            let index = recording.index();
            (block.iter())
                .map(|(item, _)| Known::of(item, &index))
                .collect()
        } else {
            Vec::new()
        };
        let none = Known::default();
        for (at, (item, line)) in block.iter().enumerate() {
            if self.accepts(item, line, known.get(at).unwrap_or(&none)) {
                insert_key(&mut self.keys, item.key(self.checked + at));
            }
        }
        self.checked += block.len();
        Ok(!block.is_empty())
    }

    /// Checks changed events again. Returns whether there were any.
    fn recheck(&mut self, recording: &Content) -> io::Result<bool> {
        if !self.needs_recheck {
            return Ok(false);
        }
        let changed: Vec<(u32, Item, Known)> = {
            let index = recording.index();
            let rest = index.revised.get(self.revised..).unwrap_or_default();
            let rest = &rest[..rest.len().min(RECHECK_BATCH)];
            self.revised += rest.len();
            let mut rest = rest.to_vec();
            rest.dedup();
            (rest.into_iter())
                .filter(|at| (*at as usize) < self.checked)
                .map(|at| {
                    let item = index.items[at as usize];
                    (at, item, Known::of(&item, &index))
                })
                .collect()
        };
        let any = !changed.is_empty();
        for (at, item, known) in changed {
            let holds = self.accepts(&item, &recording.span(&item, &item)?, &known);
            let key = item.key(at as usize);
            match (self.keys.binary_search(&key), holds) {
                (Err(place), true) => self.keys.insert(place, key),
                (Ok(place), false) => {
                    self.keys.remove(place);
                }
                _ => {}
            }
        }
        Ok(any)
    }

    fn accepts(&self, item: &Item, line: &Bytes, known: &Known) -> bool {
        if item.class == Class::Forwarded && !self.all {
            return false;
        }
        let facts = DerivedFields {
            duration: known.duration,
            lint: &known.lint,
        };
        matches!(parse_line(line), Parsed::Event(event) if self.filter.matches(&event, facts))
    }
}

impl Known {
    fn of(item: &Item, index: &Index) -> Self {
        let found = index.findings.of_event(item.n).iter();
        Self {
            duration: index.exchanges.duration(item.n),
            lint: found.map(|finding| finding.rule.id).collect(),
        }
    }
}

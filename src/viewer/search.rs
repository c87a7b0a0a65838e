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
use super::index::{Class, Index, Item};
use analysis::filter::{DerivedFields, Field, Filter};
use recording::{Parsed, parse_line};

/// Time that one request may search.
const TIME_BUDGET: Duration = Duration::from_millis(120);

/// Maximum number of searches kept.
const MAX_SEARCHES: usize = 6;

/// The most recent searches.
#[derive(Debug, Default)]
pub(super) struct Searches(VecDeque<Search>);

/// A filter and its matches.
#[derive(Clone, Debug)]
pub(super) struct Search {
    filter: Filter,
    all: bool,
    /// The filter depends on facts that may become known later.
    is_derived: bool,
    /// Number of items checked.
    pub(super) checked: usize,
    /// The keys of the matches, in order.
    pub(super) keys: Vec<u64>,
    /// Number of the index's changes that were processed.
    revised: usize,
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
        let known = self.0.iter().position(known);
        let search = match known.and_then(|at| self.0.remove(at)) {
            Some(search) => search,
            None => Search {
                is_derived: filter.uses(Field::Dur) || filter.uses(Field::Lint),
                filter: filter.clone(),
                all,
                checked: 0,
                keys: Vec::new(),
                revised: 0,
            },
        };
        self.0.truncate(MAX_SEARCHES - 1);
        self.0.push_front(search);
        let search = self.0.front_mut().ok_or(io::ErrorKind::NotFound)?;
        search.advance(recording)?;
        Ok(search)
    }
}

impl Search {
    /// Whether every item is checked.
    pub(super) const fn is_done(&self, index: &Index) -> bool {
        self.checked >= index.items.len()
            && (!self.is_derived || self.revised >= index.revised.len())
    }

    /// Continues for a while: first with the items that have changed, then with new ones.
    fn advance(&mut self, content: &Content) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < TIME_BUDGET {
            let changed = match self.is_derived {
                true => content.index().revised.get(self.revised).copied(),
                false => None,
            };
            if let Some(at) = changed {
                self.revised += 1;
                let at = at as usize;
                let item = content.index().items.get(at).copied();
                if let Some(item) = item.filter(|_| at < self.checked) {
                    self.check(content, at, &item, &content.span(&item, &item)?);
                }
                continue;
            }
            let block = content.block(self.checked)?;
            if block.is_empty() {
                break;
            }
            for (item, line) in &block {
                self.check(content, self.checked, item, line);
                self.checked += 1;
            }
        }
        Ok(())
    }

    /// Checks an item, perhaps again.
    fn check(&mut self, content: &Content, at: usize, item: &Item, line: &Bytes) {
        let key = item.key(at);
        match (
            self.keys.binary_search(&key),
            self.accepts(content, item, line),
        ) {
            (Err(place), true) => self.keys.insert(place, key),
            (Ok(place), false) => drop(self.keys.remove(place)),
            _ => {}
        }
    }

    fn accepts(&self, content: &Content, item: &Item, line: &Bytes) -> bool {
        if item.class == Class::Forwarded && !self.all {
            return false;
        }
        let Parsed::Event(event) = parse_line(line) else {
            return false;
        };
        if !self.is_derived {
            return self.filter.matches(&event, DerivedFields::default());
        }
        let index = content.index();
        let found = index.findings.of_event(item.n).iter();
        let ids: Vec<&str> = found.map(|finding| finding.rule.id).collect();
        let derived = DerivedFields {
            duration: index.exchanges.duration(item.n),
            lint: &ids,
        };
        self.filter.matches(&event, derived)
    }
}

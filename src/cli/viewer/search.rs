//! Searches: the lines of a recording that match a filter.
//!
//! Filtering a large recording takes longer than a page waits, so each request continues a search
//! where the last one stopped. An answer or a finding may become known after an event was checked:
//! the index lists such events, and they are checked again.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::book::Book;
use super::index::{Class, Index, Item, put};
use crate::recording::filter::{Facts, Field, Filter};
use crate::recording::{Found, line};

/// Time that one request may search.
const PATIENCE: Duration = Duration::from_millis(120);

/// Maximum number of searches kept.
const KEPT: usize = 6;

/// Changed items that are checked again between two checks of the clock.
const AGAIN: usize = 64;

/// The most recent searches.
#[derive(Debug, Default)]
pub(super) struct Searches(VecDeque<Search>);

/// A filter and its matches.
#[derive(Clone, Debug)]
pub(super) struct Search {
    filter: Filter,
    all: bool,
    /// The filter depends on facts that may become known later.
    looks_back: bool,
    /// Number of items checked.
    pub(super) seen: usize,
    /// The keys of the matches, in order.
    pub(super) through: Vec<u64>,
    /// Number of the index's changes that were processed.
    revised: usize,
}

/// Facts about an event that are not in its line.
#[derive(Debug, Default)]
struct Known {
    took: Option<u64>,
    lint: Vec<&'static str>,
}

impl Searches {
    /// The matches so far, after some more searching; among all events (`all`) or those shown while
    /// runs are folded.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(super) fn ask(&mut self, book: &Book, filter: &Filter, all: bool) -> io::Result<&Search> {
        let text = filter.to_string();
        let known = |search: &Search| search.filter.to_string() == text && search.all == all;
        let search = match self.0.iter().position(known) {
            Some(at) => self.0.remove(at).expect("it was just found there"),
            None => Search::new(filter.clone(), all),
        };
        self.0.push_front(search);
        self.0.truncate(KEPT);
        self.0[0].go_on(book)?;
        Ok(&self.0[0])
    }
}

impl Search {
    fn new(filter: Filter, all: bool) -> Self {
        Self {
            looks_back: filter.asks(Field::Dur) || filter.asks(Field::Lint),
            filter,
            all,
            seen: 0,
            through: Vec::new(),
            revised: 0,
        }
    }

    /// Whether every item is checked.
    pub(super) const fn is_done(&self, index: &Index) -> bool {
        self.seen >= index.items.len() && (!self.looks_back || self.revised >= index.revised.len())
    }

    /// Continues for a while.
    fn go_on(&mut self, book: &Book) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE && (self.look_back(book)? || self.look_on(book)?) {}
        Ok(())
    }

    /// Checks the next events. Returns whether there were any.
    fn look_on(&mut self, book: &Book) -> io::Result<bool> {
        let Some((items, block)) = book.block(self.seen)? else {
            return Ok(false);
        };
        let known: Vec<Known> = if self.looks_back {
            let index = book.index();
            items.iter().map(|item| Known::of(item, &index)).collect()
        } else {
            Vec::new()
        };
        let none = Known::default();
        let begin = items.first().map_or(0, |item| item.at);
        for (at, item) in items.iter().enumerate() {
            let bytes = part(&block, begin, item);
            if self.lets_through(item, &bytes, known.get(at).unwrap_or(&none)) {
                put(&mut self.through, item.key(self.seen + at));
            }
        }
        self.seen += items.len();
        Ok(true)
    }

    /// Checks changed events again. Returns whether there were any.
    fn look_back(&mut self, book: &Book) -> io::Result<bool> {
        if !self.looks_back {
            return Ok(false);
        }
        let changed: Vec<(u32, Item, Known)> = {
            let index = book.index();
            let rest = index.revised.get(self.revised..).unwrap_or_default();
            let rest = &rest[..rest.len().min(AGAIN)];
            self.revised += rest.len();
            let mut rest = rest.to_vec();
            rest.dedup();
            (rest.into_iter())
                .filter(|at| (*at as usize) < self.seen)
                .map(|at| {
                    let item = index.items[at as usize];
                    (at, item, Known::of(&item, &index))
                })
                .collect()
        };
        let any = !changed.is_empty();
        for (at, item, known) in changed {
            let holds = self.lets_through(&item, &book.span(&item, &item)?, &known);
            let key = item.key(at as usize);
            match (self.through.binary_search(&key), holds) {
                (Err(place), true) => self.through.insert(place, key),
                (Ok(place), false) => {
                    self.through.remove(place);
                }
                _ => {}
            }
        }
        Ok(any)
    }

    fn lets_through(&self, item: &Item, bytes: &Bytes, known: &Known) -> bool {
        if item.class == Class::Passed && !self.all {
            return false;
        }
        let facts = Facts {
            took: known.took,
            lint: &known.lint,
        };
        matches!(line(bytes), Found::Event(event) if self.filter.matches(&event, facts))
    }
}

impl Known {
    fn of(item: &Item, index: &Index) -> Self {
        let found = index.findings.about(item.n).iter();
        Self {
            took: index.took(item.n),
            lint: found.map(|finding| finding.rule.id).collect(),
        }
    }
}

/// The line of an item in a block that begins at `begin`.
pub(super) fn part(block: &Bytes, begin: u64, item: &Item) -> Bytes {
    let start = usize::try_from(item.at - begin).unwrap_or(usize::MAX);
    let end = start.saturating_add(item.length as usize).min(block.len());
    block.slice(start.min(end)..end)
}

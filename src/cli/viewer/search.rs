//! Which lines of a recording a filter lets through.
//!
//! Passing a large recording through takes longer than a page waits, so a search goes on where it
//! stopped with each question. What is known of an event may come after it was looked at (an
//! answer, a finding): the index says of which, and those are looked at again. Not here: the
//! language (see `recording::filter`), reading (see `book`).

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::book::Book;
use super::index::{Class, Index, Item, put};
use crate::recording::filter::{Facts, Field, Filter};
use crate::recording::{Found, line};

/// How long one question may search.
const PATIENCE: Duration = Duration::from_millis(120);

/// Searches whose results are kept.
const KEPT: usize = 6;

/// Results of a search that are looked at again between two looks at the clock.
const AGAIN: usize = 64;

/// The searches that were asked for last.
#[derive(Debug, Default)]
pub(super) struct Searches(VecDeque<Search>);

/// A filter and what it has let through.
#[derive(Clone, Debug)]
pub(super) struct Search {
    filter: Filter,
    all: bool,
    /// It asks for what may become known later.
    looks_back: bool,
    /// Items that were looked at.
    pub(super) seen: usize,
    /// The keys of those let through, in order.
    pub(super) through: Vec<u64>,
    /// Revisions of the index that were taken in.
    revised: usize,
}

/// What a filter is told of an event besides what stands in it.
#[derive(Debug, Default)]
struct Known {
    took: Option<u64>,
    lint: Vec<&'static str>,
}

impl Searches {
    /// The result so far, after some more searching; over every event (`all`) or those that are
    /// shown while runs are folded.
    ///
    /// # Errors
    /// When the recording cannot be read.
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

    /// Whether there is nothing left to look at.
    pub(super) const fn is_done(&self, index: &Index) -> bool {
        self.seen >= index.items.len() && (!self.looks_back || self.revised >= index.revised.len())
    }

    /// Goes on for a while.
    fn go_on(&mut self, book: &Book) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE && (self.look_back(book)? || self.look_on(book)?) {}
        Ok(())
    }

    /// Looks at the next events. Whether there were any.
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

    /// Looks again at events of which more is known now. Whether there were any.
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

//! How long the relay itself takes over messages.
//!
//! Not here: how that is measured (see `proxy::turn`).

use std::time::Duration;

use super::cells::{Cell, Count, Reading, Table};
use super::words::{DIRECTIONS, TRANSLATED};

/// Upper bounds, in nanoseconds: 1 µs to 100 ms.
const BOUNDS: [u64; 12] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    5_000_000,
    25_000_000,
    100_000_000,
];

/// How often a message took how long, by who said it and whether it was translated.
#[derive(Debug)]
pub(super) struct Pace<C> {
    buckets: Table<C, 3>,
    nanos: Table<C, 2>,
}

impl<C: Default> Pace<C> {
    pub(super) fn new() -> Self {
        let (sides, kinds) = (DIRECTIONS.len(), TRANSLATED.len());
        Self {
            buckets: Table::new([sides, kinds, BOUNDS.len() + 1]),
            nanos: Table::new([sides, kinds]),
        }
    }
}

impl<C> Pace<C> {
    fn read(&self, from: usize, translated: usize, get: fn(&C) -> u64) -> Reading
    where
        C: Default,
    {
        #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
        let bound = |nanos: u64| nanos as f64 / 1e9;
        let bounds = BOUNDS.into_iter().map(bound).chain([f64::INFINITY]);
        let count = |at| get(self.buckets.at([from, translated, at]));
        let nanos = get(self.nanos.at([from, translated]));
        Reading {
            sum: Duration::from_nanos(nanos).as_secs_f64(),
            buckets: bounds
                .enumerate()
                .map(|(at, bound)| (bound, count(at)))
                .collect(),
        }
    }
}

impl Pace<Cell> {
    /// So many messages took so long, all together.
    pub(super) fn took(&self, from: usize, translated: bool, messages: u64, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let each = nanos / messages.max(1);
        let at = BOUNDS.partition_point(|bound| *bound < each);
        let kind = usize::from(translated);
        self.buckets.at([from, kind, at]).add(messages);
        self.nanos.at([from, kind]).add(nanos);
    }

    pub(super) fn of(&self, from: usize, translated: usize) -> Reading {
        self.read(from, translated, Cell::get)
    }
}

impl Pace<Count> {
    pub(super) fn of(&self, from: usize, translated: usize) -> Reading {
        self.read(from, translated, Count::get)
    }

    /// Adds a conversation's that is over.
    pub(super) fn add(&self, other: &Pace<Cell>) {
        let buckets = self.buckets.cells().iter().zip(other.buckets.cells());
        let nanos = self.nanos.cells().iter().zip(other.nanos.cells());
        for (past, own) in buckets.chain(nanos) {
            past.add(own.get());
        }
    }
}

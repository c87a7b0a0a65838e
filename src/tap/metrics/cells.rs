//! Numbers that one task writes and others read, and numbers that all write.
//!
//! Not here: what they count.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A number with one writer.
#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU64);

/// A number with many writers.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

/// A table of numbers, by the numbers of words.
#[derive(Debug)]
pub(super) struct Table<C, const W: usize>(Box<[C]>, [usize; W]);

/// How often something took how long.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds.
    buckets: Box<[AtomicU64]>,
    nanos: AtomicU64,
}

impl Cell {
    /// Adds, as the only one that does.
    pub(super) fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Relaxed);
    }

    /// Takes away, as the only one that does; never below nothing.
    pub(super) fn take(&self, less: u64) {
        self.0.store(self.get().saturating_sub(less), Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Count {
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub(super) fn take(&self, less: u64) {
        self.0.fetch_sub(less, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl<C: Default, const W: usize> Table<C, W> {
    pub(super) fn new(widths: [usize; W]) -> Self {
        let size = widths.iter().product();
        Self((0..size).map(|_| C::default()).collect(), widths)
    }

    pub(super) fn at(&self, place: [usize; W]) -> &C {
        let mut at = 0;
        for (one, width) in place.into_iter().zip(self.1) {
            at = at * width + one;
        }
        &self.0[at]
    }

    /// All of them, in the order of their places.
    pub(super) fn cells(&self) -> &[C] {
        &self.0
    }
}

impl Histogram {
    /// With these upper bounds of its buckets, in seconds.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            buckets: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            nanos: AtomicU64::new(0),
        }
    }

    pub(super) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let at = self.bounds.partition_point(|bound| *bound < seconds);
        self.buckets[at].fetch_add(1, Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Relaxed);
    }

    pub(super) fn read(&self) -> Reading {
        let nanos = self.nanos.load(Relaxed);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        Reading {
            sum: Duration::from_nanos(nanos).as_secs_f64(),
            buckets: bounds.zip(counts).collect(),
        }
    }
}

/// What a histogram says: the upper bounds and what is in each bucket alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) sum: f64,
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Reading {
    /// This and another one of the same bounds.
    pub(super) fn plus(mut self, other: Self) -> Self {
        self.sum += other.sum;
        for ((_, count), (_, more)) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

//! Numbers that one task writes and others read, and numbers that all write.
//!
//! Not here: what they count.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A number with one writer.
#[derive(Debug, Default)]
pub(in crate::observe) struct Cell(AtomicU64);

/// A number with many writers.
#[derive(Debug, Default)]
pub(in crate::observe) struct Count(AtomicU64);

/// A table of numbers, by the numbers of words.
#[derive(Debug)]
pub(in crate::observe) struct Table<C, const W: usize>(Box<[C]>, [usize; W]);

/// How often something took how long.
#[derive(Debug)]
pub(in crate::observe) struct Histogram<C = Count> {
    bounds: &'static [f64],
    /// One more than there are bounds.
    buckets: Box<[C]>,
    nanos: C,
}

/// A number that is added to, however many do.
pub(in crate::observe) trait Number: Default {
    fn more(&self, by: u64);
    fn now(&self) -> u64;
}

impl Number for Cell {
    fn more(&self, by: u64) {
        self.add(by);
    }

    fn now(&self) -> u64 {
        self.get()
    }
}

impl Number for Count {
    fn more(&self, by: u64) {
        self.add(by);
    }

    fn now(&self) -> u64 {
        self.get()
    }
}

impl Cell {
    /// Is this from now on.
    pub(in crate::observe) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds, as the only one that does.
    pub(in crate::observe) fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Relaxed);
    }

    /// Takes away, as the only one that does; never below nothing.
    pub(in crate::observe) fn take(&self, less: u64) {
        self.0.store(self.get().saturating_sub(less), Relaxed);
    }

    pub(in crate::observe) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Count {
    pub(in crate::observe) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(in crate::observe) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub(in crate::observe) fn take(&self, less: u64) {
        self.0.fetch_sub(less, Relaxed);
    }

    pub(in crate::observe) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl<C: Default, const W: usize> Table<C, W> {
    pub(in crate::observe) fn new(widths: [usize; W]) -> Self {
        let size = widths.iter().product();
        Self((0..size).map(|_| C::default()).collect(), widths)
    }

    pub(in crate::observe) fn at(&self, place: [usize; W]) -> &C {
        let mut at = 0;
        for (one, width) in place.into_iter().zip(self.1) {
            at = at * width + one;
        }
        &self.0[at]
    }

    /// All of them, in the order of their places.
    pub(in crate::observe) fn cells(&self) -> &[C] {
        &self.0
    }
}

impl<C: Number> Histogram<C> {
    /// With these upper bounds of its buckets, in seconds.
    pub(in crate::observe) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            buckets: (0..=bounds.len()).map(|_| C::default()).collect(),
            nanos: C::default(),
        }
    }

    pub(in crate::observe) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let at = self.bounds.partition_point(|bound| *bound < seconds);
        self.buckets[at].more(1);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.more(nanos);
    }

    /// Adds what another one of the same bounds says.
    pub(in crate::observe) fn absorb<D: Number>(&self, other: &Histogram<D>) {
        for (own, other) in self.buckets.iter().zip(&other.buckets) {
            own.more(other.now());
        }
        self.nanos.more(other.nanos.now());
    }

    pub(in crate::observe) fn read(&self) -> Reading {
        let nanos = self.nanos.now();
        let counts = self.buckets.iter().map(Number::now);
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        Reading {
            sum: Duration::from_nanos(nanos).as_secs_f64(),
            buckets: bounds.zip(counts).collect(),
        }
    }
}

/// What a histogram says: the upper bounds and what is in each bucket alone.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::observe) struct Reading {
    pub(in crate::observe) sum: f64,
    pub(in crate::observe) buckets: Vec<(f64, u64)>,
}

impl Reading {
    /// This and another one of the same bounds.
    pub(in crate::observe) fn plus(mut self, other: Self) -> Self {
        self.sum += other.sum;
        for ((_, count), (_, more)) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self
    }

    pub(in crate::observe) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

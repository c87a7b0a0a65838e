//! Events of the series of one family that are not added to them yet.

use std::sync::Arc;

use metrics::Counter;

use super::buckets::Buckets;
use super::registry::{Family, Handle};

/// Series and buckets whose events may wait; at one more, all are added.
const MOST: usize = 8;

/// What is to be added, by series and bucket. Searched, not hashed: a conversation meets a few
/// series of a family.
#[derive(Debug, Default)]
pub(super) struct Pending(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    /// Of the series in the family, and of the bucket in a histogram.
    place: (u32, u32),
    count: u64,
    /// Of the samples of a histogram.
    sum: u64,
}

impl Pending {
    pub(super) fn count<const N: usize>(
        &mut self,
        to: &Family<Counter, N>,
        place: [usize; N],
        count: u64,
    ) {
        self.sample(to, place, (0, count, 0));
    }

    /// Adds so many samples of one bucket, and their sum.
    pub(super) fn sample<H: Collects, const N: usize>(
        &mut self,
        to: &Family<H, N>,
        place: [usize; N],
        (bucket, count, sum): (usize, u64, u64),
    ) {
        let place = (to.index(place) as u32, bucket as u32);
        if let Some(known) = self.0.iter_mut().find(|known| known.place == place) {
            known.count += count;
            known.sum = known.sum.saturating_add(sum);
            return;
        }
        // It never grows: the message path does not allocate.
        if self.0.len() == MOST {
            self.flush(to);
        }
        if self.0.capacity() == 0 {
            self.0.reserve_exact(MOST);
        }
        self.0.push(Entry { place, count, sum });
    }

    /// Moves all to the series.
    pub(super) fn flush<H: Collects, const N: usize>(&mut self, to: &Family<H, N>) {
        for Entry { place, count, sum } in self.0.drain(..) {
            let (index, bucket) = place;
            to.get(index as usize).add(bucket as usize, count, sum);
        }
    }
}

/// The handle of a series that takes several events at once.
pub(super) trait Collects: Handle {
    fn add(&self, bucket: usize, count: u64, sum: u64);
}

impl Collects for Counter {
    fn add(&self, _: usize, count: u64, _: u64) {
        self.increment(count);
    }
}

impl Collects for Arc<Buckets> {
    fn add(&self, bucket: usize, count: u64, sum: u64) {
        Buckets::add(self, bucket, count, sum);
    }
}

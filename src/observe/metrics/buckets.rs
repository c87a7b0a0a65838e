//! Histograms, which are counted by bucket.
//!
//! A histogram of the `metrics` crate takes one sample at a time, and the exporter keeps each of them
//! until its upkeep. That allocates on the message path.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use metrics_exporter_prometheus::LabelSet;
use metrics_exporter_prometheus::formatting::write_metric_line;

use super::metric::Metric;

/// Buckets that a histogram has at most.
const MOST: usize = 17;

/// One series of a histogram. Takes the same memory however many samples there are.
#[derive(Debug)]
pub(crate) struct Buckets {
    pub(super) name: &'static str,
    labels: LabelSet,
    bounds: &'static [f64],
    /// One more than there are bounds; not cumulative.
    counts: [AtomicU64; MOST],
    /// In bytes or nanoseconds.
    sum: AtomicU64,
}

impl Buckets {
    pub(super) fn new(metric: &'static Metric, labels: &[&str]) -> Self {
        debug_assert!((1..MOST).contains(&metric.bounds.len()), "{}", metric.name);
        Self {
            name: metric.name,
            labels: LabelSet::from_key_and_global(&metric.key(labels), &Default::default()),
            bounds: metric.bounds,
            counts: Default::default(),
            sum: AtomicU64::new(0),
        }
    }

    /// The bucket of a duration.
    pub(super) fn bucket(&self, took: Duration) -> usize {
        let seconds = took.as_secs_f64();
        self.bounds.partition_point(|bound| *bound < seconds)
    }

    /// Adds one duration.
    pub(crate) fn record(&self, took: Duration) {
        self.add(self.bucket(took), 1, nanos(took));
    }

    /// Adds so many samples of one bucket, and their sum in bytes or nanoseconds.
    pub(super) fn add(&self, bucket: usize, samples: u64, sum: u64) {
        self.counts[bucket].fetch_add(samples, Relaxed);
        self.sum.fetch_add(sum, Relaxed);
    }

    /// Appends the series to a page, if it has any samples.
    #[expect(clippy::cast_precision_loss, reason = "a sum past 2^53 is petabytes")]
    pub(super) fn write(&self, page: &mut String) {
        let counts: Vec<u64> = self.counts.iter().map(|one| one.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        if count == 0 {
            return;
        }
        let (name, labels) = (self.name, &self.labels);
        let mut below = 0;
        for (bound, count) in self.bounds.iter().zip(&counts) {
            below += count;
            let le = Some(("le", *bound));
            write_metric_line(page, name, Some("bucket"), labels, le, below, None);
        }
        let le = Some(("le", "+Inf"));
        write_metric_line(page, name, Some("bucket"), labels, le, count, None);
        let sum = self.sum.load(Relaxed);
        let sum = match name.ends_with("_seconds") {
            true => Duration::from_nanos(sum).as_secs_f64(),
            false => sum as f64,
        };
        write_metric_line::<&str, _>(page, name, Some("sum"), labels, None, sum, None);
        write_metric_line::<&str, _>(page, name, Some("count"), labels, None, count, None);
    }
}

/// The bucket of a message's size: the logarithm to base four above 256.
pub(super) fn size_bucket(bytes: usize) -> usize {
    let above = (bytes.saturating_sub(1) as u64) >> 8;
    let bits = (u64::BITS - above.leading_zeros()) as usize;
    bits.div_ceil(2).min(10)
}

/// A duration in nanoseconds.
pub(super) fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

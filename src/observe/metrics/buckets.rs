//! Histograms, which are counted by bucket, and the upper bounds of their buckets.
//!
//! A histogram of the `metrics` crate takes one sample at a time, and the exporter keeps each of them
//! until its upkeep. That allocates on the message path.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use metrics_exporter_prometheus::LabelSet;
use metrics_exporter_prometheus::formatting::write_metric_line;

use super::catalogue::{Metric, PREFIX};

/// Buckets that a histogram has at most.
const MOST: usize = 17;

/// The upper bounds of the buckets, in the metric's unit. Those of sizes are powers of four.
#[rustfmt::skip]
const BOUNDS: &[(&str, &[f64])] = &[
    ("connection_duration_seconds",
        &[1., 10., 60., 300., 900., 3600., 14_400., 43_200., 86_400.]),
    ("message_bytes", &[256., 1024., 4096., 16_384., 65_536., 262_144., 1_048_576., 4_194_304.,
        16_777_216., 67_108_864.]),
    ("request_duration_seconds", &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.,
        2.5, 5., 10., 60., 600., 3600.]),
    ("turn_duration_seconds",
        &[0.5, 1., 2.5, 5., 10., 30., 60., 120., 300., 600., 1800., 3600., 7200.]),
    ("processing_duration_seconds", &[0.000_001, 0.000_002_5, 0.000_005, 0.000_01, 0.000_025,
        0.000_05, 0.000_1, 0.000_25, 0.001, 0.005, 0.025, 0.1]),
    ("time_to_first_update_seconds",
        &[0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 120.]),
    ("update_gap_seconds",
        &[0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 120., 300.]),
    ("permission_wait_seconds",
        &[0.1, 0.5, 1., 2.5, 5., 10., 30., 60., 300., 600., 1800., 3600.]),
    ("agent_start_seconds", &[0.01, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60.]),
    ("recording_write_seconds",
        &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.]),
];

/// The bounds of a histogram of the catalogue; empty for other metrics.
pub(super) fn bounds(metric: &Metric) -> &'static [f64] {
    let name = metric.name.strip_prefix(PREFIX).unwrap_or(metric.name);
    let found = BOUNDS.iter().find(|(known, _)| *known == name);
    found.map_or(&[], |(_, bounds)| bounds)
}

/// One series of a histogram. Takes the same memory however many samples there are.
#[derive(Debug)]
pub(in crate::observe) struct Buckets {
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
        let bounds = bounds(metric);
        debug_assert!((1..MOST).contains(&bounds.len()), "{}", metric.name);
        Self {
            name: metric.name,
            labels: LabelSet::from_key_and_global(&metric.key(labels), &Default::default()),
            bounds,
            counts: Default::default(),
            sum: AtomicU64::new(0),
        }
    }

    /// A series without labels; `name` is without its prefix.
    pub(in crate::observe) fn single(name: &str) -> Self {
        Self::new(Metric::named(name), &[])
    }

    /// The bucket of a duration.
    pub(super) fn bucket(&self, took: Duration) -> usize {
        let seconds = took.as_secs_f64();
        self.bounds.partition_point(|bound| *bound < seconds)
    }

    /// Adds one duration.
    pub(in crate::observe) fn record(&self, took: Duration) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let sizes = bounds(Metric::named("message_bytes"));
        for bytes in (0..28).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
            #[expect(clippy::cast_precision_loss, reason = "it is small")]
            let expected = sizes.partition_point(|bound| *bound < bytes as f64);
            assert_eq!(size_bucket(bytes), expected, "{bytes}");
        }
        assert_eq!(size_bucket(usize::MAX), sizes.len());
    }
}

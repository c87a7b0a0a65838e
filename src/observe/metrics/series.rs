//! Writes families of series as the catalogue describes them.
//!
//! Not here: which there are (see `catalogue`), and where their values come from (see `scrape`).

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::catalogue::{Metric, PREFIX, Type};
use super::cells::Reading;

/// Where metrics are written.
pub(super) struct Sheet<'a>(pub(super) DescriptorEncoder<'a>);

/// One family, being written.
pub(super) struct Family<'a> {
    metric: &'static Metric,
    encoder: MetricEncoder<'a>,
}

/// The labels of a series, in the order of the catalogue.
pub(super) type Labels<'a> = &'a [&'a str];

impl Sheet<'_> {
    /// Writes a family of the catalogue; `name` is without its prefix.
    pub(super) fn family(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Family<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let metric = Metric::named(name);
        let kind = match metric.kind {
            Type::Counter => MetricType::Counter,
            Type::Gauge => MetricType::Gauge,
            Type::Histogram => MetricType::Histogram,
        };
        // The encoder puts these back.
        let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        let encoder = self.0.encode_descriptor(name, metric.meaning, None, kind)?;
        write(&mut Family { metric, encoder })
    }

    /// Writes a single number, if it is known.
    pub(super) fn one(&mut self, name: &str, value: Option<f64>) -> Result<(), Error> {
        self.family(name, |family| {
            value.map_or(Ok(()), |value| family.number(&[], value))
        })
    }
}

impl Family<'_> {
    /// A counter or a gauge of whole numbers. Counters that never counted are left out where words
    /// are combined, for most combinations never occur. The others are there from the start: what
    /// appears with its first event has not increased, as Prometheus sees it, and no alert tells of
    /// it (<https://prometheus.io/docs/practices/instrumentation/#avoid-missing-metrics>).
    pub(super) fn count(&mut self, labels: Labels<'_>, value: u64) -> Result<(), Error> {
        let words = self.metric.labels.iter().filter(|label| **label != "agent");
        if value == 0 && words.count() > 1 && self.metric.kind == Type::Counter {
            return Ok(());
        }
        self.value(labels, |encoder, counter| match counter {
            true => encoder.encode_counter::<NoLabelSet, u64, f64>(&value, None),
            false => encoder.encode_gauge(&value),
        })
    }

    /// A counter or a gauge.
    pub(super) fn number(&mut self, labels: Labels<'_>, value: f64) -> Result<(), Error> {
        self.value(labels, |encoder, counter| match counter {
            true => encoder.encode_counter::<NoLabelSet, f64, f64>(&value, None),
            false => encoder.encode_gauge(&value),
        })
    }

    /// A histogram, if anything was observed.
    pub(super) fn histogram(&mut self, labels: Labels<'_>, value: &Reading) -> Result<(), Error> {
        let count = value.count();
        if count == 0 {
            return Ok(());
        }
        self.value(labels, |encoder, _| {
            encoder.encode_histogram::<NoLabelSet>(value.sum, count, &value.buckets, None)
        })
    }

    fn value(
        &mut self,
        labels: Labels<'_>,
        write: impl FnOnce(&mut MetricEncoder<'_>, bool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let names = self.metric.labels;
        debug_assert_eq!(names.len(), labels.len(), "{}", self.metric.name);
        let counter = self.metric.kind == Type::Counter;
        if labels.is_empty() {
            return write(&mut self.encoder, counter);
        }
        let labels: Vec<_> = names.iter().copied().zip(labels.iter().copied()).collect();
        write(&mut self.encoder.encode_family(&labels)?, counter)
    }
}

//! What is known of a metric: its name, type, labels and meaning.

use metrics::{Key, Label};

/// What the names of the relay's own metrics begin with.
pub const PREFIX: &str = "acp_relay_";

/// A metric, or rather a family of series.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, as scraped.
    pub name: &'static str,
    /// What it is.
    pub kind: Type,
    /// The names of its labels, in their order.
    pub labels: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
    /// The upper bounds of a histogram's buckets, in the metric's unit.
    pub(super) bounds: &'static [f64],
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How often something was how large.
    Histogram,
}

impl Type {
    /// Its name in the text format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// The metric of that name, which may lack the prefix.
    pub(super) fn named(catalogue: &'static [Self], name: &str) -> &'static Self {
        let is = |one: &&Self| one.name == name || one.name.strip_prefix(PREFIX) == Some(name);
        let found = catalogue.iter().find(is);
        found.expect("every metric is in the catalogue")
    }

    /// The identity of a series, with these values of the labels.
    pub(super) fn key(&self, labels: &[&str]) -> Key {
        debug_assert_eq!(self.labels.len(), labels.len(), "{}", self.name);
        let labels = self.labels.iter().zip(labels);
        let labels = labels.map(|(name, value)| Label::new(*name, (*value).to_owned()));
        Key::from_parts(self.name, labels.collect::<Vec<_>>())
    }
}

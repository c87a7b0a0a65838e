//! The recorder of the `metrics` crate, and families of series whose handles are registered once.

use std::sync::{Arc, OnceLock};

use metrics::{Counter, Gauge, Level, Metadata, Recorder as _};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use smallvec::SmallVec;

use super::buckets::Buckets;
use super::metric::{Metric, Type};
use panics::SharedMutex;

const METADATA: Metadata<'static> = Metadata::new("acp_relay", Level::INFO, None);

/// A recorder that is not installed for the process, so that there may be several.
#[derive(Debug)]
pub(super) struct Registry {
    catalogue: &'static [Metric],
    recorder: PrometheusRecorder,
    exporter: PrometheusHandle,
    /// The histograms, in the order in which they were registered.
    histograms: SharedMutex<Vec<Arc<Buckets>>>,
}

impl Registry {
    /// A recorder that has the descriptions of all metrics in the catalogue.
    pub(super) fn new(catalogue: &'static [Metric]) -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        for metric in catalogue {
            let (name, help) = (metric.name.into(), metric.meaning.into());
            match metric.kind {
                Type::Counter => recorder.describe_counter(name, None, help),
                Type::Gauge => recorder.describe_gauge(name, None, help),
                // The text of these is written here, with their descriptions.
                Type::Histogram => {}
            }
        }
        Self {
            catalogue,
            exporter: recorder.handle(),
            recorder,
            histograms: SharedMutex::default(),
        }
    }

    /// The handle of one series; the name may lack its prefix. The same labels lead to the same
    /// counter or gauge.
    pub(super) fn handle<H: Handle>(&self, name: &str, labels: &[&str]) -> H {
        H::register(self, Metric::named(self.catalogue, name), labels)
    }

    /// Sets a gauge.
    #[expect(clippy::cast_precision_loss, reason = "no gauge is beyond 2^53")]
    pub(super) fn gauge(&self, name: &str, labels: &[&str], value: impl TryInto<u64>) {
        let value = value.try_into().unwrap_or(u64::MAX);
        self.handle::<Gauge>(name, labels).set(value as f64);
    }

    /// Sets a gauge that is not a whole number.
    pub(super) fn gauge_f64(&self, name: &str, labels: &[&str], value: f64) {
        self.handle::<Gauge>(name, labels).set(value);
    }

    /// Raises a counter to a total that is kept elsewhere.
    pub(super) fn total(&self, name: &str, labels: &[&str], value: u64) {
        self.handle::<Counter>(name, labels).absolute(value);
    }

    /// The histograms of one metric.
    pub(super) fn histograms(&self, metric: &Metric) -> Vec<Arc<Buckets>> {
        let all = self.histograms.lock();
        let own = all.iter().filter(|one| one.name == metric.name);
        own.map(Arc::clone).collect()
    }

    /// The counters and gauges, in Prometheus' text format.
    pub(super) fn render(&self) -> String {
        self.exporter.render()
    }
}

/// The handle of a series.
pub(super) trait Handle {
    const KIND: Type;
    fn register(registry: &Registry, metric: &'static Metric, labels: &[&str]) -> Self;
}

impl Handle for Counter {
    const KIND: Type = Type::Counter;
    fn register(registry: &Registry, metric: &'static Metric, labels: &[&str]) -> Self {
        registry
            .recorder
            .register_counter(&metric.key(labels), &METADATA)
    }
}

impl Handle for Gauge {
    const KIND: Type = Type::Gauge;
    fn register(registry: &Registry, metric: &'static Metric, labels: &[&str]) -> Self {
        registry
            .recorder
            .register_gauge(&metric.key(labels), &METADATA)
    }
}

impl Handle for Arc<Buckets> {
    const KIND: Type = Type::Histogram;
    fn register(registry: &Registry, metric: &'static Metric, labels: &[&str]) -> Self {
        let buckets = Self::new(Buckets::new(metric, labels));
        registry.histograms.lock().push(Self::clone(&buckets));
        buckets
    }
}

/// The handles of a metric whose labels have closed lists of values, by their indices in the lists.
///
/// Counters with at most one such label are registered at once: a series that appears with its first
/// event has not increased, as Prometheus sees it, and no alert fires
/// (<https://prometheus.io/docs/practices/instrumentation/#avoid-missing-metrics>). All others are
/// registered when they are first used.
#[derive(Debug)]
pub(super) struct Family<H, const N: usize> {
    registry: Arc<Registry>,
    name: &'static str,
    /// The first label, where it is the name of an agent.
    agent: Option<String>,
    values: [&'static [&'static str]; N],
    handles: Box<[OnceLock<H>]>,
}

impl<H: Handle, const N: usize> Family<H, N> {
    /// `agent` is the first label, where there is one.
    pub(super) fn new(
        registry: &Arc<Registry>,
        name: &'static str,
        agent: Option<&str>,
        values: [&'static [&'static str]; N],
    ) -> Self {
        let size = values.iter().map(|values| values.len()).product();
        let family = Self {
            registry: Arc::clone(registry),
            name,
            agent: agent.map(str::to_owned),
            values,
            handles: (0..size).map(|_| OnceLock::new()).collect(),
        };
        if N <= 1 && H::KIND == Type::Counter {
            for index in 0..size {
                family.get(index);
            }
        }
        family
    }

    /// The index of a series among all of them.
    pub(super) fn index(&self, place: [usize; N]) -> usize {
        let steps = place.into_iter().zip(&self.values);
        steps.fold(0, |index, (one, values)| index * values.len() + one)
    }

    pub(super) fn at(&self, place: [usize; N]) -> &H {
        self.get(self.index(place))
    }

    pub(super) fn get(&self, index: usize) -> &H {
        self.handles[index].get_or_init(|| {
            let mut labels = [""; N];
            let mut rest = index;
            for (label, values) in labels.iter_mut().zip(&self.values).rev() {
                *label = values[rest % values.len()];
                rest /= values.len();
            }
            let mut all: SmallVec<[&str; 5]> = self.agent.as_deref().into_iter().collect();
            all.extend(labels);
            self.registry.handle(self.name, &all)
        })
    }

    /// Those that have been used, with their indices.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, &H)> {
        let all = self.handles.iter().enumerate();
        all.filter_map(|(index, handle)| Some((index, handle.get()?)))
    }
}

impl<const N: usize> Family<Counter, N> {
    /// Counts one event.
    pub(super) fn count(&self, place: [usize; N]) {
        self.at(place).increment(1);
    }
}

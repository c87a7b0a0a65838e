//! The thread that sends spans to the collector.

use std::env;
use std::fmt;
use std::sync::{Arc, mpsc as channel};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::http_client::OtlpClient;
use super::options::{TraceConfig, TracesArgs};
use observe::traces::{ConversationInfo, ExportStats, SpanFactory, SpanSender, Tracer};
use panics::{SharedGuard, SharedMutex};
use transport::{Peer, PeerKind};

/// The default service name (`OTEL_SERVICE_NAME`).
const SERVICE: &str = "acp-relay";

/// Time for the last spans when the program ends.
const LAST: Duration = Duration::from_secs(2);

/// Traces, if they are configured.
#[derive(Clone)]
pub(in crate::cli) struct Traces(Arc<Inner>);

struct Inner {
    sender: SharedMutex<Option<SpanSender>>,
    maker: Arc<SpanFactory>,
    tally: Arc<ExportStats>,
    insert: bool,
    /// Receives when everything is sent.
    over: Mutex<channel::Receiver<()>>,
}

/// The state of the thread.
struct Exporter {
    spans: channel::Receiver<SpanData>,
    to: SpanExporter,
    tally: Arc<ExportStats>,
    config: TraceConfig,
    /// Whether the last batch failed, which was logged.
    down: bool,
}

impl Traces {
    /// Starts the thread, if traces are configured.
    ///
    /// # Errors
    /// The configuration is invalid, as text for the user.
    pub(in crate::cli) fn start(part: &TracesArgs) -> Result<Option<Self>, String> {
        let Some(config) = part.resolve()? else {
            return Ok(None);
        };
        let mut builder = SpanExporter::builder()
            .with_http()
            .with_http_client(OtlpClient::default())
            .with_timeout(config.timeout)
            .with_protocol(match config.json {
                true => Protocol::HttpJson,
                false => Protocol::HttpBinary,
            });
        if let Some(endpoint) = &config.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let fault = |error: &dyn fmt::Display| format!("cannot send traces: {error}");
        let mut to = builder.build().map_err(|error| fault(&error))?;
        to.set_resource(&resource());
        let (sender, spans) = SpanSender::new(config.max_queued);
        let tally = sender.stats();
        let (done, over) = channel::sync_channel(1);
        let insert = config.insert;
        let exporter = Exporter {
            spans,
            to,
            tally: Arc::clone(&tally),
            config,
            down: false,
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| fault(&error))?;
        let thread = std::thread::Builder::new().name("traces".to_owned());
        let spawned = thread.spawn(move || {
            exporter.run(&runtime);
            // Fails if `finish` has stopped waiting.
            let _ = done.send(());
        });
        spawned.map_err(|error| fault(&error))?;
        Ok(Some(Self(Arc::new(Inner {
            sender: SharedMutex::new(Some(sender)),
            maker: Arc::new(SpanFactory::new(env!("VERSION"))),
            tally,
            insert,
            over: Mutex::new(over),
        }))))
    }

    /// Begins the trace of a conversation, and returns whether it is inserted into requests;
    /// `agent` is the configured name.
    pub(in crate::cli) fn begin(
        &self,
        client: &Peer,
        agent: Option<String>,
    ) -> Option<(Tracer, bool)> {
        let sender = self.sender().clone()?;
        let transport = match client.kind {
            PeerKind::Parent | PeerKind::Child | PeerKind::Replayed => "pipe",
            PeerKind::SameUser => "unix",
            PeerKind::Remote if client.name.starts_with("unix:") => "unix",
            PeerKind::Remote | PeerKind::Carrier | PeerKind::Internal => "tcp",
        };
        let about = ConversationInfo {
            client: client.name.clone(),
            principal: client.principal.as_ref().map(ToString::to_string),
            agent,
            transport,
        };
        let maker = Arc::clone(&self.0.maker);
        let tracer = Tracer::begin(sender, maker, about, Instant::now());
        Some((tracer, self.0.insert))
    }

    /// The counts of spans.
    pub(in crate::cli) fn tally(&self) -> Arc<ExportStats> {
        Arc::clone(&self.0.tally)
    }

    /// Sends the remaining spans, within [`LAST`].
    pub(in crate::cli) fn finish(&self) {
        drop(self.sender().take());
        let over = self.0.over.lock();
        // Spans that are not sent by then are lost.
        let _ = over.recv_timeout(LAST);
    }

    fn sender(&self) -> SharedGuard<'_, Option<SpanSender>> {
        self.0.sender.lock()
    }
}

impl Exporter {
    /// Sends until the queue is closed.
    fn run(mut self, runtime: &Runtime) {
        while let Ok(first) = self.spans.recv() {
            let until = Instant::now() + self.config.delay;
            let mut batch = vec![first];
            while batch.len() < self.config.batch {
                let left = until.saturating_duration_since(Instant::now());
                match self.spans.recv_timeout(left) {
                    Ok(span) => batch.push(span),
                    Err(_) => break,
                }
            }
            runtime.block_on(self.send(batch));
        }
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let count = batch.len();
        let sent = timeout(self.config.timeout, self.to.export(batch)).await;
        let sent = match sent {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {:?}", self.config.timeout)),
        };
        self.tally.add_export(count, sent.is_ok());
        let was_down = std::mem::replace(&mut self.down, sent.is_err());
        match sent {
            Ok(()) if was_down => tracing::warn!("the collector accepts traces again"),
            Err(why) if !was_down => {
                tracing::warn!("traces are lost until the collector accepts them again: {why}");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// The resource of all spans.
fn resource() -> Resource {
    let given = env::var("OTEL_SERVICE_NAME").ok();
    let given = given.filter(|name| !name.is_empty());
    let usual = [
        KeyValue::new("service.name", SERVICE),
        KeyValue::new("service.version", env!("VERSION")),
    ];
    let name = given.map(|name| KeyValue::new("service.name", name));
    Resource::builder_empty()
        .with_attributes(usual)
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attributes(name)
        .build()
}

jsonrpc::opaque_debug!(Traces);

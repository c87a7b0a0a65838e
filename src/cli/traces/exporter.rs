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
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::courier::Courier;
use super::options::{Settled, TracesPart};
use crate::observe::traces::{About, Maker, Outlet, Tally, Tracer};
use crate::transport::{Peer, PeerKind};

/// The default service name (`OTEL_SERVICE_NAME`).
const SERVICE: &str = "acp-relay";

/// Time for the last spans when the program ends.
const LAST: Duration = Duration::from_secs(2);

/// Traces, if they are configured.
#[derive(Clone)]
pub(in crate::cli) struct Traces(Arc<Inner>);

struct Inner {
    outlet: Mutex<Option<Outlet>>,
    maker: Arc<Maker>,
    tally: Arc<Tally>,
    insert: bool,
    /// Receives when everything is sent.
    over: Mutex<channel::Receiver<()>>,
}

/// The state of the thread.
struct Exporter {
    spans: channel::Receiver<SpanData>,
    to: SpanExporter,
    tally: Arc<Tally>,
    settled: Settled,
    /// Whether the last batch failed, which was logged.
    down: bool,
}

impl Traces {
    /// Starts the thread, if traces are configured.
    ///
    /// # Errors
    /// The configuration is invalid, as text for the user.
    pub(in crate::cli) fn start(part: &TracesPart) -> Result<Option<Self>, String> {
        let Some(settled) = part.settle()? else {
            return Ok(None);
        };
        let mut builder = SpanExporter::builder()
            .with_http()
            .with_http_client(Courier::default())
            .with_timeout(settled.patience)
            .with_protocol(match settled.json {
                true => Protocol::HttpJson,
                false => Protocol::HttpBinary,
            });
        if let Some(endpoint) = &settled.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let fault = |error: &dyn fmt::Display| format!("cannot send traces: {error}");
        let mut to = builder.build().map_err(|error| fault(&error))?;
        to.set_resource(&resource());
        let (outlet, spans) = Outlet::new(settled.room);
        let tally = outlet.tally();
        let (tell, over) = channel::sync_channel(1);
        let insert = settled.insert;
        let exporter = Exporter {
            spans,
            to,
            tally: Arc::clone(&tally),
            settled,
            down: false,
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| fault(&error))?;
        let thread = std::thread::Builder::new().name("traces".to_owned());
        let spawned = thread.spawn(move || {
            exporter.run(&runtime);
            // Fails if `finish` has stopped waiting.
            let _ = tell.send(());
        });
        spawned.map_err(|error| fault(&error))?;
        Ok(Some(Self(Arc::new(Inner {
            outlet: Mutex::new(Some(outlet)),
            maker: Arc::new(Maker::new(env!("VERSION"))),
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
        let outlet = self.outlet().clone()?;
        let transport = match client.kind {
            PeerKind::Parent | PeerKind::Child | PeerKind::Played => "pipe",
            PeerKind::SameUser => "unix",
            PeerKind::Remote if client.name.starts_with("unix:") => "unix",
            PeerKind::Remote | PeerKind::Ours => "tcp",
        };
        let about = About {
            client: client.name.clone(),
            principal: client.principal.as_ref().map(ToString::to_string),
            agent,
            transport,
        };
        let maker = Arc::clone(&self.0.maker);
        let tracer = Tracer::begin(outlet, maker, about, Instant::now());
        Some((tracer, self.0.insert))
    }

    /// The counts of spans.
    pub(in crate::cli) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.0.tally)
    }

    /// Sends the remaining spans, within [`LAST`].
    pub(in crate::cli) fn finish(&self) {
        drop(self.outlet().take());
        let over = self.0.over.lock();
        // Spans that are not sent by then are lost.
        let _ = over.recv_timeout(LAST);
    }

    fn outlet(&self) -> MutexGuard<'_, Option<Outlet>> {
        self.0.outlet.lock()
    }
}

impl Exporter {
    /// Sends until the queue is closed.
    fn run(mut self, runtime: &Runtime) {
        while let Ok(first) = self.spans.recv() {
            let until = Instant::now() + self.settled.delay;
            let mut batch = vec![first];
            while batch.len() < self.settled.batch {
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
        let sent = timeout(self.settled.patience, self.to.export(batch)).await;
        let sent = match sent {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {:?}", self.settled.patience)),
        };
        self.tally.sent(count, sent.is_ok());
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

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").finish_non_exhaustive()
    }
}

//! The admin listener: bound before any client is served, and open until the last conversation
//! has ended.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::address::AdminAddress;
use super::routes::{self, Shared};
use crate::cli::announcement::Announcement;
use crate::cli::http::{self, Socket};
use crate::cli::random::random;
use crate::cli::traces::Traces;
use crate::cli::{dialect, exit, inspect, stderr};
use auth::origin::OriginPolicy;
use link::LinkSource;
use observe::metrics::{GaugeSource, Metrics, RuntimeStats};
use transport::{Endpoint, Links, SocketFile, Workers, bind_unix};
use viewer::{Viewer, ViewerAccess};

/// A running admin listener. Drop ends it.
pub(in crate::cli) struct Admin {
    shared: Arc<Shared>,
    _end: DropGuard,
    _announcement: Option<Announcement>,
    _file: Option<SocketFile>,
}

/// The metrics of this program itself, read at each scrape: its runtimes, and its log.
#[derive(Debug)]
struct ProcessGauges {
    /// The runtime of everything except the clients.
    main: Handle,
    workers: Workers,
}

impl Admin {
    /// Listens, if a place is configured, and prints the address. `recordings` is the folder of the
    /// recordings. Errors are printed, and the exit code is returned.
    pub(in crate::cli) async fn start(
        place: Option<&AdminAddress>,
        asked: CancellationToken,
        recordings: Option<&Path>,
        workers: Workers,
        traces: Option<&Traces>,
    ) -> Result<Option<Self>, ExitCode> {
        let Some(place) = place else {
            return Ok(None);
        };
        let admin = Self::open(place, asked, recordings).await;
        let admin = admin.map_err(|error| {
            let fault = format!("cannot listen at {place} (--admin): {error}");
            exit::fail(exit::UNAVAILABLE, &fault)
        })?;
        let main = Handle::current();
        let program = Arc::new(ProcessGauges { main, workers });
        admin.metrics().set_program(program);
        if let Some(traces) = traces {
            admin.metrics().set_spans(traces.tally());
        }
        Ok(Some(admin))
    }

    async fn open(
        place: &AdminAddress,
        asked: CancellationToken,
        recordings: Option<&Path>,
    ) -> io::Result<Self> {
        let (mut place, mut port, mut file) = (place.clone(), None, None);
        let at = place.0.clone();
        let socket = match &at {
            Endpoint::Unix(path) => {
                let bound = bind_unix(&at, path).await;
                let (own, listener) = bound.map_err(|error| io::Error::other(error.what))?;
                file = Some(own);
                Socket::Unix(listener)
            }
            Endpoint::Tcp { host, port: wanted } => {
                let listener = TcpListener::bind((&**host, *wanted)).await?;
                let bound = listener.local_addr()?.port();
                port = Some(bound);
                place.0 = Endpoint::Tcp {
                    host: host.clone(),
                    port: bound,
                };
                Socket::Tcp(listener)
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let viewer = match (recordings, port) {
            (Some(folder), Some(port)) => {
                let access = ViewerAccess::new(port, random()?);
                let viewer = Viewer::of(folder, dialect::describe_rule, inspect::of_capture)?;
                Some((access, viewer))
            }
            _ => None,
        };
        stderr::print(&format!("acp-relay: admin at {place}"));
        if let Some((access, _)) = &viewer {
            let path = access.path();
            stderr::print(&format!(
                "acp-relay: recordings at {place}/recordings{path}"
            ));
        }
        let shared = Arc::new(Shared {
            metrics: Arc::new(Metrics::new(env!("VERSION"), Instant::now())),
            listeners: RwLock::default(),
            stop: asked,
            origins: port.map(OriginPolicy::own_pages),
            viewer,
            rendering: Arc::default(),
        });
        let end = CancellationToken::new();
        let drained = Arc::clone(&shared);
        let drain = async move {
            drained.stop.cancelled().await;
            drained.metrics.drain(Instant::now());
        };
        tokio::spawn(end.clone().run_until_cancelled_owned(drain));
        let router = routes::router(Arc::clone(&shared));
        tokio::spawn(http::serve(socket, router, end.clone()));
        let announcement = place
            .announce()
            .inspect_err(|error| tracing::debug!(%error, "cannot announce the admin listener"));
        Ok(Self {
            shared,
            _end: end.drop_guard(),
            _announcement: announcement.ok(),
            _file: file,
        })
    }

    pub(in crate::cli) fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Counts the attachments of these resumable links, and what they hold.
    pub(in crate::cli) fn watch_links(&self, links: Option<&Arc<Links>>) {
        let (metrics, links) = (self.metrics(), links.cloned());
        if let Some(links) = links.filter(|links| links.set_events(Arc::clone(metrics) as _)) {
            metrics.add_detached(Arc::downgrade(&(links as Arc<dyn LinkSource>)));
        }
    }

    /// Sets the addresses of the open listeners.
    pub(in crate::cli) fn ready(&self, listeners: Vec<String>) {
        *self.shared.listeners.write() = Some(listeners);
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        if let Some((_, viewer)) = &self.shared.viewer {
            viewer.close();
        }
    }
}

impl GaugeSource for ProcessGauges {
    fn runtimes(&self) -> Vec<RuntimeStats> {
        let main = std::slice::from_ref(&self.main);
        vec![
            stats("main", main),
            stats("clients", &self.workers.runtimes()),
        ]
    }

    fn lost_lines(&self) -> [u64; 2] {
        stderr::dropped_lines()
    }

    #[cfg(feature = "cluster")]
    fn cluster(&self) -> Vec<(&'static str, Option<&'static str>, u64)> {
        cluster::counts()
    }
}

/// The sum of several runtimes.
fn stats(name: &'static str, runtimes: &[Handle]) -> RuntimeStats {
    let mut all = RuntimeStats {
        name,
        ..RuntimeStats::default()
    };
    for metrics in runtimes.iter().map(Handle::metrics) {
        all.workers += metrics.num_workers();
        all.tasks += metrics.num_alive_tasks();
        all.queued += metrics.global_queue_depth();
        let busy = (0..metrics.num_workers()).map(|one| metrics.worker_total_busy_duration(one));
        all.busy += busy.sum::<Duration>();
    }
    all
}

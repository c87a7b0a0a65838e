//! The admin listener: bound before any client is served, and open until the last conversation
//! has ended.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::address::AdminAddress;
use super::address_file;
use super::gauge_source::ProcessGauges;
use super::routes;
use super::shared::Shared;
use crate::auth::origin::OriginPolicy;
use crate::cli::announcement::Announcement;
use crate::cli::http::{self, Socket};
use crate::cli::random::random;
use crate::cli::traces::Traces;
use crate::cli::{dialect, exit, stderr};
use crate::observe::metrics::Metrics;
use crate::transport::{Endpoint, SocketFile, Workers, bind_unix};
use crate::viewer::{Viewer, ViewerAccess};

/// A running admin listener. Drop ends it.
pub(in crate::cli) struct Admin {
    shared: Arc<Shared>,
    end: CancellationToken,
    _announcement: Option<Announcement>,
    _file: Option<SocketFile>,
}

impl Admin {
    /// Listens at `place` and prints the address. `recordings` is the folder of the recordings.
    async fn open(
        place: &AdminAddress,
        asked: CancellationToken,
        recordings: Option<&Path>,
    ) -> io::Result<Self> {
        let mut file = None;
        let (socket, place, port) = match place {
            AdminAddress::Loopback(address) => {
                let listener = TcpListener::bind(address).await?;
                let at = listener.local_addr()?;
                (
                    Socket::Tcp(listener),
                    AdminAddress::Loopback(at),
                    Some(at.port()),
                )
            }
            AdminAddress::Unix(path) => {
                let bound = bind_unix(&Endpoint::Unix(path.clone()), path).await;
                let (own, listener) = bound.map_err(|error| io::Error::other(error.what))?;
                file = Some(own);
                (Socket::Unix(listener), place.clone(), None)
            }
        };
        let viewer = match (recordings, port) {
            (Some(folder), Some(port)) => {
                let access = ViewerAccess::new(port, random()?);
                Some((access, Viewer::of(folder, dialect::describe_rule)?))
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
        });
        let end = CancellationToken::new();
        tokio::spawn(drain(Arc::clone(&shared), end.clone()));
        let router = routes::router(Arc::clone(&shared));
        tokio::spawn(http::serve(socket, router, end.clone()));
        let announcement = address_file::create(&place)
            .inspect_err(|error| tracing::debug!(%error, "cannot announce the admin listener"));
        Ok(Self {
            shared,
            end,
            _announcement: announcement.ok(),
            _file: file,
        })
    }

    /// The same with the metrics of this program, if a place is configured. Errors are printed, and
    /// the exit code is returned.
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
        let program = ProcessGauges::new(workers);
        admin.metrics().set_program(Arc::new(program));
        if let Some(traces) = traces {
            admin.metrics().set_spans(traces.tally());
        }
        Ok(Some(admin))
    }

    pub(in crate::cli) fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Sets the addresses of the open listeners.
    pub(in crate::cli) fn ready(&self, listeners: Vec<String>) {
        *self.shared.listeners.write() = Some(listeners);
    }
}

/// Marks the start of draining in the metrics.
async fn drain(shared: Arc<Shared>, end: CancellationToken) {
    tokio::select! {
        () = shared.stop.cancelled() => shared.metrics.drain(Instant::now()),
        () = end.cancelled() => {}
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

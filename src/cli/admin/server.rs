//! The admin listener itself: bound before anybody is served, and there until the last
//! conversation is over.
//!
//! Not here: what is answered (see `routes`).

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::around::Program;
use super::place::Place;
use super::sign::Sign;
use crate::auth::origin::{Door as Origins, Names};
use crate::cli::http::{self, Socket};
use crate::cli::viewer::{Door, Viewer};
use crate::cli::{cli, exit, stderr};
use crate::observe::metrics::Metrics;
use crate::transport::{Endpoint, SocketFile, Workers, bind_unix};

/// A running admin listener. Dropped, it ends.
pub(in crate::cli) struct Admin {
    shared: Arc<Shared>,
    place: Place,
    /// Where the viewer of recordings is, if there is one.
    recordings: Option<String>,
    end: CancellationToken,
    _sign: Option<Sign>,
    _file: Option<SocketFile>,
}

/// What answers are made from.
pub(super) struct Shared {
    pub(super) metrics: Arc<Metrics>,
    /// The addresses of the listeners, once they are open.
    pub(super) listeners: RwLock<Option<Vec<String>>>,
    /// Cancelled when the relay is to end.
    pub(super) asked: CancellationToken,
    /// Whom web pages may name; none on a Unix socket, which they cannot reach.
    pub(super) origins: Option<Origins>,
    /// Recordings, and what has to stand in their address.
    pub(super) viewer: Option<(Door, Viewer)>,
}

impl Admin {
    /// Listens at `place`. `recordings` is where conversations are recorded.
    async fn open(
        place: &Place,
        asked: CancellationToken,
        recordings: Option<&Path>,
    ) -> io::Result<Self> {
        let mut file = None;
        let (socket, place, port) = match place {
            Place::Loopback(address) => {
                let listener = TcpListener::bind(address).await?;
                let at = listener.local_addr()?;
                (Socket::Tcp(listener), Place::Loopback(at), Some(at.port()))
            }
            Place::Unix(path) => {
                let bound = bind_unix(&Endpoint::Unix(path.clone()), path).await;
                let (own, listener) = bound.map_err(|error| io::Error::other(error.what))?;
                file = Some(own);
                (Socket::Unix(listener), place.clone(), None)
            }
        };
        let viewer = match (recordings, port) {
            (Some(folder), Some(port)) => {
                let door = Door::new(port);
                let door = door.ok_or_else(|| io::Error::other("there is no randomness"))?;
                Some((door, Viewer::of(folder)?))
            }
            _ => None,
        };
        let recordings = viewer
            .as_ref()
            .map(|(door, _)| format!("{place}/recordings{}", door.path()));
        let shared = Arc::new(Shared {
            metrics: Arc::new(Metrics::new(env!("VERSION"), Instant::now())),
            listeners: RwLock::default(),
            asked,
            origins: port.map(|port| Origins {
                origins: vec![format!("http://127.0.0.1:{port}")],
                hosts: Vec::new(),
                names: Names::Loopback {
                    port,
                    default_port: 80,
                },
            }),
            viewer,
        });
        let end = CancellationToken::new();
        tokio::spawn(drain(Arc::clone(&shared), end.clone()));
        tokio::spawn(http::serve(socket, Arc::clone(&shared), end.clone()));
        let sign = Sign::put_up(&place);
        let sign = sign
            .map_err(|error| tracing::debug!(%error, "others will not find the admin listener"));
        Ok(Self {
            shared,
            place,
            recordings,
            end,
            _sign: sign.ok(),
            _file: file,
        })
    }

    /// The same, and says where. What is wrong is said, and the exit code returned.
    pub(in crate::cli) async fn begin(
        place: &Place,
        asked: CancellationToken,
        recordings: Option<&Path>,
    ) -> Result<Self, ExitCode> {
        let admin = Self::open(place, asked, recordings).await;
        let admin = admin.map_err(|error| {
            let fault = format!("cannot listen at {place} (--admin): {error}");
            cli::fail(exit::UNAVAILABLE, &fault)
        })?;
        stderr::say(&format!("acp-relay: admin at {}", admin.place));
        if let Some(address) = &admin.recordings {
            stderr::say(&format!("acp-relay: recordings at {address}"));
        }
        Ok(admin)
    }

    pub(in crate::cli) fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Has it tell of this program, which has such workers.
    pub(in crate::cli) fn tell_of(&self, workers: Workers) {
        let program = Program::new(workers);
        self.shared.metrics.set_program(Arc::new(program));
    }

    /// These listeners are open, and no others.
    pub(in crate::cli) fn ready(&self, listeners: Vec<String>) {
        *self.shared.listeners.write() = Some(listeners);
    }
}

impl Shared {
    /// Where the listeners are; none before all of them are open.
    pub(super) fn listeners(&self) -> Option<Vec<String>> {
        self.listeners.read().clone()
    }

    /// `starting`, `serving` or `draining`.
    pub(super) fn state(&self) -> &'static str {
        match (self.asked.is_cancelled(), self.listeners()) {
            (true, _) => "draining",
            (false, None) => "starting",
            (false, Some(_)) => "serving",
        }
    }
}

/// Takes down when the end was asked for.
async fn drain(shared: Arc<Shared>, end: CancellationToken) {
    tokio::select! {
        () = shared.asked.cancelled() => shared.metrics.drain(Instant::now()),
        () = end.cancelled() => {}
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

//! The admin listener itself: bound before anybody is served, and there until the last
//! conversation is over.
//!
//! Not here: what is answered (see `routes`).

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::place::Place;
use super::sign::Sign;
use crate::app::http::{self, Socket};
use crate::app::viewer::{Door, Viewer};
use crate::guard::origin::{Door as Origins, Names};
use crate::tap::metrics::Ledger;

/// A running admin listener. Dropped, it ends.
pub(in crate::app) struct Admin {
    shared: Arc<Shared>,
    place: Place,
    /// Where the viewer of recordings is, if there is one.
    pub(in crate::app) recordings: Option<String>,
    end: CancellationToken,
    _sign: Option<Sign>,
}

/// What answers are made from.
pub(super) struct Shared {
    pub(super) ledger: Arc<Ledger>,
    /// The addresses of the listeners, once they are open.
    pub(super) listeners: OnceLock<Vec<String>>,
    /// Cancelled when the relay is to end.
    pub(super) asked: CancellationToken,
    /// Whom web pages may name; none on a Unix socket, which they cannot reach.
    pub(super) origins: Option<Origins>,
    /// Recordings, and what has to stand in their address.
    pub(super) viewer: Option<(Door, Viewer)>,
}

impl Admin {
    /// Listens at `place`. `recordings` is where conversations are recorded.
    ///
    /// # Errors
    /// When the place is not to be had.
    pub(in crate::app) async fn open(
        place: &Place,
        asked: CancellationToken,
        recordings: Option<&Path>,
    ) -> io::Result<Self> {
        let (socket, place, port) = match place {
            Place::Loopback(address) => {
                let listener = TcpListener::bind(address).await?;
                let at = listener.local_addr()?;
                (Socket::Tcp(listener), Place::Loopback(at), Some(at.port()))
            }
            Place::Unix(path) => {
                let listener = UnixListener::bind(path)?;
                // From here on; whoever was quicker has seen figures.
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
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
            ledger: Arc::new(Ledger::new(env!("VERSION"), Instant::now())),
            listeners: OnceLock::new(),
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
        })
    }

    pub(in crate::app) fn ledger(&self) -> &Arc<Ledger> {
        &self.shared.ledger
    }

    pub(in crate::app) fn place(&self) -> &Place {
        &self.place
    }

    /// All listeners are open.
    pub(in crate::app) fn ready(&self, listeners: Vec<String>) {
        // There is only one start.
        let _ = self.shared.listeners.set(listeners);
    }
}

impl Shared {
    /// `starting`, `serving` or `draining`.
    pub(super) fn state(&self) -> &'static str {
        match (self.asked.is_cancelled(), self.listeners.get()) {
            (true, _) => "draining",
            (false, None) => "starting",
            (false, Some(_)) => "serving",
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end.cancel();
        if let Place::Unix(path) = &self.place {
            // Somebody may have removed it; the next one would be told that it is in use.
            let _ = std::fs::remove_file(path);
        }
    }
}

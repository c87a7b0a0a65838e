//! The viewer's server: HTTP/1.1 on loopback, for one user.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::door::Door;
use super::routes::{Viewer, refuse};
use crate::cli::http::{self, Answer, Desk, Socket};

/// A listener with its access control.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    door: Door,
    address: String,
}

/// The viewer behind access control.
struct Guarded(Door, Viewer);

impl Server {
    /// Listens on a port of loopback; 0 chooses any.
    ///
    /// # Errors
    /// The port is not available, or there is no randomness.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let at = listener.local_addr()?;
        let door =
            Door::new(at.port()).ok_or_else(|| io::Error::other("there is no randomness"))?;
        let address = format!("http://{at}{}", door.path());
        Ok(Self {
            listener,
            door,
            address,
        })
    }

    /// The address of the page, with the token.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Serves until `stop`.
    pub(super) async fn run(self, viewer: Viewer, stop: CancellationToken) {
        let desk = Arc::new(Guarded(self.door, viewer));
        http::serve(Socket::Tcp(self.listener), desk, stop).await;
    }
}

impl Desk for Guarded {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let Self(door, viewer) = self;
        match door.admit(request.uri().path(), request.headers()) {
            Ok(path) => viewer.answer(path, &request).await,
            Err(status) => refuse(status),
        }
    }
}

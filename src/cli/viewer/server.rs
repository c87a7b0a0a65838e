//! The viewer's own listener: HTTP/1.1 on loopback, for one person.

use std::io;
use std::net::Ipv4Addr;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::access::ViewerAccess;
use super::routes::{Viewer, router};
use crate::cli::http::{self, Socket};

/// A bound listener.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    access: ViewerAccess,
    address: String,
}

impl Server {
    /// Listens at a port of loopback, any when it is 0.
    ///
    /// # Errors
    /// When the port, or randomness, is not available.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let at = listener.local_addr()?;
        let access = ViewerAccess::new(at.port())
            .ok_or_else(|| io::Error::other("there is no randomness"))?;
        let address = format!("http://{at}{}", access.path());
        Ok(Self {
            listener,
            access,
            address,
        })
    }

    /// The page's address, with the token.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Serves until `stop`.
    pub(super) async fn run(self, viewer: Viewer, stop: CancellationToken) {
        let routes: Router = router("", &viewer, &self.access, || {});
        http::serve(Socket::Tcp(self.listener), routes, stop).await;
    }
}

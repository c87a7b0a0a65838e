//! The viewer's server: HTTP/1.1 on loopback, for one person.
//!
//! Not here: what is answered (see `routes`).

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use std::{io, pin};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::door::Door;
use super::routes::{Viewer, refuse};

/// Connections at a time. A browser opens six.
const CONNECTIONS: usize = 32;

/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);

/// A listener with its door.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    door: Door,
    address: String,
}

impl Server {
    /// Listens at a port of loopback, any when it is 0.
    ///
    /// # Errors
    /// When the port, or randomness, is not to be had.
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

    /// Where the page is, token and all.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Answers until `stop`.
    pub(super) async fn run(self, viewer: Viewer, stop: CancellationToken) {
        let shared = Arc::new((self.door, viewer));
        let seats = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let arrival = tokio::select! {
                () = stop.cancelled() => return,
                arrival = self.listener.accept() => arrival,
            };
            let Ok((socket, _)) = arrival else {
                // No descriptors left, or gone already: others may have more luck.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else {
                continue;
            };
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            tokio::spawn(async move {
                let service = service_fn(|request| {
                    let shared = Arc::clone(&shared);
                    async move {
                        let (door, viewer) = &*shared;
                        let answer = match door.admit(request.uri().path(), request.headers()) {
                            Ok(path) => viewer.answer(path, &request).await,
                            Err(status) => refuse(status),
                        };
                        Ok::<_, Infallible>(answer)
                    }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD)
                    .serve_connection(TokioIo::new(socket), service);
                let connection = pin::pin!(connection);
                // A browser that hangs up in the middle is no news.
                tokio::select! {
                    _ = connection => {}
                    () = stop.cancelled() => {}
                }
                drop(seat);
            });
        }
    }
}

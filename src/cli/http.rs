//! HTTP/1.1 for a person and the tools of this machine: the accept loop under the routers of the
//! viewer and the admin listener.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use crate::auth::origin::{HostNames, OriginPolicy as Origins};

/// Connections at a time. A browser opens six.
const MAX_CONNECTIONS: usize = 32;

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Time to wait before accepting again when the operating system refuses.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The source of connections.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection, to or from.
pub(super) type Stream = Either<TcpStream, UnixStream>;

impl Socket {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => Ok(Either::Left(listener.accept().await?.0)),
            Self::Unix(listener) => Ok(Either::Right(listener.accept().await?.0)),
        }
    }
}

/// The pages that may ask a listener at this port of loopback: its own.
pub(super) fn own_origin(port: u16) -> Origins {
    Origins {
        origins: vec![format!("http://127.0.0.1:{port}")],
        hosts: Vec::new(),
        names: HostNames::Loopback {
            port,
            default_port: 80,
        },
    }
}

/// Whether a request with these headers comes from an admitted page or from a program.
pub(super) fn is_admitted(origins: &Origins, headers: &HeaderMap) -> bool {
    let all = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    let sites = headers.get_all("sec-fetch-site").into_iter();
    let sites = sites.map(HeaderValue::as_bytes);
    origins.check(all(ORIGIN), all(HOST), sites).is_ok()
}

/// Serves `router` until `stop`.
pub(super) async fn serve(socket: Socket, router: Router, stop: CancellationToken) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        let Ok(stream) = accepted else {
            // No descriptors left, or the client has gone: the next accept may succeed.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
            continue;
        };
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            let connection = pin!(connection);
            // A client that closes early is not an error.
            tokio::select! {
                _ = connection => {}
                () = stop.cancelled() => {}
            }
            drop(permit);
        });
    }
}

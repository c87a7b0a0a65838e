//! HTTP/1.1 for a person and the tools of this machine: serves the routers of the viewer and the
//! admin listener.

use std::io;
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use crate::jsonrpc::Limits;
use crate::transport::http::{accept_sockets, http_server};
use crate::transport::owner;

/// Connections at a time. A browser opens six.
const MAX_CONNECTIONS: usize = 32;

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The user of a program that has sent a request over TCP, where the system can report it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientUser(pub(super) Option<u32>);

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

fn user_of(stream: &Stream) -> Option<u32> {
    match stream {
        Either::Left(tcp) => owner::of_socket(tcp.peer_addr().ok()?, tcp.local_addr().ok()?),
        Either::Right(_) => None,
    }
}

/// Serves `router` until `stop`.
pub(super) async fn serve(socket: Socket, router: Router, stop: CancellationToken) {
    let builder = http_server(&Limits::default(), HEAD_TIMEOUT).http1_only();
    let serve = |stream, permit| {
        let (builder, stop) = (builder.clone(), stop.clone());
        let router = router
            .clone()
            .layer(Extension(ClientUser(user_of(&stream))));
        tokio::spawn(async move {
            let service = TowerToHyperService::new(router);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // A client that closes early is not an error.
            stop.run_until_cancelled(connection).await;
            drop(permit);
        });
    };
    // No descriptors left, or the client has gone: the next accept may succeed.
    let ignore = |_error| {};
    accept_sockets(
        || socket.accept(),
        MAX_CONNECTIONS,
        stop.cancelled(),
        ignore,
        serve,
    )
    .await;
}

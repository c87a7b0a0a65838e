//! HTTP/1.1 for a person and the tools of this machine: serves the routers of the viewer and the
//! admin listener.
//!
//! When there are too many connections, the oldest one of the user with the most is closed, and no
//! new one waits: health checks are answered whatever others keep open.

use std::io;
use std::sync::{Arc, Once};
use std::time::Duration;

use axum::middleware;
use axum::{Extension, Router};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use jsonrpc::Limits;
use panics::{self, Place, SharedMutex};
use transport::http::port::socket::Socket as StalledSocket;
use transport::http::{accept_sockets, answer, http_server};
use transport::owner;

/// Connections at a time. A browser opens six. Each new one finds a place, and one that has a place
/// is not closed before as many others have come.
const MAX_CONNECTIONS: usize = 256;

/// That there were too many connections is logged once.
static REPORTED: Once = Once::new();

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The user of a program that has sent a request, where the system can report it.
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

/// The open connections, the oldest first: their users, and what closes them.
type Connections = SharedMutex<Vec<(Option<u32>, CancellationToken)>>;

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
        Either::Right(unix) => Some(unix.peer_cred().ok()?.uid()),
    }
}

/// Adds a connection of a user; if there are too many, closes another one.
fn add(open: &Connections, user: Option<u32>, stop: &CancellationToken) -> CancellationToken {
    let mut open = open.lock();
    open.retain(|(_, stop)| !stop.is_cancelled());
    let held = |user| open.iter().filter(|(other, _)| *other == user).count();
    // Of several that hold the most, the last one is returned.
    let oldest = || (0..open.len()).rev().max_by_key(|at| held(open[*at].0));
    if open.len() >= MAX_CONNECTIONS
        && let Some(at) = oldest()
    {
        let (user, stop) = open.remove(at);
        stop.cancel();
        REPORTED.call_once(|| {
            tracing::warn!(
                ?user,
                "too many connections to the admin listener or the viewer; the oldest are closed"
            );
        });
    }
    let new = stop.child_token();
    open.push((user, new.clone()));
    new
}

/// Serves `router` until `stop`.
pub(super) async fn serve(socket: Socket, router: Router, stop: CancellationToken) {
    let limits = Limits::default();
    let builder = http_server(&limits, HEAD_TIMEOUT).http1_only();
    let open = Arc::new(Connections::default());
    let serve = |stream: Stream, permit| {
        let user = user_of(&stream);
        let (builder, stop) = (builder.clone(), add(&open, user, &stop));
        let router = router
            .clone()
            .layer(middleware::from_fn(|request, next| {
                answer(Place::Admin, request, next)
            }))
            .layer(Extension(ClientUser(user)));
        let socket = StalledSocket::new(stream, limits.http_write_timeout);
        let served = async move {
            let _leaves = stop.clone().drop_guard();
            let service = TowerToHyperService::new(router);
            let connection = builder.serve_connection(TokioIo::new(socket), service);
            // A client that closes early is not an error.
            stop.run_until_cancelled(connection).await;
            drop(permit);
        };
        tokio::spawn(panics::confine(Place::Admin, Box::pin(served)));
    };
    // No descriptors left, or the client has gone: the next accept may succeed.
    let ignore = |_error| {};
    // One more than stay open: the one that is closed for it.
    accept_sockets(
        || socket.accept(),
        MAX_CONNECTIONS + 1,
        stop.cancelled(),
        ignore,
        serve,
    )
    .await;
}

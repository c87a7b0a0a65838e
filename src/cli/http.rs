//! HTTP/1.1 for a person and the tools of this machine: the loop under the viewer and the admin
//! listener.
//!
//! Not here: what is answered, and whom; HTTP as a transport (see `transport::http`).

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

/// Connections at a time. A browser opens six.
const CONNECTIONS: usize = 32;

/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);

/// Time to wait before accepting again when the operating system refuses.
const BREATHER: Duration = Duration::from_millis(50);

/// What is answered.
pub(super) type Answer = Response<Full<Bytes>>;

/// Where requests come in.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection, to or from.
pub(super) type Stream = Either<TcpStream, UnixStream>;

/// Answers requests.
pub(super) trait Desk: Send + Sync + 'static {
    /// Answers one.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Answer> + Send;
}

impl Socket {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => Ok(Either::Left(listener.accept().await?.0)),
            Self::Unix(listener) => Ok(Either::Right(listener.accept().await?.0)),
        }
    }
}

/// Has `desk` answer until `stop`.
pub(super) async fn serve(socket: Socket, desk: Arc<impl Desk>, stop: CancellationToken) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let arrival = tokio::select! {
            () = stop.cancelled() => return,
            arrival = socket.accept() => arrival,
        };
        let Ok(stream) = arrival else {
            // No descriptors left, or gone already: others may have more luck.
            tokio::time::sleep(BREATHER).await;
            continue;
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else {
            continue;
        };
        let (desk, stop) = (Arc::clone(&desk), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let desk = Arc::clone(&desk);
                async move { Ok::<_, Infallible>(desk.answer(request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), service);
            let connection = pin!(connection);
            // Whoever hangs up in the middle is no news.
            tokio::select! {
                _ = connection => {}
                () = stop.cancelled() => {}
            }
            drop(seat);
        });
    }
}

//! The HTTP/1.1 server loop of the viewer and the admin listener. The callers provide the answers
//! and check who may ask.

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

/// Most connections at a time. A browser opens six.
const CONNECTIONS: usize = 32;

/// Time that a request's head may take.
const HEAD: Duration = Duration::from_secs(10);

/// Time to wait before accepting again when the operating system refuses.
const BREATHER: Duration = Duration::from_millis(50);

/// A response.
pub(super) type Answer = Response<Full<Bytes>>;

/// A listening socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection, as client or server.
pub(super) type Stream = Either<TcpStream, UnixStream>;

/// Answers HTTP requests.
pub(super) trait Desk: Send + Sync + 'static {
    /// Answers one request.
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

/// Accepts connections and has `handler` answer their requests, until `stop`.
pub(super) async fn serve(socket: Socket, desk: Arc<impl Desk>, stop: CancellationToken) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let arrival = tokio::select! {
            () = stop.cancelled() => return,
            arrival = socket.accept() => arrival,
        };
        let Ok(stream) = arrival else {
            // No descriptors left, or the connection is gone: try again later.
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
            // A connection that breaks off is not worth a log line.
            tokio::select! {
                _ = connection => {}
                () = stop.cancelled() => {}
            }
            drop(seat);
        });
    }
}

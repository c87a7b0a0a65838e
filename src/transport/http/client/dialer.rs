//! Opens connections to a server, for hyper's pool: a socket, TLS, and the version of HTTP.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use crate::transport::{Endpoint, HttpEndpoint, OpenError, Setup, tcp, tls};

/// How long the connection that was opened to check the server may wait for the first request.
/// Servers close those that wait too long, and a request must not be sent on one of those.
const FRESH: Duration = Duration::from_secs(3);

/// Opens connections to one server.
#[derive(Clone)]
pub(super) struct Dialer(Arc<Target>);

struct Target {
    to: Endpoint,
    endpoint: HttpEndpoint,
    tls: Option<TlsConnector>,
    setup: Setup,
    /// The connection that was opened to check that the server is there.
    first: Mutex<Option<(Instant, Socket)>>,
}

/// A connection of either kind.
pub(super) type Socket = TokioIo<Box<dyn Stream>>;

/// A byte stream, in clear or in TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Whether HTTP/2 was negotiated.
    fn is_http2(&self) -> bool;
}

impl Dialer {
    /// Connects to the server once, so that the caller learns at once when it is not there.
    pub(super) async fn connect(
        to: &Endpoint,
        endpoint: &HttpEndpoint,
        setup: &Setup,
    ) -> Result<Self, OpenError> {
        let tls = if endpoint.tls {
            Some(tls::connector(to, &setup.tls, &[b"h2", b"http/1.1"])?)
        } else {
            None
        };
        let dialer = Self(Arc::new(Target {
            to: to.clone(),
            endpoint: endpoint.clone(),
            tls,
            setup: setup.clone(),
            first: Mutex::new(None),
        }));
        let socket = dialer.0.dial().await?;
        *dialer.0.first() = Some((Instant::now(), socket));
        Ok(dialer)
    }
}

impl Target {
    async fn dial(&self) -> Result<Socket, OpenError> {
        let Self {
            to,
            endpoint: web,
            setup,
            ..
        } = self;
        let stream = tcp::dial(to, &web.host, web.port, setup).await?;
        let Some(connector) = &self.tls else {
            return Ok(Socket::new(Box::new(stream)));
        };
        let stream =
            tls::handshake(to, &web.host, connector, stream, setup.limits.handshake).await?;
        Ok(Socket::new(Box::new(stream)))
    }

    fn first(&self) -> MutexGuard<'_, Option<(Instant, Socket)>> {
        self.first.lock()
    }
}

impl Service<Uri> for Dialer {
    type Response = Socket;
    type Error = OpenError;
    type Future = Pin<Box<dyn Future<Output = Result<Socket, OpenError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenError>> {
        Poll::Ready(Ok(()))
    }

    /// There is one server only, so the address is not used.
    fn call(&mut self, _: Uri) -> Self::Future {
        let target = Arc::clone(&self.0);
        Box::pin(async move {
            let first = target.first().take();
            match first.filter(|(made, _)| made.elapsed() < FRESH) {
                Some((_, socket)) => Ok(socket),
                None => target.dial().await,
            }
        })
    }
}

impl Stream for TcpStream {
    fn is_http2(&self) -> bool {
        false
    }
}

impl Stream for TlsStream<TcpStream> {
    fn is_http2(&self) -> bool {
        self.get_ref().1.alpn_protocol() == Some(b"h2")
    }
}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        if self.is_http2() {
            connected.negotiated_h2()
        } else {
            connected
        }
    }
}

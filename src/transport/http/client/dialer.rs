//! Opens connections to a server, for hyper's pool: a socket, TLS, and the version of HTTP.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::tunnel::Proxy;
use crate::{BoxFuture, Endpoint, HttpProtocol, OpenError, Setup, tcp, tls, unix};

/// How long the connection that was opened to check the server may wait for the first request.
/// Servers close those that wait too long, and a request must not be sent on one of those.
const FRESH: Duration = Duration::from_secs(3);

/// A connection to a server, of any kind.
pub type HttpStream = Box<dyn ClientStream>;

/// A byte stream to a server.
pub trait ClientStream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Its address, and whether HTTP/2 was negotiated.
    fn connected(&self) -> Connected;
}

/// Opens connections to one server.
#[derive(Clone)]
pub(super) struct Dialer(Arc<Target>);

struct Target {
    to: Endpoint,
    tls: Option<TlsConnector>,
    setup: Setup,
    /// The connection that was opened to check that the server is there.
    first: Mutex<Option<(Instant, HttpStream)>>,
}

impl Dialer {
    /// Reads the certificates for TLS, and connects nothing.
    pub(super) fn new(to: &Endpoint, setup: &Setup) -> Result<Self, OpenError> {
        let tls = match to {
            Endpoint::Http(web) if web.tls => {
                // WebSockets over HTTP/2 are another protocol (RFC 8441).
                let protocols: &[&[u8]] = match web.protocol {
                    HttpProtocol::WebSocket => &[b"http/1.1"],
                    _ => &[b"h2", b"http/1.1"],
                };
                Some(tls::connector(to, &setup.tls, protocols)?)
            }
            _ => None,
        };
        Ok(Self(Arc::new(Target {
            to: to.clone(),
            tls,
            setup: setup.clone(),
            first: Mutex::new(None),
        })))
    }

    /// Opens the connection for the first request.
    pub(super) async fn connect(&self) -> Result<(), OpenError> {
        let stream = self.0.dial().await?;
        *self.0.first.lock() = Some((Instant::now(), stream));
        Ok(())
    }
}

impl Target {
    async fn dial(&self) -> Result<HttpStream, OpenError> {
        let Self { to, setup, .. } = self;
        let web = match to {
            Endpoint::Unix(path) => return Ok(Box::new(unix::dial(to, path, setup).await?)),
            Endpoint::Http(web) => web,
            _ => return Err(OpenError::wrong_scheme(to)),
        };
        let stream = match Proxy::find(to, web, setup) {
            Some(proxy) => proxy.dial(to, web, setup).await?,
            None => tcp::dial(to, &web.host, web.port, setup).await?,
        };
        let Some(connector) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let within = setup.limits.handshake;
        let stream = tls::handshake(to, &web.host, connector, stream, within).await?;
        Ok(Box::new(stream))
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<HttpStream>;
    type Error = OpenError;
    type Future = BoxFuture<'static, Result<Self::Response, OpenError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenError>> {
        Poll::Ready(Ok(()))
    }

    /// There is one server only, so the address is not used.
    fn call(&mut self, _: Uri) -> Self::Future {
        let target = Arc::clone(&self.0);
        Box::pin(async move {
            let first = target.first.lock().take();
            let stream = match first.filter(|(made, _)| made.elapsed() < FRESH) {
                Some((_, stream)) => stream,
                None => target.dial().await?,
            };
            Ok(TokioIo::new(stream))
        })
    }
}

impl ClientStream for TcpStream {
    fn connected(&self) -> Connected {
        Connection::connected(self)
    }
}

impl ClientStream for UnixStream {
    fn connected(&self) -> Connected {
        Connection::connected(self)
    }
}

impl ClientStream for TlsStream<TcpStream> {
    fn connected(&self) -> Connected {
        let (socket, tls) = self.get_ref();
        let connected = Connection::connected(socket);
        match tls.alpn_protocol() == Some(b"h2") {
            true => connected.negotiated_h2(),
            false => connected,
        }
    }
}

impl Connection for HttpStream {
    fn connected(&self) -> Connected {
        (**self).connected()
    }
}

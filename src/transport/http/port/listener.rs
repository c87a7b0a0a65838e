//! A port: it is bound, its sockets are accepted, TLS is opened, and an HTTP server runs on each.
//!
//! Each socket is served in a task of its own on a worker, so that no client waits for another's
//! handshake. When no more clients are accepted the port stays open until all conversations on it
//! have ended: a client may need another socket to answer a request of the agent.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use parking_lot::RwLock;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use super::body::BodyMemory;
use super::caller::{Caller, UnauthenticatedSockets};
use super::shared::{Port, Rules};
use super::socket::{Socket, Stream};
use crate::http::accept::{accept_sockets, http_server};
use crate::{
    AcceptFuture, BoxFuture, Endpoint, HttpEndpoint, IncomingLink, Listener, OpenError,
    OpenErrorKind, Setup, certificate, open_error, tcp,
};
use auth::RejectReason;
use auth::origin::HostNames;
use panics::{self, Place};

/// Clients that may wait to be accepted.
const BACKLOG: usize = 64;
/// Time a socket may have no request on it, or take over the head of one but the first.
const IDLE: Duration = Duration::from_secs(75);

/// Answers the requests of a port.
pub trait HttpService: Send + Sync {
    /// Whether it serves a path of the port.
    fn serves(&self, path: &str) -> bool;

    /// Answers one request. Called in the order of the heads of a socket.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> BoxFuture<'static, Response>;

    /// Applies the settings that can change while it runs.
    fn renew(&self, setup: &Setup) {
        let _ = setup;
    }

    /// Waits, once no more clients are accepted, until nothing needs the port any more.
    fn ended(&self) -> BoxFuture<'_, ()>;
}

/// The services of a port, at least one. The first one that serves a path answers its requests, and
/// the first of all where none does.
type Services = Vec<Arc<dyn HttpService>>;

/// Starts the service that the settings put beside ACP on a port, if any. It is one of the
/// `extensions` of the settings.
#[derive(Clone, Copy, Debug)]
pub struct ServeBeside(pub fn(&Arc<Port>) -> StartedService);

/// What [`ServeBeside`] returns.
pub type StartedService = Result<Option<Arc<dyn HttpService>>, OpenError>;

/// A port that is bound but has no service yet.
pub struct Bound {
    /// The port.
    pub port: Arc<Port>,
    socket: TcpListener,
    arrivals: mpsc::Receiver<IncomingLink>,
}

jsonrpc::opaque_debug!(Bound);

/// A port with its services.
struct HttpListener {
    port: Arc<Port>,
    services: Arc<Services>,
    arrivals: mpsc::Receiver<IncomingLink>,
    faults: mpsc::Receiver<io::Error>,
}

/// Accepts and serves the sockets of a port.
struct Acceptor {
    port: Arc<Port>,
    services: Arc<Services>,
    unauthenticated: Arc<UnauthenticatedSockets>,
    builder: Builder<TokioExecutor>,
}

/// Why a socket is not served, and the reason it is counted under.
type Rejected = (OpenError, RejectReason);

/// Binds an HTTP endpoint.
pub async fn bind(at: &Endpoint, setup: &Setup) -> Result<Bound, OpenError> {
    let Endpoint::Http(web) = at else {
        return Err(OpenError::wrong_scheme(at));
    };
    let (socket, port) = tcp::bind(at, &web.host, web.port, setup).await?;
    let names = if at.is_loopback() {
        let default_port = web.default_port();
        HostNames::Loopback { port, default_port }
    } else {
        HostNames::Any
    };
    let at = HttpEndpoint {
        port,
        ..web.clone()
    };
    let rules = Rules::of(&at, names, setup)?;
    let (sender, arrivals) = mpsc::channel(BACKLOG);
    let limits = &setup.limits;
    let port = Port {
        at,
        names,
        rules: RwLock::new(Arc::new(rules)),
        limits: limits.clone(),
        bodies: BodyMemory::new(limits),
        setup: setup.clone(),
        arrivals: sender,
        closing: CancellationToken::new(),
        done: CancellationToken::new(),
    };
    Ok(Bound {
        port: Arc::new(port),
        socket,
        arrivals,
    })
}

impl Bound {
    /// Has the services answer the requests, until no more sockets are needed.
    pub fn serve_with(self, services: Services) -> Box<dyn Listener> {
        let services = Arc::new(services);
        let limits = self.port.limits.clone();
        let acceptor = Arc::new(Acceptor {
            port: self.port.clone(),
            services: services.clone(),
            unauthenticated: UnauthenticatedSockets::new(&limits),
            builder: http_server(&limits, IDLE),
        });
        let (report, faults) = mpsc::channel(1);
        let socket = self.socket;
        tokio::spawn(async move {
            let ended = async {
                acceptor.port.closing.cancelled().await;
                for service in acceptor.services.iter() {
                    service.ended().await;
                }
            };
            let accept = || tcp::accept(&socket, &limits);
            // One at a time is enough: the receiver is slower than this loop.
            let report = |fault| drop(report.try_send(fault));
            let serve = |(stream, address), permit| {
                acceptor.clone().assign(stream, address, permit);
            };
            accept_sockets(accept, limits.http_sockets, ended, report, serve).await;
            acceptor.port.done.cancel();
        });
        Box::new(HttpListener {
            port: self.port,
            services,
            arrivals: self.arrivals,
            faults,
        })
    }
}

impl Listener for HttpListener {
    fn accept(&mut self) -> AcceptFuture<'_> {
        Box::pin(async move {
            tokio::select! {
                arrival = self.arrivals.recv() => arrival.map(Ok),
                Some(fault) = self.faults.recv() => Some(Err(fault)),
            }
        })
    }

    fn address(&self) -> Endpoint {
        Endpoint::Http(self.port.at.clone())
    }

    fn update(&mut self, setup: &Setup) -> Result<(), OpenError> {
        let rules = Rules::of(&self.port.at, self.port.names, setup)?;
        *self.port.rules.write() = Arc::new(rules);
        self.services
            .iter()
            .for_each(|service| service.renew(setup));
        Ok(())
    }
}

/// Stops accepting clients.
impl Drop for HttpListener {
    fn drop(&mut self) {
        self.port.closing.cancel();
    }
}

impl Acceptor {
    /// Passes a socket to its worker.
    fn assign(
        self: Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        permit: OwnedSemaphorePermit,
    ) {
        let from: Arc<str> = format!("{}://{address}", self.port.at.scheme()).into();
        let (rules, place) = (self.port.rules(), self.port.place());
        let (gate, unauthenticated) = (&rules.gate, &self.unauthenticated);
        let caller = Caller::of(&stream, from.clone(), address, place, gate, unauthenticated);
        let Some(caller) = caller else {
            let what = "too many clients of this address have not authenticated yet";
            let fault = OpenError::new(OpenErrorKind::Forbidden, &from, what);
            return self.port.reject(&from, fault, RejectReason::Limit);
        };
        let (moved, worker) = (stream.into_std(), self.port.setup.workers.pick());
        let served = async move {
            let served = match moved.and_then(TcpStream::from_std) {
                Ok(stream) => self.serve(stream, &from, caller).await,
                Err(fault) => {
                    let fault = open_error::not_accepted(&from, &fault);
                    Err((fault, RejectReason::Handshake))
                }
            };
            if let Err((fault, why)) = served {
                self.port.reject(&from, fault, why);
            }
            drop(permit);
        };
        worker.spawn(panics::confine(Place::Connection, Box::pin(served)));
    }

    /// Serves one socket.
    async fn serve(
        &self,
        stream: TcpStream,
        from: &Arc<str>,
        mut caller: Caller,
    ) -> Result<(), Rejected> {
        let (port, within) = (&self.port, self.port.limits.handshake);
        let stream = self.open_tls(stream, from, &mut caller).await?;
        let socket = Socket::new(stream, port.limits.http_write_timeout);
        let caller = Arc::new(caller);
        let (services, client) = (self.services.clone(), caller.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            client.has_requested.store(true, Ordering::Relaxed);
            let path = request.uri().path();
            let serving = services.iter().find(|service| service.serves(path));
            let service = serving.unwrap_or(&services[0]).clone();
            let answer = service.answer(request, client.clone());
            panics::confine(Place::Connection, answer).map(|answer| {
                let fault = || StatusCode::INTERNAL_SERVER_ERROR.into_response();
                Ok::<_, Infallible>(answer.unwrap_or_else(fault))
            })
        });
        let connection = self
            .builder
            .serve_connection_with_upgrades(TokioIo::new(socket), service);
        let overdue = async {
            sleep(within).await;
            if !caller.has_requested() {
                Err(late(from, within))
            } else if caller.is_unauthenticated() {
                // Over HTTP/2 a refused client could stay and occupy a socket.
                Ok(())
            } else {
                pending().await
            }
        };
        let done = port.done.cancelled();
        tokio::pin!(connection, overdue, done);
        let mut draining = false;
        loop {
            tokio::select! {
                served = connection.as_mut() => return match served {
                    Err(fault) if !caller.has_requested() => {
                        let what = format!("the client does not speak HTTP ({fault})");
                        let fault = OpenError::new(OpenErrorKind::Protocol, from, what);
                        Err((fault, RejectReason::Handshake))
                    }
                    _ => Ok(()),
                },
                rejected = overdue.as_mut() => return rejected,
                () = done.as_mut(), if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }

    /// Opens TLS where the port has it.
    async fn open_tls(
        &self,
        stream: TcpStream,
        from: &Arc<str>,
        caller: &mut Caller,
    ) -> Result<Stream, Rejected> {
        let within = self.port.limits.handshake;
        let rules = self.port.rules();
        let Some(tls) = &rules.certificates else {
            return Ok(Either::Left(stream));
        };
        let opened = timeout(within, tls.acceptor().accept(stream)).await;
        let opened = opened.map_err(|_| late(from, within))?;
        let opened = opened.map_err(|fault| {
            let what = format!("the client did not open TLS ({fault})");
            let fault = OpenError::new(OpenErrorKind::Protocol, from, what);
            (fault, RejectReason::Tls)
        })?;
        caller.certificate = certificate::of_client(opened.get_ref().1);
        Ok(Either::Right(Box::new(opened)))
    }
}

/// A client was not served within this time.
fn late(from: &Arc<str>, within: Duration) -> Rejected {
    let fault = open_error::timed_out(from, "the handshake", within);
    (fault, RejectReason::Timeout)
}

//! The sockets of a port: accepts them, opens TLS, and runs an HTTP server on each.
//!
//! Each socket is served in a task of its own on a worker, so that no client waits for another's
//! handshake. When no more clients are accepted the port stays open until all conversations on it
//! have ended: a client may need another socket to answer a request of the agent.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::either::Either;

use super::answer::{Answer, BodyStream};
use super::bind::Port;
use super::caller::Caller;
use super::socket::Socket;
use super::unauthenticated::UnauthenticatedSockets;
use crate::auth::RejectReason;
use crate::jsonrpc::Limits;
use crate::transport::certificate;
use crate::transport::{OpenError, OpenErrorKind, Setup, Worker, Workers, open_error, tcp};

/// Time a socket may have no request on it, or take over the head of one but the first.
const IDLE: Duration = Duration::from_secs(75);
/// Time to wait before accepting again when the operating system refuses (no descriptors left).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Time between pings on an HTTP/2 socket, and for their answer.
const PING: Duration = Duration::from_secs(20);
/// Smallest buffer the HTTP/1.1 server takes, in bytes.
const MIN_BUFFER: usize = 8 << 10;

/// Answers the requests of a port.
pub(in crate::transport) trait Handler: Send + Sync + 'static {
    /// The streamed bodies of its responses.
    type Stream: BodyStream;

    /// Answers one request. Called in the order of the heads of a socket.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> impl Future<Output = Result<Answer<Self::Stream>, Infallible>> + Send + 'static;

    /// The worker for a socket; one in clear may be peeked at.
    fn pick_worker(
        &self,
        stream: &TcpStream,
        workers: &Workers,
    ) -> impl Future<Output = Worker> + Send {
        let _ = stream;
        let worker = workers.pick();
        async { worker }
    }

    /// Applies the settings that can change while it runs.
    fn renew(&self, setup: &Setup) {
        let _ = setup;
    }

    /// Waits, once no more clients are accepted, until nothing needs the port any more.
    fn ended(&self) -> impl Future<Output = ()> + Send;
}

/// Accepts and serves the sockets of a port.
struct Acceptor<S> {
    port: Arc<Port>,
    handler: Arc<S>,
    unauthenticated: Arc<UnauthenticatedSockets>,
    builder: Builder<TokioExecutor>,
    sockets: Arc<Semaphore>,
}

/// Starts serving a port. Errors of the operating system go to `report`.
pub(super) fn start<S: Handler>(
    port: &Arc<Port>,
    socket: TcpListener,
    handler: &Arc<S>,
    report: mpsc::Sender<io::Error>,
) {
    let limits = &port.limits;
    let server = Acceptor {
        port: port.clone(),
        handler: handler.clone(),
        unauthenticated: UnauthenticatedSockets::new(limits),
        builder: builder(limits),
        sockets: Arc::new(Semaphore::new(limits.http_sockets)),
    };
    tokio::spawn(Arc::new(server).accept_all(socket, report));
}

/// A server for both versions of HTTP, within the limits.
fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let h1 = &mut builder.http1();
    h1.timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .title_case_headers(true)
        .max_headers(limits.header_fields)
        .max_buf_size(limits.header_bytes.max(MIN_BUFFER));
    let max = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(max(limits.http_requests))
        .max_header_list_size(max(limits.header_bytes))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}

impl<S: Handler> Acceptor<S> {
    /// Accepts sockets until no more are needed.
    async fn accept_all(self: Arc<Self>, socket: TcpListener, report: mpsc::Sender<io::Error>) {
        let port = &self.port;
        let ended = async {
            port.closing.cancelled().await;
            self.handler.ended().await;
        };
        tokio::pin!(ended);
        loop {
            let accept = async {
                let permit = self.sockets.clone().acquire_owned().await;
                (permit, tcp::accept(&socket, &port.limits).await)
            };
            let (permit, accepted) = tokio::select! {
                accepted = accept => accepted,
                () = ended.as_mut() => break,
            };
            match accepted {
                Ok((stream, address)) => {
                    let from: Arc<str> = format!("{}://{address}", port.at.scheme()).into();
                    let server = self.clone();
                    tokio::spawn(server.assign(stream, from, address, permit.ok()));
                }
                Err(fault) => {
                    // One at a time is enough: the receiver is slower than this loop.
                    let _ = report.try_send(fault);
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
        port.done.cancel();
    }

    /// Passes a socket to its worker.
    async fn assign(
        self: Arc<Self>,
        stream: TcpStream,
        from: Arc<str>,
        address: SocketAddr,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let port = &self.port;
        let (rules, place) = (port.rules(), port.place());
        let (gate, unauthenticated) = (&rules.gate, &self.unauthenticated);
        let caller = Caller::of(&stream, from.clone(), address, place, gate, unauthenticated);
        let Some(caller) = caller else {
            let what = "too many clients of this address have not authenticated yet";
            let fault = OpenError::new(OpenErrorKind::Forbidden, &from, what);
            return port.reject(&from, fault, RejectReason::Limit);
        };
        let workers = &port.setup.workers;
        let within = port.limits.handshake;
        let worker = match &rules.certificates {
            None => timeout(within, self.handler.pick_worker(&stream, workers)).await,
            Some(_) => Ok(workers.pick()),
        };
        let Ok(worker) = worker else {
            let fault = open_error::timed_out(&from, "the handshake", within);
            return port.reject(&from, fault, RejectReason::Timeout);
        };
        let moved = stream.into_std();
        worker.spawn(async move {
            match moved.and_then(TcpStream::from_std) {
                Ok(stream) => self.serve(stream, from, caller).await,
                Err(fault) => {
                    let fault = open_error::not_accepted(&from, &fault);
                    self.port.reject(&from, fault, RejectReason::Handshake);
                }
            }
            drop(permit);
        });
    }

    /// Serves one socket.
    async fn serve(self: Arc<Self>, stream: TcpStream, from: Arc<str>, mut caller: Caller) {
        let port = &self.port;
        let stall = port.limits.http_stall;
        let within = port.limits.handshake;
        let rules = port.rules();
        let stream = match &rules.certificates {
            None => Either::Left(stream),
            Some(tls) => match timeout(within, tls.acceptor().accept(stream)).await {
                Ok(Ok(stream)) => {
                    caller.certificate = certificate::of_client(stream.get_ref().1);
                    Either::Right(Box::new(stream))
                }
                Ok(Err(fault)) => {
                    let what = format!("the client did not open TLS ({fault})");
                    let fault = OpenError::new(OpenErrorKind::Protocol, &from, what);
                    return port.reject(&from, fault, RejectReason::Tls);
                }
                Err(_) => {
                    let fault = open_error::timed_out(&from, "the handshake", within);
                    return port.reject(&from, fault, RejectReason::Timeout);
                }
            },
        };
        let first_request = Arc::new(Notify::new());
        let caller = Arc::new(caller);
        let (handler, client, first) =
            (self.handler.clone(), caller.clone(), first_request.clone());
        let service = service_fn(move |request| {
            first.notify_one();
            handler.clone().answer(request, client.clone())
        });
        let socket = Socket::new(stream, stall);
        let closing = socket.closing();
        let connection = self
            .builder
            .serve_connection_with_upgrades(TokioIo::new(socket), service);
        tokio::pin!(connection);
        let (first, late) = (first_request.notified(), sleep(within));
        tokio::pin!(first, late);
        let (mut has_request, mut checked, mut done) = (false, false, false);
        loop {
            tokio::select! {
                served = connection.as_mut() => {
                    if let (Err(fault), false) = (served, has_request) {
                        let what = format!("the client does not speak HTTP ({fault})");
                        let fault = OpenError::new(OpenErrorKind::Protocol, &from, what);
                        port.reject(&from, fault, RejectReason::Handshake);
                    }
                    return;
                }
                () = first.as_mut(), if !has_request => has_request = true,
                () = late.as_mut(), if !checked => {
                    if !has_request && closing.load(Ordering::Relaxed) {
                        let what = "the client does not speak HTTP";
                        let fault = OpenError::new(OpenErrorKind::Protocol, &from, what);
                        return port.reject(&from, fault, RejectReason::Handshake);
                    }
                    if !has_request {
                        let fault = open_error::timed_out(&from, "the handshake", within);
                        return port.reject(&from, fault, RejectReason::Timeout);
                    }
                    // Over HTTP/2 a refused client could stay and occupy a socket.
                    if caller.is_unauthenticated() {
                        return;
                    }
                    checked = true;
                }
                () = port.done.cancelled(), if !done => {
                    done = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

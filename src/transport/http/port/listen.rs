//! The sockets of a port: accepts them, opens TLS, and runs an HTTP server on each.
//!
//! Each socket is served in a task of its own on a worker, so that no client waits for another's
//! handshake. When no more clients are accepted the port stays open until all conversations on it
//! have ended: a client may need another socket to answer a request of the agent.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::either::Either;

use super::caller::Caller;
use super::service::HttpService;
use super::shared::Port;
use super::socket::Socket;
use super::unauthenticated::UnauthenticatedSockets;
use crate::auth::RejectReason;
use crate::transport::certificate;
use crate::transport::http::accept::{accept_sockets, http_server};
use crate::transport::{OpenError, OpenErrorKind, open_error, tcp};

/// Time a socket may have no request on it, or take over the head of one but the first.
const IDLE: Duration = Duration::from_secs(75);

/// Accepts and serves the sockets of a port.
struct Acceptor {
    port: Arc<Port>,
    service: Arc<dyn HttpService>,
    unauthenticated: Arc<UnauthenticatedSockets>,
    builder: Builder<TokioExecutor>,
}

/// Why a socket is not served, and the reason it is counted under.
type Rejected = (OpenError, RejectReason);

/// Starts serving a port until no more sockets are needed. Errors of the operating system go to
/// `report`.
pub(super) fn start(
    port: &Arc<Port>,
    socket: TcpListener,
    service: &Arc<dyn HttpService>,
    report: mpsc::Sender<io::Error>,
) {
    let limits = port.limits.clone();
    let acceptor = Arc::new(Acceptor {
        port: port.clone(),
        service: service.clone(),
        unauthenticated: UnauthenticatedSockets::new(&limits),
        builder: http_server(&limits, IDLE),
    });
    tokio::spawn(async move {
        let ended = async {
            acceptor.port.closing.cancelled().await;
            acceptor.service.ended().await;
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
        let moved = stream.into_std();
        self.port.setup.workers.pick().spawn(async move {
            if let Err((fault, why)) = self.serve(moved, &from, caller).await {
                self.port.reject(&from, fault, why);
            }
            drop(permit);
        });
    }

    /// Serves one socket.
    async fn serve(
        &self,
        stream: io::Result<std::net::TcpStream>,
        from: &Arc<str>,
        mut caller: Caller,
    ) -> Result<(), Rejected> {
        let port = &self.port;
        let within = port.limits.handshake;
        let rules = port.rules();
        let stream = stream.and_then(TcpStream::from_std).map_err(|fault| {
            let fault = open_error::not_accepted(from, &fault);
            (fault, RejectReason::Handshake)
        })?;
        let stream = match &rules.certificates {
            None => Either::Left(stream),
            Some(tls) => {
                let opened = timeout(within, tls.acceptor().accept(stream)).await;
                let opened = opened.map_err(|_| late(from, within))?.map_err(|fault| {
                    let what = format!("the client did not open TLS ({fault})");
                    let fault = OpenError::new(OpenErrorKind::Protocol, from, what);
                    (fault, RejectReason::Tls)
                })?;
                caller.certificate = certificate::of_client(opened.get_ref().1);
                Either::Right(Box::new(opened))
            }
        };
        let not_http = |what: String| {
            let fault = OpenError::new(OpenErrorKind::Protocol, from, what);
            (fault, RejectReason::Handshake)
        };
        let first_request = Arc::new(Notify::new());
        let caller = Arc::new(caller);
        let (service, client, first) =
            (self.service.clone(), caller.clone(), first_request.clone());
        let service = service_fn(move |request| {
            first.notify_one();
            let answer = service.clone().answer(request, client.clone());
            answer.map(Ok::<_, Infallible>)
        });
        let socket = Socket::new(stream, port.limits.http_write_timeout);
        let closing = socket.closing();
        let connection = self
            .builder
            .serve_connection_with_upgrades(TokioIo::new(socket), service);
        tokio::pin!(connection);
        let (first, deadline) = (first_request.notified(), sleep(within));
        tokio::pin!(first, deadline);
        let (mut has_request, mut checked, mut done) = (false, false, false);
        loop {
            tokio::select! {
                served = connection.as_mut() => return match served {
                    Err(fault) if !has_request => {
                        Err(not_http(format!("the client does not speak HTTP ({fault})")))
                    }
                    _ => Ok(()),
                },
                () = first.as_mut(), if !has_request => has_request = true,
                () = deadline.as_mut(), if !checked => {
                    if !has_request {
                        return Err(match closing.load(Ordering::Relaxed) {
                            true => not_http("the client does not speak HTTP".to_owned()),
                            false => late(from, within),
                        });
                    }
                    // Over HTTP/2 a refused client could stay and occupy a socket.
                    if caller.is_unauthenticated() {
                        return Ok(());
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

/// A client was not served within this time.
fn late(from: &Arc<str>, within: Duration) -> Rejected {
    let fault = open_error::timed_out(from, "the handshake", within);
    (fault, RejectReason::Timeout)
}

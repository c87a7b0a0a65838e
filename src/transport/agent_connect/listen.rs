//! The port: sockets, TLS, and the HTTP server on them.
//!
//! Not here: what is answered (see `routes`).

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::hub::{Hub, now};
use super::line::Line;
use super::routes::{self, Desk};
use super::store::Store;
use super::webhook::Postman;
use crate::guard::Place;
use crate::guard::origin::Names;
use crate::transport::certificate;
use crate::transport::http::server::body::Room;
use crate::transport::http::server::caller::Caller;
use crate::transport::http::server::rules::Rules;
use crate::transport::http::server::socket::{Socket, Stream};
use crate::transport::http::server::strangers::Strangers;
use crate::transport::http::server::{BREATHER, builder};
use crate::transport::{Arrival, BoxFuture, Endpoint, Listener, OpenError, OpenErrorKind};
use crate::transport::{Setup, Web, tcp};

/// Links that may wait to be accepted.
const BACKLOG: usize = 4;

/// A bound port.
struct Bound {
    at: Endpoint,
    web: Web,
    names: Names,
    desk: Arc<Desk>,
    arrivals: mpsc::Receiver<Arrival>,
    faults: mpsc::Receiver<io::Error>,
    /// Tells the server that nobody accepts any more.
    _closing: DropGuard,
}

/// The server behind it.
struct Server {
    desk: Arc<Desk>,
    web: Web,
    strangers: Arc<Strangers>,
    builder: Builder<TokioExecutor>,
    places: Arc<Semaphore>,
    closing: CancellationToken,
    /// The last run is over after nobody accepted any more.
    done: CancellationToken,
}

/// Binds an endpoint.
pub(super) async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    let Endpoint::Web(web) = at else {
        return Err(OpenError::misplaced(at));
    };
    let (socket, port) = tcp::bind(at, &web.host, web.port, setup).await?;
    let names = if at.is_loopback() {
        let default_port = web.default_port();
        Names::Loopback { port, default_port }
    } else {
        Names::Any
    };
    let web = Web {
        port,
        ..web.clone()
    };
    let rules = Rules::of(at, &web, names, setup)?;
    let service = &setup.agent_connect;
    let (arrive, arrivals) = mpsc::channel(BACKLOG);
    let (report, faults) = mpsc::channel(1);
    let closing = CancellationToken::new();
    let limits = &setup.limits;
    let path = web.path.trim_end_matches('/').to_owned();
    let scheme = if web.tls { "https" } else { "http" };
    let base = format!("{scheme}://{}{path}", web.authority());
    let (store, orphans) = Store::open(service.store.as_deref(), now()).map_err(|what| {
        let file = service
            .store
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string());
        let what = format!("the store {file} cannot be used: {what}");
        OpenError::new(OpenErrorKind::CannotCreate, at, what)
            .with_remedy("Name another file with --store")
    })?;
    let postman = Postman::new(service.callbacks.clone());
    for (run, webhook) in orphans {
        postman.send(&webhook, &run.shown());
    }
    let name = service.agents.first().cloned().flatten();
    let line = Line::new(
        name,
        base.clone(),
        service.unasked,
        limits.clone(),
        arrive,
        closing.clone(),
    );
    let desk = Arc::new(Desk {
        hub: Arc::new(Hub::new(line.clone(), store, postman, limits.clone())),
        rules: RwLock::new(Arc::new(rules)),
        draining: setup.draining.clone(),
        bodies: Room::new(limits),
        path,
        base,
    });
    let server = Arc::new(Server {
        desk: desk.clone(),
        web: web.clone(),
        strangers: Strangers::new(limits.strangers),
        builder: builder(limits),
        places: Arc::new(Semaphore::new(limits.http_sockets)),
        closing: closing.clone(),
        done: CancellationToken::new(),
    });
    // The agent introduces itself before anybody asks for it.
    tokio::spawn(async move {
        if let Err(fault) = line.agent().await {
            tracing::warn!("Agent Connect is served without an agent: {}", fault.what);
        }
    });
    tokio::spawn(server.clone().close());
    tokio::spawn(server.accept_all(socket, report));
    Ok(Box::new(Bound {
        at: Endpoint::Web(web.clone()),
        web,
        names,
        desk,
        arrivals,
        faults,
        _closing: closing.drop_guard(),
    }))
}

impl Listener for Bound {
    fn accept(&mut self) -> BoxFuture<'_, Option<io::Result<Arrival>>> {
        Box::pin(async move {
            tokio::select! {
                arrival = self.arrivals.recv() => arrival.map(Ok),
                Some(fault) = self.faults.recv() => Some(Err(fault)),
            }
        })
    }

    fn address(&self) -> Endpoint {
        self.at.clone()
    }

    fn renew(&mut self, setup: &Setup) -> Result<(), OpenError> {
        let rules = Rules::of(&self.at, &self.web, self.names, setup)?;
        self.desk.set_rules(rules);
        Ok(())
    }
}

impl Server {
    /// Accepts sockets until the last run is over and nobody accepts clients any more.
    async fn accept_all(self: Arc<Self>, socket: TcpListener, report: mpsc::Sender<io::Error>) {
        loop {
            let accept = async {
                let place = self.places.clone().acquire_owned().await;
                (place, tcp::accept(&socket, &self.desk.hub.limits).await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accept => accepted,
                () = self.done.cancelled() => return,
            };
            match accepted {
                Ok((stream, address)) => {
                    let server = self.clone();
                    tokio::spawn(async move {
                        tracing::trace!(%address, "a socket was accepted");
                        server.serve(stream, address).await;
                        drop(place);
                    });
                }
                Err(fault) => {
                    // Told once at a time; whoever hears it is slower than we are.
                    let _ = report.try_send(fault);
                    sleep(BREATHER).await;
                }
            }
        }
    }

    /// Serves one socket.
    async fn serve(self: Arc<Self>, stream: TcpStream, address: SocketAddr) {
        let limits = &self.desk.hub.limits;
        let rules = self.desk.rules();
        let place = match rules.doorkeeper.door.names {
            Names::Loopback { .. } => Place::Loopback,
            Names::Any => Place::Network,
        };
        let from = format!("{}://{address}", self.web.scheme()).into();
        let (gate, strangers) = (&rules.gate, &self.strangers);
        let Some(mut caller) = Caller::of(&stream, from, address, place, gate, strangers) else {
            tracing::debug!(%address, "too many there have not shown who they are yet");
            return;
        };
        let stream = match &rules.certificates {
            None => Stream::Clear(stream),
            Some(tls) => match timeout(limits.handshake, tls.acceptor().accept(stream)).await {
                Ok(Ok(stream)) => {
                    caller.certificate = certificate::shown(stream.get_ref().1);
                    Stream::Tls(Box::new(stream))
                }
                _ => return,
            },
        };
        let spoken = Arc::new(Notify::new());
        let (desk, caller, said) = (self.desk.clone(), Arc::new(caller), spoken.clone());
        let service = service_fn(move |request| {
            said.notify_one();
            routes::answer(desk.clone(), request, caller.clone())
        });
        let io = TokioIo::new(Socket::new(stream, limits.http_stall));
        let connection = self.builder.serve_connection(io, service);
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            first = timeout(limits.handshake, spoken.notified()) => {
                if first.is_err() {
                    return;
                }
            }
        }
        tokio::select! {
            _ = connection.as_mut() => {}
            () = self.done.cancelled() => {
                connection.as_mut().graceful_shutdown();
                // How a connection ends that is not wanted any more is nobody's concern.
                let _ = connection.await;
            }
        }
    }

    /// Once nobody accepts any more the line ends with the last run.
    async fn close(self: Arc<Self>) {
        self.closing.cancelled().await;
        let hub = &self.desk.hub;
        loop {
            let idle = hub.idle.notified();
            if hub.is_idle() {
                break;
            }
            idle.await;
        }
        hub.line.end();
        self.done.cancel();
    }
}

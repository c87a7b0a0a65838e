//! The port: sockets, TLS, and an HTTP server on each socket.
//!
//! Each socket is served in a task of its own, so that nobody waits for another's handshake. When
//! nobody accepts clients any more the port stays until the last HTTP connection is over: its
//! client may need another socket to answer what it was asked. Not here: what is answered (see
//! `routes`).

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::body::Room;
use super::caller::Caller;
use super::desk::Desk;
use super::register::Register;
use super::routes;
use super::rules::Rules;
use super::seat::seat;
use super::socket::{Socket, Stream};
use super::strangers::Strangers;
use crate::guard::origin::Names;
use crate::transport::certificate;
use crate::transport::{Arrival, BoxFuture, Endpoint, Listener, OpenError, OpenErrorKind};
use crate::transport::{Setup, Web, failure, tcp};
use crate::wire::Limits;

/// Clients that may wait to be accepted.
const BACKLOG: usize = 64;
/// Time a socket may have no request on it, or take over the head of one but the first.
const IDLE: Duration = Duration::from_secs(75);
/// Time to wait before accepting again when the operating system refuses (no descriptors left).
pub(in crate::transport) const BREATHER: Duration = Duration::from_millis(100);
/// Time between pings on an HTTP/2 socket, and for their answer.
const PING: Duration = Duration::from_secs(20);
/// Smallest buffer the HTTP/1.1 server takes, in bytes.
const LEAST_BUFFER: usize = 8 << 10;

/// A bound port.
struct Bound {
    at: Endpoint,
    names: Names,
    server: Arc<Server>,
    arrivals: mpsc::Receiver<Arrival>,
    faults: mpsc::Receiver<io::Error>,
    /// Tells the server that nobody accepts any more.
    _closing: DropGuard,
}

/// The server behind it.
struct Server {
    desk: Arc<Desk>,
    strangers: Arc<Strangers>,
    builder: Builder<TokioExecutor>,
    places: Arc<Semaphore>,
    /// The last connection is over after the last client was accepted.
    done: CancellationToken,
}

/// Binds an endpoint that begins with HTTP.
pub(in crate::transport) async fn listen(
    at: &Endpoint,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
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
    let (arrive, arrivals) = mpsc::channel(BACKLOG);
    let (report, faults) = mpsc::channel(1);
    let closing = CancellationToken::new();
    let limits = &setup.limits;
    let desk = Arc::new(Desk {
        at: web.clone(),
        rules: RwLock::new(Arc::new(rules)),
        register: Arc::new(Register::default()),
        limits: limits.clone(),
        bodies: Room::new(limits),
        setup: setup.clone(),
        arrivals: arrive,
        closing: closing.clone(),
    });
    let server = Arc::new(Server {
        builder: builder(limits),
        places: Arc::new(Semaphore::new(limits.http_sockets)),
        strangers: Strangers::new(limits.strangers),
        desk,
        done: CancellationToken::new(),
    });
    tokio::spawn(server.clone().mend());
    tokio::spawn(server.clone().accept_all(socket, report));
    Ok(Box::new(Bound {
        at: Endpoint::Web(web),
        names,
        server,
        arrivals,
        faults,
        _closing: closing.drop_guard(),
    }))
}

/// A server for both versions of HTTP, within the limits.
pub(in crate::transport) fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let h1 = &mut builder.http1();
    h1.timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .title_case_headers(true)
        .max_headers(limits.header_fields)
        .max_buf_size(limits.header_bytes.max(LEAST_BUFFER));
    let most = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(most(limits.http_requests))
        .max_header_list_size(most(limits.header_bytes))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
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
        let desk = &self.server.desk;
        desk.set_rules(Rules::of(&self.at, &desk.at, self.names, setup)?);
        Ok(())
    }
}

impl Server {
    /// Accepts sockets until nobody needs any more.
    async fn accept_all(self: Arc<Self>, socket: TcpListener, report: mpsc::Sender<io::Error>) {
        let closing = &self.desk.closing;
        loop {
            let register = &self.desk.register;
            let gone = register.gone.notified();
            if closing.is_cancelled() && register.is_empty() {
                break;
            }
            let accept = async {
                let place = self.places.clone().acquire_owned().await;
                (place, tcp::accept(&socket, &self.desk.limits).await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accept => accepted,
                () = closing.cancelled(), if !closing.is_cancelled() => continue,
                () = gone, if closing.is_cancelled() => continue,
            };
            match accepted {
                Ok((stream, address)) => {
                    let from: Arc<str> = format!("{}://{address}", self.desk.at.scheme()).into();
                    let server = self.clone();
                    tokio::spawn(server.seat(stream, from, address, place));
                }
                Err(fault) => {
                    // Told once at a time; whoever hears it is slower than we are.
                    let _ = report.try_send(fault);
                    sleep(BREATHER).await;
                }
            }
        }
        self.done.cancel();
    }

    /// Has a socket served where it belongs.
    async fn seat<P: Send + 'static>(
        self: Arc<Self>,
        stream: TcpStream,
        from: Arc<str>,
        address: SocketAddr,
        place: P,
    ) {
        let (rules, near) = (self.desk.rules(), self.desk.place());
        let (gate, strangers) = (&rules.gate, &self.strangers);
        let caller = Caller::of(&stream, from.clone(), address, near, gate, strangers);
        let Some(caller) = caller else {
            let what = "too many clients of this address have not shown who they are yet";
            let fault = OpenError::new(OpenErrorKind::Forbidden, &from, what);
            return self.desk.turned_away(&from, fault);
        };
        let (workers, register) = (&self.desk.setup.workers, &self.desk.register);
        let within = self.desk.limits.handshake;
        let worker = match &rules.certificates {
            None => timeout(within, seat(&stream, register, workers)).await,
            Some(_) => Ok(workers.pick()),
        };
        let Ok(worker) = worker else {
            let fault = failure::too_slow(&from, "the handshake", within);
            return self.desk.turned_away(&from, fault);
        };
        let moved = stream.into_std();
        worker.spawn(async move {
            match moved.and_then(TcpStream::from_std) {
                Ok(stream) => self.serve(stream, from, caller).await,
                Err(fault) => {
                    let fault = failure::not_taken(&from, &fault);
                    self.desk.turned_away(&from, fault);
                }
            }
            drop(place);
        });
    }

    /// Serves one socket.
    async fn serve(self: Arc<Self>, stream: TcpStream, from: Arc<str>, mut caller: Caller) {
        let patience = self.desk.limits.http_stall;
        let rules = self.desk.rules();
        let stream = match &rules.certificates {
            None => Stream::Clear(stream),
            Some(tls) => {
                let within = self.desk.limits.handshake;
                match timeout(within, tls.acceptor().accept(stream)).await {
                    Ok(Ok(stream)) => {
                        caller.certificate = certificate::shown(stream.get_ref().1);
                        Stream::Tls(Box::new(stream))
                    }
                    Ok(Err(fault)) => {
                        let what = format!("the client did not open TLS ({fault})");
                        let fault = OpenError::new(OpenErrorKind::Protocol, &from, what);
                        return self.desk.turned_away(&from, fault);
                    }
                    Err(_) => {
                        let fault = failure::too_slow(&from, "the handshake", within);
                        return self.desk.turned_away(&from, fault);
                    }
                }
            }
        };
        let spoken = Arc::new(Notify::new());
        let (desk, caller, first) = (self.desk.clone(), Arc::new(caller), spoken.clone());
        let service = service_fn(move |request| {
            first.notify_one();
            routes::answer(desk.clone(), request, caller.clone())
        });
        let io = TokioIo::new(Socket::new(stream, patience));
        let connection = self.builder.serve_connection_with_upgrades(io, service);
        tokio::pin!(connection);
        let within = self.desk.limits.handshake;
        let first = timeout(within, spoken.notified());
        tokio::pin!(first);
        let (mut spoke, mut done) = (false, false);
        loop {
            tokio::select! {
                served = connection.as_mut() => {
                    if let (Err(fault), false) = (served, spoke) {
                        let what = format!("the client does not speak HTTP ({fault})");
                        let fault = OpenError::new(OpenErrorKind::Protocol, &from, what);
                        self.desk.turned_away(&from, fault);
                    }
                    return;
                }
                said = first.as_mut(), if !spoke => {
                    if said.is_err() {
                        let fault = failure::too_slow(&from, "the handshake", within);
                        return self.desk.turned_away(&from, fault);
                    }
                    spoke = true;
                }
                () = self.done.cancelled(), if !done => {
                    done = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }

    /// Looks after the connections from time to time.
    async fn mend(self: Arc<Self>) {
        let limits = &self.desk.limits;
        let shortest = limits
            .http_unopened
            .min(limits.http_stall)
            .min(limits.http_grace);
        let often = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let mut ticks = interval(often);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.desk.register.mend(Instant::now()),
                () = self.done.cancelled() => return,
            }
        }
    }
}

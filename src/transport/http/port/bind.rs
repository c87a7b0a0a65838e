//! Binds a port, and holds its address, its rules and the queue of new clients.

use std::io;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::body::BodyMemory;
use super::listen::{self, Handler};
use super::refusal::Refusal;
use super::rules::Rules;
use crate::auth::origin::HostNames;
use crate::auth::{Reachability, RejectReason};
use crate::jsonrpc::Limits;
use crate::transport::{AcceptFuture, Endpoint, IncomingLink, Link, Listener, OpenError};
use crate::transport::{HttpEndpoint, Setup, Worker, tcp};

/// Clients that may wait to be accepted.
const BACKLOG: usize = 64;

/// What all handlers of a port share.
#[derive(Debug)]
pub(in crate::transport) struct Port {
    /// Its address, with the real port number.
    pub(in crate::transport) at: HttpEndpoint,
    names: HostNames,
    rules: RwLock<Arc<Rules>>,
    pub(in crate::transport) limits: Arc<Limits>,
    pub(in crate::transport) bodies: BodyMemory,
    pub(in crate::transport) setup: Setup,
    /// New clients, on their way to the accept loop.
    pub(in crate::transport) arrivals: mpsc::Sender<IncomingLink>,
    /// Cancelled when no more clients are accepted.
    pub(in crate::transport) closing: CancellationToken,
    /// Cancelled when nothing that began here is still running.
    pub(in crate::transport) done: CancellationToken,
}

/// A port that is bound but has no handler yet.
pub(in crate::transport) struct Bound {
    pub(in crate::transport) port: Arc<Port>,
    socket: TcpListener,
    arrivals: mpsc::Receiver<IncomingLink>,
}

/// A port with its handler.
struct HttpListener<S> {
    port: Arc<Port>,
    handler: Arc<S>,
    arrivals: mpsc::Receiver<IncomingLink>,
    faults: mpsc::Receiver<io::Error>,
}

/// Binds an HTTP endpoint.
pub(in crate::transport) async fn bind(at: &Endpoint, setup: &Setup) -> Result<Bound, OpenError> {
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
    let endpoint = HttpEndpoint {
        port,
        ..web.clone()
    };
    let rules = Rules::of(at, &endpoint, names, setup)?;
    let (sender, arrivals) = mpsc::channel(BACKLOG);
    let limits = &setup.limits;
    let port = Port {
        at: endpoint,
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
    /// Serves requests with `handler`.
    pub(in crate::transport) fn serve<S: Handler>(self, handler: Arc<S>) -> Box<dyn Listener> {
        let (fault_sender, faults) = mpsc::channel(1);
        listen::start(&self.port, self.socket, &handler, fault_sender);
        Box::new(HttpListener {
            port: self.port,
            handler,
            arrivals: self.arrivals,
            faults,
        })
    }
}

impl<S: Handler> Listener for HttpListener<S> {
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
        let port = &self.port;
        let rules = Rules::of(&self.address(), &port.at, port.names, setup)?;
        *port.rules.write() = Arc::new(rules);
        self.handler.renew(setup);
        Ok(())
    }
}

/// Stops accepting clients.
impl<S> Drop for HttpListener<S> {
    fn drop(&mut self) {
        self.port.closing.cancel();
    }
}

impl Port {
    /// Whether the port is on the loopback interface or on the network.
    pub(in crate::transport) const fn place(&self) -> Reachability {
        match self.names {
            HostNames::Loopback { .. } => Reachability::Loopback,
            HostNames::Any => Reachability::Network,
        }
    }

    /// The current rules.
    pub(in crate::transport) fn rules(&self) -> Arc<Rules> {
        let rules = self.rules.read();
        Arc::clone(&rules)
    }

    /// Whether new clients are refused.
    pub(in crate::transport) fn is_closed(&self) -> bool {
        self.closing.is_cancelled() || self.setup.draining.is_cancelled()
    }

    /// Passes a new client to the accept loop.
    pub(in crate::transport) async fn announce(
        &self,
        from: &str,
        link: Link,
    ) -> Result<(), Refusal> {
        if self.is_closed() {
            return Err(Refusal::closing());
        }
        let arrival = IncomingLink {
            from: from.to_owned(),
            finish: Box::pin(async { Ok(link) }),
            worker: Worker::current(),
        };
        match timeout(self.limits.handshake, self.arrivals.send(arrival)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Refusal::closing()),
            Err(_) => Err(Refusal::unavailable("too many clients connect at once")),
        }
    }

    /// Counts a rejected request.
    pub(in crate::transport) fn count(&self, why: RejectReason) {
        self.rules().gate.rejected(self.at.scheme(), why);
    }

    /// Counts a rejected client and reports it to the accept loop. The report is dropped when there
    /// is no room for it.
    pub(in crate::transport) fn reject(&self, from: &str, fault: OpenError, why: RejectReason) {
        self.count(why);
        tracing::debug!(%fault, "a client was rejected");
        let _ = self.arrivals.try_send(IncomingLink {
            from: from.to_owned(),
            finish: Box::pin(async { Err(fault) }),
            worker: Worker::current(),
        });
    }
}

//! Binds a port.

use std::io;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::body::BodyMemory;
use super::listen::{self, Handler};
use super::rules::Rules;
use super::shared::Port;
use crate::auth::origin::HostNames;
use crate::transport::{AcceptFuture, Endpoint, IncomingLink, Listener, OpenError};
use crate::transport::{HttpEndpoint, Setup, tcp};

/// Clients that may wait to be accepted.
const BACKLOG: usize = 64;

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

//! Binds a port.

use std::io;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::body::BodyMemory;
use super::listen;
use super::rules::Rules;
use super::service::HttpService;
use super::shared::Port;
use crate::auth::origin::HostNames;
use crate::transport::{AcceptFuture, Endpoint, IncomingLink, Listener, OpenError};
use crate::transport::{HttpEndpoint, Setup, tcp};

/// Clients that may wait to be accepted.
const BACKLOG: usize = 64;

/// A port that is bound but has no service yet.
pub(crate) struct Bound {
    pub(crate) port: Arc<Port>,
    socket: TcpListener,
    arrivals: mpsc::Receiver<IncomingLink>,
}

/// A port with its service.
struct HttpListener {
    port: Arc<Port>,
    service: Arc<dyn HttpService>,
    arrivals: mpsc::Receiver<IncomingLink>,
    faults: mpsc::Receiver<io::Error>,
}

/// Binds an HTTP endpoint.
pub(crate) async fn bind(at: &Endpoint, setup: &Setup) -> Result<Bound, OpenError> {
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
    /// Has `service` answer the requests.
    pub(crate) fn serve_with(self, service: Arc<dyn HttpService>) -> Box<dyn Listener> {
        let (fault_sender, faults) = mpsc::channel(1);
        listen::start(&self.port, self.socket, &service, fault_sender);
        Box::new(HttpListener {
            port: self.port,
            service,
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
        let port = &self.port;
        let rules = Rules::of(&self.address(), &port.at, port.names, setup)?;
        *port.rules.write() = Arc::new(rules);
        self.service.renew(setup);
        Ok(())
    }
}

/// Stops accepting clients.
impl Drop for HttpListener {
    fn drop(&mut self) {
        self.port.closing.cancel();
    }
}

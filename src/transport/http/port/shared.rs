//! What all handlers of a port share: its address, the queue of new clients, and its rules, which
//! can change while it runs.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::body::BodyMemory;
use super::refusal::Refusal;
use crate::certificate::Certificates;
use crate::{
    Endpoint, HttpEndpoint, HttpOptions, HttpProtocol, IncomingLink, Link, OpenError, Setup, Worker,
};
use auth::origin::{HostNames, OriginPolicy};
use auth::{Gate, Reachability, RejectReason};
use jsonrpc::Limits;

/// What all handlers of a port share.
pub struct Port {
    /// Its address, with the real port number.
    pub at: HttpEndpoint,
    pub(super) names: HostNames,
    pub(super) rules: RwLock<Arc<Rules>>,
    /// The limits of requests.
    pub limits: Arc<Limits>,
    /// The memory for the bodies of requests.
    pub bodies: BodyMemory,
    /// The settings it was opened with.
    pub setup: Setup,
    /// New clients, on their way to the accept loop.
    pub arrivals: mpsc::Sender<IncomingLink>,
    /// Cancelled when no more clients are accepted.
    pub closing: CancellationToken,
    /// Cancelled when nothing that began here is still running.
    pub(in crate::http) done: CancellationToken,
}

/// Admission, certificates and agents. Each new request uses the rules of that moment.
pub struct Rules {
    pub(super) origins: OriginPolicy,
    /// Who is admitted.
    pub gate: Gate,
    pub(super) certificates: Option<Certificates>,
    /// The agents.
    pub front: HttpOptions,
}

jsonrpc::opaque_debug!(Port, Rules);

impl Port {
    /// Whether the port is on the loopback interface or on the network.
    pub(super) const fn place(&self) -> Reachability {
        match self.names {
            HostNames::Loopback { .. } => Reachability::Loopback,
            HostNames::Any => Reachability::Network,
        }
    }

    /// The current rules.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.read().clone()
    }

    /// Whether new clients are refused.
    pub(in crate::http) fn is_closed(&self) -> bool {
        self.closing.is_cancelled() || self.setup.draining.is_cancelled()
    }

    /// Passes a new client to the accept loop.
    pub(in crate::http) async fn announce(&self, from: &str, link: Link) -> Result<(), Refusal> {
        if self.is_closed() {
            return Err(Refusal::closing());
        }
        let arrival = arrival(from, Ok(link));
        match timeout(self.limits.handshake, self.arrivals.send(arrival)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Refusal::closing()),
            Err(_) => Err(Refusal::unavailable("too many clients connect at once")),
        }
    }

    /// Counts a rejected request.
    pub fn count(&self, why: RejectReason) {
        self.rules().gate.rejected(self.at.scheme(), why);
    }

    /// Counts a rejected client and reports it to the accept loop. The report is dropped when there
    /// is no room for it.
    pub(super) fn reject(&self, from: &str, fault: OpenError, why: RejectReason) {
        self.count(why);
        tracing::debug!(%fault, "a client was rejected");
        let _ = self.arrivals.try_send(arrival(from, Err(fault)));
    }
}

impl Rules {
    /// The rules of a setup.
    ///
    /// # Errors
    /// When the certificates cannot be read.
    pub(super) fn of(
        at: &HttpEndpoint,
        names: HostNames,
        setup: &Setup,
    ) -> Result<Self, OpenError> {
        let protocols: &[&[u8]] = match at.protocol {
            HttpProtocol::WebSocket => &[],
            _ => &[b"h2", b"http/1.1"],
        };
        let certificates = at.tls.then(|| {
            let at = Endpoint::Http(at.clone());
            Certificates::read(&at, &setup.tls, protocols)
        });
        let front = setup.http.clone();
        let origins = OriginPolicy {
            origins: front.origins.clone(),
            hosts: front.hosts.clone(),
            names,
        };
        Ok(Self {
            origins,
            gate: setup.gate.clone(),
            certificates: certificates.transpose()?,
            front,
        })
    }
}

fn arrival(from: &str, link: Result<Link, OpenError>) -> IncomingLink {
    IncomingLink {
        from: from.to_owned(),
        finish: Box::pin(async { link.map(Some) }),
        worker: Worker::current(),
    }
}

//! What all handlers of a port share: its address, its rules and the queue of new clients.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::body::BodyMemory;
use super::refusal::Refusal;
use super::rules::Rules;
use crate::auth::origin::HostNames;
use crate::auth::{Reachability, RejectReason};
use crate::jsonrpc::Limits;
use crate::transport::{HttpEndpoint, IncomingLink, Link, OpenError, Setup, Worker};

/// What all handlers of a port share.
#[derive(Debug)]
pub(crate) struct Port {
    /// Its address, with the real port number.
    pub(crate) at: HttpEndpoint,
    pub(super) names: HostNames,
    pub(super) rules: RwLock<Arc<Rules>>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) bodies: BodyMemory,
    pub(crate) setup: Setup,
    /// New clients, on their way to the accept loop.
    pub(crate) arrivals: mpsc::Sender<IncomingLink>,
    /// Cancelled when no more clients are accepted.
    pub(crate) closing: CancellationToken,
    /// Cancelled when nothing that began here is still running.
    pub(in crate::transport) done: CancellationToken,
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
    pub(crate) fn rules(&self) -> Arc<Rules> {
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
    pub(crate) fn count(&self, why: RejectReason) {
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

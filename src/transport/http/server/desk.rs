//! What all requests at a listener share.
//!
//! Not here: what is done with one (see `routes`).

use std::sync::{Arc, PoisonError, RwLock};

use hyper::header::HeaderValue;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::body::Room;
use super::caller::Guest;
use super::connection::Connection;
use super::link::link;
use super::refuse::Refusal;
use super::register::Register;
use super::rules::{AGENTS, Rules};
use crate::guard::Place;
use crate::guard::origin::Names;
use crate::transport::{Arrival, Link, Manner, OpenError, Setup, Web, Worker};
use crate::wire::Limits;

/// What a listener knows.
#[derive(Debug)]
pub(super) struct Desk {
    /// Where it listens, with the real port.
    pub(super) at: Web,
    pub(super) rules: RwLock<Arc<Rules>>,
    pub(super) register: Arc<Register>,
    pub(super) limits: Arc<Limits>,
    pub(super) bodies: Room,
    pub(super) setup: Setup,
    /// Those who have come, on their way to whoever accepts them.
    pub(super) arrivals: mpsc::Sender<Arrival>,
    /// Nobody accepts any more.
    pub(super) closing: CancellationToken,
}

impl Desk {
    /// What kind of place it is.
    pub(super) fn place(&self) -> Place {
        match self.rules().doorkeeper.door.names {
            Names::Loopback { .. } => Place::Loopback,
            Names::Any => Place::Network,
        }
    }

    /// The rules for what begins now.
    pub(super) fn rules(&self) -> Arc<Rules> {
        let rules = self.rules.read();
        Arc::clone(&rules.unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_rules(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Whether the official endpoint is at `path`, or one of them.
    pub(super) fn has(&self, path: &str) -> bool {
        self.rules().asked(&self.at.path, path).is_some()
    }

    /// Whether nobody new is served.
    pub(super) fn is_closed(&self) -> bool {
        self.closing.is_cancelled() || self.setup.draining.is_cancelled()
    }

    /// Whether the official endpoint takes messages, not only WebSockets.
    pub(super) fn speaks_http(&self) -> bool {
        self.at.manner == Manner::StreamableHttp
    }

    /// Whether WebSockets are all there is.
    pub(super) fn only_websockets(&self) -> bool {
        self.at.manner == Manner::WebSocket
    }

    /// The paths that are served, with their verb, for a person.
    pub(super) fn served(&self) -> String {
        let path = &self.at.path;
        match self.at.manner {
            Manner::Elephant => format!("{path}/rpc and {path}/sse are"),
            _ if self.rules().front.agents.is_empty() => format!("{path} is"),
            _ if self.rules().front.names_only => format!("{AGENTS}NAME{path} is"),
            _ => format!("{path} and {AGENTS}NAME{path} are"),
        }
    }

    /// Whether elephant.ai's routes are there.
    pub(super) fn speaks_elephant(&self) -> bool {
        match self.at.manner {
            Manner::Elephant => true,
            Manner::StreamableHttp => !self.rules().front.no_elephant,
            Manner::WebSocket | Manner::AgentConnect => false,
        }
    }

    /// A new HTTP connection has come.
    pub(super) async fn arrive(
        &self,
        connection: &Arc<Connection>,
        guest: &Guest,
    ) -> Result<(), Refusal> {
        let link = link(connection, &self.register, guest);
        self.announce(&guest.from, link).await
    }

    /// A client has come.
    pub(super) async fn announce(&self, from: &str, link: Link) -> Result<(), Refusal> {
        if self.is_closed() {
            return Err(Refusal::later("the relay is shutting down"));
        }
        let arrival = Arrival {
            from: from.to_owned(),
            finish: Box::pin(async { Ok(link) }),
            worker: Worker::here(),
        };
        match timeout(self.limits.handshake, self.arrivals.send(arrival)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Refusal::later("the relay is shutting down")),
            Err(_) => Err(Refusal::later("too many clients come at once")),
        }
    }

    /// Somebody has come and was turned away. That is only news: when there is no room it is
    /// dropped.
    pub(super) fn turned_away(&self, from: &str, fault: OpenError) {
        tracing::debug!(%fault, "a client was turned away");
        let _ = self.arrivals.try_send(Arrival {
            from: from.to_owned(),
            finish: Box::pin(async { Err(fault) }),
            worker: Worker::here(),
        });
    }

    /// The cookie that a new connection is given.
    pub(super) fn cookie(&self) -> Option<HeaderValue> {
        let rules = self.rules();
        let pair = rules.front.affinity_cookie.as_ref()?;
        let secure = if self.at.tls { "; Secure" } else { "" };
        let path = match rules.front.agents.is_empty() {
            true => &self.at.path,
            // The same relay is behind all of them.
            false => "/",
        };
        let cookie = format!("{pair}; Path={path}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::from_str(&cookie).ok()
    }
}

//! The settings of a listener that can change while it runs: admission, certificates and agents.
//!
//! Each new request uses the rules of that moment.

use std::fmt;

use crate::auth::origin::{HostNames, OriginPolicy};
use crate::auth::{Gate, ONLY_AGENT};
use crate::transport::certificate::Certificates;
use crate::transport::{Endpoint, HttpEndpoint, HttpOptions, HttpProtocol, OpenError, Setup};

/// The prefix of a path that names an agent.
pub(in crate::transport) const AGENTS: &str = "/agents/";

/// The rules of a listener.
pub(crate) struct Rules {
    pub(super) origins: OriginPolicy,
    pub(crate) gate: Gate,
    pub(in crate::transport) certificates: Option<Certificates>,
    pub(crate) front: HttpOptions,
}

/// An agent that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) struct RequestedAgent<'a> {
    /// The name of the agent.
    pub(in crate::transport) name: &'a str,
    /// Whether the client names it.
    pub(in crate::transport) is_named: bool,
}

impl Rules {
    /// The rules of a setup.
    ///
    /// # Errors
    /// When the certificates cannot be read.
    pub(in crate::transport) fn of(
        at: &Endpoint,
        endpoint: &HttpEndpoint,
        names: HostNames,
        setup: &Setup,
    ) -> Result<Self, OpenError> {
        let protocols: &[&[u8]] = match endpoint.protocol {
            HttpProtocol::WebSocket => &[],
            _ => &[b"h2", b"http/1.1"],
        };
        let certificates = endpoint
            .tls
            .then(|| Certificates::read(at, &setup.tls, protocols));
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

    /// The agent that is asked for at `path`, when that is an endpoint: the listener's `own`, or
    /// that below an agent's name.
    pub(in crate::transport) fn requested_agent<'a>(
        &'a self,
        own: &str,
        path: &str,
    ) -> Option<RequestedAgent<'a>> {
        let front = &self.front;
        if path == own {
            let name = front.default_agent.as_deref().unwrap_or(ONLY_AGENT);
            let is_named = false;
            return (!front.names_only).then_some(RequestedAgent { name, is_named });
        }
        let name = path.strip_prefix(AGENTS)?.strip_suffix(own)?;
        let name = front.agents.get(name)?;
        let is_named = true;
        Some(RequestedAgent { name, is_named })
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("front", &self.front)
            .finish_non_exhaustive()
    }
}

//! The settings of a listener that can change while it runs: admission, certificates and agents.
//!
//! Each new request uses the rules of that moment.

use std::fmt;
use std::sync::Arc;

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
pub(in crate::transport) enum RequestedAgent<'a> {
    /// By name.
    Named(&'a str),
    /// Without a name; this is the name of the agent that it gets.
    Default(&'a str),
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
        if path == own {
            let default = self.front.default_agent.as_deref().unwrap_or(ONLY_AGENT);
            return (!self.front.names_only).then_some(RequestedAgent::Default(default));
        }
        let name = path.strip_prefix(AGENTS)?.strip_suffix(own)?;
        self.front
            .agents
            .get(name)
            .map(|name| RequestedAgent::Named(name))
    }
}

impl<'a> RequestedAgent<'a> {
    /// The name of the agent.
    pub(in crate::transport) const fn name(self) -> &'a str {
        match self {
            Self::Named(name) | Self::Default(name) => name,
        }
    }

    /// The name in the path, if there is one.
    pub(in crate::transport) fn wanted_agent(self) -> Option<Arc<str>> {
        match self {
            Self::Named(name) => Some(Arc::from(name)),
            Self::Default(_) => None,
        }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("front", &self.front)
            .finish_non_exhaustive()
    }
}

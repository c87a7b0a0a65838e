//! The transport for `agent-connect+http://` and `agent-connect+https://`.

use super::settings::AgentConnectConfig;
use super::{remote, server};
use crate::transport::http::port::service::ServeBeside;
use crate::transport::{ConnectFuture, Endpoint, ListenFuture, OpenError, Setup, Transport};

/// The transports of this module.
pub const TRANSPORTS: &[&dyn Transport] = &[&AgentConnectTransport];

/// The transport for `agent-connect+http://` and `agent-connect+https://`.
#[derive(Debug)]
struct AgentConnectTransport;

impl Transport for AgentConnectTransport {
    fn schemes(&self) -> &'static [&'static str] {
        &["agent-connect+http", "agent-connect+https"]
    }

    fn check(&self, to: &Endpoint, _setup: &Setup) -> Result<(), OpenError> {
        remote::check(to)
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(remote::connect(to, setup))
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(server::listen(at, setup))
    }
}

impl AgentConnectConfig {
    /// Puts Agent Connect, with this configuration, into the settings of the transports.
    pub fn apply(self, setup: &mut Setup) {
        setup.added = TRANSPORTS;
        setup.extensions.insert(ServeBeside(server::beside));
        setup.extensions.insert(self);
    }
}

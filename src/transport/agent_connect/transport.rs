//! The transport for `agent-connect+http://` and `agent-connect+https://`.

use super::listen::listen;
use super::remote;
use crate::transport::{ConnectFuture, Endpoint, ListenFuture, OpenError, Setup, Transport};

/// The transport for `agent-connect+http://` and `agent-connect+https://`.
#[derive(Debug)]
pub(in crate::transport) struct AgentConnectTransport;

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
        Box::pin(listen(at, setup))
    }
}

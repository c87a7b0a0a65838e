//! The transport for `agent-connect+http://` and `agent-connect+https://`.

use super::settings::AgentConnectConfig;
use super::{remote, server};
use transport::http::port::ServeBeside;
use transport::{AddedTransport, Setup};

/// The transport of this module.
pub const TRANSPORT: AddedTransport = AddedTransport {
    check: remote::check,
    connect: |to, setup| Box::pin(remote::connect(to, setup)),
    listen: |at, setup| Box::pin(server::listen(at, setup)),
};

impl AgentConnectConfig {
    /// Puts Agent Connect, with this configuration, into the settings of the transports.
    pub fn apply(self, setup: &mut Setup) {
        setup.agent_connect = Some(TRANSPORT);
        setup.extensions.insert(ServeBeside(server::beside));
        setup.extensions.insert(self);
    }
}

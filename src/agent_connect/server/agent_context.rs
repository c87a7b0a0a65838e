//! What the connections to all agents share.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent_connect::api::permissions::Permissions;
use crate::jsonrpc::Limits;
use crate::transport::IncomingLink;

/// The context of all connections.
pub(super) struct AgentContext {
    /// The URL of the service.
    pub(super) base: String,
    /// The answer to permission requests for clients that cannot be asked.
    pub(super) default_permission: Permissions,
    pub(super) limits: Arc<Limits>,
    pub(super) arrivals: mpsc::Sender<IncomingLink>,
    /// Cancelled when no more links may be opened.
    pub(super) closing: CancellationToken,
}

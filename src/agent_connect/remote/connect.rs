//! Connects to an agent of a server, by a URL that names both.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::agent::RemoteAgent;
use super::server::RemoteServer;
use crate::agent_connect::{AgentConnectConfig, local_link};
use crate::transport::{Endpoint, HttpProtocol, Link, OpenError, OpenErrorKind, Peer, Setup};

/// Messages to the client that may be queued before the agent's tasks wait.
const QUEUE_LEN: usize = 256;

/// Checks that an endpoint names an agent.
pub(in crate::agent_connect) fn check(to: &Endpoint) -> Result<(), OpenError> {
    split_path(to).map(|_| ())
}

/// Opens a link to an agent of a server. The server is connected at once; the agent is looked up
/// when the client initialises.
pub(in crate::agent_connect) async fn connect(
    to: &Endpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let (base, agent) = split_path(to)?;
    let server = RemoteServer::connect(to, base, setup).await?;
    let default_permission = AgentConnectConfig::of(setup).default_permission;
    let (tx, frames) = mpsc::channel(QUEUE_LEN);
    let agent = RemoteAgent::new(server, agent.to_owned(), default_permission, tx);
    let peer = Peer::remote(to.to_string(), true);
    Ok(local_link::open(peer, Arc::new(agent), frames))
}

/// The base path of the server, and the agent's name.
fn split_path(to: &Endpoint) -> Result<(&str, &str), OpenError> {
    let Endpoint::Http(web) = to else {
        return Err(OpenError::wrong_scheme(to));
    };
    if web.protocol != HttpProtocol::AgentConnect {
        return Err(OpenError::wrong_scheme(to));
    }
    match web.path.rsplit_once('/') {
        Some((base, agent)) if !agent.is_empty() => Ok((base, agent)),
        _ => {
            let what = "it names no agent";
            let scheme = web.scheme();
            Err(
                OpenError::new(OpenErrorKind::Usage, to, what).with_remedy(format!(
                    "Put its id or its name at the end: {scheme}://{}/AGENT_ID",
                    web.authority()
                )),
            )
        }
    }
}

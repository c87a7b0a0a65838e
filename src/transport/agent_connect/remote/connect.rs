//! Connects to an agent of a server, by a URL that names both.

use std::sync::Arc;

use super::agent::Agent;
use super::link;
use super::server::Server;
use crate::transport::{Endpoint, Link, Manner, OpenError, OpenErrorKind, Setup};

/// Checks that an endpoint names an agent.
pub(in crate::transport::agent_connect) fn check(to: &Endpoint) -> Result<(), OpenError> {
    place(to).map(|_| ())
}

/// Opens a link to an agent of a server. The server is connected at once; the agent is looked up
/// when the client initialises.
pub(in crate::transport::agent_connect) async fn connect(
    to: &Endpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let (base, agent) = place(to)?;
    let Endpoint::Web(web) = to else {
        return Err(OpenError::misplaced(to));
    };
    let server = Server::reach(to, web, base, setup).await?;
    let unasked = setup.agent_connect.unasked;
    Ok(link::open(to.to_string(), |out| {
        Arc::new(Agent::new(server, agent.to_owned(), unasked, out))
    }))
}

/// The base path of the server, and the agent's name.
fn place(to: &Endpoint) -> Result<(&str, &str), OpenError> {
    let Endpoint::Web(web) = to else {
        return Err(OpenError::misplaced(to));
    };
    if web.manner != Manner::AgentConnect {
        return Err(OpenError::misplaced(to));
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

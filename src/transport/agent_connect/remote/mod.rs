//! Agent Connect's client: an ACP agent by itself, whose words are those of an agent behind REST.
//!
//! `link` is what the relay holds; `agent` hears what the client says and answers it: sessions are
//! `threads`, a prompt is a `turn`, for which there is a
//! `run`. `learn` finds the agent's descriptor, and `server` asks over
//! HTTP, with the client's half of `transport::http`. What all of it means is in the room
//! `agent_connect::remote`.
//!
//! # Why
//!
//! **Every request is a task of its own**, for a turn lasts as long as the agent likes and must not
//! keep a second session, or its own cancellation, from being heard. What they say goes through one
//! bounded queue, so a client that reads slowly slows the streams down.
//!
//! **No run is started twice.** A request is repeated when its server said that it was too busy to look
//! at it (429, 503), and another path is tried when the server does not have the first (404, 405, 501).
//! After anything else the run may have begun.

mod agent;
mod learn;
mod link;
mod run;
mod server;
mod threads;
mod turn;

use std::sync::Arc;

use crate::transport::{Endpoint, Link, Manner, OpenError, OpenErrorKind, Setup};
use server::Server;

/// Checks that an endpoint names an agent.
pub(super) fn check(to: &Endpoint) -> Result<(), OpenError> {
    place(to).map(|_| ())
}

/// Opens a link to an agent of a server. Whether the server is there is known at once; what agent it
/// is, when the client asks.
pub(super) async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    let (base, agent) = place(to)?;
    let Endpoint::Web(web) = to else {
        return Err(OpenError::misplaced(to));
    };
    let server = Server::reach(to, web, base, setup).await?;
    let unasked = setup.agent_connect.unasked;
    Ok(link::open(to.to_string(), |out| {
        Arc::new(agent::Agent::new(server, agent.to_owned(), unasked, out))
    }))
}

/// The path below which the server's own begin, and the agent's name.
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

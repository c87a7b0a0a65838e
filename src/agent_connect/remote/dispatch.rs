//! Connects to an agent of a server, by a URL that names both; receives the client's messages and
//! answers each request in a task of its own.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::agent::RemoteAgent;
use super::server::RemoteServer;
use super::{run, threads};
use crate::api::error::{RpcError, RpcResult};
use crate::local_link::{self, LocalPeer, Message};
use crate::settings::AgentConnectConfig;
use jsonrpc::{IdBuf, Limits, reply};
use transport::{Endpoint, HttpProtocol, Link, OpenError, OpenErrorKind, Peer, Setup};

/// Messages to the client that may be queued before the agent's tasks wait.
const QUEUE_LEN: usize = 256;

/// Checks that an endpoint names an agent.
pub(crate) fn check(to: &Endpoint) -> Result<(), OpenError> {
    split_path(to).map(|_| ())
}

/// Opens a link to an agent of a server. The server is connected at once; the agent is looked up
/// when the client initialises.
pub(crate) async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
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
    let web = match to {
        Endpoint::Http(web) if web.protocol == HttpProtocol::AgentConnect => web,
        _ => return Err(OpenError::wrong_scheme(to)),
    };
    let split = web
        .path
        .rsplit_once('/')
        .filter(|(_, agent)| !agent.is_empty());
    split.ok_or_else(|| {
        let at = format!("{}://{}", web.scheme(), web.authority());
        OpenError::new(OpenErrorKind::Usage, to, "it names no agent")
            .with_remedy(format!("Put its id or its name at the end: {at}/AGENT_ID"))
    })
}

/// The agent lives as long as the link or one of its tasks; then its stream ends.
impl LocalPeer for RemoteAgent {
    fn limits(&self) -> Arc<Limits> {
        self.server.limits()
    }

    fn receive(self: &Arc<Self>, message: Message) {
        match message {
            Message::Request(id, method, params) => self.spawn_request(id, method, params),
            Message::Notification(method, params) if method == "session/cancel" => {
                let id = params["sessionId"].as_str();
                if let Some(session) = id.and_then(|id| self.find_session(id))
                    && let Some(turn) = &session.state().turn
                {
                    turn.cancel();
                }
            }
            Message::Notification(..) => {}
            Message::Response(id, response) => self.state().requests.end(&id, response),
        }
    }

    /// Open requests to the client get no answers.
    fn close_input(&self) {
        let mut state = self.state();
        state.input_closed = true;
        state.requests.clear();
    }

    fn close_output(&self) {
        self.closed.cancel();
    }
}

impl RemoteAgent {
    fn spawn_request(self: &Arc<Self>, id: IdBuf, method: String, params: Value) {
        let max = self.server.limits().agent_connect_runs;
        let permit = self.free_tasks.clone().try_acquire_owned().ok();
        // The turn is registered before the next message is handled, so that its cancellation finds
        // it.
        let is_turn = method == "session/prompt";
        let turn = (is_turn && permit.is_some()).then(|| run::register(self, &params));
        let agent = Arc::clone(self);
        tokio::spawn(async move {
            let closed = agent.closed.clone();
            let serving = async {
                if permit.is_none() {
                    let what = format!("more than {max} requests at once");
                    return Err(RpcError::new(reply::OVERLOADED, what));
                }
                match turn {
                    Some(turn) => Box::pin(run::prompt(&agent, &params, turn?)).await,
                    None => agent.serve(&method, &params).await,
                }
            };
            // A turn is not dropped, because its run has to be cancelled.
            let served = if is_turn {
                Some(serving.await)
            } else {
                closed.run_until_cancelled_owned(serving).await
            };
            if let Some(served) = served {
                let id = id.as_id();
                let (member, body) = match served {
                    Ok(result) => ("result", result),
                    Err(failure) => ("error", failure.to_json()),
                };
                let body = body.to_string();
                agent.send(reply::answer(id, member, body.as_bytes())).await;
            }
            drop(permit);
        });
    }

    async fn serve(self: &Arc<Self>, method: &str, params: &Value) -> RpcResult<Value> {
        match method {
            "initialize" => {
                let form = params.pointer("/clientCapabilities/elicitation/form");
                self.state().forms = form.is_some_and(|form| !form.is_null());
                Ok(self.descriptor().await?.initialize_result())
            }
            "authenticate" => {
                if self.descriptor().await?.needs_key {
                    return Err(threads::key_required());
                }
                Ok(json!({}))
            }
            "session/new" => threads::new(self, params).await,
            "session/load" => threads::load(self, params).await,
            "session/list" => threads::list(self, params).await,
            "session/delete" => threads::delete(self, params).await,
            "session/set_config_option" => threads::set_option(self, params).await,
            _ => {
                let what = format!("an agent behind Agent Connect has no {method}");
                Err(RpcError::new(-32601, what))
            }
        }
    }
}

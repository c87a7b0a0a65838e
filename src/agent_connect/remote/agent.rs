//! The agent: its sessions, and the requests to the client. `dispatch` answers the client's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::find_agent::find_agent;
use super::server::RemoteServer;
use crate::api::descriptor::Descriptor;
use crate::api::error::{RpcError, RpcResult};
use crate::api::interrupt::Permissions;
use crate::api::messages;
use crate::api::run::Interrupt;
use crate::api::sent_content::SentContent;
use crate::local_link::OwnRequests;
use jsonrpc::{Frame, reply};

/// A remote agent and its sessions with one client.
pub(super) struct RemoteAgent {
    pub(super) server: RemoteServer,
    /// Its id or its name, from the URL.
    name: String,
    /// The answer to permission requests that the client does not answer.
    pub(super) default_permission: Permissions,
    tx: mpsc::Sender<Frame>,
    /// Cancelled when the client no longer reads.
    pub(super) closed: CancellationToken,
    known: AsyncMutex<Option<Arc<Descriptor>>>,
    state: Mutex<State>,
    /// How many more requests of the client may be in progress.
    pub(super) free_tasks: Arc<Semaphore>,
}

#[derive(Default)]
pub(super) struct State {
    /// The client supports forms.
    pub(super) forms: bool,
    /// The client has closed its stream.
    pub(super) input_closed: bool,
    sessions: HashMap<String, Arc<RemoteSession>>,
    /// Requests that wait for the client's answers.
    pub(super) requests: OwnRequests,
}

/// A session.
pub(super) struct RemoteSession {
    pub(super) id: String,
    /// It is a thread of the server, not only local.
    pub(super) is_thread: bool,
    pub(super) state: Mutex<SessionState>,
}

/// The state of a session.
#[derive(Default)]
pub(super) struct SessionState {
    /// Cancels the current turn.
    pub(super) turn: Option<CancellationToken>,
    /// `_meta.agentConnect` of the request that opened it.
    pub(super) meta: Value,
    /// The options that the client has set, with the values for the agent.
    pub(super) options: Map<String, Value>,
    /// The ids of its messages so far.
    pub(super) old_ids: HashSet<String>,
    /// The thread that its first run created, in the prose specification.
    pub(super) thread: Option<String>,
    /// The messages so far, if it is not a thread.
    pub(super) history: Vec<Value>,
    /// The id of its last run on the server, once known.
    pub(super) run: Option<String>,
    /// The content that the client has received of that run.
    pub(super) sent: SentContent,
    /// The interrupt of that run that the next prompt answers.
    pub(super) interrupt: Option<Interrupt>,
}

impl RemoteAgent {
    pub(super) fn new(
        server: RemoteServer,
        name: String,
        default_permission: Permissions,
        tx: mpsc::Sender<Frame>,
    ) -> Self {
        let max = server.limits().agent_connect_runs;
        Self {
            server,
            name,
            default_permission,
            tx,
            closed: CancellationToken::new(),
            known: AsyncMutex::new(None),
            state: Mutex::default(),
            free_tasks: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// The agent's descriptor; requested until it is found.
    pub(super) async fn descriptor(&self) -> RpcResult<Arc<Descriptor>> {
        let mut known = self.known.lock().await;
        if let Some(found) = known.as_ref().filter(|known| !known.needs_key) {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(find_agent(&self.server, &self.name).await?);
        *known = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Sends an update of a session.
    pub(super) async fn update(&self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.send(messages::notification("session/update", &params))
            .await;
    }

    /// Sends a request to the client; `None` when it answers with an error, or not at all.
    pub(super) async fn request(&self, method: &str, params: &Value) -> Option<Value> {
        let (request, response) = {
            let mut state = self.state();
            if state.input_closed {
                return None;
            }
            state.requests.begin(method, params)
        };
        self.send(request).await;
        response.await.ok()?.ok()
    }

    /// The session of this id. One that was not opened on this link is left to the server to check.
    pub(super) fn session(&self, id: &str, is_thread: bool) -> RpcResult<Arc<RemoteSession>> {
        let max = self.server.limits().agent_connect_sessions;
        let mut state = self.state();
        if let Some(known) = state.sessions.get(id) {
            return Ok(Arc::clone(known));
        }
        if state.sessions.len() >= max {
            let what = format!("more than {max} sessions on one connection");
            return Err(RpcError::new(reply::OVERLOADED, what));
        }
        let session = Arc::new(RemoteSession {
            id: id.to_owned(),
            is_thread,
            state: Mutex::default(),
        });
        state.sessions.insert(id.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// The session of this id, if there is one.
    pub(super) fn find_session(&self, id: &str) -> Option<Arc<RemoteSession>> {
        self.state().sessions.get(id).cloned()
    }

    /// Removes a session.
    pub(super) fn remove_session(&self, id: &str) {
        self.state().sessions.remove(id);
    }

    pub(super) async fn send(&self, frame: Frame) {
        // If the receiver is dropped, this task is about to end.
        let _ = self.tx.send(frame).await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl RemoteSession {
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }
}

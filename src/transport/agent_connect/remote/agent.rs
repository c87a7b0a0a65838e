//! The agent: receives the client's messages and answers each request in a task of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex as Turnstile, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::find_agent::find_agent;
use super::server::RemoteServer;
use super::{threads, turn};
use crate::agent_connect::messages;
use crate::agent_connect::remote::descriptor::Descriptor;
use crate::agent_connect::remote::error::RemoteError;
use crate::agent_connect::remote::run_event::Interrupt;
use crate::agent_connect::remote::sent_content::SentContent;
use crate::agent_connect::run_request::Permissions;
use crate::jsonrpc::{Frame, Id, IdBuf, Kind, Scanned, reply, scan};

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
    known: Turnstile<Option<Arc<Descriptor>>>,
    state: Mutex<State>,
    next_id: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The client supports forms.
    forms: bool,
    /// The client has closed its stream.
    input_closed: bool,
    tasks: usize,
    sessions: HashMap<String, Arc<RemoteSession>>,
    /// Requests that wait for the client's answers.
    pending: HashMap<u64, oneshot::Sender<Option<Value>>>,
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
    /// The run that waits for the next prompt, its interrupt, and the content sent for it.
    pub(super) open_interrupt: Option<(String, Interrupt, SentContent)>,
}

impl RemoteAgent {
    pub(super) fn new(
        server: RemoteServer,
        name: String,
        default_permission: Permissions,
        tx: mpsc::Sender<Frame>,
    ) -> Self {
        Self {
            server,
            name,
            default_permission,
            tx,
            closed: CancellationToken::new(),
            known: Turnstile::new(None),
            state: Mutex::default(),
            next_id: AtomicU64::new(0),
        }
    }

    /// Handles a message. Never waits.
    pub(super) fn receive(self: &Arc<Self>, frame: &Frame) {
        let Scanned::Message(at) = scan(frame, &self.server.limits()) else {
            return;
        };
        let body = at
            .body(frame)
            .and_then(|body| serde_json::from_slice(body).ok());
        let body: Value = body.unwrap_or_default();
        match at.kind {
            Kind::Notification => self.receive_notification(&at.method(frame), &body),
            Kind::Result => self.receive_response(at.id(frame), Some(body)),
            Kind::Error => self.receive_response(at.id(frame), None),
            Kind::Request => {
                let (id, method) = (at.id(frame).to_owned(), at.method(frame).into_owned());
                self.spawn_request(id, method, body);
            }
        }
    }

    /// The client has closed its stream: open requests get no answers.
    pub(super) fn close_input(&self) {
        let mut state = self.state();
        state.input_closed = true;
        state.pending.clear();
    }

    /// The agent's descriptor; requested until it is found.
    pub(super) async fn descriptor(&self) -> Result<Arc<Descriptor>, RemoteError> {
        let mut known = self.known.lock().await;
        if let Some(found) = known.as_ref().filter(|known| !known.needs_key) {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(find_agent(&self.server, &self.name).await?);
        *known = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Whether the client supports forms.
    pub(super) fn has_forms(&self) -> bool {
        self.state().forms
    }

    /// Sends an update of a session.
    pub(super) async fn update(&self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.send(messages::notification("session/update", &params))
            .await;
    }

    /// Sends a request to the client; `None` when it answers with an error, or not at all.
    pub(super) async fn request(&self, method: &str, params: &Value) -> Option<Value> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        {
            let mut state = self.state();
            if state.input_closed {
                return None;
            }
            state.pending.insert(id, tx);
        }
        let guard = PendingGuard { agent: self, id };
        self.send(messages::request(id, method, params)).await;
        let answer = rx.await.ok().flatten();
        drop(guard);
        answer
    }

    /// The session of this id. One that was not opened on this link is left to the server to check.
    pub(super) fn session(
        &self,
        id: &str,
        is_thread: bool,
    ) -> Result<Arc<RemoteSession>, RemoteError> {
        let max = self.server.limits().agent_connect_sessions;
        let mut state = self.state();
        if let Some(known) = state.sessions.get(id) {
            return Ok(Arc::clone(known));
        }
        if state.sessions.len() >= max {
            let what = format!("more than {max} sessions on one connection");
            return Err(RemoteError::new(reply::OVERLOADED, what));
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

    fn receive_notification(&self, method: &str, params: &Value) {
        if method != "session/cancel" {
            return;
        }
        let id = params.get("sessionId").and_then(Value::as_str);
        if let Some(session) = id.and_then(|id| self.find_session(id))
            && let Some(turn) = &session.state().turn
        {
            turn.cancel();
        }
    }

    fn receive_response(&self, id: Id<'_>, result: Option<Value>) {
        let id = std::str::from_utf8(id.json())
            .ok()
            .and_then(|id| id.parse().ok());
        let waiting = id.and_then(|id: u64| self.state().pending.remove(&id));
        if let Some(waiting) = waiting {
            // The caller may have been cancelled.
            let _ = waiting.send(result);
        }
    }

    fn spawn_request(self: &Arc<Self>, id: IdBuf, method: String, params: Value) {
        let max = self.server.limits().agent_connect_runs;
        let fits = {
            let mut state = self.state();
            state.tasks += 1;
            state.tasks <= max
        };
        // The turn is registered before the next message is handled, so that its cancellation finds
        // it.
        let is_turn = method == "session/prompt";
        let pending = (fits && is_turn)
            .then(|| turn::register(self, &params))
            .flatten();
        let agent = Arc::clone(self);
        tokio::spawn(async move {
            let closed = agent.closed.clone();
            let serving = async {
                if !fits {
                    let what = format!("more than {max} requests at once");
                    return Err(RemoteError::new(reply::OVERLOADED, what));
                }
                agent.serve(&method, &params, pending).await
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
            agent.state().tasks -= 1;
        });
    }

    async fn serve(
        self: &Arc<Self>,
        method: &str,
        params: &Value,
        pending: Option<turn::PendingTurn>,
    ) -> Result<Value, RemoteError> {
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
            "session/prompt" => Box::pin(turn::prompt(self, params, pending)).await,
            _ => {
                let what = format!("an agent behind Agent Connect has no {method}");
                Err(RemoteError::new(-32601, what))
            }
        }
    }

    async fn send(&self, frame: Frame) {
        // If the receiver is dropped, this task is about to end.
        let _ = self.tx.send(frame).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl RemoteSession {
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }
}

/// Removes a pending request when its caller is dropped.
struct PendingGuard<'a> {
    agent: &'a RemoteAgent,
    id: u64,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.agent.state().pending.remove(&self.id);
    }
}

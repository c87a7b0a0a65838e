//! The agent: receives the client's messages and answers each request in a task of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex as Turnstile, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::learn::learn;
use super::server::Server;
use super::{threads, turn};
use crate::agent_connect::remote::descriptor::Descriptor;
use crate::agent_connect::remote::failure::Failure;
use crate::agent_connect::remote::heard::Interrupt;
use crate::agent_connect::remote::told::Told;
use crate::agent_connect::run_request::Permissions;
use crate::agent_connect::say;
use crate::jsonrpc::{Frame, Id, IdBuf, Kind, Shape, reply, scan};

/// A remote agent and its sessions with one client.
pub(super) struct Agent {
    pub(super) server: Server,
    /// Its id or its name, from the URL.
    named: String,
    /// The answer to permission requests that the client does not answer.
    pub(super) unasked: Permissions,
    said: mpsc::Sender<Frame>,
    /// Cancelled when the client no longer reads.
    pub(super) over: CancellationToken,
    learnt: Turnstile<Option<Arc<Descriptor>>>,
    state: Mutex<State>,
    next: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The client supports forms.
    forms: bool,
    /// The client has closed its stream.
    deaf: bool,
    tasks: usize,
    sessions: HashMap<String, Arc<Session>>,
    /// Requests that wait for the client's answers.
    asked: HashMap<u64, oneshot::Sender<Option<Value>>>,
}

/// A session.
pub(super) struct Session {
    pub(super) id: String,
    /// It is a thread of the server, not only local.
    pub(super) is_thread: bool,
    pub(super) notes: Mutex<Notes>,
}

/// The state of a session.
#[derive(Default)]
pub(super) struct Notes {
    /// Cancels the current turn.
    pub(super) turn: Option<CancellationToken>,
    /// `_meta.agentConnect` of the request that opened it.
    pub(super) meta: Value,
    /// The options that the client has set, with the values for the agent.
    pub(super) chosen: Map<String, Value>,
    /// The ids of its messages so far.
    pub(super) old: HashSet<String>,
    /// The thread that its first run created, in the prose specification.
    pub(super) thread: Option<String>,
    /// The messages so far, if it is not a thread.
    pub(super) before: Vec<Value>,
    /// The run that waits for the next prompt, its interrupt, and the content sent for it.
    pub(super) open: Option<(String, Interrupt, Told)>,
}

impl Agent {
    pub(super) fn new(
        server: Server,
        named: String,
        unasked: Permissions,
        said: mpsc::Sender<Frame>,
    ) -> Self {
        Self {
            server,
            named,
            unasked,
            said,
            over: CancellationToken::new(),
            learnt: Turnstile::new(None),
            state: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    /// Handles a message. Never waits.
    pub(super) fn hear(self: &Arc<Self>, frame: &Frame) {
        let Shape::One(at) = scan(frame, &self.server.limits()) else {
            return;
        };
        let body = at
            .body(frame)
            .and_then(|body| serde_json::from_slice(body).ok());
        let body: Value = body.unwrap_or_default();
        match at.kind {
            Kind::Notification => self.notice(&at.method(frame), &body),
            Kind::Result => self.answered(at.id(frame), Some(body)),
            Kind::Error => self.answered(at.id(frame), None),
            Kind::Request => {
                let (id, method) = (at.id(frame).to_owned(), at.method(frame).into_owned());
                self.take_up(id, method, body);
            }
        }
    }

    /// The client has closed its stream: open requests get no answers.
    pub(super) fn deafen(&self) {
        let mut state = self.state();
        state.deaf = true;
        state.asked.clear();
    }

    /// The agent's descriptor; requested until it is found.
    pub(super) async fn descriptor(&self) -> Result<Arc<Descriptor>, Failure> {
        let mut learnt = self.learnt.lock().await;
        if let Some(known) = learnt.as_ref().filter(|known| !known.locked) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(learn(&self.server, &self.named).await?);
        *learnt = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Whether the client supports forms.
    pub(super) fn fills_forms(&self) -> bool {
        self.state().forms
    }

    /// Sends an update of a session.
    pub(super) async fn update(&self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.say(say::notification("session/update", &params)).await;
    }

    /// Sends a request to the client; `None` when it answers with an error, or not at all.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        {
            let mut state = self.state();
            if state.deaf {
                return None;
            }
            state.asked.insert(id, tx);
        }
        let waiting = Waiting { agent: self, id };
        self.say(say::request(id, method, params)).await;
        let answer = rx.await.ok().flatten();
        drop(waiting);
        answer
    }

    /// The session of this id. One that was not opened on this link is left to the server to check.
    pub(super) fn session(&self, id: &str, is_thread: bool) -> Result<Arc<Session>, Failure> {
        let most = self.server.limits().agent_connect_sessions;
        let mut state = self.state();
        if let Some(known) = state.sessions.get(id) {
            return Ok(Arc::clone(known));
        }
        if state.sessions.len() >= most {
            let what = format!("more than {most} sessions on one connection");
            return Err(Failure::new(reply::OVERLOADED, what));
        }
        let session = Arc::new(Session {
            id: id.to_owned(),
            is_thread,
            notes: Mutex::default(),
        });
        state.sessions.insert(id.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// The session of this id, if there is one.
    pub(super) fn known(&self, id: &str) -> Option<Arc<Session>> {
        self.state().sessions.get(id).cloned()
    }

    /// Removes a session.
    pub(super) fn forget(&self, id: &str) {
        self.state().sessions.remove(id);
    }

    fn notice(&self, method: &str, params: &Value) {
        if method != "session/cancel" {
            return;
        }
        let id = params.get("sessionId").and_then(Value::as_str);
        if let Some(session) = id.and_then(|id| self.known(id))
            && let Some(turn) = &session.notes().turn
        {
            turn.cancel();
        }
    }

    fn answered(&self, id: Id<'_>, result: Option<Value>) {
        let id = std::str::from_utf8(id.json())
            .ok()
            .and_then(|id| id.parse().ok());
        let waiting = id.and_then(|id: u64| self.state().asked.remove(&id));
        if let Some(waiting) = waiting {
            // The caller may have been cancelled.
            let _ = waiting.send(result);
        }
    }

    fn take_up(self: &Arc<Self>, id: IdBuf, method: String, params: Value) {
        let most = self.server.limits().agent_connect_runs;
        let fits = {
            let mut state = self.state();
            state.tasks += 1;
            state.tasks <= most
        };
        // The turn is registered before the next message is handled, so that its cancellation finds
        // it.
        let is_turn = method == "session/prompt";
        let begun = (fits && is_turn)
            .then(|| turn::begin(self, &params))
            .flatten();
        let agent = Arc::clone(self);
        tokio::spawn(async move {
            let over = agent.over.clone();
            let serving = async {
                if !fits {
                    let what = format!("more than {most} requests at once");
                    return Err(Failure::new(reply::OVERLOADED, what));
                }
                agent.serve(&method, &params, begun).await
            };
            // A turn is not dropped, because its run has to be cancelled.
            let served = if is_turn {
                Some(serving.await)
            } else {
                over.run_until_cancelled_owned(serving).await
            };
            if let Some(served) = served {
                let id = id.as_id();
                let (member, body) = match served {
                    Ok(result) => ("result", result),
                    Err(failure) => ("error", failure.shown()),
                };
                let body = body.to_string();
                agent.say(reply::answer(id, member, body.as_bytes())).await;
            }
            agent.state().tasks -= 1;
        });
    }

    async fn serve(
        self: &Arc<Self>,
        method: &str,
        params: &Value,
        begun: Option<turn::Begun>,
    ) -> Result<Value, Failure> {
        match method {
            "initialize" => {
                let form = params.pointer("/clientCapabilities/elicitation/form");
                self.state().forms = form.is_some_and(|form| !form.is_null());
                Ok(self.descriptor().await?.initialized())
            }
            "authenticate" => {
                if self.descriptor().await?.locked {
                    return Err(threads::locked());
                }
                Ok(json!({}))
            }
            "session/new" => threads::new(self, params).await,
            "session/load" => threads::load(self, params).await,
            "session/list" => threads::list(self, params).await,
            "session/delete" => threads::delete(self, params).await,
            "session/set_config_option" => threads::choose(self, params).await,
            "session/prompt" => Box::pin(turn::prompt(self, params, begun)).await,
            _ => {
                let what = format!("an agent behind Agent Connect has no {method}");
                Err(Failure::new(-32601, what))
            }
        }
    }

    async fn say(&self, frame: Frame) {
        // If the receiver is dropped, this task is about to end.
        let _ = self.said.send(frame).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Session {
    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock()
    }
}

/// Removes a pending request when its caller is dropped.
struct Waiting<'a> {
    agent: &'a Agent,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.agent.state().asked.remove(&self.id);
    }
}

//! The connection to one agent: an ACP client with many sessions on one link.
//!
//! The link is opened when a request needs it, and again when it was lost; each link has a
//! `LinkId`, and a session belongs to the link on which it was opened or reopened.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent_connect::api::agent::AgentInfo;
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::history_filter::HistoryFilter;
use crate::agent_connect::api::ids;
use crate::agent_connect::api::interrupt::AgentQuestion;
use crate::agent_connect::api::messages;
use crate::agent_connect::api::permissions::Permissions;
use crate::agent_connect::local_link::{self, LocalPeer};
use crate::agent_connect::settings::ServedAgent;
use crate::jsonrpc::{Frame, Limits};
use crate::transport::{IncomingLink, Link, Peer, PeerKind, Worker};

/// Messages for an agent that may be queued; one that reads none of them is given up.
const MAX_QUEUED: usize = 1 << 16;

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

/// The connection to one agent.
pub(super) struct AgentConnection {
    /// The agent's configuration.
    pub(super) config: ServedAgent,
    context: Arc<AgentContext>,
    /// The result of the last link. Locked while a link is opened, so that only one is.
    last_link: AsyncMutex<Option<LinkResult>>,
    /// Number of links tried.
    attempts: AtomicU64,
    /// The agent's latest answer to `initialize`.
    last_info: Mutex<Option<Arc<AgentInfo>>>,
    /// The last attempt to connect failed.
    failed: AtomicBool,
    /// Whether permission requests are granted when the client cannot be asked.
    permits: AtomicBool,
    state: Mutex<State>,
}

/// Receives the updates and the questions of a session while a turn is active.
pub(super) trait Turn: Send + Sync {
    /// Applies an update of the session.
    fn apply(&self, update: &Value);
    /// Adds a question of the agent; returns the result if it is answered without the client.
    fn add_question(&self, question: AgentQuestion, default: Permissions) -> Option<Value>;
    /// Removes a question that the agent has withdrawn.
    fn withdraw(&self, id: &Value) -> Option<AgentQuestion>;
}

/// The result of opening a link: the agent, or the error.
type LinkResult = Result<(LinkId, Arc<AgentInfo>), ApiError>;

/// The number of a link of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkId(u64);

/// The state shared by the end of the link and the callers.
#[derive(Default)]
struct State {
    link: LinkId,
    open: bool,
    /// The frames for the agent; `None` when nothing more will be sent.
    frames: Option<mpsc::Sender<Frame>>,
    next_id: u64,
    calls: HashMap<u64, oneshot::Sender<CallResult>>,
    /// The active turn of each session.
    turns: HashMap<String, Arc<dyn Turn>>,
    /// Filters for the history that may still be replayed in a session.
    histories: HashMap<String, HistoryFilter>,
    uses_forms: bool,
}

/// The agent's response: a result, or an error.
pub(super) type CallResult = Result<Value, Value>;

impl AgentConnection {
    pub(super) fn new(context: &Arc<AgentContext>, config: ServedAgent) -> Arc<Self> {
        let conn = Self {
            context: context.clone(),
            last_link: AsyncMutex::default(),
            attempts: AtomicU64::new(0),
            last_info: Mutex::default(),
            failed: AtomicBool::new(false),
            permits: AtomicBool::new(false),
            state: Mutex::default(),
            config,
        };
        conn.update(&conn.config);
        Arc::new(conn)
    }

    /// Updates from the configuration whether permission requests are granted when the client
    /// cannot be asked. The rest of the configuration stays.
    pub(super) fn update(&self, config: &ServedAgent) {
        let rule = config
            .default_permission
            .unwrap_or(self.context.default_permission);
        let permits = rule == Permissions::Allow;
        self.permits.store(permits, Ordering::Relaxed);
    }

    /// The agent's id. An agent without a configured name must report one.
    pub(super) async fn id(self: &Arc<Self>) -> Result<Uuid, ApiError> {
        match &self.config.name {
            Some(name) => Ok(ids::agent_id(name)),
            None => Ok(self.info().await?.id),
        }
    }

    /// The agent's description, from its answer to `initialize`. If it cannot be reached: its
    /// previous answer, or the configuration; the next run tries again.
    pub(super) async fn info(self: &Arc<Self>) -> Result<Arc<AgentInfo>, ApiError> {
        let has_name = self.config.name.is_some();
        if !has_name || !self.failed.load(Ordering::Relaxed) {
            match self.connect().await {
                Ok((_, agent)) => return Ok(agent),
                Err(fault) if !has_name => return Err(fault),
                Err(fault) => tracing::warn!(agent = self.config.name, "{}", fault.message),
            }
        }
        let info = self.last_info.lock();
        let info = info.clone();
        Ok(info.unwrap_or_else(|| Arc::new(self.describe(&Value::Null))))
    }

    /// The agent, on an open link. All callers that wait for the same attempt share its result:
    /// many clients of an unreachable agent wait once, not one after the other.
    pub(super) async fn connect(self: &Arc<Self>) -> LinkResult {
        let attempts = self.attempts.load(Ordering::Relaxed);
        let mut last = self.last_link.lock().await;
        match &*last {
            Some(Ok((link, agent))) if self.is_open(*link) => return Ok((*link, agent.clone())),
            Some(Err(fault)) if self.attempts.load(Ordering::Relaxed) != attempts => {
                return Err(fault.clone());
            }
            _ => {}
        }
        let result = self.open_link().await;
        self.failed.store(result.is_err(), Ordering::Relaxed);
        if let Ok((_, agent)) = &result {
            *self.last_info.lock() = Some(agent.clone());
        }
        *last = Some(result.clone());
        self.attempts.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// Opens a link and initialises the agent.
    async fn open_link(self: &Arc<Self>) -> LinkResult {
        if self.context.closing.is_cancelled() {
            return Err(ApiError::unavailable("the relay is shutting down"));
        }
        let (link, opened) = self.new_link();
        let arrival = IncomingLink {
            from: "agent-connect".to_owned(),
            finish: Box::pin(std::future::ready(Ok(opened))),
            worker: Worker::current(),
        };
        let closed = |_| ApiError::unavailable("the relay is shutting down");
        self.context.arrivals.send(arrival).await.map_err(closed)?;
        let call = self.call(link, "initialize", &messages::initialize());
        let fault = match timeout(self.context.limits.agent_connect_start, call).await {
            Ok(Ok(initialized)) => return Ok((link, Arc::new(self.describe(&initialized)))),
            Ok(Err(error)) => {
                let why = error["message"].as_str().unwrap_or("no reason given");
                format!("the agent cannot be reached: {why}")
            }
            Err(_) => "the agent did not answer initialize in time".to_owned(),
        };
        self.close_link(link);
        Err(ApiError::unavailable(fault))
    }

    fn describe(&self, initialized: &Value) -> AgentInfo {
        let (name, about) = (&self.config.name, &self.config.description);
        let base = &self.context.base;
        AgentInfo::new(name.as_deref(), about.as_deref(), initialized, base)
    }

    /// Whether this link is still open.
    pub(super) fn is_open(&self, link: LinkId) -> bool {
        let state = self.state();
        state.link == link && state.open
    }

    /// Whether the agent has requested a form.
    pub(super) fn uses_forms(&self) -> bool {
        self.state().uses_forms
    }

    /// Sends a request to the agent; an error with code -32603 if the link is lost.
    pub(super) fn call(
        &self,
        link: LinkId,
        method: &str,
        params: &Value,
    ) -> impl Future<Output = CallResult> + Send + use<> {
        let (tx, rx) = oneshot::channel();
        let mut state = self.state();
        if state.link == link && state.open {
            let id = state.next_id;
            state.next_id += 1;
            state.calls.insert(id, tx);
            state.push(messages::request(id, method, params));
        }
        async move {
            let error = json!({ "code": -32603, "message": "the agent has disconnected" });
            rx.await.unwrap_or(Err(error))
        }
    }

    /// Sends a frame to the agent.
    pub(super) fn send(&self, link: LinkId, frame: Frame) {
        let mut state = self.state();
        if state.link == link && state.open {
            state.push(frame);
        }
    }

    /// Routes the updates and questions of a session to this turn until `end_turn`.
    pub(super) fn begin_turn(&self, session: &str, turn: Arc<dyn Turn>) {
        self.state().turns.insert(session.to_owned(), turn);
    }

    pub(super) fn end_turn(&self, session: &str) {
        let mut state = self.state();
        state.turns.remove(session);
        state.histories.remove(session);
    }

    /// Filters the replayed history of a session that is reopened, until `end_turn`.
    pub(super) fn expect_history(&self, session: &str, history: HistoryFilter) {
        self.state().histories.insert(session.to_owned(), history);
    }

    /// Ends the stream after the queued frames.
    pub(super) fn end(&self) {
        self.state().frames = None;
    }

    /// Handles a frame of the agent. Invalid frames were rejected before.
    pub(super) fn receive(&self, link: LinkId, frame: &Frame) {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(frame.as_bytes()) else {
            return;
        };
        let method = message.get("method").and_then(Value::as_str);
        let method = method.map(str::to_owned);
        let params = message.remove("params").unwrap_or_default();
        match (method, message.remove("id")) {
            (Some(method), Some(id)) => self.receive_request(link, &id, &method, params),
            (Some(method), None) => self.receive_notification(link, &method, &params),
            (None, id) => {
                let call = id.and_then(|id| self.state().calls.remove(&id.as_u64()?));
                if let Some(call) = call {
                    let answer = match message.remove("error") {
                        Some(error) => Err(error),
                        None => Ok(message.remove("result").unwrap_or_default()),
                    };
                    // The caller may have stopped waiting.
                    let _ = call.send(answer);
                }
            }
        }
    }

    /// Handles a request of the agent.
    fn receive_request(&self, link: LinkId, id: &Value, method: &str, params: Value) {
        let Some(question) = AgentQuestion::from_request(id.clone(), method, params) else {
            return self.send(link, messages::unknown_method(id, method));
        };
        let turn = {
            let mut state = self.state();
            state.uses_forms |= method == "elicitation/create";
            question
                .session()
                .and_then(|session| state.turns.get(session).cloned())
        };
        let default = match self.permits.load(Ordering::Relaxed) {
            true => Permissions::Allow,
            false => Permissions::Reject,
        };
        let answer = match turn {
            Some(live) => live.add_question(question, default),
            None => Some(question.by_rule(default)),
        };
        if let Some(answer) = answer {
            self.send(link, messages::result(id, &answer));
        }
    }

    /// Handles a notification of the agent.
    fn receive_notification(&self, link: LinkId, method: &str, params: &Value) {
        if method == "$/cancel_request" {
            let turns: Vec<Arc<dyn Turn>> = self.state().turns.values().cloned().collect();
            if let Some(id) = params.get("requestId")
                && let Some(question) = turns.iter().find_map(|live| live.withdraw(id))
            {
                self.send(link, messages::result(id, &question.cancelled()));
            }
        }
        if method == "session/update"
            && let Some(session) = params["sessionId"].as_str()
            && let Some(update) = params.get("update")
        {
            let turn = {
                let mut state = self.state();
                let history = state.histories.get_mut(session);
                let is_history = history.is_some_and(|past| past.is_history(update));
                state.turns.get(session).filter(|_| !is_history).cloned()
            };
            if let Some(live) = turn {
                live.apply(update);
            }
        }
    }

    /// Marks the link as lost and fails its pending calls.
    pub(super) fn close_link(&self, link: LinkId) {
        let mut state = self.state();
        if state.link == link {
            state.close();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The lock is not poisoned by a panic; each update leaves the state consistent.
        self.state.lock()
    }

    /// Begins a new link. The agent sees it as its client.
    fn new_link(self: &Arc<Self>) -> (LinkId, Link) {
        let (tx, frames) = mpsc::channel(MAX_QUEUED);
        let mut state = self.state();
        let id = LinkId(state.link.0 + 1);
        *state = State {
            link: id,
            open: true,
            frames: Some(tx),
            // The first id is 1, as with most clients.
            next_id: 1,
            uses_forms: state.uses_forms,
            ..State::default()
        };
        drop(state);
        let peer = Peer {
            name: "agent-connect".to_owned(),
            half_close: true,
            kind: PeerKind::Internal,
            // It carries the threads of many clients; each request is authorised on its own.
            principal: None,
            wanted_agent: self.config.name.as_deref().map(Arc::from),
        };
        let conn = self.clone();
        let end = Arc::new(LinkEnd { conn, id });
        (id, local_link::open(peer, end, frames))
    }
}

impl State {
    fn push(&mut self, frame: Frame) {
        if let Some(frames) = &self.frames
            && let Err(TrySendError::Full(_)) = frames.try_send(frame)
        {
            tracing::warn!("an agent does not read its messages; its connection is closed");
            self.close();
        }
    }

    /// Nothing more is sent or received; pending calls fail.
    fn close(&mut self) {
        self.open = false;
        self.frames = None;
        self.calls.clear();
        self.turns.clear();
        self.histories.clear();
    }
}

/// The end of one link of a connection.
struct LinkEnd {
    conn: Arc<AgentConnection>,
    id: LinkId,
}

impl LocalPeer for LinkEnd {
    fn receive(self: &Arc<Self>, frame: &Frame) {
        self.conn.receive(self.id, frame);
    }

    fn close_input(&self) {
        self.conn.close_link(self.id);
    }

    fn close_output(&self) {
        self.conn.close_link(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    #[test]
    fn callers_share_one_failed_attempt() {
        let (arrivals, mut links) = mpsc::channel(8);
        let context = Arc::new(AgentContext {
            base: String::new(),
            default_permission: Permissions::Reject,
            limits: Arc::new(Limits::default()),
            arrivals,
            closing: CancellationToken::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let conn = AgentConnection::new(&context, ServedAgent::default());
            let mut calls = Box::pin(join_all((0..8).map(|_| conn.connect())));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(calls.as_mut().poll(&mut cx).is_pending());
            let error = r#"{"id":1,"error":{"code":-32603,"message":"told to fail"}}"#;
            conn.receive(LinkId(1), &Frame::from(error));
            for result in calls.await {
                assert!(result.unwrap_err().message.ends_with("told to fail"));
            }
            links.try_recv().unwrap();
            assert!(links.try_recv().is_err(), "another link was tried");
            drop(conn.connect().now_or_never());
            links.try_recv().unwrap();
        });
    }
}

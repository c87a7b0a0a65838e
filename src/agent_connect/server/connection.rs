//! The connection to one agent: an ACP client with many sessions on one link.
//!
//! The link is opened when a request needs it, and again when it was lost. A session belongs to the
//! link on which it was opened or reopened.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::run::Run;
use crate::api::agent::{AgentInfo, agent_id};
use crate::api::error::{ApiError, ApiResult, RpcError, RpcResult};
use crate::api::history_filter::HistoryFilter;
use crate::api::interrupt::{AgentQuestion, Permissions};
use crate::api::messages;
use crate::local_link::{self, LocalPeer, Message, OwnRequests, Response};
use crate::settings::ServedAgent;
use jsonrpc::{Frame, Limits};
use panics::SharedMutex;
use transport::http::port::Port;
use transport::{IncomingLink, Peer, PeerKind, Worker};

/// Messages for an agent that may be queued; one that reads none of them is given up.
const MAX_QUEUED: usize = 1 << 16;

/// The context of all connections.
pub(super) struct AgentContext {
    pub(super) port: Arc<Port>,
    /// The URL of the service.
    pub(super) base: String,
    /// The answer to permission requests for clients that cannot be asked.
    pub(super) default_permission: Permissions,
}

/// The connection to one agent.
pub(super) struct AgentConnection {
    /// The agent's configuration.
    pub(super) config: ServedAgent,
    context: Arc<AgentContext>,
    /// The last link, or why it could not be opened, and when. Locked while a link is opened, so
    /// that only one is.
    last: AsyncMutex<Option<(Instant, ApiResult<AgentLink>)>>,
    state: Arc<SharedMutex<State>>,
}

/// What is known of an agent, on any link.
#[derive(Default)]
struct State {
    /// The last link.
    link: Weak<LinkEnd>,
    /// The agent's latest answer to `initialize`.
    info: Option<Arc<AgentInfo>>,
    /// The last attempt to connect failed.
    failed: bool,
    /// The agent has requested a form.
    uses_forms: bool,
    /// Permission requests are granted when the client cannot be asked.
    permits: bool,
}

/// A link to an agent that has answered `initialize`.
#[derive(Clone)]
pub(super) struct AgentLink {
    pub(super) agent: Arc<AgentInfo>,
    end: Arc<LinkEnd>,
}

/// An open session.
#[derive(Clone)]
pub(super) struct OpenSession {
    pub(super) on: AgentLink,
    pub(super) id: String,
}

/// This end of a link.
struct LinkEnd {
    context: Arc<AgentContext>,
    agent: Arc<SharedMutex<State>>,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    /// The frames for the agent; `None` when the link is closed.
    frames: Option<mpsc::Sender<Frame>>,
    calls: OwnRequests,
    /// The active turn of each session.
    turns: HashMap<String, Arc<Run>>,
    /// Filters for the history that may still be replayed in a session.
    histories: HashMap<String, HistoryFilter>,
}

impl AgentConnection {
    pub(super) fn new(context: &Arc<AgentContext>, config: ServedAgent) -> Arc<Self> {
        let conn = Self {
            context: context.clone(),
            last: AsyncMutex::default(),
            state: Arc::default(),
            config,
        };
        conn.update(&conn.config);
        Arc::new(conn)
    }

    /// Updates from the configuration whether permission requests are granted when the client
    /// cannot be asked. The rest of the configuration stays.
    pub(super) fn update(&self, config: &ServedAgent) {
        let rule = config.default_permission;
        let rule = rule.unwrap_or(self.context.default_permission);
        self.state.lock().permits = rule == Permissions::Allow;
    }

    /// The agent's id. An agent without a configured name must report one.
    pub(super) async fn id(&self) -> ApiResult<Uuid> {
        match &self.config.name {
            Some(name) => Ok(agent_id(name)),
            None => Ok(self.info().await?.id),
        }
    }

    /// The agent's description, from its answer to `initialize`. If it cannot be reached: its
    /// previous answer, or the configuration; the next run tries again.
    pub(super) async fn info(&self) -> ApiResult<Arc<AgentInfo>> {
        let has_name = self.config.name.is_some();
        if !has_name || !self.state.lock().failed {
            match self.connect().await {
                Ok(link) => return Ok(link.agent),
                Err(fault) if !has_name => return Err(fault),
                Err(fault) => tracing::warn!(agent = self.config.name, "{}", fault.message),
            }
        }
        let info = self.state.lock().info.clone();
        Ok(info.unwrap_or_else(|| Arc::new(self.describe(&Value::Null))))
    }

    /// The agent, on an open link. All callers that wait for the same attempt share its result:
    /// many clients of an unreachable agent wait once, not one after the other.
    pub(super) async fn connect(&self) -> ApiResult<AgentLink> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        match &*last {
            Some((_, Ok(link))) if link.is_open() => return Ok(link.clone()),
            Some((ended, Err(fault))) if *ended > asked => return Err(fault.clone()),
            _ => {}
        }
        let result = self.open_link().await;
        let mut state = self.state.lock();
        state.failed = result.is_err();
        if let Ok(link) = &result {
            state.info = Some(link.agent.clone());
        }
        *last = Some((Instant::now(), result.clone()));
        result
    }

    /// Opens a link, on which the agent sees its client, and initialises the agent.
    async fn open_link(&self) -> ApiResult<AgentLink> {
        let closed = || ApiError::unavailable("the relay is shutting down");
        let port = &self.context.port;
        if port.closing.is_cancelled() {
            return Err(closed());
        }
        let (tx, frames) = mpsc::channel(MAX_QUEUED);
        let end = Arc::new(LinkEnd {
            context: self.context.clone(),
            agent: self.state.clone(),
            state: Mutex::new(LinkState {
                frames: Some(tx),
                ..LinkState::default()
            }),
        });
        self.state.lock().link = Arc::downgrade(&end);
        let peer = Peer {
            kind: PeerKind::Internal,
            // It has no principal: it carries the threads of many clients, and each request is
            // authorised on its own.
            wanted_agent: self.config.name.as_deref().map(Arc::from),
            ..Peer::remote("agent-connect".to_owned(), true)
        };
        let link = local_link::open(peer, end.clone(), frames);
        let arrival = IncomingLink {
            from: "agent-connect".to_owned(),
            finish: Box::pin(std::future::ready(Ok(Some(link)))),
            worker: Worker::current(),
        };
        port.arrivals.send(arrival).await.map_err(|_| closed())?;
        let call = end.call("initialize", &messages::initialize());
        let fault = match timeout(port.limits.agent_connect_start, call).await {
            Ok(Ok(initialized)) => {
                let agent = Arc::new(self.describe(&initialized));
                return Ok(AgentLink { agent, end });
            }
            Ok(Err(error)) => {
                let why = error["message"].as_str().unwrap_or("no reason given");
                format!("the agent cannot be reached: {why}")
            }
            Err(_) => "the agent did not answer initialize in time".to_owned(),
        };
        end.state.lock().close();
        Err(ApiError::unavailable(fault))
    }

    fn describe(&self, initialized: &Value) -> AgentInfo {
        let (name, about) = (&self.config.name, &self.config.description);
        let base = &self.context.base;
        AgentInfo::new(name.as_deref(), about.as_deref(), initialized, base)
    }

    /// Whether the agent has requested a form.
    pub(super) fn uses_forms(&self) -> bool {
        self.state.lock().uses_forms
    }

    /// Ends the stream after the queued frames.
    pub(super) fn end(&self) {
        let link = self.state.lock().link.upgrade();
        if let Some(link) = link {
            link.state.lock().frames = None;
        }
    }
}

impl AgentLink {
    /// Sends a request to the agent. Once this has returned, the request is queued.
    pub(super) fn call(
        &self,
        method: &str,
        params: &Value,
    ) -> impl Future<Output = RpcResult<Value>> + Send + use<> {
        let (called, agent) = (self.end.call(method, params), self.agent.clone());
        async move { called.await.map_err(|error| agent.run_error(&error)) }
    }

    fn is_open(&self) -> bool {
        self.end.state.lock().frames.is_some()
    }
}

impl OpenSession {
    /// Whether its link is still open.
    pub(super) fn is_open(&self) -> bool {
        self.on.is_open()
    }

    /// Asks the agent to close it, if it supports that. Otherwise the agent keeps it.
    pub(super) async fn close(&self) {
        if self.is_open() && self.on.agent.supports("close") {
            let params = json!({ "sessionId": self.id });
            let _closed = self.on.call("session/close", &params).await;
        }
    }

    /// Filters the replayed history of the session, which is reopened, until `end_turn`.
    pub(super) fn expect_history(&self, history: HistoryFilter) {
        let mut state = self.on.end.state.lock();
        state.histories.insert(self.id.clone(), history);
    }

    /// Routes its updates and questions to this run until `end_turn`.
    pub(super) fn begin_turn(&self, run: &Arc<Run>) {
        let mut state = self.on.end.state.lock();
        state.turns.insert(self.id.clone(), run.clone());
    }

    pub(super) fn end_turn(&self) {
        let mut state = self.on.end.state.lock();
        state.turns.remove(&self.id);
        state.histories.remove(&self.id);
    }

    /// Answers a question of a run, if its turn is active.
    pub(super) fn resume(&self, run: &Run, id: &Value, result: &Value) {
        let mut state = self.on.end.state.lock();
        if state.is_active(run) {
            state.push(messages::result(id, result));
        }
    }

    /// Cancels the turn of a run, and the agent's open questions.
    pub(super) fn cancel_turn(&self, run: &Run) {
        let mut state = self.on.end.state.lock();
        if !state.is_active(run) {
            return;
        }
        let params = json!({ "sessionId": self.id });
        state.push(messages::notification("session/cancel", &params));
        for question in run.cancel_questions() {
            state.push(messages::result(&question.id, &question.cancelled()));
        }
    }
}

impl LinkEnd {
    /// Sends a request to the agent; an error with code -32603 if the link is lost.
    fn call(&self, method: &str, params: &Value) -> impl Future<Output = Response> + Send + use<> {
        let mut state = self.state.lock();
        let response = state.frames.is_some().then(|| {
            let (request, response) = state.calls.begin(method, params);
            state.push(request);
            response
        });
        drop(state);
        async move {
            let response = match response {
                Some(response) => response.await.ok(),
                None => None,
            };
            let error =
                json!({ "code": RpcError::INTERNAL, "message": "the agent has disconnected" });
            response.unwrap_or(Err(error))
        }
    }

    /// Handles a request of the agent.
    fn receive_request(&self, id: &Value, method: &str, params: Value) {
        let Some(question) = AgentQuestion::from_request(id.clone(), method, params) else {
            let answer = messages::unknown_method(id, method);
            return self.state.lock().push(answer);
        };
        let default = {
            let mut agent = self.agent.lock();
            agent.uses_forms |= method == "elicitation/create";
            match agent.permits {
                true => Permissions::Allow,
                false => Permissions::Reject,
            }
        };
        let session = question.session();
        let run = session.and_then(|session| self.state.lock().turns.get(session).cloned());
        let answer = match run {
            Some(run) => run.add_question(question, default),
            None => Some(question.by_rule(default)),
        };
        if let Some(answer) = answer {
            self.state.lock().push(messages::result(id, &answer));
        }
    }

    /// Handles a notification of the agent.
    fn receive_notification(&self, method: &str, params: &Value) {
        let mut state = self.state.lock();
        if method == "$/cancel_request" {
            let id = &params["requestId"];
            let withdrawn = state.turns.values().find_map(|run| run.withdraw(id));
            if let Some(question) = withdrawn {
                state.push(messages::result(id, &question.cancelled()));
            }
        } else if method == "session/update"
            && let Some(session) = params["sessionId"].as_str()
            && let Some(update) = params.get("update")
        {
            let history = state.histories.get_mut(session);
            let is_history = history.is_some_and(|past| past.is_history(update));
            if let Some(run) = state.turns.get(session).filter(|_| !is_history) {
                run.apply(update);
            }
        }
    }
}

impl LinkState {
    fn push(&mut self, frame: Frame) {
        if let Some(frames) = &self.frames
            && let Err(TrySendError::Full(_)) = frames.try_send(frame)
        {
            tracing::warn!("an agent does not read its messages; its connection is closed");
            self.close();
        }
    }

    fn is_active(&self, run: &Run) -> bool {
        self.turns.values().any(|active| active.id == run.id)
    }

    /// Nothing more is sent or received; pending calls fail.
    fn close(&mut self) {
        self.frames = None;
        self.calls.clear();
        self.turns.clear();
        self.histories.clear();
    }
}

impl LocalPeer for LinkEnd {
    fn limits(&self) -> Arc<Limits> {
        self.context.port.limits.clone()
    }

    fn receive(self: &Arc<Self>, message: Message) {
        match message {
            Message::Request(id, method, params) => {
                let id = serde_json::from_slice(id.as_id().json()).unwrap_or_default();
                self.receive_request(&id, &method, params);
            }
            Message::Notification(method, params) => self.receive_notification(&method, &params),
            Message::Response(id, response) => self.state.lock().calls.end(&id, response),
        }
    }

    fn close_input(&self) {
        self.state.lock().close();
    }

    fn close_output(&self) {
        self.state.lock().close();
    }
}

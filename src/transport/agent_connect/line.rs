//! The connection to one agent: an ACP client with many sessions on one link.
//!
//! The link is opened when a request needs it, and again when it was lost; each link has a
//! `LinkId`, and a session belongs to the link on which it was opened or reopened.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::timeout;

use super::active_run::ActiveRun;
use super::agents::Ground;
use super::link;
use super::settings::Offer;
use crate::agent_connect::agent::Agent;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::interrupt::Question;
use crate::agent_connect::past::Past;
use crate::agent_connect::run_request::Permissions;
use crate::agent_connect::say;
use crate::agent_connect::uuid::Uuid;
use crate::jsonrpc::Frame;
use crate::transport::{Arrival, Worker};

/// The connection to one agent.
pub(super) struct Line {
    /// The agent's configuration.
    pub(super) offer: Offer,
    ground: Arc<Ground>,
    /// The result of the last link. Locked while a link is opened, so that only one is.
    met: AsyncMutex<Option<Met>>,
    /// Number of links tried.
    tries: AtomicU64,
    /// The agent's latest answer to `initialize`.
    known: Mutex<Option<Arc<Agent>>>,
    /// The last attempt to connect failed.
    failed: AtomicBool,
    /// Whether permission requests are granted when the client cannot be asked.
    permits: AtomicBool,
    state: Mutex<State>,
}

/// The result of opening a link: the agent, or the error.
type Met = Result<(Dial, Arc<Agent>), Fault>;

/// The number of a link of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dial(u64);

/// The state shared by the halves of the link and the callers.
#[derive(Default)]
pub(super) struct State {
    dial: Dial,
    pub(super) open: bool,
    /// Nothing more will be sent.
    pub(super) ended: bool,
    pub(super) out: VecDeque<Frame>,
    pub(super) ear: Option<Waker>,
    next: u64,
    calls: HashMap<u64, oneshot::Sender<Answer>>,
    /// The run whose turn is active in each session.
    turns: HashMap<String, Arc<ActiveRun>>,
    /// Filters for the history that may still be replayed in a session.
    pasts: HashMap<String, Past>,
    asks_forms: bool,
}

/// The agent's response: a result, or an error.
pub(super) type Answer = Result<Value, Value>;

impl Line {
    pub(super) fn new(ground: &Arc<Ground>, offer: Offer) -> Arc<Self> {
        let line = Self {
            ground: ground.clone(),
            met: AsyncMutex::default(),
            tries: AtomicU64::new(0),
            known: Mutex::default(),
            failed: AtomicBool::new(false),
            permits: AtomicBool::new(false),
            state: Mutex::default(),
            offer,
        };
        line.renew(&line.offer);
        Arc::new(line)
    }

    /// Updates from the configuration whether permission requests are granted when the client
    /// cannot be asked. The rest of the configuration stays.
    pub(super) fn renew(&self, offer: &Offer) {
        let rule = offer.unasked.unwrap_or(self.ground.unasked);
        let permits = rule == Permissions::Allow;
        self.permits.store(permits, Ordering::Relaxed);
    }

    /// The agent's id. An agent without a configured name must report one.
    pub(super) async fn id(self: &Arc<Self>) -> Result<Uuid, Fault> {
        match &self.offer.name {
            Some(name) => Ok(Uuid::of_agent(name)),
            None => Ok(self.introduced().await?.id),
        }
    }

    /// The agent's description, from its answer to `initialize`. If it cannot be reached: its
    /// previous answer, or the configuration; the next run tries again.
    pub(super) async fn introduced(self: &Arc<Self>) -> Result<Arc<Agent>, Fault> {
        let named = self.offer.name.is_some();
        if !named || !self.failed.load(Ordering::Relaxed) {
            match self.agent().await {
                Ok((_, agent)) => return Ok(agent),
                Err(fault) if !named => return Err(fault),
                Err(fault) => tracing::warn!(agent = self.offer.name, "{}", fault.what),
            }
        }
        let known = self.known.lock();
        let known = known.clone();
        Ok(known.unwrap_or_else(|| Arc::new(self.described(&Value::Null))))
    }

    /// The agent, on an open link. All callers that wait for the same attempt share its result:
    /// many clients of an unreachable agent wait once, not one after the other.
    pub(super) async fn agent(self: &Arc<Self>) -> Met {
        let tries = self.tries.load(Ordering::Relaxed);
        let mut met = self.met.lock().await;
        match &*met {
            Some(Ok((dial, agent))) if self.is_open(*dial) => return Ok((*dial, agent.clone())),
            Some(Err(fault)) if self.tries.load(Ordering::Relaxed) != tries => {
                return Err(fault.clone());
            }
            _ => {}
        }
        let came = self.meet().await;
        self.failed.store(came.is_err(), Ordering::Relaxed);
        if let Ok((_, agent)) = &came {
            *self.known.lock() = Some(agent.clone());
        }
        *met = Some(came.clone());
        self.tries.fetch_add(1, Ordering::Relaxed);
        came
    }

    /// Opens a link and initialises the agent.
    async fn meet(self: &Arc<Self>) -> Met {
        if self.ground.closing.is_cancelled() {
            return Err(Fault::later("the relay is shutting down"));
        }
        let dial = self.dial();
        let arrival = Arrival {
            from: "agent-connect".to_owned(),
            finish: Box::pin(std::future::ready(Ok(link::open(self.clone(), dial)))),
            worker: Worker::here(),
        };
        let nobody = |_| Fault::later("the relay is shutting down");
        self.ground.arrivals.send(arrival).await.map_err(nobody)?;
        let asked = self.call(dial, "initialize", &say::initialize());
        let answered = timeout(self.ground.limits.agent_connect_start, asked).await;
        let initialized = match answered {
            Ok(Ok(initialized)) => initialized,
            Ok(Err(error)) => {
                self.hang_up(dial);
                let why = error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or("no reason given");
                return Err(Fault::later(format!("the agent cannot be reached: {why}")));
            }
            Err(_) => {
                self.hang_up(dial);
                return Err(Fault::later("the agent did not answer initialize in time"));
            }
        };
        Ok((dial, Arc::new(self.described(&initialized))))
    }

    fn described(&self, initialized: &Value) -> Agent {
        let Offer { name, about, .. } = &self.offer;
        let base = &self.ground.base;
        Agent::introduced(name.as_deref(), about.as_deref(), initialized, base)
    }

    /// Whether this link is still open.
    pub(super) fn is_open(&self, dial: Dial) -> bool {
        let state = self.state();
        state.dial == dial && state.open
    }

    /// Whether the agent has requested a form.
    pub(super) fn asks_forms(&self) -> bool {
        self.state().asks_forms
    }

    /// Sends a request to the agent; an error with code -32603 if the link is lost.
    pub(super) fn call(
        &self,
        dial: Dial,
        method: &str,
        params: &Value,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let (tell, told) = oneshot::channel();
        let mut state = self.state();
        if state.dial == dial && state.open {
            let id = state.next;
            state.next += 1;
            state.calls.insert(id, tell);
            state.say(say::request(id, method, params));
        }
        async move {
            let gone = json!({ "code": -32603, "message": "the agent has disconnected" });
            told.await.unwrap_or(Err(gone))
        }
    }

    /// Sends a frame to the agent.
    pub(super) fn tell(&self, dial: Dial, frame: Frame) {
        let mut state = self.state();
        if state.dial == dial && state.open {
            state.say(frame);
        }
    }

    /// Routes the updates and questions of a session to this run until `end_turn`.
    pub(super) fn begin_turn(&self, session: &str, live: &Arc<ActiveRun>) {
        self.state().turns.insert(session.to_owned(), live.clone());
    }

    pub(super) fn end_turn(&self, session: &str) {
        let mut state = self.state();
        state.turns.remove(session);
        state.pasts.remove(session);
    }

    /// Filters the replayed history of a session that is reopened, until `end_turn`.
    pub(super) fn expect_past(&self, session: &str, past: Past) {
        self.state().pasts.insert(session.to_owned(), past);
    }

    /// Ends the stream after the queued frames.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.wake();
    }

    /// Handles a frame of the agent. Invalid frames were rejected before.
    pub(super) fn hear(&self, dial: Dial, frame: &Frame) {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(frame.as_bytes()) else {
            return;
        };
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let params = message.remove("params").unwrap_or_default();
        match (method, message.remove("id")) {
            (Some(method), Some(id)) => self.asked(dial, &id, &method, params),
            (Some(method), None) => self.told(dial, &method, &params),
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
    fn asked(&self, dial: Dial, id: &Value, method: &str, params: Value) {
        let Some(question) = Question::of(id.clone(), method, params) else {
            return self.tell(dial, say::unknown_method(id, method));
        };
        let turn = {
            let mut state = self.state();
            state.asks_forms |= method == "elicitation/create";
            question
                .session()
                .and_then(|session| state.turns.get(session).cloned())
        };
        let unasked = match self.permits.load(Ordering::Relaxed) {
            true => Permissions::Allow,
            false => Permissions::Reject,
        };
        let answer = match turn {
            Some(live) => live.ask(question, unasked),
            None => Some(question.by_rule(unasked)),
        };
        if let Some(answer) = answer {
            self.tell(dial, say::result(id, &answer));
        }
    }

    /// Handles a notification of the agent.
    fn told(&self, dial: Dial, method: &str, params: &Value) {
        if method == "$/cancel_request" {
            let turns: Vec<Arc<ActiveRun>> = self.state().turns.values().cloned().collect();
            if let Some(id) = params.get("requestId")
                && let Some(question) = turns.iter().find_map(|live| live.withdraw(id))
            {
                self.tell(dial, say::result(id, &question.cancelled()));
            }
        }
        if method == "session/update"
            && let Some(session) = params.get("sessionId").and_then(Value::as_str)
            && let Some(update) = params.get("update")
        {
            let turn = {
                let mut state = self.state();
                let past = state.pasts.get_mut(session);
                let is_past = past.is_some_and(|past| past.covers(update));
                state.turns.get(session).filter(|_| !is_past).cloned()
            };
            if let Some(live) = turn {
                live.hear(update);
            }
        }
    }

    /// Marks the link as lost and fails its pending calls.
    pub(super) fn hang_up(&self, dial: Dial) {
        let mut state = self.state();
        if state.dial == dial {
            state.open = false;
            state.calls.clear();
            state.turns.clear();
            state.pasts.clear();
            state.out.clear();
            state.wake();
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // The lock is not poisoned by a panic; each update leaves the state consistent.
        self.state.lock()
    }

    fn dial(&self) -> Dial {
        let mut state = self.state();
        let dial = Dial(state.dial.0 + 1);
        let asks_forms = state.asks_forms;
        *state = State {
            dial,
            open: true,
            asks_forms,
            ..State::default()
        };
        // The first id is 1, as with most clients.
        state.next = 1;
        dial
    }
}

impl State {
    pub(super) fn is(&self, dial: Dial) -> bool {
        self.dial == dial
    }

    fn say(&mut self, frame: Frame) {
        self.out.push_back(frame);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(ear) = self.ear.take() {
            ear.wake();
        }
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line")
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::jsonrpc::Limits;

    #[test]
    fn all_who_wait_for_an_agent_that_cannot_be_had_wait_once() {
        let (arrivals, mut links) = mpsc::channel(8);
        let ground = Arc::new(Ground {
            base: String::new(),
            unasked: Permissions::Reject,
            limits: Arc::new(Limits::default()),
            arrivals,
            closing: CancellationToken::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let line = Line::new(&ground, Offer::default());
            let mut crowd = Box::pin(join_all((0..8).map(|_| line.agent())));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(crowd.as_mut().poll(&mut cx).is_pending());
            let error = r#"{"id":1,"error":{"code":-32603,"message":"told to fail"}}"#;
            line.hear(Dial(1), &Frame::from(error));
            for told in crowd.await {
                assert!(told.unwrap_err().what.ends_with("told to fail"));
            }
            links.try_recv().unwrap();
            assert!(links.try_recv().is_err(), "another link was tried");
            drop(line.agent().now_or_never());
            links.try_recv().unwrap();
        });
    }
}

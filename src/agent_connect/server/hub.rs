//! The state shared by all requests of a service: agents, store, active runs, and the sessions of
//! threads in use.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hashlink::LinkedHashMap;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::agents::Agents;
use super::connection::{AgentConnection, OpenSession};
use super::run::Run;
use crate::api::error::{ApiError, ApiResult};
use crate::api::run::{RunRecord, RunStatus};
use crate::api::run_request::Strategy;
use crate::shares::has_room;
use crate::store::RunStore;
use crate::webhook::WebhookSender;
use panics::SharedMutex;
use transport::http::port::Port;

/// The wait of a client that sets no limit.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);

/// The state shared by all requests.
pub(super) struct Hub {
    pub(super) port: Arc<Port>,
    /// The path it is served at, without a slash at the end.
    pub(super) path: String,
    /// Its URL.
    pub(super) base: String,
    pub(super) agents: Agents,
    pub(super) store: RunStore,
    pub(super) webhooks: WebhookSender,
    /// The working directory of sessions that name none.
    pub(super) cwd: String,
    pub(super) state: SharedMutex<HubState>,
    /// Notified when a run has ended.
    pub(super) ended: Notify,
}

/// What is active.
#[derive(Default)]
pub(super) struct HubState {
    runs: HashMap<Uuid, ActiveRun>,
    /// The threads in use, the least recently used one first.
    threads: LinkedHashMap<(Arc<str>, Uuid), SessionSlot>,
    /// The latest sessions of runs without a thread.
    discarded: VecDeque<String>,
}

/// A run that has not ended, and the connection to its agent.
#[derive(Clone)]
pub(super) struct ActiveRun {
    pub(super) run: Arc<Run>,
    pub(super) conn: Arc<AgentConnection>,
    /// The session it runs in, once that is open.
    pub(super) session: Arc<OnceLock<OpenSession>>,
}

/// The session of a thread, if the agent has it open. Locked by the current run; the lock is fair, so
/// runs are served in order. Runs that wait hold it as well.
pub(super) type SessionSlot = Arc<AsyncMutex<Option<OpenSession>>>;

/// A run as a path names it: its owner, its thread if the path names one, and its id.
pub(super) struct RunAt {
    pub(super) owner: Arc<str>,
    pub(super) thread: Option<Uuid>,
    pub(super) id: Uuid,
}

impl Hub {
    /// Adds a run, if its thread is idle or the run's strategy allows a busy one.
    pub(super) fn add_run(&self, live: &ActiveRun) -> ApiResult<()> {
        let mut state = self.state.lock();
        let (run, max) = (&live.run, self.port.limits.agent_connect_runs);
        let own = (state.runs.values()).filter(|live| live.run.owner == run.owner);
        if !has_room(&run.owner, own.count(), state.runs.len(), 1, max) {
            return Err(ApiError::unavailable("too many runs are in progress"));
        }
        for other in run
            .thread
            .into_iter()
            .flat_map(|id| state.runs_of(&run.owner, id))
        {
            match run.request.strategy {
                Strategy::Reject | Strategy::Rollback => {
                    return Err(ApiError::conflict("Thread is busy"));
                }
                Strategy::Interrupt => other.cancel.cancel(),
                Strategy::Enqueue => {}
            }
        }
        state.runs.insert(run.id, live.clone());
        Ok(())
    }

    /// Removes a run that has ended.
    pub(super) fn remove_run(&self, id: Uuid) {
        self.state.lock().runs.remove(&id);
        self.ended.notify_waiters();
    }

    /// A run that has not ended.
    pub(super) fn active_run(&self, id: Uuid) -> Option<ActiveRun> {
        self.state.lock().runs.get(&id).cloned()
    }

    /// Refuses to change a thread with an active or queued run.
    pub(super) fn check_idle(&self, owner: &Arc<str>, thread: Uuid) -> ApiResult<()> {
        match self.state.lock().runs_of(owner, thread).next() {
            Some(_) => Err(ApiError::conflict("Thread is busy")),
            None => Ok(()),
        }
    }

    /// Records the session of an ended run without a thread.
    pub(super) fn discard(&self, session: &str) {
        let mut state = self.state.lock();
        if state.discarded.len() >= self.port.limits.agent_connect_sessions {
            state.discarded.pop_front();
        }
        state.discarded.push_back(session.to_owned());
    }

    /// Whether a session belongs, or belonged, to a run without a thread.
    pub(super) fn is_run_session(&self, session: &str) -> bool {
        let state = self.state.lock();
        let mut used = state.runs.values().filter_map(|live| live.session.get());
        used.any(|used| used.id == session) || state.discarded.iter().any(|one| one == session)
    }

    /// Waits until none of the runs that have not ended is one of these.
    pub(super) async fn wait_ended(&self, wanted: impl Fn(&ActiveRun) -> bool) {
        loop {
            let ended = self.ended.notified();
            if !self.state.lock().runs.values().any(&wanted) {
                return;
            }
            ended.await;
        }
    }

    /// The session of a thread. If there are too many threads in use, the least recently used one is
    /// released: of the owner that has the most, and never of one that has fewer than this owner.
    pub(super) fn session_slot(&self, owner: &Arc<str>, thread: Uuid) -> ApiResult<SessionSlot> {
        let key = (owner.clone(), thread);
        let mut state = self.state.lock();
        let threads = &mut state.threads;
        if let Some(slot) = threads.to_back(&key) {
            return Ok(slot.clone());
        }
        if threads.len() >= self.port.limits.agent_connect_sessions {
            let mut held: HashMap<&str, usize> = HashMap::new();
            for (of, _) in threads.keys() {
                *held.entry(of).or_default() += 1;
            }
            let own = held.get(&**owner).copied().unwrap_or(0);
            let idle = threads.iter().filter(|((of, _), slot)| {
                Arc::strong_count(slot) == 1 && (of == owner || held[&**of] > own)
            });
            let first = idle.min_by_key(|((of, _), _)| Reverse(held[&**of]));
            let first = first.map(|(key, _)| key.clone());
            let none = || ApiError::unavailable("too many threads are in use at present");
            let slot = threads.remove(&first.ok_or_else(none)?);
            tokio::spawn(async move {
                if let Some(slot) = slot
                    && let Some(open) = slot.lock().await.take()
                {
                    open.close().await;
                }
            });
        }
        let slot = SessionSlot::default();
        threads.insert(key, slot.clone());
        Ok(slot)
    }

    /// Forgets the session of a thread.
    pub(super) fn remove_slot(&self, owner: &Arc<str>, thread: Uuid) {
        self.state.lock().threads.remove(&(owner.clone(), thread));
    }

    /// Reads a run; only its owner can see it. If the run has not ended, its current state is
    /// written to the store first, so that no client sees an older one.
    pub(super) async fn run(&self, at: &RunAt) -> ApiResult<RunRecord> {
        let (id, thread, live) = (at.id, at.thread, self.active_run(at.id));
        let read = self.store.run(&at.owner, move |rows| {
            if let Some(live) = live {
                rows.update_run(&live.run.record())?;
            }
            rows.run(id)
        });
        let run = read.await?;
        match thread.is_none() || run.thread == thread {
            true => Ok(run),
            false => Err(ApiError::not_found("there is no such run")),
        }
    }

    /// Waits until a run is not pending; `None` when that takes longer than `max_wait`.
    pub(super) async fn wait_settled(
        &self,
        at: &RunAt,
        max_wait: Option<Duration>,
    ) -> ApiResult<Option<RunRecord>> {
        let until = Instant::now() + max_wait.unwrap_or(FOREVER);
        loop {
            // Removed while its end is stored, so what is read after that is final.
            let live = self.active_run(at.id);
            let run = self.run(at).await?;
            if run.status != RunStatus::Pending {
                return Ok(Some(run));
            }
            let lost = || ApiError::unavailable("the outcome of the run was lost");
            let mut changes = live.ok_or_else(lost)?.run.changes.subscribe();
            let settled = changes.wait_for(|phase| phase.status != RunStatus::Pending);
            if timeout_at(until, settled).await.is_err() {
                return Ok(None);
            }
        }
    }
}

impl HubState {
    /// The runs of a thread that have not ended.
    fn runs_of(&self, owner: &Arc<str>, thread: Uuid) -> impl Iterator<Item = &Arc<Run>> {
        let runs = self.runs.values().map(|live| &live.run);
        runs.filter(move |run| run.thread == Some(thread) && run.owner == *owner)
    }
}

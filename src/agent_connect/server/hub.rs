//! The state shared by all requests of a listener: agents, store, active runs and threads.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::active_run::ActiveRun;
use super::active_thread::ActiveThread;
use super::agents::AgentConnections;
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::record::{RunRecord, RunStatus};
use crate::agent_connect::api::timestamp::Timestamp;
use crate::agent_connect::store::{OwnedRows, RunStore};
use crate::agent_connect::webhook::WebhookSender;
use crate::jsonrpc::Limits;

/// The state shared by all requests.
pub(super) struct Hub {
    pub(super) agents: AgentConnections,
    pub(super) store: RunStore,
    pub(super) webhooks: WebhookSender,
    pub(super) limits: Arc<Limits>,
    /// The working directory of sessions that name none.
    pub(super) cwd: String,
    state: Mutex<State>,
    /// Notified when a run has ended.
    ended: Notify,
}

#[derive(Default)]
struct State {
    runs: HashMap<Uuid, Arc<ActiveRun>>,
    threads: HashMap<ThreadKey, Arc<ActiveThread>>,
    /// Counts the requests for active threads.
    uses: u64,
    /// The latest sessions of runs without a thread.
    discarded: VecDeque<String>,
}

/// The owner and the id of a thread.
type ThreadKey = (Arc<str>, Uuid);

/// A run as a path names it: its owner, its thread if the path names one, and its id.
pub(super) struct RunAt {
    pub(super) owner: Arc<str>,
    pub(super) thread: Option<Uuid>,
    pub(super) id: Uuid,
}

impl Hub {
    pub(super) fn new(
        agents: AgentConnections,
        store: RunStore,
        webhooks: WebhookSender,
        limits: Arc<Limits>,
    ) -> Self {
        let cwd = std::env::current_dir().ok();
        let cwd = cwd.and_then(|path| path.into_os_string().into_string().ok());
        Self {
            agents,
            store,
            webhooks,
            limits,
            cwd: cwd.unwrap_or_else(|| "/".to_owned()),
            state: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Adds a run.
    pub(super) fn add_run(&self, live: &Arc<ActiveRun>) -> Result<(), ApiError> {
        let mut state = self.state();
        if state.runs.len() >= self.limits.agent_connect_runs {
            return Err(ApiError::unavailable("too many runs are in progress"));
        }
        state.runs.insert(live.id, live.clone());
        Ok(())
    }

    /// Removes a run that has ended.
    pub(super) fn remove_run(&self, live: &ActiveRun) {
        let mut state = self.state();
        state.runs.remove(&live.id);
        if let Some(thread) = live.thread
            && let Some(active) = state.threads.get(&(live.owner.clone(), thread))
        {
            active.remove_run(live.id);
        }
        drop(state);
        self.ended.notify_waiters();
    }

    /// A run that has not ended.
    pub(super) fn active_run(&self, id: Uuid) -> Option<Arc<ActiveRun>> {
        self.state().runs.get(&id).cloned()
    }

    /// Records the session of an ended run without a thread.
    pub(super) fn discard(&self, session: &str) {
        let mut state = self.state();
        if state.discarded.len() >= self.limits.agent_connect_sessions {
            state.discarded.pop_front();
        }
        state.discarded.push_back(session.to_owned());
    }

    /// Whether a session belongs, or belonged, to a run without a thread.
    pub(super) fn is_run_session(&self, session: &str) -> bool {
        let state = self.state();
        let mut sessions = state.runs.values().filter_map(|live| live.session());
        sessions.any(|(_, used)| used == session)
            || state.discarded.iter().any(|one| one == session)
    }

    /// Waits until none of the runs that have not ended is one of these.
    pub(super) async fn wait_ended(&self, wanted: impl Fn(&ActiveRun) -> bool) {
        loop {
            let ended = self.ended.notified();
            if !self.state().runs.values().any(|live| wanted(live)) {
                return;
            }
            ended.await;
        }
    }

    /// Activates a thread. If there are too many active threads, the least recently used one is
    /// evicted; threads whose session can be reopened first.
    pub(super) fn active_thread(
        &self,
        owner: &Arc<str>,
        thread: Uuid,
    ) -> Result<Arc<ActiveThread>, ApiError> {
        let key = (owner.clone(), thread);
        let mut state = self.state();
        state.uses += 1;
        let uses = state.uses;
        if let Some(active) = state.threads.get(&key) {
            active.touch(uses);
            return Ok(active.clone());
        }
        if state.threads.len() >= self.limits.agent_connect_sessions {
            let cost = |(key, active): (&ThreadKey, &Arc<ActiveThread>)| {
                let cost = (Arc::strong_count(active) == 1).then(|| active.eviction_cost());
                Some((cost??, key.clone()))
            };
            let least = state.threads.iter().filter_map(cost).min();
            let (_, least) = least
                .ok_or_else(|| ApiError::unavailable("too many threads are in use at present"))?;
            if let Some(active) = state.threads.remove(&least) {
                active.evict();
            }
        }
        let active = Arc::new(ActiveThread::default());
        active.touch(uses);
        state.threads.insert(key, active.clone());
        Ok(active)
    }

    /// Deactivates a thread.
    pub(super) fn remove_active(&self, owner: &Arc<str>, thread: Uuid) {
        self.state().threads.remove(&(owner.clone(), thread));
    }

    /// Reads a run; only its owner can see it. If the run has not ended, its current state is
    /// written to the store first, so that no client sees an older one.
    pub(super) async fn run(&self, at: &RunAt) -> Result<RunRecord, ApiError> {
        let id = at.id;
        let current = self.active_run(id).map(|live| live.snapshot(now()));
        let read = self.store.run(&at.owner, move |rows| {
            if let Some((run, version)) = &current {
                rows.update_run(run, *version)?;
            }
            rows.run(id)
        });
        let run = read.await?;
        run.filter(|run| at.thread.is_none() || run.thread == at.thread)
            .ok_or_else(|| ApiError::not_found("there is no such run"))
    }

    /// Waits until a run is not pending; `None` when that takes longer than `max_wait`.
    pub(super) async fn wait_settled(
        &self,
        at: &RunAt,
        max_wait: Option<Duration>,
    ) -> Result<Option<RunRecord>, ApiError> {
        let until = max_wait.map(|max_wait| Instant::now() + max_wait);
        let mut reads = 0;
        loop {
            let stored = self.active_run(at.id).map(|live| live.stored.subscribe());
            let run = self.run(at).await?;
            if run.status != RunStatus::Pending {
                return Ok(Some(run));
            }
            match (stored, until) {
                (Some(changes), None) => wait_change(changes).await,
                (Some(changes), Some(until)) => {
                    if timeout_at(until, wait_change(changes)).await.is_err() {
                        return Ok(None);
                    }
                }
                // The run ended between the two reads, or its end could not be stored.
                (None, _) if reads > 2 => {
                    return Err(ApiError::unavailable("the outcome of the run was lost"));
                }
                (None, _) => reads += 1,
            }
        }
    }

    /// Writes the current state of a run to the store.
    pub(super) async fn store_run(&self, live: &ActiveRun) -> Result<RunRecord, ApiError> {
        let (run, version) = live.snapshot(now());
        let stored = run.clone();
        let update = move |rows: &OwnedRows<'_>| rows.update_run(&stored, version);
        self.store.run(&live.owner, update).await?;
        live.stored.send_replace(());
        Ok(run)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The current time.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }))
}

/// Waits for a change; the sender may have been dropped.
async fn wait_change(mut changes: watch::Receiver<()>) {
    let _ = changes.changed().await;
}

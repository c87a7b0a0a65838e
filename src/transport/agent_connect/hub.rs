//! The state shared by all requests of a listener: agents, store, active runs and threads.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::active_run::ActiveRun;
use super::active_thread::ActiveThread;
use super::agents::{Agents, Asker};
use super::line::Line;
use super::store::{self, Store};
use super::webhook::Postman;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::moment::Moment;
use crate::agent_connect::record::{Run, Status};
use crate::agent_connect::search;
use crate::agent_connect::uuid::Uuid;
use crate::jsonrpc::Limits;

/// The state shared by all requests.
pub(super) struct Hub {
    pub(super) agents: Agents,
    pub(super) store: Store,
    pub(super) postman: Postman,
    pub(super) limits: Arc<Limits>,
    /// The working directory of sessions that name none.
    pub(super) cwd: String,
    state: Mutex<State>,
    /// Notified when a run has ended.
    pub(super) idle: Notify,
}

#[derive(Default)]
struct State {
    lives: HashMap<Uuid, Arc<ActiveRun>>,
    active: HashMap<Place, Arc<ActiveThread>>,
    /// Counts the requests for active threads.
    turn: u64,
    /// The latest sessions of runs without a thread.
    discarded: VecDeque<String>,
}

/// The owner and the id of a thread.
type Place = (Arc<str>, Uuid);

/// A run as a path names it: its owner, its thread if the path names one, and its id.
pub(super) struct RunAt {
    pub(super) owner: Arc<str>,
    pub(super) thread: Option<Uuid>,
    pub(super) id: Uuid,
}

impl Hub {
    pub(super) fn new(agents: Agents, store: Store, postman: Postman, limits: Arc<Limits>) -> Self {
        let cwd = std::env::current_dir().ok();
        let cwd = cwd.and_then(|path| path.into_os_string().into_string().ok());
        Self {
            agents,
            store,
            postman,
            limits,
            cwd: cwd.unwrap_or_else(|| "/".to_owned()),
            state: Mutex::default(),
            idle: Notify::new(),
        }
    }

    /// Adds a run.
    pub(super) fn begin(&self, live: &Arc<ActiveRun>) -> Result<(), Fault> {
        let mut state = self.state();
        if state.lives.len() >= self.limits.agent_connect_runs {
            return Err(Fault::later("too many runs are in progress"));
        }
        state.lives.insert(live.id, live.clone());
        Ok(())
    }

    /// Removes a run that has ended.
    pub(super) fn end(&self, live: &ActiveRun) {
        let mut state = self.state();
        state.lives.remove(&live.id);
        if let Some(thread) = live.thread
            && let Some(active) = state.active.get(&(live.owner.clone(), thread))
        {
            active.leave(live.id);
        }
        drop(state);
        self.idle.notify_waiters();
    }

    /// A run that has not ended.
    pub(super) fn live(&self, id: Uuid) -> Option<Arc<ActiveRun>> {
        self.state().lives.get(&id).cloned()
    }

    /// Whether all runs have ended.
    pub(super) fn is_idle(&self) -> bool {
        self.state().lives.is_empty()
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
    pub(super) fn is_of_run(&self, session: &str) -> bool {
        let state = self.state();
        let mut lives = state.lives.values().filter_map(|live| live.session());
        lives.any(|(_, used)| used == session) || state.discarded.iter().any(|one| one == session)
    }

    /// Waits until no run uses this agent.
    pub(super) async fn quiet(&self, line: &Arc<Line>) {
        loop {
            let idle = self.idle.notified();
            let busy = |live: &Arc<ActiveRun>| Arc::ptr_eq(&live.line, line);
            if !self.state().lives.values().any(busy) {
                return;
            }
            idle.await;
        }
    }

    /// Activates a thread. If there are too many active threads, the least recently used one is
    /// evicted; threads whose session can be reopened first.
    pub(super) fn active_thread(
        &self,
        owner: &Arc<str>,
        thread: Uuid,
    ) -> Result<Arc<ActiveThread>, Fault> {
        let place = (owner.clone(), thread);
        let mut state = self.state();
        state.turn += 1;
        let turn = state.turn;
        if let Some(active) = state.active.get(&place) {
            active.asked_for(turn);
            return Ok(active.clone());
        }
        if state.active.len() >= self.limits.agent_connect_sessions {
            let worth = |(place, active): (&Place, &Arc<ActiveThread>)| {
                let worth = (Arc::strong_count(active) == 1).then(|| active.worth());
                Some((worth??, place.clone()))
            };
            let least = state.active.iter().filter_map(worth).min();
            let (_, least) =
                least.ok_or_else(|| Fault::later("too many threads are in use at present"))?;
            if let Some(active) = state.active.remove(&least) {
                active.give_up();
            }
        }
        let active = Arc::new(ActiveThread::default());
        active.asked_for(turn);
        state.active.insert(place, active.clone());
        Ok(active)
    }

    /// Deactivates a thread.
    pub(super) fn forget_active(&self, owner: &Arc<str>, thread: Uuid) {
        self.state().active.remove(&(owner.clone(), thread));
    }

    /// Reads a run; only its owner can see it. If the run has not ended, its current state is
    /// written to the store first, so that no client sees an older one.
    pub(super) async fn run(&self, at: &RunAt) -> Result<Run, Fault> {
        let (owner, id) = (at.owner.clone(), at.id);
        let news = self.live(id).map(|live| live.snapshot(now()));
        let read = move |db: &rusqlite::Connection| {
            if let Some((run, version)) = &news {
                store::update_run(db, run, *version)?;
            }
            store::read_run(db, &owner, id)
        };
        let run = self.store.ask(read).await?;
        run.filter(|run| at.thread.is_none() || run.thread == at.thread)
            .ok_or_else(|| Fault::unknown("there is no such run"))
    }

    /// Waits until a run is not pending; `None` when that takes longer than `max_wait`.
    pub(super) async fn settled(
        &self,
        at: &RunAt,
        patience: Option<Duration>,
    ) -> Result<Option<Run>, Fault> {
        let until = patience.map(|patience| Instant::now() + patience);
        let mut looks = 0;
        loop {
            let kept = self.live(at.id).map(|live| live.kept.subscribe());
            let run = self.run(at).await?;
            if run.status != Status::Pending {
                return Ok(Some(run));
            }
            match (kept, until) {
                (Some(kept), None) => changed(kept).await,
                (Some(kept), Some(until)) => {
                    if timeout_at(until, changed(kept)).await.is_err() {
                        return Ok(None);
                    }
                }
                // The run ended between the two reads, or its end could not be stored.
                (None, _) if looks > 2 => return Err(Fault::later("the outcome of the run was lost")),
                (None, _) => looks += 1,
            }
        }
    }

    /// Writes the current state of a run to the store.
    pub(super) async fn keep(&self, live: &ActiveRun) -> Result<Run, Fault> {
        let (run, version) = live.snapshot(now());
        let kept = run.clone();
        let update = move |db: &rusqlite::Connection| store::update_run(db, &kept, version);
        self.store.ask(update).await?;
        live.kept.send_replace(());
        Ok(run)
    }

    pub(super) async fn find_runs(
        &self,
        owner: &Arc<str>,
        thread: Option<Uuid>,
        wanted: search::Runs,
    ) -> Result<Vec<Run>, Fault> {
        let owner = owner.clone();
        self.store
            .ask(move |db| store::find_runs(db, &owner, thread, &wanted))
            .await
    }

    /// The agents that match a search, as shown.
    pub(super) async fn find_agents(
        &self,
        asker: &Asker,
        wanted: &search::Agents,
    ) -> Result<Vec<Value>, Fault> {
        let (name, version) = (wanted.name.as_deref(), wanted.version.as_deref());
        let known = self.agents.introduced(asker).await?;
        let found = known.iter().filter(|agent| agent.matches(name, version));
        Ok(wanted.page.of_all(found.map(|agent| agent.entry())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The current time.
pub(super) fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Moment(since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }))
}

/// A new random id.
pub(super) fn uuid() -> Uuid {
    let mut bytes = [0; 16];
    // The system call behind it does not fail once the system has started.
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random numbers");
    Uuid::random(bytes)
}

/// Waits for a change; the sender may have been dropped.
async fn changed(mut news: watch::Receiver<()>) {
    let _ = news.changed().await;
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

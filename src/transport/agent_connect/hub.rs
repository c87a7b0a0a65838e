//! What all requests at a listener share: the line to the agent, the store, the runs and threads
//! that are in use.
//!
//! Not here: how a run is started (see `start`), what it does (`perform`), and HTTP (`routes`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::line::{Dial, Line};
use super::live::Live;
use super::seat::Seat;
use super::store::{self, Store};
use super::webhook::Postman;
use crate::agent_connect::agent::Agent;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::fields::Fields;
use crate::agent_connect::moment::Moment;
use crate::agent_connect::record::{Run, Status, Thread, Turn};
use crate::agent_connect::search;
use crate::agent_connect::session::Setup;
use crate::agent_connect::uuid::Uuid;
use crate::wire::Limits;

/// What all requests share.
pub(super) struct Hub {
    pub(super) line: Arc<Line>,
    pub(super) store: Store,
    pub(super) postman: Postman,
    pub(super) limits: Arc<Limits>,
    /// The folder of sessions that name none.
    pub(super) cwd: String,
    state: Mutex<State>,
    /// Told when a run is over.
    pub(super) idle: Notify,
}

#[derive(Default)]
struct State {
    lives: HashMap<Uuid, Arc<Live>>,
    seats: HashMap<Uuid, Arc<Seat>>,
}

impl Hub {
    pub(super) fn new(
        line: Arc<Line>,
        store: Store,
        postman: Postman,
        limits: Arc<Limits>,
    ) -> Self {
        let cwd = std::env::current_dir().ok();
        let cwd = cwd.and_then(|path| path.into_os_string().into_string().ok());
        Self {
            line,
            store,
            postman,
            limits,
            cwd: cwd.unwrap_or_else(|| "/".to_owned()),
            state: Mutex::default(),
            idle: Notify::new(),
        }
    }

    /// The agents that are served, with their links. One, so far.
    pub(super) async fn agents(&self) -> Result<Vec<(Dial, Arc<Agent>)>, Fault> {
        Ok(vec![self.line.agent().await?])
    }

    /// The agent of that id; the only one when none is named.
    pub(super) async fn agent(&self, id: Option<Uuid>) -> Result<(Dial, Arc<Agent>), Fault> {
        let agents = self.agents().await?;
        let mut agents = agents.into_iter();
        let found = agents.find(|(_, agent)| id.is_none_or(|id| id == agent.id));
        found.ok_or_else(|| Fault::unknown("there is no such agent"))
    }

    /// Takes in a run that is not over yet.
    pub(super) fn begin(&self, live: &Arc<Live>) -> Result<(), Fault> {
        let mut state = self.state();
        if state.lives.len() >= self.limits.agent_connect_runs {
            return Err(Fault::later("too many runs are going on at present"));
        }
        state.lives.insert(live.id, live.clone());
        Ok(())
    }

    /// The run is over.
    pub(super) fn end(&self, live: &Live) {
        let mut state = self.state();
        state.lives.remove(&live.id);
        if let Some(seat) = live.thread.and_then(|id| state.seats.get(&id)) {
            seat.leave(live.id);
        }
        drop(state);
        self.idle.notify_waiters();
    }

    /// A run that is not over.
    pub(super) fn live(&self, id: Uuid) -> Option<Arc<Live>> {
        self.state().lives.get(&id).cloned()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state().lives.is_empty()
    }

    /// The seat of a thread.
    pub(super) fn seat(&self, thread: Uuid) -> Result<Arc<Seat>, Fault> {
        let mut state = self.state();
        if let Some(seat) = state.seats.get(&thread) {
            return Ok(seat.clone());
        }
        if state.seats.len() >= self.limits.agent_connect_sessions {
            // One that is of no use: nobody runs on it, and no session is open in it.
            let idle = |(_, seat): &(&Uuid, &Arc<Seat>)| {
                !seat.is_busy()
                    && Arc::strong_count(seat) == 1
                    && seat.session.try_lock().is_ok_and(|session| {
                        session
                            .open
                            .as_ref()
                            .is_none_or(|(dial, _)| !self.line.is_open(*dial))
                    })
            };
            let idle = state.seats.iter().find(idle).map(|(id, _)| *id);
            let idle =
                idle.ok_or_else(|| Fault::later("too many threads are in use at present"))?;
            state.seats.remove(&idle);
        }
        let seat = Arc::new(Seat::default());
        state.seats.insert(thread, seat.clone());
        Ok(seat)
    }

    /// Nobody needs the seat of a thread any more.
    pub(super) fn forget_seat(&self, thread: Uuid) {
        self.state().seats.remove(&thread);
    }

    /// A run, on this thread if one is named.
    pub(super) async fn run(&self, thread: Option<Uuid>, id: Uuid) -> Result<Run, Fault> {
        let run = self.store.ask(move |db| store::read_run(db, id)).await?;
        run.filter(|run| thread.is_none() || run.thread == thread)
            .ok_or_else(|| Fault::unknown("there is no such run"))
    }

    pub(super) async fn thread(&self, id: Uuid) -> Result<Thread, Fault> {
        let thread = self.store.ask(move |db| store::read_thread(db, id)).await?;
        thread.ok_or_else(|| Fault::unknown("there is no such thread"))
    }

    /// The thread is there for this principal. Those of others are not there for it.
    pub(super) async fn owns_thread(&self, owner: &Arc<str>, id: Uuid) -> Result<(), Fault> {
        let owner = owner.clone();
        let owns = move |db: &rusqlite::Connection| store::owns_thread(db, &owner, id);
        match self.store.ask(owns).await? {
            true => Ok(()),
            false => Err(Fault::unknown("there is no such thread")),
        }
    }

    /// So is the run.
    pub(super) async fn owns_run(&self, owner: &Arc<str>, id: Uuid) -> Result<(), Fault> {
        let owner = owner.clone();
        let owns = move |db: &rusqlite::Connection| store::owns_run(db, &owner, id);
        match self.store.ask(owns).await? {
            true => Ok(()),
            false => Err(Fault::unknown("there is no such run")),
        }
    }

    pub(super) async fn turns(&self, id: Uuid) -> Result<Vec<Turn>, Fault> {
        self.thread(id).await?;
        self.store.ask(move |db| store::read_turns(db, id)).await
    }

    /// A thread as it is shown.
    pub(super) async fn show_thread(&self, thread: Thread) -> Result<Value, Fault> {
        let read = move |db: &rusqlite::Connection| {
            let turns = store::read_turns(db, thread.id)?;
            Ok(thread.shown(store::thread_status(db, thread.id)?, &turns))
        };
        self.store.ask(read).await
    }

    /// Waits until a run is not pending; `None` when that takes longer than `patience`.
    pub(super) async fn settled(
        &self,
        thread: Option<Uuid>,
        id: Uuid,
        patience: Option<Duration>,
    ) -> Result<Option<Run>, Fault> {
        let until = patience.map(|patience| Instant::now() + patience);
        let mut looks = 0;
        loop {
            let kept = self.live(id).map(|live| live.kept.subscribe());
            let run = self.run(thread, id).await?;
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
                // It has come to its end between the two looks, or its end could not be kept.
                (None, _) if looks > 2 => return Err(Fault::later("the end of the run is lost")),
                (None, _) => looks += 1,
            }
        }
    }

    /// Has the store know how a run stands.
    pub(super) async fn keep(&self, live: &Live) -> Result<Run, Fault> {
        let (run, version) = live.snapshot(now());
        let kept = run.clone();
        let update = move |db: &rusqlite::Connection| store::update_run(db, &kept, version);
        self.store.ask(update).await?;
        live.kept.send_replace(());
        Ok(run)
    }

    /// Makes a thread: its session at once when the agent gives one, else with its first run.
    pub(super) async fn make_thread(&self, owner: &Arc<str>, body: &Value) -> Result<Value, Fault> {
        let fields = Fields::of(body)?;
        let metadata = fields.object("metadata")?.cloned().unwrap_or_default();
        let given = fields.uuid("thread_id")?;
        let may_exist = fields.word("if_exists", &["raise", "do_nothing"])? == Some(1);
        let setup = Setup::of_metadata(&metadata)?;
        let id = given.unwrap_or_else(uuid);
        let thread = new_thread(id, metadata, self.kept_setup(&setup));
        if !self.add_thread(owner, &thread).await? {
            let own = self.owns_thread(owner, id).await.is_ok();
            return match self.thread(id).await {
                Ok(known) if may_exist && own => self.show_thread(known).await,
                Ok(_) => Err(Fault::conflict("a thread of this id exists")),
                Err(_) => Err(Fault::later("too many threads are kept already")),
            };
        }
        let seat = self.seat(id)?;
        let mut session = seat.session.lock().await;
        let mut opened = thread.clone();
        if let Ok((dial, agent)) = self.line.agent().await
            // What keeps the agent from it is said to the first run.
            && self.open_session(&mut session, &mut opened, dial, &agent).await.is_ok()
        {
            return self.show_thread(opened).await;
        }
        self.show_thread(thread).await
    }

    /// Keeps a new thread; `false` when there is one, or there are too many.
    pub(super) async fn add_thread(
        &self,
        owner: &Arc<str>,
        thread: &Thread,
    ) -> Result<bool, Fault> {
        let (thread, owner) = (thread.clone(), owner.clone());
        let most = self.limits.agent_connect_threads;
        self.store
            .ask(move |db| store::insert_thread(db, &thread, &owner, most))
            .await
    }

    /// What of a setup is kept with the thread, so that its session can be taken up again.
    pub(super) fn kept_setup(&self, setup: &Setup) -> Value {
        let cwd = setup.cwd.as_deref().unwrap_or(&self.cwd);
        json!({ "cwd": cwd, "mcpServers": setup.mcp_servers })
    }

    pub(super) async fn patch_thread(&self, id: Uuid, body: &Value) -> Result<Value, Fault> {
        let fields = Fields::of(body)?;
        if fields.any("values").is_some() || fields.any("messages").is_some() {
            return Err(Fault::invalid(
                "only \"metadata\" can be changed: what was said to an agent cannot be taken back",
            ));
        }
        fields.object("checkpoint")?;
        let metadata = fields.object("metadata")?.cloned().unwrap_or_default();
        self.thread(id).await?;
        let patch = move |db: &rusqlite::Connection| {
            let Some(mut thread) = store::read_thread(db, id)? else {
                return Ok(None);
            };
            thread.metadata.extend(metadata);
            thread.updated = now();
            store::update_thread(db, &thread)?;
            Ok(Some(thread))
        };
        match self.store.ask(patch).await? {
            Some(thread) => self.show_thread(thread).await,
            None => Err(Fault::unknown("there is no such thread")),
        }
    }

    pub(super) async fn delete_thread(&self, id: Uuid) -> Result<(), Fault> {
        let thread = self.thread(id).await?;
        let seat = self.seat(id)?;
        if seat.is_busy() {
            return Err(Fault::conflict("Thread is busy"));
        }
        let open = seat.session.lock().await.open.take();
        self.forget_seat(id);
        if let Some(session) = thread.session
            && let Ok((dial, agent)) = self.line.agent().await
        {
            let params = json!({ "sessionId": session });
            if open.is_some_and(|(on, _)| on == dial) && agent.offers("close") {
                let _closed = self.line.call(dial, "session/close", &params).await;
            }
            if agent.offers("delete") {
                let _deleted = self.line.call(dial, "session/delete", &params).await;
            }
        }
        self.store.ask(move |db| store::delete_thread(db, id)).await
    }

    /// A second thread that begins as this one is, where the agent can do that.
    pub(super) async fn copy_thread(&self, owner: &Arc<str>, id: Uuid) -> Result<Value, Fault> {
        let mut thread = self.thread(id).await?;
        let (dial, agent) = self.line.agent().await?;
        if !agent.offers("fork") {
            return Err(Fault::invalid(
                "the agent cannot copy a session (no session/fork)",
            ));
        }
        let seat = self.seat(id)?;
        if seat.is_busy() {
            return Err(Fault::conflict("Thread is busy"));
        }
        let copy = uuid();
        let second = self.seat(copy)?;
        let mut open = second.session.lock().await;
        {
            let mut session = seat.session.lock().await;
            if thread.session.is_some() {
                let revived = self
                    .open_session(&mut session, &mut thread, dial, &agent)
                    .await;
                revived.map_err(|(_, what)| Fault::invalid(what))?;
            }
            if let Some(session) = &thread.session {
                let mut params = thread.setup.clone();
                params["sessionId"] = json!(session);
                let forked = self.line.call(dial, "session/fork", &params).await;
                let forked = forked.map_err(|error| Fault::invalid(agent.complaint(&error).1))?;
                let forked = forked.get("sessionId").and_then(Value::as_str);
                let forked = forked.ok_or_else(|| Fault::invalid("the agent named no session"))?;
                open.open = Some((dial, forked.to_owned()));
                thread.session = Some(forked.to_owned());
            }
        }
        (thread.id, thread.created, thread.updated) = (copy, now(), now());
        if !self.add_thread(owner, &thread).await? {
            return Err(Fault::later("too many threads are kept already"));
        }
        self.store
            .ask(move |db| store::copy_turns(db, id, copy))
            .await?;
        self.show_thread(thread).await
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

    pub(super) async fn find_threads(
        &self,
        owner: &Arc<str>,
        wanted: search::Threads,
    ) -> Result<Vec<Value>, Fault> {
        let owner = owner.clone();
        self.store
            .ask(move |db| store::find_threads(db, &owner, &wanted))
            .await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that nothing has been said in.
pub(super) fn new_thread(id: Uuid, metadata: Map<String, Value>, setup: Value) -> Thread {
    let now = now();
    Thread {
        id,
        agent: None,
        session: None,
        created: now,
        updated: now,
        metadata,
        setup,
    }
}

/// What time it is.
pub(super) fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Moment(since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }))
}

/// A name that nobody has had.
pub(super) fn uuid() -> Uuid {
    let mut bytes = [0; 16];
    // The system call behind it does not fail once the system has started.
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random numbers");
    Uuid::random(bytes)
}

/// Waits for news; whoever would tell them may be gone.
async fn changed(mut news: watch::Receiver<()>) {
    let _ = news.changed().await;
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

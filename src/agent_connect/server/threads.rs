//! Operations on threads: create, change, copy, search, delete; each for its owner alone.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::active_thread::OpenSession;
use super::agent_connection::AgentConnection;
use super::agents::Requester;
use super::hub::{Hub, now};
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::history_filter::HistoryFilter;
use crate::agent_connect::api::ids;
use crate::agent_connect::api::record::{RunFailure, ThreadRecord, TurnRecord};
use crate::agent_connect::api::search::{Search, ThreadFilter};
use crate::agent_connect::api::session::SessionConfig;
use crate::agent_connect::api::thread_request::{IfExists, ThreadCreate, ThreadPatch};
use crate::auth::AuthMethod;

/// Pages of an agent's `session/list` that are read.
const MAX_PAGES: usize = 10;

const NO_THREAD: ApiError = ApiError::not_found("there is no such thread");

impl Hub {
    /// Reads a thread; only its owner can see it.
    pub(super) async fn thread(
        &self,
        owner: &Arc<str>,
        id: Uuid,
    ) -> Result<ThreadRecord, ApiError> {
        let read = self.store.run(owner, move |rows| rows.thread(id)).await?;
        read.ok_or(NO_THREAD)
    }

    /// The turns of a thread.
    pub(super) async fn turns(
        &self,
        owner: &Arc<str>,
        id: Uuid,
    ) -> Result<Vec<TurnRecord>, ApiError> {
        let read = self.store.run(owner, move |rows| {
            let thread = rows.thread(id)?;
            thread.map(|_| rows.turns(id)).transpose()
        });
        read.await?.ok_or(NO_THREAD)
    }

    /// A thread as shown.
    pub(super) async fn show_thread(
        &self,
        owner: &Arc<str>,
        thread: ThreadRecord,
    ) -> Result<Value, ApiError> {
        let store = &self.store;
        store
            .run(owner, move |rows| rows.shown_thread(&thread))
            .await
    }

    /// Creates a thread. Its session is created at once if the client has only one agent and that
    /// succeeds, otherwise with the first run.
    pub(super) async fn create_thread(
        &self,
        requester: &Requester,
        wanted: ThreadCreate,
    ) -> Result<Value, ApiError> {
        let owner = &requester.owner;
        let metadata = wanted.metadata;
        let setup = SessionConfig::from_metadata(&metadata)?;
        let id = wanted.id.unwrap_or_else(Uuid::new_v4);
        let mut thread = new_thread(id, metadata, self.stored_setup(&setup));
        if !self.add_thread(owner, &thread).await? {
            return match self.thread(owner, id).await {
                Ok(known) if wanted.if_exists == IfExists::DoNothing => {
                    self.show_thread(owner, known).await
                }
                Ok(_) => Err(ApiError::conflict("a thread of this id exists")),
                Err(_) => Err(too_many()),
            };
        }
        if let Some(line) = self.agents.only_for(requester) {
            let active = self.active_thread(owner, id)?;
            let mut session = active.session.lock().await;
            // An error of the agent is reported to the first run.
            let opened = self.open_session(&mut session, owner, &mut thread, &line);
            let _ = opened.await;
        }
        self.show_thread(owner, thread).await
    }

    /// Stores a new thread; `false` if its id exists or there are too many.
    pub(super) async fn add_thread(
        &self,
        owner: &Arc<str>,
        thread: &ThreadRecord,
    ) -> Result<bool, ApiError> {
        let (thread, max) = (thread.clone(), self.limits.agent_connect_threads);
        let store = &self.store;
        store
            .run(owner, move |rows| rows.insert_thread(&thread, max))
            .await
    }

    /// The part of a setup that is stored with the thread, to reopen its session.
    pub(super) fn stored_setup(&self, setup: &SessionConfig) -> Value {
        let cwd = setup.cwd.as_deref().unwrap_or(&self.cwd);
        json!({ "cwd": cwd, "mcpServers": setup.mcp_servers })
    }

    pub(super) async fn patch_thread(
        &self,
        owner: &Arc<str>,
        id: Uuid,
        wanted: ThreadPatch,
    ) -> Result<Value, ApiError> {
        if wanted.values.is_some() || wanted.messages.is_some() {
            return Err(ApiError::invalid(
                "only \"metadata\" can be changed: messages sent to an agent cannot be withdrawn",
            ));
        }
        let patch = self.store.run(owner, move |rows| {
            let thread = rows.update_thread(id, |thread| {
                thread.metadata.extend(wanted.metadata);
                thread.updated = now();
            })?;
            thread.map(|thread| rows.shown_thread(&thread)).transpose()
        });
        patch.await?.ok_or(NO_THREAD)
    }

    pub(super) async fn delete_thread(&self, owner: &Arc<str>, id: Uuid) -> Result<(), ApiError> {
        let thread = self.thread(owner, id).await?;
        let active = self.active_thread(owner, id)?;
        if active.is_busy() {
            return Err(ApiError::conflict("Thread is busy"));
        }
        let open = active.session.lock().await.take();
        self.remove_active(owner, id);
        if let Some(open) = open {
            open.close().await;
        }
        if let (Some(session), Some(agent)) = (thread.session, thread.agent)
            && let Some(line) = self.agents.by_id(agent).await
            && let Ok((dial, agent)) = line.connect().await
            && agent.supports("delete")
        {
            let params = json!({ "sessionId": session });
            let _deleted = line.call(dial, "session/delete", &params).await;
        }
        let delete = self.store.run(owner, move |rows| rows.delete_thread(id));
        delete.await
    }

    /// Creates a copy of a thread, if the agent can fork sessions.
    pub(super) async fn copy_thread(
        &self,
        requester: &Requester,
        id: Uuid,
    ) -> Result<Value, ApiError> {
        let owner = &requester.owner;
        let mut thread = self.thread(owner, id).await?;
        let line = self.agent_of(requester, &thread).await?;
        let (dial, agent) = line.connect().await?;
        if !agent.supports("fork") {
            return Err(ApiError::invalid(
                "the agent cannot copy a session (no session/fork)",
            ));
        }
        let active = self.active_thread(owner, id)?;
        if active.is_busy() {
            return Err(ApiError::conflict("Thread is busy"));
        }
        let copy = Uuid::new_v4();
        let second = self.active_thread(owner, copy)?;
        let mut open = second.session.lock().await;
        {
            let mut session = active.session.lock().await;
            if thread.session.is_some() {
                let reopened = self.open_session(&mut session, owner, &mut thread, &line);
                reopened
                    .await
                    .map_err(|failure| ApiError::invalid(failure.message))?;
            }
            if let Some(session) = &thread.session {
                let mut params = thread.setup.clone();
                params["sessionId"] = json!(session);
                let forked = line.call(dial, "session/fork", &params).await;
                let forked =
                    forked.map_err(|error| ApiError::invalid(agent.run_error(&error).message))?;
                let id =
                    session_id(&forked).map_err(|failure| ApiError::invalid(failure.message))?;
                thread.session = Some(id.clone());
                *open = Some(OpenSession {
                    conn: line.clone(),
                    link: dial,
                    agent,
                    id,
                });
            }
        }
        (thread.id, thread.created, thread.updated) = (copy, now(), now());
        if !self.add_thread(owner, &thread).await? {
            return Err(too_many());
        }
        let show_copy = self.store.run(owner, move |rows| {
            rows.copy_turns(id, copy)?;
            rows.shown_thread(&thread)
        });
        show_copy.await
    }

    /// The threads that match a search, as shown. For clients that may see all sessions these
    /// include the sessions that the agents list and that were created elsewhere.
    pub(super) async fn find_threads(
        &self,
        requester: &Requester,
        search: Search<ThreadFilter>,
    ) -> Result<Vec<Value>, ApiError> {
        let principal = &requester.principal;
        if principal.grant.admin || principal.auth_method == AuthMethod::Anonymous {
            for line in self.agents.usable_by(requester) {
                // Sessions that cannot be listed now are added by a later search.
                let _ = timeout(
                    self.limits.handshake,
                    self.import_sessions(requester, &line),
                )
                .await;
            }
        }
        let owner = &requester.owner;
        let store = &self.store;
        store
            .run(owner, move |rows| rows.find_threads(&search))
            .await
    }

    /// The agent for a thread: the one that has its session, or the default one.
    pub(super) async fn agent_of(
        &self,
        requester: &Requester,
        thread: &ThreadRecord,
    ) -> Result<Arc<AgentConnection>, ApiError> {
        let unnamed = "\"agent_id\" is missing, and there is more than one agent";
        match thread.agent {
            Some(id) => self.agents.find(requester, &id.to_string()).await,
            None => self
                .agents
                .default_for(requester)
                .ok_or_else(|| ApiError::invalid(unnamed)),
        }
    }

    /// Opens the session of a thread: a new one, or its previous one again. Returns the agent's
    /// result; `null` if it was already open.
    pub(super) async fn open_session(
        &self,
        session: &mut Option<OpenSession>,
        owner: &Arc<str>,
        thread: &mut ThreadRecord,
        line: &Arc<AgentConnection>,
    ) -> Result<Value, RunFailure> {
        let (dial, agent) = line.connect().await?;
        if thread.agent.is_some_and(|of| of != agent.id) {
            // The thread has no messages: it now belongs to the other agent.
            (thread.agent, thread.session) = (None, None);
            if let Some(open) = session.take() {
                open.close().await;
            }
        }
        if session.as_ref().is_some_and(OpenSession::is_open) {
            return Ok(Value::Null);
        }
        let open = |id: &str| OpenSession {
            conn: line.clone(),
            link: dial,
            agent: agent.clone(),
            id: id.to_owned(),
        };
        let mut params = thread.setup.clone();
        if let Some(id) = &thread.session {
            let method = agent.reopen_method().ok_or_else(|| {
                let what = "its session is closed, and the agent cannot reopen sessions (no \
                            session/load)";
                RunFailure::new(-32002, what)
            })?;
            params["sessionId"] = json!(id);
            let of = thread.id;
            let turns = self.store.run(owner, move |rows| rows.turns(of)).await?;
            let messages: Vec<&Value> = turns.iter().flat_map(|turn| &turn.messages).collect();
            line.expect_history(id, HistoryFilter::new(&messages));
            let loaded = line.call(dial, method, &params).await;
            let loaded = loaded.map_err(|error| {
                line.end_turn(id);
                agent.run_error(&error)
            })?;
            *session = Some(open(id));
            return Ok(loaded);
        }
        let opened = line.call(dial, "session/new", &params).await;
        let opened = opened.map_err(|error| agent.run_error(&error))?;
        let id = session_id(&opened)?;
        *session = Some(open(&id));
        (thread.session, thread.agent) = (Some(id.clone()), Some(agent.id));
        let of = thread.id;
        // Its metadata may have changed meanwhile.
        let store_session = self.store.run(owner, move |rows| {
            rows.update_thread(of, |stored| {
                (stored.session, stored.agent) = (Some(id), Some(agent.id));
            })
        });
        store_session.await?;
        Ok(opened)
    }

    /// Stores as threads the sessions that an agent lists and that are not threads yet.
    async fn import_sessions(
        &self,
        requester: &Requester,
        line: &Arc<AgentConnection>,
    ) -> Result<(), ApiError> {
        let (dial, agent) = line.connect().await?;
        if !agent.supports("list") {
            return Ok(());
        }
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let Ok(page) = line.call(dial, "session/list", &params).await else {
                return Ok(());
            };
            for listed in page["sessions"].as_array().into_iter().flatten() {
                let Some(thread) = listed_thread(agent.id, listed) else {
                    continue;
                };
                let session = thread.session.clone().unwrap_or_default();
                if self.is_run_session(&session) {
                    continue;
                }
                let (of, max) = (agent.id, self.limits.agent_connect_threads);
                let insert = self.store.run(&requester.owner, move |rows| {
                    Ok(!rows.has_session(of, &session)? && rows.insert_thread(&thread, max)?)
                });
                insert.await?;
            }
            match page.get("nextCursor").filter(|cursor| cursor.is_string()) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        Ok(())
    }
}

pub(super) fn too_many() -> ApiError {
    ApiError::unavailable("too many threads are stored already")
}

/// The session id in an agent's answer.
fn session_id(answer: &Value) -> Result<String, RunFailure> {
    let id = answer["sessionId"].as_str();
    let none = || RunFailure::new(-32603, "the agent returned no session id");
    id.map(str::to_owned).ok_or_else(none)
}

/// A thread without messages.
pub(super) fn new_thread(id: Uuid, metadata: Map<String, Value>, setup: Value) -> ThreadRecord {
    let now = now();
    ThreadRecord {
        id,
        agent: None,
        session: None,
        created: now,
        updated: now,
        metadata,
        setup,
    }
}

/// The thread for a session that an agent lists.
fn listed_thread(agent: Uuid, listed: &Value) -> Option<ThreadRecord> {
    let session = listed["sessionId"].as_str()?;
    let cwd = listed["cwd"].as_str().unwrap_or("/");
    let mut metadata = Map::from_iter([("cwd".to_owned(), json!(cwd))]);
    if let Some(title) = listed.get("title").filter(|title| title.is_string()) {
        metadata.insert("title".to_owned(), title.clone());
    }
    let setup = json!({ "cwd": cwd, "mcpServers": [] });
    let mut thread = new_thread(ids::session_id(agent, session), metadata, setup);
    (thread.agent, thread.session) = (Some(agent), Some(session.to_owned()));
    Some(thread)
}

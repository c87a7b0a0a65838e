//! The sessions of threads: opened with a thread or its first run, and again when they were closed;
//! copied, deleted, and imported from the agent's list.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::agents::{Requester, only};
use super::connection::{AgentConnection, OpenSession};
use super::hub::Hub;
use super::run::now;
use crate::api::agent::session_id;
use crate::api::error::{ApiError, ApiResult, RpcError, RpcResult};
use crate::api::history_filter::HistoryFilter;
use crate::api::session::SessionConfig;
use crate::api::thread::{IfExists, Thread, ThreadCreate};
use crate::store::Rows;
use auth::AuthMethod;

/// Pages of an agent's `session/list` that are read.
const MAX_PAGES: usize = 10;

impl Hub {
    /// Reads a thread; only its owner can see it.
    pub(super) async fn thread(&self, owner: &Arc<str>, id: Uuid) -> ApiResult<Thread> {
        self.store.run(owner, move |rows| rows.thread(id)).await
    }

    /// Stores a new thread; `false` if its id exists.
    pub(super) async fn add_thread(&self, owner: &Arc<str>, thread: &Thread) -> ApiResult<bool> {
        let thread = thread.clone();
        let insert = move |rows: &Rows<'_>| rows.insert_thread(&thread);
        self.store.run(owner, insert).await
    }

    /// The part of a setup that is stored with the thread, to reopen its session.
    pub(super) fn stored_setup(&self, setup: &SessionConfig) -> Value {
        let cwd = setup.cwd.as_deref().unwrap_or(&self.cwd);
        json!({ "cwd": cwd, "mcpServers": setup.mcp_servers })
    }

    /// Creates a thread. Its session is created at once if the client has only one agent and that
    /// succeeds, otherwise with the first run.
    pub(super) async fn create_thread(
        &self,
        requester: &Requester,
        wanted: ThreadCreate,
    ) -> ApiResult<Thread> {
        let owner = &requester.owner;
        let setup = self.stored_setup(&SessionConfig::from_metadata(&wanted.metadata)?);
        let mut thread = new_thread(wanted.id.unwrap_or_else(Uuid::new_v4), setup);
        thread.metadata = wanted.metadata;
        if !self.add_thread(owner, &thread).await? {
            return match wanted.if_exists {
                IfExists::DoNothing => self.thread(owner, thread.id).await,
                IfExists::Raise => Err(ApiError::conflict("a thread of this id exists")),
            };
        }
        if let Some(conn) = only(&self.agents.usable_by(&requester.principal)) {
            let slot = self.session_slot(owner, thread.id)?;
            let mut session = slot.lock().await;
            // An error of the agent is reported to the first run.
            let opened = self.open_session(&mut session, owner, &mut thread, &conn);
            let _ = opened.await;
        }
        Ok(thread)
    }

    pub(super) async fn delete_thread(&self, requester: &Requester, id: Uuid) -> ApiResult<()> {
        let owner = &requester.owner;
        let thread = self.thread(owner, id).await?;
        self.check_idle(owner, id)?;
        let open = self.session_slot(owner, id)?.lock().await.take();
        self.remove_slot(owner, id);
        if let Some(open) = open {
            open.close().await;
        }
        if let (Some(session), Some(agent)) = (thread.session, thread.agent)
            && let Ok(conn) = self.agents.find(requester, &agent.to_string()).await
            && let Ok(link) = conn.connect().await
            && link.agent.supports("delete")
        {
            let params = json!({ "sessionId": session });
            let _deleted = link.call("session/delete", &params).await;
        }
        let delete = self.store.run(owner, move |rows| rows.delete_thread(id));
        delete.await
    }

    /// Creates a copy of a thread, if the agent can fork sessions.
    pub(super) async fn copy_thread(&self, requester: &Requester, id: Uuid) -> ApiResult<Thread> {
        let owner = &requester.owner;
        let mut thread = self.thread(owner, id).await?;
        let conn = self.agent_of(requester, &thread).await?;
        if !conn.connect().await?.agent.supports("fork") {
            let what = "the agent cannot copy a session (no session/fork)";
            return Err(ApiError::invalid(what));
        }
        self.check_idle(owner, id)?;
        let copy = Uuid::new_v4();
        let [from, to] = [id, copy].map(|id| self.session_slot(owner, id));
        let (from, to) = (from?, to?);
        let mut new = to.lock().await;
        if thread.session.is_some() {
            let failed = |failure: RpcError| ApiError::invalid(failure.message);
            let mut session = from.lock().await;
            let opened = self.open_session(&mut session, owner, &mut thread, &conn);
            let (open, _) = opened.await.map_err(failed)?;
            let mut params = thread.setup.clone();
            params["sessionId"] = json!(open.id);
            let forked = open.on.call("session/fork", &params).await;
            let id = forked
                .and_then(|forked| new_session(&forked))
                .map_err(failed)?;
            thread.session = Some(id.clone());
            *new = Some(OpenSession { on: open.on, id });
        }
        (thread.id, thread.created_at, thread.updated_at) = (copy, now(), now());
        let insert = self.store.run(owner, move |rows| {
            rows.insert_thread(&thread)?;
            rows.copy_turns(id, copy)?;
            rows.thread(copy)
        });
        insert.await
    }

    /// The agent for a thread: the one that has its session, or the default one.
    pub(super) async fn agent_of(
        &self,
        requester: &Requester,
        thread: &Thread,
    ) -> ApiResult<Arc<AgentConnection>> {
        let unnamed = "\"agent_id\" is missing, and there is more than one agent";
        match thread.agent {
            Some(id) => self.agents.find(requester, &id.to_string()).await,
            None => {
                let default = self.agents.default_for(requester);
                default.ok_or_else(|| ApiError::invalid(unnamed))
            }
        }
    }

    /// Opens the session of a thread: a new one, or its previous one again. Returns it with the
    /// agent's result; `null` if it was already open.
    pub(super) async fn open_session(
        &self,
        session: &mut Option<OpenSession>,
        owner: &Arc<str>,
        thread: &mut Thread,
        conn: &Arc<AgentConnection>,
    ) -> RpcResult<(OpenSession, Value)> {
        let on = conn.connect().await?;
        if thread.agent.is_some_and(|of| of != on.agent.id) {
            // The thread has no messages: it now belongs to the other agent.
            (thread.agent, thread.session) = (None, None);
            if let Some(open) = session.take() {
                open.close().await;
            }
        }
        if let Some(open) = session.as_ref().filter(|open| open.is_open()) {
            return Ok((open.clone(), Value::Null));
        }
        let mut params = thread.setup.clone();
        if let Some(id) = thread.session.clone() {
            let method = on.agent.reopen_method().ok_or_else(|| {
                let what = "its session is closed, and the agent cannot reopen sessions (no \
                            session/load)";
                RpcError::new(-32002, what)
            })?;
            params["sessionId"] = json!(id);
            let open = OpenSession { on, id };
            open.expect_history(HistoryFilter::new(&thread.messages));
            let loaded = open.on.call(method, &params).await;
            let loaded = loaded.inspect_err(|_| open.end_turn())?;
            *session = Some(open.clone());
            return Ok((open, loaded));
        }
        let opened = on.call("session/new", &params).await?;
        let id = new_session(&opened)?;
        let agent = on.agent.id;
        let open = OpenSession { on, id: id.clone() };
        *session = Some(open.clone());
        let of = thread.id;
        let belong = move |thread: &mut Thread| {
            (thread.session, thread.agent) = (Some(id), Some(agent));
        };
        belong.clone()(thread);
        // Its metadata may have changed meanwhile; a run without a thread has none that is stored.
        let stored = self
            .store
            .run(owner, move |rows| rows.update_thread(of, belong));
        match stored.await {
            Err(fault) if fault.status != 404 => Err(fault.into()),
            _ => Ok((open, opened)),
        }
    }

    /// Stores as threads the sessions that the agents list and that are not threads yet, for clients
    /// that may see all sessions. Those that cannot be listed now are added by a later search.
    pub(super) async fn import_sessions(&self, requester: &Requester) {
        let principal = &requester.principal;
        if principal.grant.admin || principal.auth_method == AuthMethod::Anonymous {
            for conn in self.agents.usable_by(principal) {
                let import = self.import_from(&requester.owner, &conn);
                let _ = timeout(self.port.limits.handshake, import).await;
            }
        }
    }

    async fn import_from(&self, owner: &Arc<str>, conn: &Arc<AgentConnection>) -> RpcResult<()> {
        let link = conn.connect().await?;
        if !link.agent.supports("list") {
            return Ok(());
        }
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = link.call("session/list", &params).await?;
            for listed in page["sessions"].as_array().into_iter().flatten() {
                let Some(session) = listed["sessionId"].as_str().map(str::to_owned) else {
                    continue;
                };
                if self.is_run_session(&session) {
                    continue;
                }
                let of = link.agent.id;
                let thread = listed_thread(of, &session, listed);
                let insert = self.store.run(owner, move |rows| {
                    Ok(!rows.has_session(of, &session)? && rows.insert_thread(&thread)?)
                });
                match insert.await {
                    // What its agent says of it is too long.
                    Err(fault) if fault.status == 422 => {}
                    inserted => drop(inserted?),
                }
            }
            match page.get("nextCursor").filter(|cursor| cursor.is_string()) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        Ok(())
    }
}

/// A thread without messages.
pub(super) fn new_thread(id: Uuid, setup: Value) -> Thread {
    let now = now();
    Thread {
        id,
        created_at: now.clone(),
        updated_at: now,
        setup,
        ..Thread::default()
    }
}

/// The thread for a session that an agent lists.
fn listed_thread(agent: Uuid, session: &str, listed: &Value) -> Thread {
    let cwd = listed["cwd"].as_str().unwrap_or("/");
    let setup = json!({ "cwd": cwd, "mcpServers": [] });
    let mut thread = new_thread(session_id(agent, session), setup);
    let mut given = Map::from_iter([("cwd".to_owned(), json!(cwd))]);
    if let Some(title) = listed.get("title").filter(|title| title.is_string()) {
        given.insert("title".to_owned(), title.clone());
    }
    thread.metadata = given;
    (thread.agent, thread.session) = (Some(agent), Some(session.to_owned()));
    thread
}

/// The session id in an agent's answer.
fn new_session(answer: &Value) -> RpcResult<String> {
    let id = answer["sessionId"].as_str();
    let none = || RpcError::internal("the agent returned no session id");
    id.map(str::to_owned).ok_or_else(none)
}

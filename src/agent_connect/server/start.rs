//! Starts, resumes, cancels and deletes runs.

use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::active_run::ActiveRun;
use super::agent_connection::AgentConnection;
use super::agents::Requester;
use super::hub::{Hub, RunAt, now};
use super::perform::perform;
use super::threads::{new_thread, too_many};
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::messages;
use crate::agent_connect::api::record::{RunRecord, ThreadRecord};
use crate::agent_connect::api::run_request::{IfNotExists, RunRequest};
use crate::agent_connect::api::session::SessionConfig;

/// Starts the run that `body` requests, on the thread of the path if there is one. In a task of its
/// own: a client that disconnects must not leave a half-started run.
pub(super) async fn start(
    hub: &Arc<Hub>,
    requester: &Arc<Requester>,
    thread: Option<Uuid>,
    body: Value,
) -> Result<(RunRecord, Arc<ActiveRun>), ApiError> {
    let (hub, asker) = (hub.clone(), requester.clone());
    let started = tokio::spawn(async move { start_run(&hub, &asker, thread, body).await });
    let broken = |_| ApiError::unavailable("the run could not be started");
    started.await.map_err(broken)?
}

async fn start_run(
    hub: &Arc<Hub>,
    requester: &Requester,
    path: Option<Uuid>,
    body: Value,
) -> Result<(RunRecord, Arc<ActiveRun>), ApiError> {
    let owner = &requester.owner;
    let request = RunRequest::read(body)?;
    if let Some(webhook) = &request.webhook {
        hub.webhooks.check(webhook)?;
    }
    let named = path.or(request.thread);
    let thread = match named {
        Some(id) => find_or_create_thread(hub, owner, id, &request).await?,
        None => new_thread(Uuid::new_v4(), Map::new(), hub.stored_setup(&request.setup)),
    };
    let line = connection_for(hub, requester, &request, &thread).await?;
    let adds = named.is_none() && request.keeps_thread();
    if adds && !hub.add_thread(owner, &thread).await? {
        return Err(too_many());
    }
    let thread = (named.is_some() || adds).then_some(thread.id);
    let live = ActiveRun::new(
        Uuid::new_v4(),
        (line.id().await?, line),
        (owner.clone(), thread),
        now(),
        request,
        hub.limits.http_replay,
    );
    let active = thread.map(|id| hub.active_thread(owner, id)).transpose()?;
    if let Some(active) = &active {
        active.add_run(&live)?;
    }
    let started = async {
        hub.add_run(&live)?;
        let run = live.snapshot(live.created).0;
        let (stored, webhook) = (run.clone(), live.request.webhook.clone());
        let max = hub.limits.agent_connect_kept_runs;
        let insert = hub.store.run(owner, move |rows| {
            rows.insert_run(&stored, webhook.as_deref(), max)
        });
        insert.await.map(|()| run)
    };
    match started.await {
        Ok(run) => {
            tokio::spawn(perform(hub.clone(), live.clone(), active));
            Ok((run, live))
        }
        Err(fault) => {
            if let Some(active) = &active {
                active.remove_run(live.id);
            }
            hub.remove_run(&live);
            Err(fault)
        }
    }
}

/// The connection to the agent of a run: the one it names, or its thread's. A thread with messages
/// stays with its agent.
async fn connection_for(
    hub: &Hub,
    requester: &Requester,
    request: &RunRequest,
    thread: &ThreadRecord,
) -> Result<Arc<AgentConnection>, ApiError> {
    let Some(id) = request.agent else {
        return hub.agent_of(requester, thread).await;
    };
    let line = hub.agents.find(requester, &id.to_string()).await?;
    let of = thread.id;
    let turns = hub.store.run(&requester.owner, move |rows| rows.turns(of));
    if thread.agent.is_some_and(|of| of != id) && !turns.await?.is_empty() {
        return Err(ApiError::invalid("the thread belongs to another agent"));
    }
    Ok(line)
}

/// Reads the thread, or creates it if the request allows that. Once the thread has a session, its
/// setup is fixed; before, the run's setup is used.
async fn find_or_create_thread(
    hub: &Hub,
    owner: &Arc<str>,
    id: Uuid,
    request: &RunRequest,
) -> Result<ThreadRecord, ApiError> {
    let has_setup = request.setup.cwd.is_some() || !request.setup.mcp_servers.is_empty();
    match hub.thread(owner, id).await {
        Ok(thread) if thread.session.is_none() && has_setup => {
            let mut setup = SessionConfig::from_metadata(&thread.metadata)?;
            setup.cwd = request.setup.cwd.clone().or(setup.cwd);
            if !request.setup.mcp_servers.is_empty() {
                setup.mcp_servers.clone_from(&request.setup.mcp_servers);
            }
            let setup = hub.stored_setup(&setup);
            let update = hub.store.run(owner, move |rows| {
                rows.update_thread(id, |thread| thread.setup = setup)
            });
            Ok(update.await?.unwrap_or(thread))
        }
        Err(fault) if fault.status == 404 && request.if_not_exists == IfNotExists::Create => {
            let thread = new_thread(id, Map::new(), hub.stored_setup(&request.setup));
            match hub.add_thread(owner, &thread).await? {
                true => Ok(thread),
                // Another request has created it meanwhile, or there are too many.
                false => hub.thread(owner, id).await,
            }
        }
        known => known,
    }
}

/// Answers the open interrupt of a run.
pub(super) async fn resume(hub: &Hub, at: &RunAt, body: &Value) -> Result<RunRecord, ApiError> {
    let run = hub.run(at).await?;
    if !body.is_object() {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    let Some(live) = hub.active_run(at.id) else {
        let what = format!("the run has ended, with status {}", run.status);
        return Err(ApiError::conflict(what));
    };
    let (request, answer) = live.resume(body)?;
    // Stored before the agent continues: its next updates are newer.
    let run = hub.store_run(&live).await?;
    if let Some((dial, _)) = live.session() {
        live.conn.send(dial, messages::result(&request, &answer));
    }
    Ok(run)
}

/// Cancels a run; it may take a while to end.
pub(super) async fn cancel(hub: &Hub, at: &RunAt) -> Result<Arc<ActiveRun>, ApiError> {
    let run = hub.run(at).await?;
    let Some(live) = hub.active_run(at.id).filter(|_| !run.status.is_final()) else {
        return Err(ApiError::conflict("the run has already ended"));
    };
    live.cancel.cancel();
    Ok(live)
}

/// Deletes a run; one that has not ended is cancelled first.
pub(super) async fn delete(hub: &Hub, at: &RunAt) -> Result<(), ApiError> {
    hub.run(at).await?;
    if let Some(live) = hub.active_run(at.id) {
        live.cancel.cancel();
        hub.wait_ended(|one| one.id == live.id).await;
    }
    let id = at.id;
    hub.store
        .run(&at.owner, move |rows| rows.delete_run(id))
        .await
}

//! Starts, resumes, cancels and deletes runs.

use std::sync::Arc;

use serde_json::Value;

use super::active_run::ActiveRun;
use super::agents::Asker;
use super::hub::{Hub, RunAt, now, uuid};
use super::line::Line;
use super::perform::perform;
use super::store;
use super::threads::new_thread;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::fields::Fields;
use crate::agent_connect::record::{Run, Thread};
use crate::agent_connect::route::Named;
use crate::agent_connect::run_request::RunRequest;
use crate::agent_connect::say;
use crate::agent_connect::session::Setup;
use crate::agent_connect::uuid::Uuid;

/// Starts the run that `body` requests, on the thread of the path if there is one. In a task of its
/// own: a client that disconnects must not leave a half-started run.
pub(super) async fn start(
    hub: &Arc<Hub>,
    asker: &Arc<Asker>,
    thread: Option<Uuid>,
    body: Value,
) -> Result<(Run, Arc<ActiveRun>), Fault> {
    let (hub, asker) = (hub.clone(), asker.clone());
    let started = tokio::spawn(async move { start_whole(&hub, &asker, thread, body).await });
    let broken = |_| Fault::later("the run could not be started");
    started.await.map_err(broken)?
}

async fn start_whole(
    hub: &Arc<Hub>,
    asker: &Asker,
    path: Option<Uuid>,
    body: Value,
) -> Result<(Run, Arc<ActiveRun>), Fault> {
    let owner = &asker.owner;
    let request = RunRequest::read(body)?;
    if let Some(webhook) = &request.webhook {
        hub.postman.check(webhook)?;
    }
    let (thread, line) = match path.or(request.thread) {
        Some(id) => {
            let thread = known_thread(hub, owner, id, &request).await?;
            let line = agent(hub, asker, &request, &thread).await?;
            (Some(id), line)
        }
        None => {
            let thread = new_thread(
                uuid(),
                serde_json::Map::new(),
                hub.kept_setup(&request.setup),
            );
            let line = agent(hub, asker, &request, &thread).await?;
            if request.keep && !hub.add_thread(owner, &thread).await? {
                return Err(Fault::later("too many threads are stored already"));
            }
            (request.keep.then_some(thread.id), line)
        }
    };
    let live = ActiveRun::new(
        uuid(),
        (line.id().await?, line),
        (owner.clone(), thread),
        now(),
        request,
        hub.limits.http_replay,
    );
    let active = thread.map(|id| hub.active_thread(owner, id)).transpose()?;
    if let Some(active) = &active {
        active.enter(&live)?;
    }
    let begun = async {
        hub.begin(&live)?;
        let run = live.snapshot(live.created).0;
        let (kept, webhook) = (run.clone(), live.request.webhook.clone());
        let owner = owner.clone();
        let most = hub.limits.agent_connect_kept;
        let insert = move |db: &rusqlite::Connection| {
            store::insert_run(db, &kept, &owner, webhook.as_deref(), most)
        };
        hub.store.ask(insert).await?;
        Ok(run)
    };
    match begun.await {
        Ok(run) => {
            tokio::spawn(perform(hub.clone(), live.clone(), active));
            Ok((run, live))
        }
        Err(fault) => {
            if let Some(active) = &active {
                active.leave(live.id);
            }
            hub.end(&live);
            Err(fault)
        }
    }
}

/// The connection to the agent of a run: the one it names, or its thread's. A thread with messages
/// stays with its agent.
async fn agent(
    hub: &Hub,
    asker: &Asker,
    request: &RunRequest,
    thread: &Thread,
) -> Result<Arc<Line>, Fault> {
    let Some(id) = request.agent else {
        return hub.agent_of(asker, thread).await;
    };
    let line = hub.agents.find(asker, &Named::Id(id)).await?;
    if thread.agent.is_some_and(|of| of != id)
        && !hub.told(&asker.owner, thread.id).await?.is_empty()
    {
        return Err(Fault::invalid("the thread belongs to another agent"));
    }
    Ok(line)
}

/// Reads the thread, or creates it if the request allows that. Once the thread has a session, its
/// setup is fixed; before, the run's setup is used.
async fn known_thread(
    hub: &Hub,
    owner: &Arc<str>,
    id: Uuid,
    request: &RunRequest,
) -> Result<Thread, Fault> {
    let has_setup = request.setup.cwd.is_some() || !request.setup.mcp_servers.is_empty();
    match hub.thread(owner, id).await {
        Ok(mut thread) if thread.session.is_none() && has_setup => {
            let own = Setup::of_metadata(&thread.metadata)?;
            let merged = Setup {
                cwd: request.setup.cwd.clone().or(own.cwd),
                mcp_servers: if request.setup.mcp_servers.is_empty() {
                    own.mcp_servers
                } else {
                    request.setup.mcp_servers.clone()
                },
                ..Setup::default()
            };
            thread.setup = hub.kept_setup(&merged);
            let (owner, kept) = (owner.clone(), thread.clone());
            let update = move |db: &rusqlite::Connection| store::update_thread(db, &owner, &kept);
            hub.store.ask(update).await?;
            Ok(thread)
        }
        Err(fault) if fault.status == 404 && request.make_thread => {
            let thread = new_thread(id, serde_json::Map::new(), hub.kept_setup(&request.setup));
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
pub(super) async fn resume(hub: &Hub, at: &RunAt, body: &Value) -> Result<Run, Fault> {
    let run = hub.run(at).await?;
    Fields::of(body)?;
    let Some(live) = hub.live(at.id) else {
        let what = format!("the run has ended, with status {}", run.status.word());
        return Err(Fault::conflict(what));
    };
    let (request, answer) = live.resume(body)?;
    // Stored before the agent continues: its next updates are newer.
    let run = hub.keep(&live).await?;
    if let Some(dial) = live.dial() {
        live.line.tell(dial, say::result(&request, &answer));
    }
    Ok(run)
}

/// Cancels a run; it may take a while to end.
pub(super) async fn cancel(hub: &Hub, at: &RunAt) -> Result<Arc<ActiveRun>, Fault> {
    let run = hub.run(at).await?;
    let Some(live) = hub.live(at.id).filter(|_| !run.status.is_final()) else {
        return Err(Fault::conflict("the run has already ended"));
    };
    live.cancel.cancel();
    Ok(live)
}

/// Deletes a run; one that has not ended is cancelled first.
pub(super) async fn delete(hub: &Hub, at: &RunAt) -> Result<(), Fault> {
    hub.run(at).await?;
    if let Some(live) = hub.live(at.id) {
        live.cancel.cancel();
        over(hub, &live).await;
    }
    let id = at.id;
    hub.store.ask(move |db| store::delete_run(db, id)).await
}

/// Waits until a run has ended.
pub(super) async fn over(hub: &Hub, live: &ActiveRun) {
    loop {
        let mut kept = live.kept.subscribe();
        let over = live.snapshot(now()).0.status.is_final();
        if over || hub.live(live.id).is_none() {
            return;
        }
        let _ = kept.changed().await;
    }
}

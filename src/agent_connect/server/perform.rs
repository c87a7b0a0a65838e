//! Starts a run, executes it to its end, and resumes it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::agents::Requester;
use super::connection::OpenSession;
use super::hub::{ActiveRun, Hub, RunAt, SessionSlot};
use super::run::{MAX_OUTPUT, Run, now};
use super::sessions::new_thread;
use crate::api::content::text_block;
use crate::api::error::{ApiError, ApiResult, RpcError, RpcResult};
use crate::api::messages;
use crate::api::run::{RunOutcome, RunRecord, RunStatus};
use crate::api::run_request::{IfNotExists, RunRequest};
use crate::api::session::SessionConfig;
use crate::api::thread::Thread;
use crate::store::Rows;
use jsonrpc::reply;

/// Starts the run that `body` requests, on the thread of the path if there is one. In a task of its
/// own: a client that disconnects must not leave a half-started run.
pub(super) async fn start(
    hub: &Arc<Hub>,
    requester: &Arc<Requester>,
    thread: Option<Uuid>,
    body: Value,
) -> ApiResult<(RunRecord, Arc<Run>)> {
    let (hub, requester) = (hub.clone(), requester.clone());
    let started = tokio::spawn(async move { start_run(hub, &requester, thread, body).await });
    let broken = |_| ApiError::unavailable("the run could not be started");
    started.await.map_err(broken)?
}

async fn start_run(
    hub: Arc<Hub>,
    requester: &Requester,
    path: Option<Uuid>,
    body: Value,
) -> ApiResult<(RunRecord, Arc<Run>)> {
    let owner = &requester.owner;
    let request = RunRequest::read(body)?;
    if let Some(webhook) = &request.webhook {
        hub.webhooks.check(webhook)?;
    }
    let named = path.or(request.thread);
    let thread = match named {
        Some(id) => find_or_create_thread(&hub, owner, id, &request).await?,
        None => new_thread(Uuid::new_v4(), hub.stored_setup(&request.setup)),
    };
    let conn = match request.agent {
        None => hub.agent_of(requester, &thread).await?,
        Some(id) => {
            let conn = hub.agents.find(requester, &id.to_string()).await?;
            // A thread with messages stays with its agent.
            if thread.agent.is_some_and(|of| of != id) && !thread.messages.is_empty() {
                return Err(ApiError::invalid("the thread belongs to another agent"));
            }
            conn
        }
    };
    let adds = named.is_none() && request.keeps_thread();
    if adds {
        hub.add_thread(owner, &thread).await?;
    }
    let created = now();
    let record = RunRecord {
        id: Uuid::new_v4(),
        agent: conn.id().await?,
        thread: (named.is_some() || adds).then_some(thread.id),
        status: RunStatus::Pending,
        updated: created.clone(),
        created,
        creation: request.creation.clone(),
        outcome: None,
    };
    let slot = match record.thread {
        Some(id) => hub.session_slot(owner, id)?,
        None => SessionSlot::default(),
    };
    let webhook = request.webhook.clone();
    let limits = hub.port.limits.clone();
    let run = Run::new(record.clone(), owner.clone(), request, limits.http_replay);
    let live = ActiveRun {
        run: run.clone(),
        conn,
        session: Arc::default(),
    };
    hub.add_run(&live)?;
    let stored = record.clone();
    let insert = move |rows: &Rows<'_>| rows.insert_run(&stored, webhook.as_deref());
    if let Err(fault) = hub.store.run(owner, insert).await {
        hub.remove_run(run.id);
        return Err(fault);
    }
    tokio::spawn(perform(hub, live, slot));
    Ok((record, run))
}

/// Reads the thread, or creates it if the request allows that. Once the thread has a session, its
/// setup is fixed; before, the run's setup is used.
async fn find_or_create_thread(
    hub: &Hub,
    owner: &Arc<str>,
    id: Uuid,
    request: &RunRequest,
) -> ApiResult<Thread> {
    let setup = &request.setup;
    let has_setup = setup.cwd.is_some() || !setup.mcp_servers.is_empty();
    match hub.thread(owner, id).await {
        Ok(thread) if thread.session.is_none() && has_setup => {
            let mut merged = SessionConfig::from_metadata(&thread.metadata)?;
            merged.cwd = setup.cwd.clone().or(merged.cwd);
            if !setup.mcp_servers.is_empty() {
                merged.mcp_servers.clone_from(&setup.mcp_servers);
            }
            let setup = hub.stored_setup(&merged);
            let change = move |thread: &mut Thread| thread.setup = setup;
            let update = move |rows: &Rows<'_>| rows.update_thread(id, change);
            hub.store.run(owner, update).await
        }
        Err(fault) if fault.status == 404 && request.if_not_exists == IfNotExists::Create => {
            let thread = new_thread(id, hub.stored_setup(setup));
            match hub.add_thread(owner, &thread).await? {
                true => Ok(thread),
                // Another request has created it meanwhile.
                false => hub.thread(owner, id).await,
            }
        }
        known => known,
    }
}

/// Executes a run to its end and stores the outcome.
async fn perform(hub: Arc<Hub>, live: ActiveRun, slot: SessionSlot) {
    let run = &live.run;
    let limit = hub.port.limits.agent_connect_run;
    let (status, outcome) = tokio::select! {
        done = execute(&hub, &live, &slot) => match done {
            Ok(stop_reason) => (RunStatus::Success, run.result(&stop_reason)),
            Err(failure) => (RunStatus::Error, RunOutcome::Error(failure)),
        },
        () = store_changes(&hub, run) => unreachable!("it never returns"),
        () = run.too_long.cancelled() => {
            let message = format!("the agent's output is longer than {MAX_OUTPUT} bytes");
            (RunStatus::Error, RunOutcome::Error(RpcError::internal(message)))
        }
        () = sleep(limit) => {
            let message = format!("the run took longer than {limit:?}");
            (RunStatus::Timeout, RunOutcome::Error(RpcError::new(reply::TIMEOUT, message)))
        }
    };
    if let Some(open) = live.session.get() {
        if status != RunStatus::Success {
            open.cancel_turn(run);
        }
        open.end_turn();
    }
    let (at_end, ended) = (hub.clone(), run.clone());
    let store_end = hub.store.run(&run.owner, move |rows| {
        let mut record = ended.finish(status, outcome);
        let len = json!([record, ended.turn()]).to_string().len();
        if let Err(fault) = rows.reserve(len) {
            let outcome = RunOutcome::Error(fault.into());
            record = ended.finish(RunStatus::Error, outcome);
        }
        // The thread is free before a client learns that its run has ended.
        at_end.remove_run(ended.id);
        rows.update_run(&record)?;
        match (record.thread, ended.turn()) {
            (Some(thread), Some(turn)) => rows.insert_turn(thread, &turn),
            _ => Ok(()),
        }
    });
    // A failed write was logged, and clients that stream the run get its end all the same.
    let _ = store_end.await;
    run.publish();
    call_webhook(&hub, run, &run.record());
    if run.thread.is_none()
        && let Some(open) = slot.lock().await.take()
    {
        hub.discard(&open.id);
        open.close().await;
    }
}

/// Executes the turn of a run and returns its stop reason.
async fn execute(hub: &Hub, live: &ActiveRun, slot: &SessionSlot) -> RpcResult<String> {
    let ActiveRun { run, conn, .. } = live;
    let cancelled = || Ok("cancelled".to_owned());
    let turn = async {
        sleep(Duration::from_secs(run.request.delay)).await;
        slot.lock().await
    };
    let mut session = tokio::select! {
        biased;
        () = run.cancel.cancelled() => return cancelled(),
        session = turn => session,
    };
    let mut thread = match run.thread {
        Some(id) => hub.thread(&run.owner, id).await?,
        None => new_thread(run.id, hub.stored_setup(&run.request.setup)),
    };
    let opened = hub.open_session(&mut session, &run.owner, &mut thread, conn);
    let (open, opened) = opened.await?;
    let _ = live.session.set(open.clone());
    configure(run, &open, &opened).await?;
    if run.cancel.is_cancelled() {
        return cancelled();
    }
    open.begin_turn(run);
    let ended = prompt(hub, run, &open).await;
    open.end_turn();
    ended
}

/// Sets the mode and the options of a session as the run requests.
async fn configure(run: &Run, open: &OpenSession, opened: &Value) -> RpcResult<()> {
    let (setup, session) = (&run.request.setup, &open.id);
    if let Some(mode) = &setup.mode {
        let params = json!({ "sessionId": session, "modeId": mode });
        open.on.call("session/set_mode", &params).await?;
    }
    for (id, value) in setup.options_for(opened) {
        let params = messages::set_option(session, &id, &value);
        open.on.call("session/set_config_option", &params).await?;
    }
    Ok(())
}

async fn prompt(hub: &Hub, run: &Run, open: &OpenSession) -> RpcResult<String> {
    let request = &run.request;
    let mut prompt = request.input.prompt.clone();
    // In a thread the agent already has the earlier messages.
    if let (Some(history), None) = (&request.input.history, run.thread) {
        prompt.insert(0, text_block(history));
    }
    let params = messages::prompt(&open.id, &prompt, request.meta.as_ref());
    let mut answered = Box::pin(open.on.call("session/prompt", &params));
    let answer = tokio::select! {
        answer = answered.as_mut() => answer?,
        () = run.cancel.cancelled() => {
            open.cancel_turn(run);
            // Some agents never answer a prompt that was cancelled.
            let late = |_| Ok(json!({ "stopReason": "cancelled" }));
            timeout(hub.port.limits.http_write_timeout, answered).await.unwrap_or_else(late)?
        }
    };
    let reason = answer["stopReason"].as_str();
    Ok(reason.unwrap_or("end_turn").to_owned())
}

/// Stores each change of a run until it ends, and calls its webhook.
async fn store_changes(hub: &Hub, run: &Arc<Run>) {
    let mut changes = run.changes.subscribe();
    loop {
        let known = *changes.borrow_and_update();
        // The run lives as long as this.
        let _ = changes.wait_for(|phase| *phase != known).await;
        let stored = run.clone();
        let store = hub.store.run(&run.owner, move |rows| {
            let record = stored.record();
            rows.update_run(&record)?;
            Ok(record)
        });
        // A failed write was logged. The client knows that the run continues: it started or resumed
        // it.
        if let Ok(record) = store.await
            && record.status != RunStatus::Pending
        {
            call_webhook(hub, run, &record);
        }
    }
}

/// Calls the run's webhook, if it has one.
fn call_webhook(hub: &Hub, run: &Run, record: &RunRecord) {
    if let Some(webhook) = &run.request.webhook {
        hub.webhooks.send(&run.owner, webhook, record);
    }
}

/// Answers the open interrupt of a run.
pub(super) async fn resume(hub: &Hub, at: &RunAt, body: &Value) -> ApiResult<RunRecord> {
    let run = hub.run(at).await?;
    if !body.is_object() {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    let Some(live) = hub.active_run(at.id) else {
        let what = format!("the run has ended, with status {}", run.status);
        return Err(ApiError::conflict(what));
    };
    let (request, answer) = live.run.resume(body)?;
    // Stored before the agent continues: its next updates are newer.
    let record = hub.run(at).await?;
    if let Some(open) = live.session.get() {
        open.resume(&live.run, &request, &answer);
    }
    Ok(record)
}

//! Executes a run: waits for its turn, opens the session, sends the prompt, and records the
//! outcome.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::active_run::ActiveRun;
use super::active_thread::{ActiveThread, OpenSession};
use super::hub::{Hub, now};
use super::threads::new_thread;
use crate::agent_connect::api::content::text_block;
use crate::agent_connect::api::messages;
use crate::agent_connect::api::record::{RunFailure, RunOutcome, RunRecord, RunStatus, TurnRecord};
use crate::jsonrpc::reply;

/// Executes a run to its end and stores the outcome.
pub(super) async fn perform(
    hub: Arc<Hub>,
    live: Arc<ActiveRun>,
    active: Option<Arc<ActiveThread>>,
) {
    let limit = hub.limits.agent_connect_run;
    let is_alone = active.is_none();
    let active = active.unwrap_or_default();
    let (status, outcome) = tokio::select! {
        done = execute(&hub, &live, &active) => match done {
            Ok(stop_reason) => (RunStatus::Success, live.result(&stop_reason)),
            Err(failure) => (RunStatus::Error, RunOutcome::Error(failure)),
        },
        () = store_changes(&hub, &live) => unreachable!("it never returns"),
        () = sleep(limit) => {
            cancel_turn(&live);
            let message = format!("the run took longer than {limit:?}");
            (RunStatus::Timeout, RunOutcome::Error(RunFailure::new(reply::TIMEOUT.into(), message)))
        }
    };
    if let Some((_, session)) = live.session() {
        live.conn.end_turn(&session);
    }
    let (run, version) = live.finish(status, outcome, now());
    let turn = turn_record(&live, &run);
    let stored = run.clone();
    let store_end = hub.store.run(&live.owner, move |rows| {
        rows.update_run(&stored, version)?;
        match (stored.thread, turn) {
            (Some(thread), Some(turn)) => rows.insert_turn(thread, &turn),
            _ => Ok(()),
        }
    });
    // A failed write was logged, and clients that stream the run get its end all the same.
    let _ = store_end.await;
    // The thread is free before a client learns that its run has ended.
    hub.remove_run(&live);
    live.publish(run.clone());
    call_webhook(&hub, &live, &run);
    if is_alone {
        close_session(&hub, &active).await;
    }
}

/// Executes the turn of a run and returns its stop reason.
async fn execute(
    hub: &Hub,
    live: &Arc<ActiveRun>,
    active: &ActiveThread,
) -> Result<String, RunFailure> {
    let cancelled = || Ok("cancelled".to_owned());
    let turn = async {
        sleep(Duration::from_secs(live.request.delay)).await;
        active.session.lock().await
    };
    let mut session = tokio::select! {
        biased;
        session = turn => session,
        () = live.cancel.cancelled() => return cancelled(),
    };
    if live.cancel.is_cancelled() {
        return cancelled();
    }
    let mut thread = match live.thread {
        Some(id) => hub.thread(&live.owner, id).await?,
        None => new_thread(live.id, Map::new(), hub.stored_setup(&live.request.setup)),
    };
    let opened = hub
        .open_session(&mut session, &live.owner, &mut thread, &live.conn)
        .await?;
    let open = session.clone().expect("it was just opened");
    live.set_session(open.link, &open.id);
    configure(live, &open, &opened).await?;
    if live.cancel.is_cancelled() {
        return cancelled();
    }
    live.conn.begin_turn(&open.id, live.clone());
    let ended = prompt(hub, live, &open).await;
    live.conn.end_turn(&open.id);
    ended
}

/// Sets the mode and the options of a session as the run requests.
async fn configure(live: &ActiveRun, open: &OpenSession, opened: &Value) -> Result<(), RunFailure> {
    let (setup, session) = (&live.request.setup, &open.id);
    let call = async |method, params: Value| {
        let set = open.conn.call(open.link, method, &params).await;
        set.map_err(|error| open.agent.run_error(&error))
    };
    if let Some(mode) = &setup.mode {
        let params = json!({ "sessionId": session, "modeId": mode });
        call("session/set_mode", params).await?;
    }
    for (id, value) in setup.options_for(opened) {
        let params = messages::set_option(session, &id, &value);
        call("session/set_config_option", params).await?;
    }
    Ok(())
}

async fn prompt(hub: &Hub, live: &ActiveRun, open: &OpenSession) -> Result<String, RunFailure> {
    let request = &live.request;
    let mut prompt = request.input.prompt.clone();
    // In a thread the agent already has the earlier messages.
    if let (Some(history), None) = (&request.input.history, live.thread) {
        prompt.insert(0, text_block(history));
    }
    let params = messages::prompt(&open.id, &prompt, request.meta.as_ref());
    let answered = open.conn.call(open.link, "session/prompt", &params);
    tokio::pin!(answered);
    let answer = tokio::select! {
        answer = answered.as_mut() => answer,
        () = live.cancel.cancelled() => {
            cancel_turn(live);
            match timeout(hub.limits.http_write_timeout, answered).await {
                Ok(answer) => answer,
                // Some agents never answer a prompt that was cancelled.
                Err(_) => Ok(json!({ "stopReason": "cancelled" })),
            }
        }
    };
    let answer = answer.map_err(|error| open.agent.run_error(&error))?;
    let reason = answer["stopReason"].as_str();
    Ok(reason.unwrap_or("end_turn").to_owned())
}

/// Cancels the turn and the agent's open questions.
fn cancel_turn(live: &ActiveRun) {
    let Some((dial, session)) = live.session() else {
        return;
    };
    let params = json!({ "sessionId": session });
    live.conn
        .send(dial, messages::notification("session/cancel", &params));
    for question in live.cancel_questions() {
        live.conn
            .send(dial, messages::result(&question.id, &question.cancelled()));
    }
}

/// Stores each change of a run until it ends, and calls its webhook.
async fn store_changes(hub: &Hub, live: &ActiveRun) {
    let mut changes = live.changes.subscribe();
    let mut known = 0;
    loop {
        let (run, version) = live.snapshot(now());
        if version > known {
            known = version;
            // A failed write was logged.
            let _ = hub.store_run(live).await;
            // The client knows that the run continues: it started or resumed it.
            if run.status != RunStatus::Pending {
                call_webhook(hub, live, &run);
            }
        }
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Calls the run's webhook, if it has one.
fn call_webhook(hub: &Hub, live: &ActiveRun, run: &RunRecord) {
    if let Some(webhook) = &live.request.webhook {
        hub.webhooks.send(webhook, &serde_json::json!(run));
    }
}

/// The turn that a run added to its thread.
fn turn_record(live: &ActiveRun, run: &RunRecord) -> Option<TurnRecord> {
    let Some(RunOutcome::Result {
        values, messages, ..
    }) = &run.outcome
    else {
        return None;
    };
    let mut values = values.clone();
    values.remove("messages");
    values.extend(live.activity());
    let mut all = vec![live.request.input.message.clone()];
    all.extend(messages.iter().cloned());
    Some(TurnRecord {
        run: run.id,
        ended: run.updated,
        values,
        messages: all,
    })
}

/// Closes the session of a run without a thread.
async fn close_session(hub: &Hub, active: &ActiveThread) {
    if let Some(open) = active.session.lock().await.take() {
        hub.discard(&open.id);
        open.close().await;
    }
}

//! Executes a run: waits for its turn, opens the session, sends the prompt, and records the
//! outcome.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::active_run::ActiveRun;
use super::active_thread::{ActiveThread, Open};
use super::hub::{Hub, now};
use super::store;
use super::threads::new_thread;
use crate::agent_connect::record::{Outcome, Run, Status, Turn};
use crate::agent_connect::run_request::text_block;
use crate::agent_connect::say;
use crate::jsonrpc::reply;

/// Why a run failed: a JSON-RPC code and a message.
pub(super) type Failure = (i64, String);

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
        done = carry_out(&hub, &live, &active) => match done {
            Ok(stop_reason) => (Status::Success, result(&live, &stop_reason)),
            Err((code, what)) => (Status::Error, Outcome::Error { code, what }),
        },
        () = watch(&hub, &live) => unreachable!("it never returns"),
        () = sleep(limit) => {
            give_up(&live);
            let what = format!("the run took longer than {limit:?}");
            (Status::Timeout, Outcome::Error { code: reply::TIMEOUT.into(), what })
        }
    };
    if let Some((_, session)) = live.session() {
        live.line.end_turn(&session);
    }
    let (run, version) = live.close(status, outcome, now());
    let turn = turn(&live, &run);
    let (kept, owner) = (run.clone(), live.owner.clone());
    let keep = move |db: &rusqlite::Connection| {
        store::update_run(db, &kept, version)?;
        match (kept.thread, turn) {
            (Some(thread), Some(turn)) => store::insert_turn(db, &owner, thread, &turn),
            _ => Ok(()),
        }
    };
    // A failed write was logged, and clients that stream the run get its end all the same.
    let _ = hub.store.ask(keep).await;
    // The thread is free before a client learns that its run has ended.
    hub.end(&live);
    live.publish(run.clone());
    tell(&hub, &live, &run);
    if is_alone {
        discard(&hub, &active).await;
    }
}

/// Executes the turn of a run and returns its stop reason.
async fn carry_out(
    hub: &Hub,
    live: &Arc<ActiveRun>,
    active: &ActiveThread,
) -> Result<String, Failure> {
    let cancelled = || Ok("cancelled".to_owned());
    let turn = async {
        sleep(Duration::from_secs(live.request.after)).await;
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
        Some(id) => hub
            .thread(&live.owner, id)
            .await
            .map_err(|fault| (-32603, fault.what.into_owned()))?,
        None => new_thread(live.id, Map::new(), hub.kept_setup(&live.request.setup)),
    };
    let opened = hub
        .open_session(&mut session, &live.owner, &mut thread, &live.line)
        .await?;
    let Some(open) = session.open.clone() else {
        return Err((-32603, "the agent returned no session id".to_owned()));
    };
    live.is_in(open.dial, &open.id);
    set_up(live, &open, &opened).await?;
    if live.cancel.is_cancelled() {
        return cancelled();
    }
    live.line.begin_turn(&open.id, live);
    let ended = prompt(hub, live, &open).await;
    live.line.end_turn(&open.id);
    ended
}

/// Sets the mode and the options of a session as the run requests.
async fn set_up(live: &ActiveRun, open: &Open, opened: &Value) -> Result<(), Failure> {
    let (setup, session) = (&live.request.setup, &open.id);
    let call = async |method, params: Value| {
        let set = open.line.call(open.dial, method, &params).await;
        set.map_err(|error| open.agent.complaint(&error))
    };
    if let Some(mode) = &setup.mode {
        let params = json!({ "sessionId": session, "modeId": mode });
        call("session/set_mode", params).await?;
    }
    for (id, value) in setup.options_for(opened) {
        let params = say::option(session, &id, &value);
        call("session/set_config_option", params).await?;
    }
    Ok(())
}

async fn prompt(hub: &Hub, live: &ActiveRun, open: &Open) -> Result<String, Failure> {
    let request = &live.request;
    let mut prompt = request.input.prompt.clone();
    // In a thread the agent already has the earlier messages.
    if let Some(before) = request
        .input
        .before
        .as_ref()
        .filter(|_| live.thread.is_none())
    {
        prompt.insert(0, text_block(before));
    }
    let params = say::prompt(&open.id, &prompt, request.meta.as_ref());
    let answered = open.line.call(open.dial, "session/prompt", &params);
    tokio::pin!(answered);
    let answer = tokio::select! {
        answer = answered.as_mut() => answer,
        () = live.cancel.cancelled() => {
            give_up(live);
            match timeout(hub.limits.http_stall, answered).await {
                Ok(answer) => answer,
                // Some agents never answer a prompt that was cancelled.
                Err(_) => Ok(json!({ "stopReason": "cancelled" })),
            }
        }
    };
    let answer = answer.map_err(|error| open.agent.complaint(&error))?;
    let reason = answer.get("stopReason").and_then(Value::as_str);
    Ok(reason.unwrap_or("end_turn").to_owned())
}

/// Cancels the turn and the agent's open questions.
fn give_up(live: &ActiveRun) {
    let Some((dial, session)) = live.session() else {
        return;
    };
    let params = json!({ "sessionId": session });
    live.line
        .tell(dial, say::notification("session/cancel", &params));
    for question in live.give_up() {
        live.line
            .tell(dial, say::result(&question.id, &question.cancelled()));
    }
}

/// Stores each change of a run until it ends, and calls its webhook.
async fn watch(hub: &Hub, live: &ActiveRun) {
    let mut news = live.news.subscribe();
    let mut known = 0;
    loop {
        let (run, version) = live.snapshot(now());
        if version > known {
            known = version;
            // A failed write was logged.
            let _ = hub.keep(live).await;
            // The client knows that the run continues: it started or resumed it.
            if run.status != Status::Pending {
                tell(hub, live, &run);
            }
        }
        if news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Calls the run's webhook, if it has one.
fn tell(hub: &Hub, live: &ActiveRun, run: &Run) {
    if let Some(webhook) = &live.request.webhook {
        hub.postman.send(webhook, &run.shown());
    }
}

fn result(live: &ActiveRun, stop_reason: &str) -> Outcome {
    let (values, messages) = live.values(Some(stop_reason));
    let text = live.request.input.is_message.then(|| live.text());
    Outcome::Result {
        values,
        messages,
        text,
    }
}

/// The turn that a run added to its thread.
fn turn(live: &ActiveRun, run: &Run) -> Option<Turn> {
    let Some(Outcome::Result {
        values, messages, ..
    }) = &run.outcome
    else {
        return None;
    };
    let mut values = values.clone();
    values.remove("messages");
    values.extend(live.work());
    let mut said = vec![live.request.input.said.clone()];
    said.extend(messages.iter().cloned());
    Some(Turn {
        run: run.id,
        at: run.updated,
        values,
        messages: said,
    })
}

/// Closes the session of a run without a thread.
async fn discard(hub: &Hub, active: &ActiveThread) {
    if let Some(open) = active.session.lock().await.open.take() {
        hub.discard(&open.id);
        open.close().await;
    }
}

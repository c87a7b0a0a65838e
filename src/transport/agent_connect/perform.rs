//! What a run does: it waits for its turn, has a session, prompts, and comes to an end.
//!
//! Not here: what the agent says meanwhile (see `active_run`).

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

/// Why a run fails: a JSON-RPC code, and what happened.
pub(super) type Failure = (i64, String);

/// Carries a run to its end and keeps it.
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
        () = watch(&hub, &live) => unreachable!("it watches for ever"),
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
    // When it cannot be kept it was said, and those who follow hear of the end all the same.
    let _ = hub.store.ask(keep).await;
    // A thread is free before anybody hears that its run is over.
    hub.end(&live);
    live.publish(run.clone());
    tell(&hub, &live, &run);
    if is_alone {
        discard(&hub, &active).await;
    }
}

/// Does what a run is there for; why its turn has ended comes back.
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
        return Err((-32603, "the agent named no session".to_owned()));
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

/// Sets a session to what the run wants.
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
    // An agent that has heard what was said before need not be told.
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

/// Tells the agent that nobody wants the turn any more, nor answers what it asks.
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

/// Keeps each change of a run that goes on, and tells of it.
async fn watch(hub: &Hub, live: &ActiveRun) {
    let mut news = live.news.subscribe();
    let mut known = 0;
    loop {
        let (run, version) = live.snapshot(now());
        if version > known {
            known = version;
            // When it cannot be kept it was said.
            let _ = hub.keep(live).await;
            // That it goes on is known to who has it go on.
            if run.status != Status::Pending {
                tell(hub, live, &run);
            }
        }
        if news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Tells whoever wants to hear of a run's status.
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

/// What a run has added to its thread.
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

/// The session of a run that has no thread is of no use any more.
async fn discard(hub: &Hub, active: &ActiveThread) {
    if let Some(open) = active.session.lock().await.open.take() {
        hub.discard(&open.id);
        open.close().await;
    }
}

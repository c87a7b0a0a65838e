//! What a run does: it waits for its turn, has a session, prompts, and comes to an end.
//!
//! Not here: what the agent says meanwhile (see `live`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::hub::{Hub, now};
use super::line::Dial;
use super::live::Live;
use super::seat::{Seat, Session};
use super::start::is_news;
use super::store;
use crate::agent_connect::agent::Agent;
use crate::agent_connect::record::{Outcome, Run, Status, Thread, Turn};
use crate::agent_connect::say;
use crate::agent_connect::wish::text_block;
use crate::wire::reply;

/// Why a run fails: a JSON-RPC code, and what happened.
pub(super) type Failure = (i64, String);

/// Carries a run to its end and keeps it.
pub(super) async fn perform(hub: Arc<Hub>, live: Arc<Live>, seat: Option<Arc<Seat>>) {
    let limit = hub.limits.agent_connect_run;
    let (status, outcome) = tokio::select! {
        done = carry_out(&hub, &live, seat.as_deref()) => match done {
            Ok(stop_reason) => (Status::Success, result(&live, &stop_reason)),
            Err((code, what)) => (Status::Error, Outcome::Error { code, what }),
        },
        () = watch(&hub, &live) => unreachable!("it watches for ever"),
        () = sleep(limit) => {
            give_up(&hub, &live);
            let what = format!("the run took longer than {limit:?}");
            (Status::Timeout, Outcome::Error { code: reply::TIMEOUT.into(), what })
        }
    };
    if let Some(session) = live.session() {
        hub.line.end_turn(&session.1);
    }
    let (run, version) = live.close(status, outcome, now());
    let turn = turn(&live, &run);
    let kept = run.clone();
    let keep = move |db: &rusqlite::Connection| {
        store::update_run(db, &kept, version)?;
        match (kept.thread, turn) {
            (Some(thread), Some(turn)) => store::insert_turn(db, thread, &turn),
            _ => Ok(()),
        }
    };
    // When it cannot be kept it was said, and those who follow hear of the end all the same.
    let _ = hub.store.ask(keep).await;
    // A thread is free before anybody hears that its run is over.
    hub.end(&live);
    live.publish(run.clone());
    tell(&hub, &live, &run);
    if seat.is_none()
        && let Some((dial, session)) = live.session()
    {
        close(&hub, dial, &session).await;
    }
}

/// Does what a run is there for; why its turn has ended comes back.
async fn carry_out(hub: &Hub, live: &Arc<Live>, seat: Option<&Seat>) -> Result<String, Failure> {
    let cancelled = || Ok("cancelled".to_owned());
    let own = Seat::default();
    let turn = async {
        sleep(Duration::from_secs(live.wish.after)).await;
        seat.unwrap_or(&own).session.lock().await
    };
    let mut session = tokio::select! {
        biased;
        session = turn => session,
        () = live.cancel.cancelled() => return cancelled(),
    };
    if live.cancel.is_cancelled() {
        return cancelled();
    }
    let (dial, agent) = hub
        .line
        .agent()
        .await
        .map_err(|fault| (-32603, fault.what.into_owned()))?;
    let mut thread = match live.thread {
        Some(id) => hub
            .thread(id)
            .await
            .map_err(|fault| (-32603, fault.what.into_owned()))?,
        None => super::hub::new_thread(live.id, Map::new(), hub.kept_setup(&live.wish.setup)),
    };
    let opened = hub
        .open_session(&mut session, &mut thread, dial, &agent)
        .await?;
    let Some((_, id)) = session.open.clone() else {
        return Err((-32603, "the agent named no session".to_owned()));
    };
    live.is_in(dial, &id);
    set_up(hub, live, &agent, dial, &id, &opened).await?;
    if live.cancel.is_cancelled() {
        return cancelled();
    }
    hub.line.begin_turn(&id, live);
    let ended = prompt(hub, live, &agent, dial, &id).await;
    hub.line.end_turn(&id);
    ended
}

/// Sets a session to what the run wants.
async fn set_up(
    hub: &Hub,
    live: &Live,
    agent: &Agent,
    dial: Dial,
    session: &str,
    opened: &Value,
) -> Result<(), Failure> {
    let setup = &live.wish.setup;
    if let Some(mode) = &setup.mode {
        let params = json!({ "sessionId": session, "modeId": mode });
        let set = hub.line.call(dial, "session/set_mode", &params).await;
        set.map_err(|error| agent.complaint(&error))?;
    }
    for (id, value) in setup.options_for(opened) {
        let params = say::option(session, &id, &value);
        let set = hub
            .line
            .call(dial, "session/set_config_option", &params)
            .await;
        set.map_err(|error| agent.complaint(&error))?;
    }
    Ok(())
}

async fn prompt(
    hub: &Hub,
    live: &Live,
    agent: &Agent,
    dial: Dial,
    session: &str,
) -> Result<String, Failure> {
    let wish = &live.wish;
    let mut prompt = wish.input.prompt.clone();
    // An agent that has heard what was said before need not be told.
    if let Some(before) = wish.input.before.as_ref().filter(|_| live.thread.is_none()) {
        prompt.insert(0, text_block(before));
    }
    let params = say::prompt(session, &prompt, wish.meta.as_ref());
    let answered = hub.line.call(dial, "session/prompt", &params);
    tokio::pin!(answered);
    let answer = tokio::select! {
        answer = answered.as_mut() => answer,
        () = live.cancel.cancelled() => {
            give_up(hub, live);
            match timeout(hub.limits.http_stall, answered).await {
                Ok(answer) => answer,
                // Some agents never answer a prompt that was cancelled.
                Err(_) => Ok(json!({ "stopReason": "cancelled" })),
            }
        }
    };
    let answer = answer.map_err(|error| agent.complaint(&error))?;
    let reason = answer.get("stopReason").and_then(Value::as_str);
    Ok(reason.unwrap_or("end_turn").to_owned())
}

/// Tells the agent that nobody wants the turn any more, nor answers what it asks.
fn give_up(hub: &Hub, live: &Live) {
    let Some((dial, session)) = live.session() else {
        return;
    };
    let params = json!({ "sessionId": session });
    hub.line
        .tell(dial, say::notification("session/cancel", &params));
    for question in live.give_up() {
        hub.line
            .tell(dial, say::result(&question.id, &question.cancelled()));
    }
}

/// Keeps each change of a run that goes on, and tells of it.
async fn watch(hub: &Hub, live: &Live) {
    let mut news = live.news.subscribe();
    let mut known = 0;
    loop {
        let (run, version) = live.snapshot(now());
        if version > known {
            let before = known;
            known = version;
            // When it cannot be kept it was said.
            let _ = hub.keep(live).await;
            if is_news(run.status) && before != known {
                tell(hub, live, &run);
            }
        }
        if news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Tells whoever wants to hear of a run's status.
fn tell(hub: &Hub, live: &Live, run: &Run) {
    if let Some(webhook) = &live.wish.webhook {
        hub.postman.send(webhook, &run.shown());
    }
}

fn result(live: &Live, stop_reason: &str) -> Outcome {
    let (values, messages) = live.values(Some(stop_reason));
    let text = live.wish.input.is_message.then(|| live.text());
    Outcome::Result {
        values,
        messages,
        text,
    }
}

/// What a run has added to its thread.
fn turn(live: &Live, run: &Run) -> Option<Turn> {
    let Some(Outcome::Result {
        values, messages, ..
    }) = &run.outcome
    else {
        return None;
    };
    let mut values = values.clone();
    values.remove("messages");
    values.extend(live.work());
    let mut said = vec![live.wish.input.said.clone()];
    said.extend(messages.iter().cloned());
    Some(Turn {
        run: run.id,
        at: run.updated,
        values,
        messages: said,
    })
}

/// The session of a run that has no thread is of no use any more.
async fn close(hub: &Hub, dial: Dial, session: &str) {
    if let Ok((now, agent)) = hub.line.agent().await
        && now == dial
        && agent.offers("close")
    {
        let params = json!({ "sessionId": session });
        // An agent that does not close it keeps it.
        let _ = hub.line.call(dial, "session/close", &params).await;
    }
}

impl Hub {
    /// Has the agent open the session of a thread: a new one, or its own again. What the agent said
    /// to that comes back; `null` when it is open already.
    pub(super) async fn open_session(
        &self,
        session: &mut Session,
        thread: &mut Thread,
        dial: Dial,
        agent: &Agent,
    ) -> Result<Value, Failure> {
        if session.open.as_ref().is_some_and(|(on, _)| *on == dial) {
            return Ok(Value::Null);
        }
        let mut params = thread.setup.clone();
        if let Some(id) = &thread.session {
            let method = agent.revives_with().ok_or_else(|| {
                let what = "the agent has ended since, and cannot take up its sessions again \
                            (no session/load)";
                (-32002, what.to_owned())
            })?;
            params["sessionId"] = json!(id);
            let loaded = self.line.call(dial, method, &params).await;
            let loaded = loaded.map_err(|error| agent.complaint(&error))?;
            session.open = Some((dial, id.clone()));
            return Ok(loaded);
        }
        let opened = self.line.call(dial, "session/new", &params).await;
        let opened = opened.map_err(|error| agent.complaint(&error))?;
        let id = opened.get("sessionId").and_then(Value::as_str);
        let id = id
            .ok_or_else(|| (-32603, "the agent named no session".to_owned()))?
            .to_owned();
        session.open = Some((dial, id.clone()));
        (thread.session, thread.agent) = (Some(id.clone()), Some(agent.id));
        let (of, agent) = (thread.id, agent.id);
        let keep = move |db: &rusqlite::Connection| {
            // Its metadata may have been changed meanwhile.
            match store::read_thread(db, of)? {
                Some(mut kept) => {
                    (kept.session, kept.agent) = (Some(id), Some(agent));
                    store::update_thread(db, &kept)
                }
                None => Ok(()),
            }
        };
        let kept = self.store.ask(keep).await;
        kept.map_err(|fault| (-32603, fault.what.into_owned()))?;
        Ok(opened)
    }
}

//! A run comes to be, is answered, is cancelled, is forgotten.
//!
//! Not here: what it does meanwhile (see `perform`).

use std::sync::Arc;

use serde_json::Value;

use super::hub::{Hub, new_thread, now, uuid};
use super::live::Live;
use super::perform::perform;
use super::store;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::fields::Fields;
use crate::agent_connect::record::{Run, Status};
use crate::agent_connect::say;
use crate::agent_connect::session::Setup;
use crate::agent_connect::uuid::Uuid;
use crate::agent_connect::wish::Wish;

/// Starts the run that `body` wishes for, on the thread of the path if there is one. In a task of
/// its own: a client that does not wait for the answer must not leave half a run.
pub(super) async fn start(
    hub: &Arc<Hub>,
    owner: &Arc<str>,
    thread: Option<Uuid>,
    body: Value,
) -> Result<(Run, Arc<Live>), Fault> {
    let (hub, owner) = (hub.clone(), owner.clone());
    let started = tokio::spawn(async move { start_whole(&hub, &owner, thread, body).await });
    let broken = |_| Fault::later("the run could not be started");
    started.await.map_err(broken)?
}

async fn start_whole(
    hub: &Arc<Hub>,
    owner: &Arc<str>,
    path: Option<Uuid>,
    body: Value,
) -> Result<(Run, Arc<Live>), Fault> {
    let wish = Wish::read(body)?;
    if let Some(webhook) = &wish.webhook {
        hub.postman.check(webhook)?;
    }
    let (_, agent) = hub.agent(wish.agent).await?;
    let thread = match path.or(wish.thread) {
        Some(id) => {
            known_thread(hub, owner, id, &wish).await?;
            Some(id)
        }
        None if wish.keep => {
            let thread = new_thread(uuid(), serde_json::Map::new(), hub.kept_setup(&wish.setup));
            if !hub.add_thread(owner, &thread).await? {
                return Err(Fault::later("too many threads are kept already"));
            }
            Some(thread.id)
        }
        None => None,
    };
    let live = Live::new(
        uuid(),
        agent.id,
        thread,
        now(),
        wish,
        hub.limits.http_replay,
    );
    let seat = thread.map(|id| hub.seat(id)).transpose()?;
    if let Some(seat) = &seat {
        seat.enter(&live)?;
    }
    let begun = async {
        hub.begin(&live)?;
        let run = live.snapshot(live.created).0;
        let (kept, webhook) = (run.clone(), live.wish.webhook.clone());
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
            tokio::spawn(perform(hub.clone(), live.clone(), seat));
            Ok((run, live))
        }
        Err(fault) => {
            if let Some(seat) = &seat {
                seat.leave(live.id);
            }
            hub.end(&live);
            Err(fault)
        }
    }
}

/// The thread is there, or is made when the wish allows it. Its session's setup is the thread's own
/// once it has one; before, the run's counts.
async fn known_thread(hub: &Hub, owner: &Arc<str>, id: Uuid, wish: &Wish) -> Result<(), Fault> {
    let has_setup = wish.setup.cwd.is_some() || !wish.setup.mcp_servers.is_empty();
    let known = match hub.owns_thread(owner, id).await {
        Ok(()) => hub.thread(id).await,
        Err(fault) => Err(fault),
    };
    match known {
        Ok(mut thread) if thread.session.is_none() && has_setup => {
            let own = Setup::of_metadata(&thread.metadata)?;
            let merged = Setup {
                cwd: wish.setup.cwd.clone().or(own.cwd),
                mcp_servers: if wish.setup.mcp_servers.is_empty() {
                    own.mcp_servers
                } else {
                    wish.setup.mcp_servers.clone()
                },
                ..Setup::default()
            };
            thread.setup = hub.kept_setup(&merged);
            hub.store
                .ask(move |db| store::update_thread(db, &thread))
                .await
        }
        Ok(_) => Ok(()),
        Err(fault) if fault.status == 404 && wish.make_thread => {
            let thread = new_thread(id, serde_json::Map::new(), hub.kept_setup(&wish.setup));
            // The id may be another principal's.
            match hub.add_thread(owner, &thread).await? {
                true => Ok(()),
                false => hub.owns_thread(owner, id).await,
            }
        }
        Err(fault) => Err(fault),
    }
}

/// Answers the open interrupt of a run.
pub(super) async fn resume(
    hub: &Hub,
    thread: Option<Uuid>,
    id: Uuid,
    body: &Value,
) -> Result<Run, Fault> {
    let run = hub.run(thread, id).await?;
    Fields::of(body)?;
    let Some(live) = hub.live(id) else {
        let what = format!("the run is over, with status {}", run.status.word());
        return Err(Fault::conflict(what));
    };
    let (request, answer) = live.resume(body)?;
    // Kept before the agent goes on: what it says next is newer.
    let run = hub.keep(&live).await?;
    if let Some(dial) = live.dial() {
        hub.line.tell(dial, say::result(&request, &answer));
    }
    Ok(run)
}

/// Cancels a run, and waits for its end if that is wanted.
pub(super) async fn cancel(
    hub: &Hub,
    thread: Option<Uuid>,
    id: Uuid,
    wait: bool,
) -> Result<(), Fault> {
    let run = hub.run(thread, id).await?;
    let Some(live) = hub.live(id).filter(|_| !run.status.is_final()) else {
        return Err(Fault::conflict("the run is over already"));
    };
    live.cancel.cancel();
    if wait {
        over(hub, &live).await;
    }
    Ok(())
}

/// Forgets a run; one that goes on is cancelled first.
pub(super) async fn delete(hub: &Hub, thread: Option<Uuid>, id: Uuid) -> Result<(), Fault> {
    hub.run(thread, id).await?;
    if let Some(live) = hub.live(id) {
        live.cancel.cancel();
        over(hub, &live).await;
    }
    hub.store.ask(move |db| store::delete_run(db, id)).await
}

/// Waits until a run is over.
async fn over(hub: &Hub, live: &Live) {
    loop {
        let mut kept = live.kept.subscribe();
        let over = live.snapshot(now()).0.status.is_final();
        if over || hub.live(live.id).is_none() {
            return;
        }
        let _ = kept.changed().await;
    }
}

/// Whether the status of a run is one that others want to hear of. That it goes on is known to who
/// has it go on.
pub(super) fn is_news(status: Status) -> bool {
    status != Status::Pending
}

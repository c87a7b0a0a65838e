//! The routes of the Agent Connect API, in both generations, and their handlers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use serde_json::json;
use tokio_util::sync::DropGuard;

use super::call::{Api, Call};
use super::hub::RunAt;
use super::response::{Reply, events, json, nothing, with_location};
use super::start;
use super::stream::{final_event, follow};
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::body::read;
use crate::agent_connect::api::openapi;
use crate::agent_connect::api::page::ResultPage;
use crate::agent_connect::api::record::{RunRecord, history, state};
use crate::agent_connect::api::run_request::OnDisconnect;
use crate::agent_connect::api::search::{AgentFilter, RunFilter, Search};
use crate::agent_connect::api::thread_request::{ThreadCreate, ThreadPatch};
use crate::agent_connect::store::OwnedRows;

/// How long `/output` waits by default.
const DEFAULT_BLOCK: Duration = Duration::from_secs(60);

/// What is answered when a run is started.
#[derive(Clone, Copy)]
enum StartReply {
    /// The run itself.
    Run,
    /// The run's output, once it has ended.
    Output,
    /// The run's events.
    Events,
}

/// The routes. Paths begin below the service's.
pub(super) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/openapi.json", get(openapi_document))
        .route("/agents/search", post(search_agents))
        .route("/agents/{agent_id}", get(agent))
        .route("/agents/{agent_id}/descriptor", get(descriptor))
        .route("/agents/{agent_id}/manifest", get(descriptor))
        .route("/agents/agent/{agent_id}/manifest", get(descriptor))
        .route("/threads", post(create_thread))
        .route("/threads/search", post(search_threads))
        .route(
            "/threads/{thread_id}",
            get(thread).patch(patch_thread).delete(delete_thread),
        )
        .route("/threads/{thread_id}/state", get(thread_state))
        .route("/threads/{thread_id}/history", get(thread_history))
        .route("/threads/{thread_id}/copy", post(copy_thread))
        .route(
            "/threads/{thread_id}/runs",
            get(thread_runs).post(|call: Call| start(call, StartReply::Run)),
        )
        .nest("/threads/{thread_id}/runs", run_routes())
        .route("/runs", post(|call: Call| start(call, StartReply::Run)))
        .route("/runs/search", post(search_runs))
        .nest("/runs", run_routes())
        .fallback(async || ApiError::not_found("nothing is served at this path"))
        .with_state(api)
}

/// The routes of runs, with a thread in their path or without.
fn run_routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/wait", post(|call: Call| start(call, StartReply::Output)))
        .route(
            "/stream",
            post(|call: Call| start(call, StartReply::Events)),
        )
        .route("/{run_id}", get(run).post(resume).delete(delete_run))
        .route("/{run_id}/wait", get(wait))
        .route("/{run_id}/output", get(output))
        .route("/{run_id}/stream", get(stream))
        .route("/{run_id}/threadstate", get(run_state))
        .route("/{run_id}/cancel", post(cancel))
}

async fn openapi_document(call: Call) -> Reply {
    json(&openapi::document(&call.api.base))
}

async fn search_agents(call: Call) -> Reply {
    let search: Search<AgentFilter> = Search::read(&call.json()?)?;
    let known = call.api.hub.agents.infos(&call.requester).await?;
    let found = known.iter().filter(|agent| agent.matches(&search.wanted));
    let page = search.page.slice(found.map(|agent| agent.entry()));
    json(&page.collect::<Vec<_>>())
}

async fn agent(call: Call) -> Reply {
    let agents = &call.api.hub.agents;
    let line = agents.find(&call.requester, call.agent()).await?;
    json(&line.info().await?.entry())
}

async fn descriptor(call: Call) -> Reply {
    let agents = &call.api.hub.agents;
    let line = agents.find(&call.requester, call.agent()).await?;
    let agent = line.info().await?;
    json(&agent.descriptor(line.uses_forms()))
}

async fn create_thread(call: Call) -> Reply {
    call.check_not_draining()?;
    let wanted: ThreadCreate = read(&call.json()?)?;
    json(&call.api.hub.create_thread(&call.requester, wanted).await?)
}

async fn search_threads(call: Call) -> Reply {
    let search = Search::read(&call.json()?)?;
    json(&call.api.hub.find_threads(&call.requester, search).await?)
}

async fn thread(call: Call) -> Reply {
    let (hub, owner) = (&call.api.hub, call.owner());
    let thread = hub.thread(owner, call.thread()?).await?;
    json(&hub.show_thread(owner, thread).await?)
}

async fn patch_thread(call: Call) -> Reply {
    let patch: ThreadPatch = read(&call.json()?)?;
    let hub = &call.api.hub;
    json(
        &hub.patch_thread(call.owner(), call.thread()?, patch)
            .await?,
    )
}

async fn delete_thread(call: Call) -> Reply {
    let hub = &call.api.hub;
    hub.delete_thread(call.owner(), call.thread()?).await?;
    Ok(nothing())
}

async fn thread_state(call: Call) -> Reply {
    json(&state(
        &call.api.hub.turns(call.owner(), call.thread()?).await?,
    ))
}

async fn thread_history(call: Call) -> Reply {
    let page = ResultPage::new(call.number("limit")?, None)?;
    let turns = call.api.hub.turns(call.owner(), call.thread()?).await?;
    json(&history(&turns, page, call.text("before")))
}

async fn copy_thread(call: Call) -> Reply {
    call.check_not_draining()?;
    let hub = &call.api.hub;
    json(&hub.copy_thread(&call.requester, call.thread()?).await?)
}

async fn thread_runs(call: Call) -> Reply {
    let page = ResultPage::new(call.number("limit")?, call.number("offset")?)?;
    let (hub, owner, thread) = (&call.api.hub, call.owner(), call.thread()?);
    hub.thread(owner, thread).await?;
    let wanted = RunFilter::default();
    let search = Search { wanted, page };
    let find = move |rows: &OwnedRows<'_>| rows.find_runs(Some(thread), &search);
    json(&hub.store.run(owner, find).await?)
}

async fn search_runs(call: Call) -> Reply {
    let search = Search::read(&call.json()?)?;
    let find = move |rows: &OwnedRows<'_>| rows.find_runs(None, &search);
    json(&call.api.hub.store.run(call.owner(), find).await?)
}

/// Starts a run and answers as requested. The run's URL is sent in a header, for clients that
/// otherwise learn its id only at its end.
async fn start(call: Call, reply: StartReply) -> Reply {
    call.check_not_draining()?;
    let (hub, body) = (&call.api.hub, call.json()?);
    let max_wait = match reply {
        StartReply::Output => call.max_wait(None)?,
        StartReply::Run | StartReply::Events => None,
    };
    let (run, live) = start::start(hub, &call.requester, call.thread_if_named()?, body).await?;
    let cancels = live.request.on_disconnect == OnDisconnect::Cancel;
    let guard = cancels.then(|| live.cancel.clone().drop_guard());
    let permit = call.permit();
    let answer = match reply {
        StartReply::Run => {
            guard.map(DropGuard::disarm);
            json(&run)?
        }
        StartReply::Output => {
            let at = RunAt {
                owner: call.owner().clone(),
                thread: run.thread,
                id: run.id,
            };
            let settled = hub.wait_settled(&at, max_wait);
            let settled = permit.while_valid(settled).await?;
            guard.map(DropGuard::disarm);
            wait_response(settled.as_ref())?
        }
        StartReply::Events => {
            let modes = live.request.stream_modes;
            events(follow(live, modes, None, guard, permit))
        }
    };
    let thread = run
        .thread
        .map_or_else(String::new, |id| format!("/threads/{id}"));
    let url = format!("{}{thread}/runs/{}", call.api.path, run.id);
    Ok(with_location(answer, &url))
}

async fn run(call: Call) -> Reply {
    json(&call.api.hub.run(&call.run()?).await?)
}

async fn resume(call: Call) -> Reply {
    json(&start::resume(&call.api.hub, &call.run()?, &call.json()?).await?)
}

async fn delete_run(call: Call) -> Reply {
    start::delete(&call.api.hub, &call.run()?).await?;
    Ok(nothing())
}

async fn wait(call: Call) -> Reply {
    wait_response(settled(&call, None).await?.as_ref())
}

async fn output(call: Call) -> Reply {
    match settled(&call, Some(DEFAULT_BLOCK)).await? {
        Some(run) => json(&run.old_output()),
        None => Ok(nothing()),
    }
}

/// The run of the path, when it is no longer pending; `None` when that takes too long.
async fn settled(call: &Call, default: Option<Duration>) -> Result<Option<RunRecord>, ApiError> {
    let (run, max_wait) = (call.run()?, call.max_wait(default)?);
    let settled = call.api.hub.wait_settled(&run, max_wait);
    call.permit().while_valid(settled).await
}

async fn stream(call: Call) -> Reply {
    let (hub, at) = (&call.api.hub, call.run()?);
    let run = hub.run(&at).await?;
    Ok(events(match hub.active_run(at.id) {
        Some(live) => {
            let modes = live.request.stream_modes;
            let last = call.last_event.as_deref();
            follow(live, modes, last, None, call.permit())
        }
        None if run.status.is_final() => final_event(&run),
        // It ended between the two reads.
        None => final_event(&hub.run(&at).await?),
    }))
}

async fn run_state(call: Call) -> Reply {
    let hub = &call.api.hub;
    let run = hub.run(&call.run()?).await?;
    let none = || ApiError::not_found("the run has no thread");
    let thread = run.thread.ok_or_else(none)?;
    json(&state(&hub.turns(call.owner(), thread).await?))
}

async fn cancel(call: Call) -> Reply {
    let hub = &call.api.hub;
    match call.text("action") {
        None | Some("interrupt") => {}
        Some("rollback") => {
            return Err(ApiError::invalid(
                "action rollback is not possible: what an agent has done to files cannot be undone",
            ));
        }
        Some(_) => {
            return Err(ApiError::invalid(
                "\"action\" must be interrupt or rollback",
            ));
        }
    }
    let waits = call.parsed("wait", "true or false")?.unwrap_or(false);
    let live = start::cancel(hub, &call.run()?).await?;
    if waits {
        hub.wait_ended(|one| one.id == live.id).await;
    }
    Ok(nothing())
}

/// A run and its output, in the form of 0.2.3.
fn wait_response(run: Option<&RunRecord>) -> Reply {
    match run {
        Some(run) => json(&json!({ "run": run, "output": run.output() })),
        None => Ok(nothing()),
    }
}

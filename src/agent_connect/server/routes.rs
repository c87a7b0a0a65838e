//! The routes of the Agent Connect API, in both generations, and their handlers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::StatusCode;
use hyper::header::{CONTENT_LOCATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use super::call::Call;
use super::hub::{Hub, RunAt};
use super::perform;
use super::run::now;
use super::stream::{ended, follow};
use crate::api::body::read;
use crate::api::error::{ApiError, ApiResult};
use crate::api::openapi;
use crate::api::run::RunRecord;
use crate::api::run_request::OnDisconnect;
use crate::api::search::{AgentFilter, RunFilter, Search};
use crate::api::thread::{Thread, ThreadPatch, history};

/// How long `/output` waits by default.
const DEFAULT_BLOCK: Duration = Duration::from_secs(60);

/// The response of a handler.
type Reply = ApiResult<Response>;

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
pub(super) fn router(hub: Arc<Hub>) -> Router {
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
        .with_state(hub)
}

/// The routes of runs, with a thread in their path or without.
fn run_routes() -> Router<Arc<Hub>> {
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
    json(&openapi::document(&call.hub.base))
}

async fn search_agents(call: Call) -> Reply {
    let search: Search<AgentFilter> = Search::read(&call.body)?;
    let known = call.hub.agents.infos(&call.requester).await?;
    let found = known.iter().filter(|agent| agent.matches(&search.wanted));
    let page = search.page.slice(found.map(|agent| agent.entry()));
    json(&page.collect::<Vec<_>>())
}

async fn agent(call: Call) -> Reply {
    let conn = call.hub.agents.find(&call.requester, call.agent()).await?;
    json(&conn.info().await?.entry())
}

async fn descriptor(call: Call) -> Reply {
    let conn = call.hub.agents.find(&call.requester, call.agent()).await?;
    let agent = conn.info().await?;
    json(&agent.descriptor(conn.uses_forms()))
}

async fn create_thread(call: Call) -> Reply {
    call.check_not_draining()?;
    let wanted = read(&call.body)?;
    let thread = call.hub.create_thread(&call.requester, wanted).await?;
    json(&thread.shown())
}

async fn search_threads(call: Call) -> Reply {
    let search = Search::read(&call.body)?;
    call.hub.import_sessions(&call.requester).await;
    let found = call.rows(move |rows| rows.find_threads(&search)).await?;
    json(&found.iter().map(Thread::shown).collect::<Vec<_>>())
}

async fn thread(call: Call) -> Reply {
    let id = call.thread()?;
    json(&call.rows(move |rows| rows.thread(id)).await?.shown())
}

async fn patch_thread(call: Call) -> Reply {
    let (id, patch): (_, ThreadPatch) = (call.thread()?, read(&call.body)?);
    if patch.values.is_some() || patch.messages.is_some() {
        let what =
            "only \"metadata\" can be changed: messages sent to an agent cannot be withdrawn";
        return Err(ApiError::invalid(what));
    }
    let change = |thread: &mut Thread| {
        thread.metadata.extend(patch.metadata);
        thread.updated_at = now();
    };
    let changed = call.rows(move |rows| rows.update_thread(id, change));
    json(&changed.await?.shown())
}

async fn delete_thread(call: Call) -> Reply {
    let id = call.thread()?;
    call.hub.delete_thread(&call.requester, id).await?;
    nothing()
}

async fn thread_state(call: Call) -> Reply {
    let id = call.thread()?;
    state(&call.rows(move |rows| rows.thread(id)).await?)
}

async fn thread_history(call: Call) -> Reply {
    let (id, page) = (call.thread()?, call.page()?);
    let turns = call.rows(move |rows| {
        rows.thread(id)?;
        Ok(rows.turns(id)?)
    });
    json(&history(&turns.await?, page, call.text("before")))
}

async fn copy_thread(call: Call) -> Reply {
    call.check_not_draining()?;
    let copied = call.hub.copy_thread(&call.requester, call.thread()?);
    json(&copied.await?.shown())
}

async fn thread_runs(call: Call) -> Reply {
    let (id, page) = (call.thread()?, call.page()?);
    let wanted = RunFilter::default();
    let find = call.rows(move |rows| {
        rows.thread(id)?;
        rows.find_runs(Some(id), &Search { wanted, page })
    });
    runs(&find.await?)
}

async fn search_runs(call: Call) -> Reply {
    let search = Search::read(&call.body)?;
    runs(&call.rows(move |rows| rows.find_runs(None, &search)).await?)
}

/// Starts a run and answers as requested. The run's URL is sent in a header, for clients that
/// otherwise learn its id only at its end.
async fn start(call: Call, reply: StartReply) -> Reply {
    call.check_not_draining()?;
    let max_wait = match reply {
        StartReply::Output => call.max_wait(None)?,
        StartReply::Run | StartReply::Events => None,
    };
    let (hub, body, thread) = (&call.hub, call.body.clone(), call.thread_if_named()?);
    let (record, live) = perform::start(hub, &call.requester, thread, body).await?;
    let cancels = live.request.on_disconnect == OnDisconnect::Cancel;
    let guard = cancels.then(|| live.cancel.clone().drop_guard());
    let mut answer = match reply {
        StartReply::Run => {
            guard.map(DropGuard::disarm);
            json(&record.shown())?
        }
        StartReply::Output => {
            let at = RunAt {
                owner: call.owner().clone(),
                thread: record.thread,
                id: record.id,
            };
            let settled = hub.wait_settled(&at, max_wait);
            let settled = call.while_valid(settled).await?;
            guard.map(DropGuard::disarm);
            wait_response(settled.as_ref())?
        }
        StartReply::Events => follow(&call, live, guard),
    };
    let thread = record.thread.map(|id| format!("/threads/{id}"));
    let thread = thread.unwrap_or_default();
    let url = format!("{}{thread}/runs/{}", hub.path, record.id);
    if let Ok(url) = HeaderValue::from_str(&url) {
        answer.headers_mut().insert(CONTENT_LOCATION, url);
    }
    Ok(answer)
}

async fn run(call: Call) -> Reply {
    json(&call.hub.run(&call.run()?).await?.shown())
}

async fn resume(call: Call) -> Reply {
    let at = call.run()?;
    let resumed = perform::resume(&call.hub, &at, &call.body);
    json(&resumed.await?.shown())
}

/// Deletes a run; one that has not ended is cancelled first.
async fn delete_run(call: Call) -> Reply {
    let (hub, at) = (&call.hub, call.run()?);
    hub.run(&at).await?;
    if let Some(live) = hub.active_run(at.id) {
        live.run.cancel.cancel();
        hub.wait_ended(|one| one.run.id == at.id).await;
    }
    call.rows(move |rows| rows.delete_run(at.id)).await?;
    nothing()
}

async fn wait(call: Call) -> Reply {
    wait_response(settled(&call, None).await?.as_ref())
}

async fn output(call: Call) -> Reply {
    match settled(&call, Some(DEFAULT_BLOCK)).await? {
        Some(run) => json(&run.old_output()),
        None => nothing(),
    }
}

/// The run of the path, when it is no longer pending; `None` when that takes too long.
async fn settled(call: &Call, default: Option<Duration>) -> ApiResult<Option<RunRecord>> {
    let (run, max_wait) = (call.run()?, call.max_wait(default)?);
    let settled = call.hub.wait_settled(&run, max_wait);
    call.while_valid(settled).await
}

async fn stream(call: Call) -> Reply {
    let (hub, at) = (&call.hub, call.run()?);
    let run = hub.run(&at).await?;
    Ok(match hub.active_run(at.id) {
        Some(live) => follow(&call, live.run, None),
        None if run.status.is_final() => ended(&run),
        // It ended between the two reads.
        None => ended(&hub.run(&at).await?),
    })
}

async fn run_state(call: Call) -> Reply {
    let run = call.hub.run(&call.run()?).await?;
    let none = || ApiError::not_found("the run has no thread");
    let thread = run.thread.ok_or_else(none)?;
    state(&call.rows(move |rows| rows.thread(thread)).await?)
}

/// Cancels a run; it may take a while to end.
async fn cancel(call: Call) -> Reply {
    let what = match call.text("action") {
        None | Some("interrupt") => None,
        Some("rollback") => Some(
            "action rollback is not possible: what an agent has done to files cannot be undone",
        ),
        Some(_) => Some("\"action\" must be interrupt or rollback"),
    };
    if let Some(what) = what {
        return Err(ApiError::invalid(what));
    }
    let (hub, at) = (&call.hub, call.run()?);
    let waits = call.parsed("wait", "true or false")?.unwrap_or(false);
    let run = hub.run(&at).await?;
    let live = hub.active_run(at.id).filter(|_| !run.status.is_final());
    let live = live.ok_or_else(|| ApiError::conflict("the run has already ended"))?;
    live.run.cancel.cancel();
    if waits {
        hub.wait_ended(|one| one.run.id == at.id).await;
    }
    nothing()
}

/// A run and its output, in the form of 0.2.3.
fn wait_response(run: Option<&RunRecord>) -> Reply {
    match run {
        Some(run) => json(&json!({ "run": run.shown(), "output": run.output() })),
        None => nothing(),
    }
}

fn runs(found: &[RunRecord]) -> Reply {
    json(&found.iter().map(RunRecord::shown).collect::<Vec<_>>())
}

/// The state of a thread, in the form of the older generation.
fn state(thread: &Thread) -> Reply {
    let mut state = thread.values.clone().unwrap_or_default();
    state.insert("messages".to_owned(), json!(thread.messages));
    json(&state)
}

/// A response with a JSON value.
fn json(value: &impl Serialize) -> Reply {
    let text = json!(value).to_string();
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

/// A response without a body.
fn nothing() -> Reply {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The body of an error is its message, as a JSON string.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        tracing::debug!(%status, what = %self.message, "a request was rejected");
        let body = Value::from(self.message).to_string();
        let mut answer = (status, [(CONTENT_TYPE, "application/json")], body).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let second = HeaderValue::from_static("1");
            answer.headers_mut().insert(RETRY_AFTER, second);
        }
        answer
    }
}

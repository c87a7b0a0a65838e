//! Dispatches the requests of the Agent Connect API.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::{Value, json};

use super::agents::Requester;
use super::hub::{Hub, RunAt};
use super::permit::AccessPermit;
use super::query::Query;
use super::response::{self, RestResponse};
use super::start::{self, start};
use super::stream::{CancelOnDrop, final_event, follow};
use crate::agent_connect::api_error::ApiError;
use crate::agent_connect::openapi;
use crate::agent_connect::record::{RunRecord, history, state};
use crate::agent_connect::route::{Route, RouteError, RunAction, StartReply, find};
use crate::agent_connect::search::{self, ResultPage};
use crate::agent_connect::uuid::Uuid;
use crate::auth::RejectReason;
use crate::transport::http::content::is_type;
use crate::transport::http::port::body;
use crate::transport::http::port::caller::{AuthenticatedClient, Caller};
use crate::transport::http::port::refusal::Refusal;
use crate::transport::http::port::{Port, handle};

/// The methods that are served.
const METHODS: &str = "GET, POST, PATCH, DELETE";
/// How long `/output` waits by default, and at most.
const DEFAULT_BLOCK: Duration = Duration::from_secs(60);
const MAX_BLOCK: f64 = 600.0;

/// The Agent Connect service of a port.
#[derive(Debug)]
pub(in crate::transport) struct RestService {
    pub(super) port: Arc<Port>,
    pub(super) hub: Arc<Hub>,
    /// The path it is served at, without a slash at the end.
    pub(super) path: String,
    /// Its URL.
    pub(super) base: String,
}

impl RestService {
    /// Whether it serves a path of the port.
    pub(in crate::transport) fn serves(&self, path: &str) -> bool {
        let below = path.strip_prefix(&self.path);
        below.is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The parts of a request that the handlers need.
struct RequestParts {
    query: Query,
    body: Bytes,
    last_event: Option<String>,
}

/// Answers a request.
pub(super) async fn answer(
    service: Arc<RestService>,
    request: Request<Incoming>,
    caller: Arc<Caller>,
) -> Result<RestResponse, Infallible> {
    let port = &service.port;
    let answered = handle(
        port,
        request,
        &caller,
        METHODS,
        response::refusal,
        |request, client| serve(&service, request, client),
    );
    Ok(answered.await)
}

/// The client, if it may use any of the agents.
fn requester(service: &RestService, client: AuthenticatedClient) -> Result<Requester, Refusal> {
    let principal = client.principal;
    if !service.hub.agents.has_any_for(&principal) {
        let why = format!("the {principal} is for other agents");
        return Err(Refusal::fatal(StatusCode::FORBIDDEN, why));
    }
    Ok(Requester {
        owner: principal.to_string().into(),
        principal,
        default_agent: service.port.rules().front.default_agent.clone(),
    })
}

async fn serve(
    service: &RestService,
    request: Request<Incoming>,
    client: AuthenticatedClient,
) -> Result<RestResponse, Refusal> {
    let requester = Arc::new(requester(service, client)?);
    let path = request.uri().path();
    let ours = path
        .strip_prefix(&service.path)
        .filter(|_| service.serves(path));
    let route = match ours {
        Some(rest) => find(request.method().as_str(), rest),
        None => Err(RouteError::not_found()),
    };
    let route = match route {
        Ok(route) => route,
        Err(RouteError::NotFound(fault)) => return Ok(response::api_error(&fault)),
        Err(RouteError::WrongMethod(allowed)) => return Ok(response::method_not_allowed(allowed)),
    };
    let query = Query::read(request.uri().query());
    let last_event = request.headers().get("last-event-id");
    let last_event = last_event
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    // Without this check a web page could post other types from another origin without a preflight.
    let is_json = is_type(request.headers(), "application/json");
    let port = &service.port;
    // Its share of the memory for bodies is held until the response is complete.
    let (body, _share) = body::read(request.into_body(), &port.bodies, &port.limits).await?;
    if !body.is_empty() && !is_json {
        let why = "Content-Type must be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let parts = RequestParts {
        query,
        body,
        last_event,
    };
    let answered = Box::pin(dispatch(service, route, parts, &requester)).await;
    Ok(answered.unwrap_or_else(|fault| {
        tracing::debug!(status = fault.status, what = %fault.message, "a request was rejected");
        if fault.status == StatusCode::NOT_FOUND.as_u16() {
            port.count(RejectReason::Unknown);
        }
        response::api_error(&fault)
    }))
}

async fn dispatch(
    service: &RestService,
    route: Route,
    parts: RequestParts,
    requester: &Arc<Requester>,
) -> Result<RestResponse, ApiError> {
    let (hub, owner) = (&service.hub, &requester.owner);
    if let Route::CreateThread | Route::CopyThread(_) | Route::Start(..) = route
        && service.port.setup.draining.is_cancelled()
    {
        return Err(ApiError::unavailable("the relay is shutting down"));
    }
    let all =
        |found: Vec<RunRecord>| response::json(&found.iter().map(RunRecord::to_json).collect());
    Ok(match route {
        Route::OpenApi => response::json(&openapi::document(&service.base)),
        Route::SearchAgents => {
            let wanted = search::AgentSearch::read(&parts.json()?)?;
            response::json(&hub.find_agents(requester, &wanted).await?.into())
        }
        Route::Agent(named) => {
            let line = hub.agents.find(requester, &named).await?;
            response::json(&line.info().await?.entry())
        }
        Route::Descriptor(named) => {
            let line = hub.agents.find(requester, &named).await?;
            let agent = line.info().await?;
            response::json(&agent.descriptor(line.uses_forms()))
        }
        Route::CreateThread => response::json(&hub.create_thread(requester, &parts.json()?).await?),
        Route::SearchThreads => {
            let wanted = search::ThreadSearch::read(&parts.json()?)?;
            response::json(&hub.find_threads(requester, wanted).await?.into())
        }
        Route::Thread(id) => {
            let thread = hub.thread(owner, id).await?;
            response::json(&hub.show_thread(owner, thread).await?)
        }
        Route::PatchThread(id) => {
            response::json(&hub.patch_thread(owner, id, &parts.json()?).await?)
        }
        Route::DeleteThread(id) => {
            hub.delete_thread(owner, id).await?;
            response::empty(StatusCode::NO_CONTENT)
        }
        Route::State(id) => response::json(&state(&hub.turns(owner, id).await?)),
        Route::History(id) => {
            let page = ResultPage::new(parts.query.number("limit")?, None)?;
            let turns = hub.turns(owner, id).await?;
            let states = history(&turns, page.limit, parts.query.text("before"));
            response::json(&states.into())
        }
        Route::CopyThread(id) => response::json(&hub.copy_thread(requester, id).await?),
        Route::ThreadRuns(id) => {
            let query = &parts.query;
            let page = ResultPage::new(query.number("limit")?, query.number("offset")?)?;
            hub.thread(owner, id).await?;
            let metadata = serde_json::Map::new();
            let wanted = search::RunSearch {
                agent: None,
                status: None,
                metadata,
                page,
            };
            all(hub.find_runs(owner, Some(id), wanted).await?)
        }
        Route::SearchRuns => {
            let wanted = search::RunSearch::read(&parts.json()?)?;
            all(hub.find_runs(owner, None, wanted).await?)
        }
        Route::Start(thread, then) => start_run(service, requester, thread, then, &parts).await?,
        Route::Run(thread, id, action) => {
            let owner = owner.clone();
            let at = RunAt { owner, thread, id };
            run_action(service, requester, &at, action, &parts).await?
        }
    })
}

/// Starts a run and answers as requested. The run's URL is sent in a header, for clients that
/// otherwise learn its id only at its end.
async fn start_run(
    service: &RestService,
    requester: &Arc<Requester>,
    thread: Option<Uuid>,
    reply: StartReply,
    parts: &RequestParts,
) -> Result<RestResponse, ApiError> {
    let hub = &service.hub;
    let (run, live) = start(hub, requester, thread, parts.json()?).await?;
    let to_cancel = live.request.cancel_on_disconnect.then(|| live.clone());
    let permit = AccessPermit::new(service, requester);
    let answer = match reply {
        StartReply::Show => response::json(&run.to_json()),
        StartReply::Wait => {
            let max_wait = parts.max_wait(None)?;
            let mut guard = CancelOnDrop(to_cancel);
            let at = RunAt {
                owner: requester.owner.clone(),
                thread: run.thread,
                id: run.id,
            };
            let settled = permit.while_valid(hub.wait_settled(&at, max_wait)).await?;
            guard.release();
            wait_response(settled.as_ref())
        }
        StartReply::Stream => {
            let modes = live.request.stream_modes;
            response::events(follow(live, modes, None, CancelOnDrop(to_cancel), permit))
        }
    };
    let thread = run
        .thread
        .map_or_else(String::new, |id| format!("/threads/{id}"));
    let url = format!("{}{thread}/runs/{}", service.path, run.id);
    Ok(response::with_location(answer, &url))
}

async fn run_action(
    service: &RestService,
    requester: &Arc<Requester>,
    at: &RunAt,
    action: RunAction,
    parts: &RequestParts,
) -> Result<RestResponse, ApiError> {
    let hub = &service.hub;
    let empty = || response::empty(StatusCode::NO_CONTENT);
    let permit = AccessPermit::new(service, requester);
    let settled = async |default| {
        let max_wait = parts.max_wait(default)?;
        permit.while_valid(hub.wait_settled(at, max_wait)).await
    };
    Ok(match action {
        RunAction::Show => response::json(&hub.run(at).await?.to_json()),
        RunAction::Resume => {
            let run = start::resume(hub, at, &parts.json()?).await?;
            response::json(&run.to_json())
        }
        RunAction::Delete => {
            start::delete(hub, at).await?;
            empty()
        }
        RunAction::Wait => wait_response(settled(None).await?.as_ref()),
        RunAction::Output => match settled(Some(DEFAULT_BLOCK)).await? {
            Some(run) => response::json(&run.old_output()),
            None => empty(),
        },
        RunAction::Cancel => {
            match parts.query.text("action") {
                None | Some("interrupt") => {}
                Some("rollback") => {
                    return Err(ApiError::invalid(
                        "action rollback is not possible: what an agent has done to files cannot \
                         be undone",
                    ));
                }
                Some(_) => {
                    return Err(ApiError::invalid(
                        "\"action\" must be interrupt or rollback",
                    ));
                }
            }
            let waits = parts.query.boolean("wait")?;
            let live = start::cancel(hub, at).await?;
            if waits {
                start::wait_ended(hub, &live).await;
            }
            empty()
        }
        RunAction::State => {
            let run = hub.run(at).await?;
            let none = || ApiError::not_found("the run has no thread");
            let thread = run.thread.ok_or_else(none)?;
            response::json(&state(&hub.turns(&at.owner, thread).await?))
        }
        RunAction::Stream => {
            let run = hub.run(at).await?;
            match hub.active_run(at.id) {
                Some(live) => {
                    let modes = live.request.stream_modes;
                    let last = parts.last_event.as_deref();
                    response::events(follow(live, modes, last, CancelOnDrop(None), permit))
                }
                None if run.status.is_final() => response::events(final_event(&run)),
                // It ended between the two reads.
                None => response::events(final_event(&hub.run(at).await?)),
            }
        }
    })
}

/// A run and its output, in the form of 0.2.3.
fn wait_response(run: Option<&RunRecord>) -> RestResponse {
    match run {
        Some(run) => response::json(&json!({ "run": run.to_json(), "output": run.output() })),
        None => response::empty(StatusCode::NO_CONTENT),
    }
}

impl RequestParts {
    /// The body; an empty one is an empty object.
    fn json(&self) -> Result<Value, ApiError> {
        if self.body.is_empty() {
            return Ok(json!({}));
        }
        let wrong = |error| ApiError::invalid(format!("the body is not JSON: {error}"));
        serde_json::from_slice(&self.body).map_err(wrong)
    }

    /// How long to wait: `block_timeout` in seconds, in the query or, as in the prose
    /// specification, in the body; `default` if not given.
    fn max_wait(&self, default: Option<Duration>) -> Result<Option<Duration>, ApiError> {
        let mut given = self.query.seconds("block_timeout")?;
        if given.is_none() && !self.body.is_empty() {
            let body = self.json()?;
            given = match body.get("block_timeout") {
                None | Some(Value::Null) => None,
                Some(value) => Some(value.as_f64().filter(|given| *given >= 0.0).ok_or_else(
                    || {
                        ApiError::invalid(
                            "\"block_timeout\" must be a number of seconds, 0 or more",
                        )
                    },
                )?),
            };
        }
        let given = given.map(|given| Duration::from_secs_f64(given.min(MAX_BLOCK)));
        Ok(given.or(default))
    }
}

//! Dispatches the requests of the Agent Connect API.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::{Value, json};

use super::agents::Asker;
use super::answer::{self, Answer};
use super::hub::{Hub, RunAt};
use super::query::Query;
use super::start::{self, start};
use super::stay::Stay;
use super::stream::{Tied, follow, last};
use crate::agent_connect::fault::Fault;
use crate::agent_connect::openapi;
use crate::agent_connect::record::{Run, history, state};
use crate::agent_connect::route::{Deed, Lost, Route, Then, find};
use crate::agent_connect::search::{self, Page};
use crate::agent_connect::uuid::Uuid;
use crate::auth::Turned;
use crate::transport::http::content::is_of;
use crate::transport::http::port::body;
use crate::transport::http::port::caller::{Caller, Guest};
use crate::transport::http::port::refuse::Refusal;
use crate::transport::http::port::{Port, receive};

/// The methods that are served.
const METHODS: &str = "GET, POST, PATCH, DELETE";
/// How long `/output` waits by default, and at most.
const BLOCK: Duration = Duration::from_secs(60);
const LONGEST_BLOCK: f64 = 600.0;

/// The Agent Connect service of a port.
#[derive(Debug)]
pub(in crate::transport) struct Service {
    pub(super) port: Arc<Port>,
    pub(super) hub: Arc<Hub>,
    /// The path it is served at, without a slash at the end.
    pub(super) path: String,
    /// Its URL.
    pub(super) base: String,
}

impl Service {
    /// Whether it serves a path of the port.
    pub(in crate::transport) fn serves(&self, path: &str) -> bool {
        let below = path.strip_prefix(&self.path);
        below.is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The parts of a request that the handlers need.
struct Asked {
    query: Query,
    body: Bytes,
    last_event: Option<String>,
}

/// Answers a request.
pub(super) async fn answer(
    service: Arc<Service>,
    request: Request<Incoming>,
    caller: Arc<Caller>,
) -> Result<Answer, Infallible> {
    let port = &service.port;
    let answered = receive(
        port,
        request,
        &caller,
        METHODS,
        answer::refusal,
        |request, guest| serve(&service, request, guest),
    );
    Ok(answered.await)
}

/// The client, if it may use any of the agents.
fn asker(service: &Service, guest: Guest) -> Result<Asker, Refusal> {
    let principal = guest.principal;
    if !service.hub.agents.has_any_for(&principal) {
        let why = format!("the {principal} is for other agents");
        return Err(Refusal::stranger(StatusCode::FORBIDDEN, why));
    }
    Ok(Asker {
        owner: principal.to_string().into(),
        principal,
        usual: service.port.rules().front.default_agent.clone(),
    })
}

async fn serve(
    service: &Service,
    request: Request<Incoming>,
    guest: Guest,
) -> Result<Answer, Refusal> {
    let asker = Arc::new(asker(service, guest)?);
    let path = request.uri().path();
    let ours = path
        .strip_prefix(&service.path)
        .filter(|_| service.serves(path));
    let route = match ours {
        Some(rest) => find(request.method().as_str(), rest),
        None => Err(Lost::nowhere()),
    };
    let route = match route {
        Ok(route) => route,
        Err(Lost::Unknown(fault)) => return Ok(answer::fault(&fault)),
        Err(Lost::Method(allowed)) => return Ok(answer::method(allowed)),
    };
    let query = Query::read(request.uri().query());
    let last_event = request.headers().get("last-event-id");
    let last_event = last_event
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    // Without this check a web page could post other types from another origin without a preflight.
    let is_json = is_of(request.headers(), "application/json");
    let port = &service.port;
    // Its share of the memory for bodies is held until the response is complete.
    let (body, _share) = body::read(request.into_body(), &port.bodies, &port.limits).await?;
    if !body.is_empty() && !is_json {
        let why = "Content-Type must be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let asked = Asked {
        query,
        body,
        last_event,
    };
    let answered = Box::pin(route_to(service, route, asked, &asker)).await;
    Ok(answered.unwrap_or_else(|fault| {
        tracing::debug!(status = fault.status, what = %fault.what, "a request was rejected");
        if fault.status == StatusCode::NOT_FOUND.as_u16() {
            port.count(Turned::Unknown);
        }
        answer::fault(&fault)
    }))
}

async fn route_to(
    service: &Service,
    route: Route,
    asked: Asked,
    asker: &Arc<Asker>,
) -> Result<Answer, Fault> {
    let (hub, owner) = (&service.hub, &asker.owner);
    if let Route::MakeThread | Route::Copy(_) | Route::Start(..) = route
        && service.port.setup.draining.is_cancelled()
    {
        return Err(Fault::later("the relay is shutting down"));
    }
    let all = |found: Vec<Run>| answer::json(&found.iter().map(Run::shown).collect());
    Ok(match route {
        Route::Document => answer::json(&openapi::document(&service.base)),
        Route::SearchAgents => {
            let wanted = search::Agents::read(&asked.json()?)?;
            answer::json(&hub.find_agents(asker, &wanted).await?.into())
        }
        Route::Agent(named) => {
            let line = hub.agents.find(asker, &named).await?;
            answer::json(&line.introduced().await?.entry())
        }
        Route::Descriptor(named) => {
            let line = hub.agents.find(asker, &named).await?;
            let agent = line.introduced().await?;
            answer::json(&agent.descriptor(line.asks_forms()))
        }
        Route::MakeThread => answer::json(&hub.make_thread(asker, &asked.json()?).await?),
        Route::SearchThreads => {
            let wanted = search::Threads::read(&asked.json()?)?;
            answer::json(&hub.find_threads(asker, wanted).await?.into())
        }
        Route::Thread(id) => {
            let thread = hub.thread(owner, id).await?;
            answer::json(&hub.show_thread(owner, thread).await?)
        }
        Route::PatchThread(id) => answer::json(&hub.patch_thread(owner, id, &asked.json()?).await?),
        Route::DeleteThread(id) => {
            hub.delete_thread(owner, id).await?;
            answer::empty(StatusCode::NO_CONTENT)
        }
        Route::State(id) => answer::json(&state(&hub.turns(owner, id).await?)),
        Route::History(id) => {
            let page = Page::of(asked.query.number("limit")?, None)?;
            let turns = hub.turns(owner, id).await?;
            let states = history(&turns, page.limit, asked.query.text("before"));
            answer::json(&states.into())
        }
        Route::Copy(id) => answer::json(&hub.copy_thread(asker, id).await?),
        Route::ThreadRuns(id) => {
            let query = &asked.query;
            let page = Page::of(query.number("limit")?, query.number("offset")?)?;
            hub.thread(owner, id).await?;
            let metadata = serde_json::Map::new();
            let wanted = search::Runs {
                agent: None,
                status: None,
                metadata,
                page,
            };
            all(hub.find_runs(owner, Some(id), wanted).await?)
        }
        Route::SearchRuns => {
            let wanted = search::Runs::read(&asked.json()?)?;
            all(hub.find_runs(owner, None, wanted).await?)
        }
        Route::Start(thread, then) => begin(service, asker, thread, then, &asked).await?,
        Route::Run(thread, id, deed) => {
            let owner = owner.clone();
            let at = RunAt { owner, thread, id };
            with_run(service, asker, &at, deed, &asked).await?
        }
    })
}

/// Starts a run and answers as requested. The run's URL is sent in a header, for clients that
/// otherwise learn its id only at its end.
async fn begin(
    service: &Service,
    asker: &Arc<Asker>,
    thread: Option<Uuid>,
    then: Then,
    asked: &Asked,
) -> Result<Answer, Fault> {
    let hub = &service.hub;
    let (run, live) = start(hub, asker, thread, asked.json()?).await?;
    let tied = live.request.tied.then(|| live.clone());
    let stay = Stay::of(service, asker);
    let answer = match then {
        Then::Show => answer::json(&run.shown()),
        Then::Wait => {
            let patience = asked.patience(None)?;
            let mut tied = Tied(tied);
            let at = RunAt {
                owner: asker.owner.clone(),
                thread: run.thread,
                id: run.id,
            };
            let settled = stay.during(hub.settled(&at, patience)).await?;
            tied.release();
            waited(settled.as_ref())
        }
        Then::Stream => {
            let modes = live.request.modes;
            answer::events(follow(live, modes, None, Tied(tied), stay))
        }
    };
    let thread = run
        .thread
        .map_or_else(String::new, |id| format!("/threads/{id}"));
    let place = format!("{}{thread}/runs/{}", service.path, run.id);
    Ok(answer::located(answer, &place))
}

async fn with_run(
    service: &Service,
    asker: &Arc<Asker>,
    at: &RunAt,
    deed: Deed,
    asked: &Asked,
) -> Result<Answer, Fault> {
    let hub = &service.hub;
    let empty = || answer::empty(StatusCode::NO_CONTENT);
    let stay = Stay::of(service, asker);
    let settled = async |usual| {
        let patience = asked.patience(usual)?;
        stay.during(hub.settled(at, patience)).await
    };
    Ok(match deed {
        Deed::Show => answer::json(&hub.run(at).await?.shown()),
        Deed::Resume => {
            let run = start::resume(hub, at, &asked.json()?).await?;
            answer::json(&run.shown())
        }
        Deed::Delete => {
            start::delete(hub, at).await?;
            empty()
        }
        Deed::Wait => waited(settled(None).await?.as_ref()),
        Deed::Output => match settled(Some(BLOCK)).await? {
            Some(run) => answer::json(&run.output_of_old()),
            None => empty(),
        },
        Deed::Cancel => {
            match asked.query.text("action") {
                None | Some("interrupt") => {}
                Some("rollback") => {
                    return Err(Fault::invalid(
                        "action rollback is not possible: what an agent has done to files cannot \
                         be undone",
                    ));
                }
                Some(_) => return Err(Fault::invalid("\"action\" must be interrupt or rollback")),
            }
            let waits = asked.query.flag("wait")?;
            let live = start::cancel(hub, at).await?;
            if waits {
                start::over(hub, &live).await;
            }
            empty()
        }
        Deed::State => {
            let run = hub.run(at).await?;
            let none = || Fault::unknown("the run has no thread");
            let thread = run.thread.ok_or_else(none)?;
            answer::json(&state(&hub.turns(&at.owner, thread).await?))
        }
        Deed::Stream => {
            let run = hub.run(at).await?;
            match hub.live(at.id) {
                Some(live) => {
                    let modes = live.request.modes;
                    let last = asked.last_event.as_deref();
                    answer::events(follow(live, modes, last, Tied(None), stay))
                }
                None if run.status.is_final() => answer::events(last(&run)),
                // It ended between the two reads.
                None => answer::events(last(&hub.run(at).await?)),
            }
        }
    })
}

/// A run and its output, in the form of 0.2.3.
fn waited(run: Option<&Run>) -> Answer {
    match run {
        Some(run) => answer::json(&json!({ "run": run.shown(), "output": run.output() })),
        None => answer::empty(StatusCode::NO_CONTENT),
    }
}

impl Asked {
    /// The body; an empty one is an empty object.
    fn json(&self) -> Result<Value, Fault> {
        if self.body.is_empty() {
            return Ok(json!({}));
        }
        let wrong = |error| Fault::invalid(format!("the body is not JSON: {error}"));
        serde_json::from_slice(&self.body).map_err(wrong)
    }

    /// How long to wait: `block_timeout` in seconds, in the query or, as in the prose
    /// specification, in the body; `default` if not given.
    fn patience(&self, usual: Option<Duration>) -> Result<Option<Duration>, Fault> {
        let mut given = self.query.seconds("block_timeout")?;
        if given.is_none() && !self.body.is_empty() {
            let body = self.json()?;
            given = match body.get("block_timeout") {
                None | Some(Value::Null) => None,
                Some(value) => Some(value.as_f64().filter(|given| *given >= 0.0).ok_or_else(
                    || Fault::invalid("\"block_timeout\" must be a number of seconds, 0 or more"),
                )?),
            };
        }
        let given = given.map(|given| Duration::from_secs_f64(given.min(LONGEST_BLOCK)));
        Ok(given.or(usual))
    }
}

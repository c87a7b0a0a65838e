//! Who answers a request.
//!
//! Not here: what a request wants (see `agent_connect::route`), what is done for it (`hub`, `start`).

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode, Version};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answer::{self, Answer};
use super::hub::Hub;
use super::live::Live;
use super::query::Query;
use super::start::{self, start};
use super::stream::{follow, last};
use crate::agent_connect::fault::Fault;
use crate::agent_connect::openapi;
use crate::agent_connect::record::{Run, history, state};
use crate::agent_connect::route::{Deed, Lost, Route, Then, find};
use crate::agent_connect::search::{self, Page};
use crate::agent_connect::uuid::Uuid;
use crate::guard::ONLY_AGENT;
use crate::transport::http::server::body::{self, Room};
use crate::transport::http::server::caller::{Caller, Guest};
use crate::transport::http::server::credential::identify;
use crate::transport::http::server::refuse::{Refusal, Why};
use crate::transport::http::server::rules::Rules;

/// The methods that are served.
const METHODS: &str = "GET, POST, PATCH, DELETE";
/// How long `/output` waits when it is not told, and how long at most.
const BLOCK: Duration = Duration::from_secs(60);
const LONGEST_BLOCK: f64 = 600.0;

/// What stands between a socket and the hub.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) hub: Arc<Hub>,
    pub(super) rules: RwLock<Arc<Rules>>,
    /// New runs are not taken any more.
    pub(super) draining: CancellationToken,
    pub(super) bodies: Room,
    /// The path that is listened at, without a slash at its end.
    pub(super) path: String,
    /// Where we are reached.
    pub(super) base: String,
}

impl Desk {
    /// The rules for what begins now.
    pub(super) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_rules(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }
}

/// A request, without what only HTTP knows.
struct Asked {
    query: Query,
    body: Bytes,
    last_event: Option<String>,
}

/// A client that waits for a run which it wants cancelled when it cannot wait any more.
struct Tied(Option<Arc<Live>>);

/// Answers one request.
pub(super) async fn answer(
    desk: Arc<Desk>,
    request: Request<Incoming>,
    caller: Arc<Caller>,
) -> Result<Answer, Infallible> {
    let is_h1 = request.version() <= Version::HTTP_11;
    let rules = desk.rules();
    let page = match rules.doorkeeper.admit(&request) {
        Ok(page) => page,
        Err(refusal) => return Ok(refused(refusal, is_h1)),
    };
    let mut answer = match page.preflight(&request, METHODS) {
        Some(answer) => answer.map(|()| answer::Content::Text(Bytes::new())),
        // Who asks is known before a byte of the body is read.
        None => match identify(&rules.gate, &request, &caller).and_then(|guest| may(&rules, guest))
        {
            Ok(guest) => serve(&desk, request, guest).await,
            Err(refusal) => refused(refusal, is_h1),
        },
    };
    page.show(answer.headers_mut());
    Ok(answer)
}

/// Whether the agent is for that guest.
fn may(rules: &Rules, guest: Guest) -> Result<Guest, Refusal> {
    let agent = rules.front.default_agent.as_deref().unwrap_or(ONLY_AGENT);
    if guest.principal.may_use(agent) {
        return Ok(guest);
    }
    let why = format!("the {} is for other agents", guest.principal);
    Err(Refusal::stranger(StatusCode::FORBIDDEN, why))
}

async fn serve(desk: &Desk, request: Request<Incoming>, guest: Guest) -> Answer {
    let is_h1 = request.version() <= Version::HTTP_11;
    let path = request.uri().path();
    let route = match path.strip_prefix(&desk.path) {
        Some(rest) => find(request.method().as_str(), rest),
        None => Err(Lost::Unknown(Fault::unknown(
            "nothing is served at this path",
        ))),
    };
    let route = match route {
        Ok(route) => route,
        Err(Lost::Unknown(fault)) => return answer::refusal(&fault),
        Err(Lost::Method(allowed)) => return answer::method(allowed),
    };
    let query = Query::read(request.uri().query());
    let last_event = request.headers().get("last-event-id");
    let last_event = last_event
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    let is_json = is_json(&request);
    let hub = &desk.hub;
    let read = body::read(request.into_body(), &desk.bodies, &hub.limits).await;
    // The share of the memory for bodies is held until the answer is there.
    let (body, _share) = match read {
        Ok(read) => read,
        Err(refusal) => return refused(refusal, is_h1),
    };
    if !body.is_empty() && !is_json {
        let what = "Content-Type must be application/json".into();
        return answer::refusal(&Fault { status: 415, what });
    }
    let asked = Asked {
        query,
        body,
        last_event,
    };
    let answered = Box::pin(route_to(
        desk,
        route,
        asked,
        &guest.principal.to_string().into(),
    ))
    .await;
    answered.unwrap_or_else(|fault| {
        tracing::debug!(status = fault.status, what = %fault.what, "a request was refused");
        answer::refusal(&fault)
    })
}

async fn route_to(
    desk: &Desk,
    route: Route,
    asked: Asked,
    owner: &Arc<str>,
) -> Result<Answer, Fault> {
    let hub = &desk.hub;
    match &route {
        Route::Thread(id)
        | Route::PatchThread(id)
        | Route::DeleteThread(id)
        | Route::State(id)
        | Route::History(id)
        | Route::Copy(id)
        | Route::ThreadRuns(id) => hub.owns_thread(owner, *id).await?,
        Route::Run(_, id, _) => hub.owns_run(owner, *id).await?,
        // A run's thread is looked at when it is known which it is.
        Route::Start(..)
        | Route::Document
        | Route::SearchAgents
        | Route::Agent(_)
        | Route::Descriptor(_)
        | Route::MakeThread
        | Route::SearchThreads
        | Route::SearchRuns => {}
    }
    let starts = matches!(route, Route::Start(..) | Route::MakeThread | Route::Copy(_));
    if starts && desk.draining.is_cancelled() {
        return Err(Fault::later("the relay is shutting down"));
    }
    let all = |runs: Vec<Run>| answer::json(&runs.iter().map(Run::shown).collect());
    Ok(match route {
        Route::Document => answer::json(&openapi::document(&desk.base)),
        Route::SearchAgents => {
            let wanted = search::Agents::read(&asked.json()?)?;
            let agents = hub.agents().await?;
            let (name, version) = (wanted.name.as_deref(), wanted.version.as_deref());
            let found = agents
                .iter()
                .filter(|(_, agent)| agent.matches(name, version));
            let found = wanted.page.of_all(found.map(|(_, agent)| agent.entry()));
            answer::json(&found.into())
        }
        Route::Agent(id) => answer::json(&hub.agent(Some(id)).await?.1.entry()),
        Route::Descriptor(id) => {
            let (_, agent) = hub.agent(Some(id)).await?;
            answer::json(&agent.descriptor(hub.line.asks_forms()))
        }
        Route::MakeThread => answer::json(&hub.make_thread(owner, &asked.json()?).await?),
        Route::SearchThreads => {
            let wanted = search::Threads::read(&asked.json()?)?;
            answer::json(&hub.find_threads(owner, wanted).await?.into())
        }
        Route::Thread(id) => {
            let thread = hub.thread(id).await?;
            answer::json(&hub.show_thread(thread).await?)
        }
        Route::PatchThread(id) => answer::json(&hub.patch_thread(id, &asked.json()?).await?),
        Route::DeleteThread(id) => {
            hub.delete_thread(id).await?;
            answer::empty(StatusCode::NO_CONTENT)
        }
        Route::State(id) => answer::json(&state(&hub.turns(id).await?)),
        Route::History(id) => {
            let page = Page::of(asked.query.number("limit")?, None)?;
            let turns = hub.turns(id).await?;
            let states = history(&turns, page.limit, asked.query.text("before"));
            answer::json(&states.into())
        }
        Route::Copy(id) => answer::json(&hub.copy_thread(owner, id).await?),
        Route::ThreadRuns(id) => {
            let query = &asked.query;
            let page = Page::of(query.number("limit")?, query.number("offset")?)?;
            hub.thread(id).await?;
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
        Route::Start(thread, then) => begin(hub, owner, thread, then, &asked).await?,
        Route::Run(thread, id, deed) => with_run(hub, thread, id, deed, &asked).await?,
    })
}

/// Starts a run, and answers as is wanted.
async fn begin(
    hub: &Arc<Hub>,
    owner: &Arc<str>,
    thread: Option<Uuid>,
    then: Then,
    asked: &Asked,
) -> Result<Answer, Fault> {
    let (run, live) = start(hub, owner, thread, asked.json()?).await?;
    let tied = live.wish.tied;
    match then {
        Then::Show => Ok(answer::json(&run.shown())),
        Then::Wait => {
            let patience = asked.patience(None)?;
            let mut waiting = Tied(tied.then_some(live));
            let settled = hub.settled(run.thread, run.id, patience).await;
            waiting.0 = None;
            Ok(waited(settled?.as_ref()))
        }
        Then::Stream => {
            let modes = live.wish.modes;
            let keepalive = hub.limits.http_keepalive;
            Ok(answer::events(follow(live, modes, None, tied, keepalive)))
        }
    }
}

async fn with_run(
    hub: &Arc<Hub>,
    thread: Option<Uuid>,
    id: Uuid,
    deed: Deed,
    asked: &Asked,
) -> Result<Answer, Fault> {
    let empty = || answer::empty(StatusCode::NO_CONTENT);
    Ok(match deed {
        Deed::Show => answer::json(&hub.run(thread, id).await?.shown()),
        Deed::Resume => answer::json(
            &start::resume(hub, thread, id, &asked.json()?)
                .await?
                .shown(),
        ),
        Deed::Delete => {
            start::delete(hub, thread, id).await?;
            empty()
        }
        Deed::Wait => {
            let settled = hub.settled(thread, id, asked.patience(None)?).await?;
            waited(settled.as_ref())
        }
        Deed::Output => match hub
            .settled(thread, id, asked.patience(Some(BLOCK))?)
            .await?
        {
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
            start::cancel(hub, thread, id, asked.query.flag("wait")?).await?;
            empty()
        }
        Deed::State => {
            let run = hub.run(thread, id).await?;
            let none = || Fault::unknown("the run has no thread");
            answer::json(&state(&hub.turns(run.thread.ok_or_else(none)?).await?))
        }
        Deed::Stream => {
            let run = hub.run(thread, id).await?;
            match hub.live(id) {
                Some(live) => {
                    let modes = live.wish.modes;
                    let last = asked.last_event.as_deref();
                    let keepalive = hub.limits.http_keepalive;
                    answer::events(follow(live, modes, last, false, keepalive))
                }
                None if run.status.is_final() => answer::events(last(&run)),
                // It came to its end between the two looks.
                None => answer::events(last(&hub.run(thread, id).await?)),
            }
        }
    })
}

/// A run and its output, as 0.2.3 has them.
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
        let wrong = |error| Fault::invalid(format!("the body is no JSON: {error}"));
        serde_json::from_slice(&self.body).map_err(wrong)
    }

    /// How long is waited: `block_timeout` in seconds, in the address or, as in the prose, in the
    /// body; what is usual when there is none.
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

impl Drop for Tied {
    fn drop(&mut self) {
        if let Some(live) = self.0.take() {
            live.cancel.cancel();
        }
    }
}

/// Web pages may post other types anywhere without asking first.
fn is_json<B>(request: &Request<B>) -> bool {
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .map(|kind| kind.as_bytes());
    let kind = kind.and_then(|kind| kind.split(|byte| *byte == b';').next());
    kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"application/json"))
}

fn refused(refusal: Refusal, is_h1: bool) -> Answer {
    let what = match refusal.why {
        Why::Text(text) => text,
        Why::Error(_) => "refused".into(),
    };
    let status = refusal.status.as_u16();
    tracing::debug!(status, %what, "a request was refused");
    let mut answer = answer::refusal(&Fault { status, what });
    let fields = answer.headers_mut();
    if let Some((name, value)) = refusal.field
        && let Ok(value) = HeaderValue::from_str(&value)
    {
        fields.insert(name, value);
    }
    // HTTP/2 has no such header (RFC 9113, 8.2.2).
    if refusal.hang_up && is_h1 {
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

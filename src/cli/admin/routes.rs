//! What the admin listener answers. Everything is read, nothing is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::RwLock;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tower_http::set_header::SetResponseHeaderLayer;

use auth::origin::OriginPolicy;
use conversation::Method;
use jsonrpc::Side;
use observe::metrics::{AdminRefusal, ConversationStats, Metrics};
use panics::{self, Place};
use viewer::{self, Viewer, ViewerAccess};

/// Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4";
const JSON: &str = "application/json";

const INDEX: &str = "\
/metrics   for Prometheus
/healthz   200 while the relay lives
/readyz    200 while it takes clients, 503 before and once it was asked to end
/startupz  200 once its listeners are open
/status    what goes on, as JSON
";

/// The state of the relay, and what requests are checked with.
pub(super) struct Shared {
    pub(super) metrics: Arc<Metrics>,
    /// The addresses of the listeners, once they are open.
    pub(super) listeners: RwLock<Option<Vec<String>>>,
    /// Cancelled when the relay is asked to stop.
    pub(super) stop: CancellationToken,
    /// The origins of web pages that are allowed; none on a Unix socket, which pages cannot reach.
    pub(super) origins: Option<OriginPolicy>,
    /// The viewer of recordings, and the secret in its address.
    pub(super) viewer: Option<(ViewerAccess, Viewer)>,
    /// Held while metrics or the status are written.
    pub(super) rendering: Arc<Mutex<()>>,
}

/// All routes, those of the viewer of recordings included if there is one.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let fixed =
        |name, value| SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value));
    let mut routes = Router::new()
        .route("/", get(INDEX))
        .route("/metrics", get(metrics))
        // An answer shows that the runtime runs.
        .route("/healthz", get("alive\n"))
        .route("/readyz", get(ready))
        .route("/startupz", get(started))
        .route("/status", get(status))
        .fallback((StatusCode::NOT_FOUND, INDEX))
        .method_not_allowed_fallback(|| async { (StatusCode::METHOD_NOT_ALLOWED, "only GET\n") })
        .layer(fixed(CACHE_CONTROL, "no-store"))
        .layer(fixed(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .with_state(Arc::clone(&shared));
    if let Some((access, viewer)) = &shared.viewer {
        let counted = Arc::clone(&shared);
        let refused = move || counted.metrics.admin_refused(AdminRefusal::Recordings);
        routes = routes.merge(viewer::router("/recordings", viewer, access, refused));
    }
    routes.layer(middleware::from_fn_with_state(shared, admit))
}

impl Shared {
    /// `starting`, `serving` or `draining`.
    fn state(&self) -> &'static str {
        match (self.stop.is_cancelled(), &*self.listeners.read()) {
            (true, _) => "draining",
            (false, None) => "starting",
            (false, Some(_)) => "serving",
        }
    }

    /// The state, with status 200 if `good`.
    fn answer(&self, good: bool) -> (StatusCode, String) {
        let status = match good {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{}\n", self.state()))
    }
}

/// Refuses pages of other origins.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let origins = shared.origins.as_ref();
    if origins.is_some_and(|origins| !origins.admits(request.headers())) {
        shared.metrics.admin_refused(AdminRefusal::Page);
        return (StatusCode::FORBIDDEN, "this address is not ours\n").into_response();
    }
    next.run(request).await
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let now = Instant::now();
    if shared.stop.is_cancelled() {
        shared.metrics.drain(now);
    }
    render(shared, TEXT_FORMAT, |shared| {
        shared.metrics.scrape(Instant::now())
    })
    .await
}

/// Answers with a text that takes a while to write: one at a time, in another thread, so that
/// nothing waits for it but such requests.
async fn render(
    shared: Arc<Shared>,
    kind: &'static str,
    write: impl FnOnce(&Shared) -> String + Send + 'static,
) -> Result<impl IntoResponse, StatusCode> {
    // A client that leaves does not end the work, so the turn goes with that.
    let turn = Arc::clone(&shared.rendering).lock_owned().await;
    let work = move || {
        let _turn = turn;
        panics::catch(Place::Admin, || write(&shared))
    };
    let written = spawn_blocking(work).await;
    let fault = StatusCode::INTERNAL_SERVER_ERROR;
    let text = written.ok().flatten().ok_or(fault)?;
    Ok(([(CONTENT_TYPE, kind)], text))
}

async fn ready(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    shared.answer(shared.state() == "serving")
}

async fn started(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    shared.answer(shared.listeners.read().is_some())
}

/// The state of the relay, without bodies and secrets.
async fn status(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    render(shared, JSON, status_text).await
}

fn status_text(shared: &Shared) -> String {
    let now = Instant::now();
    let metrics = &shared.metrics;
    let pair = |[client, agent]: [u64; 2]| json!({"client": client, "agent": agent});
    let away = |away: Option<(Duration, usize)>| {
        away.map(|(since, bytes)| json!({"seconds": since.as_secs_f64(), "waiting_bytes": bytes}))
    };
    let silent = |(side, method, lasts): &(Side, Method, Duration)| json!({"side": side.to_string(), "method": method.name(), "seconds": lasts.as_secs_f64()});
    let conversation = |one: &ConversationStats| {
        let [client, agent] = one.away.map(away);
        json!({
            "number": one.number,
            "client": one.client,
            "transport": one.transport,
            "agent": one.agent,
            "age_seconds": one.age.as_secs_f64(),
            "messages_from": pair(one.messages),
            "bytes_from": pair(one.bytes),
            "requests_in_flight_of": pair(one.in_flight),
            "turns": one.turns,
            "sessions": one.sessions,
            "notes": one.notes,
            // Whose connection is lost, since when, and what waits for the next one.
            "away": {"client": client, "agent": agent},
            // What a side owes the answer to and has sent nothing for long.
            "silent": one.silent.iter().map(silent).collect::<Vec<_>>(),
        })
    };
    let connections: Vec<_> = metrics.open(now).iter().map(conversation).collect();
    let status = json!({
        "version": env!("VERSION"),
        "pid": std::process::id(),
        "uptime_seconds": metrics.age(now).as_secs_f64(),
        "state": shared.state(),
        "listeners": shared.listeners.read().as_deref().unwrap_or_default(),
        "connections_total": metrics.conversations(),
        "connections": connections,
    });
    format!("{status}\n")
}

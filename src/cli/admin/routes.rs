//! What the admin listener answers. Everything is read, nothing is written.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::set_header::SetResponseHeaderLayer;

use super::report;
use super::shared::Shared;
use crate::observe::metrics::AdminRefusal;
use crate::viewer;

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
    ([(CONTENT_TYPE, TEXT_FORMAT)], shared.metrics.scrape(now))
}

async fn ready(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    (when(shared.state() == "serving"), state_line(&shared))
}

async fn started(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    (when(shared.listeners().is_some()), state_line(&shared))
}

async fn status(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let page = format!("{}\n", report::status(&shared));
    ([(CONTENT_TYPE, JSON)], page)
}

fn state_line(shared: &Shared) -> String {
    format!("{}\n", shared.state())
}

const fn when(good: bool) -> StatusCode {
    if good {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

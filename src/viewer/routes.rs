//! The HTTP routes of the viewer's page.
//!
//! With `after` (the revision that the page has), `state` and `recordings` wait for a newer one, so
//! that the page follows what grows. The only thing that a page can send are dropped files.
//!
//! The viewer listens on loopback, which every program of this machine and every web page in its
//! browsers can reach. So an address holds a token that is new for each run, the `Host` must be
//! ours, and a request caused by another page is refused.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tower_http::set_header::SetResponseHeaderLayer;

use super::library::{DropError, ImportCapture, OpenRecording, RecordingLibrary};
use super::overview::Overview;
use super::rows::Query;
use super::side_by_side::compare;
use super::{page, rows, search_all};
use acp::Schema;
use analysis::filter::Filter;
use auth::origin::OriginPolicy;
use panics::{self, Place};
use transport::http::answer;

/// How long a page that waits for news is kept waiting.
const LONG_POLL: Duration = Duration::from_secs(20);

/// How long a page may send nothing of the files that were dropped onto it.
const UPLOAD_PAUSE: Duration = Duration::from_secs(30);

/// Searches of all recordings, and comparisons, that run at a time; others wait.
const MAX_LONG: usize = 2;

/// Lines of a search that wait for the page.
const MAX_WAITING: usize = 16;

/// Bytes of a token.
const TOKEN: usize = 16;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The length of an event's line, of which the answer may hold only the beginning.
const LENGTH: HeaderName = HeaderName::from_static("event-length");

/// What a rule of a dialect table is for, by `dialect/rule`, as JSON.
pub type RuleLookup = fn(&str) -> Value;

/// The recordings, and the rules that may be named in them.
#[derive(Clone, Debug)]
pub struct Viewer {
    library: Arc<RecordingLibrary>,
    overview: Arc<Overview>,
    rules: RuleLookup,
    /// Permits for what takes long.
    long: Arc<Semaphore>,
}

/// What a request must show.
#[derive(Clone, Debug)]
pub struct ViewerAccess {
    token: String,
    origins: OriginPolicy,
}

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, page::POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Why there is no answer.
type ErrorResponse = (StatusCode, String);

/// The recording that a request's path names.
struct Opened(Arc<OpenRecording>);

/// An answer, or why there is none.
type Answer = Result<Response, ErrorResponse>;

impl Viewer {
    /// The recording that the file at `path` belongs to, or is imported to; or those in the folder
    /// there, also those that come later and those that are being written.
    ///
    /// # Errors
    /// When there is nothing that can be read.
    pub fn of(path: &Path, rules: RuleLookup, import: ImportCapture) -> io::Result<Self> {
        let library = Arc::new(RecordingLibrary::of(path, import)?);
        Ok(Self {
            overview: Arc::new(Overview::new(Arc::clone(&library))),
            library,
            rules,
            long: Arc::new(Semaphore::new(MAX_LONG)),
        })
    }

    /// Whether a recording was made of a capture, which is kept until the end.
    #[must_use]
    pub fn has_imported(&self) -> bool {
        self.library.has_copies()
    }

    /// Ends: deletes the files that were dropped onto the page.
    pub fn close(&self) {
        self.library.close();
    }
}

impl ViewerAccess {
    /// Access with a token made of these random bytes, for a listener at `port` of loopback.
    #[must_use]
    pub fn new(port: u16, random: [u8; TOKEN]) -> Self {
        Self {
            token: data_encoding::BASE64URL_NOPAD.encode(&random),
            origins: OriginPolicy::own_pages(port),
        }
    }

    /// The path of the page.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}/", self.token)
    }

    /// Whether a request with this token in its path is admitted.
    ///
    /// # Errors
    /// The status to refuse it with.
    fn admit(&self, token: &str, headers: &HeaderMap) -> Result<(), StatusCode> {
        if !self.origins.admits(headers) {
            return Err(StatusCode::FORBIDDEN);
        }
        // Hashes are compared, so that the time it takes does not depend on the token.
        if blake3::hash(token.as_bytes()) == blake3::hash(self.token.as_bytes()) {
            Ok(())
        } else {
            Err(StatusCode::NOT_FOUND)
        }
    }
}

impl FromRequestParts<Viewer> for Opened {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, viewer: &Viewer) -> Result<Self, ErrorResponse> {
        let path = RawPathParams::from_request_parts(parts, viewer).await;
        let path = path.map_err(|_| not_found())?;
        let number = path_part(&path, "recording").parse();
        let number = number.map_err(|_| not_found())?;
        let library = Arc::clone(&viewer.library);
        blocking(move || library.get(number)).await.map(Self)
    }
}

/// The viewer's routes below `at` and the token of `access`. `refused` is called for each
/// request that is refused.
pub fn router(
    at: &str,
    viewer: &Viewer,
    access: &ViewerAccess,
    refused: impl Fn() + Clone + Send + Sync + 'static,
) -> Router {
    let file = |kind, text: &'static str| get(move || async move { respond(kind, text) });
    let html = || async { respond("text/html; charset=utf-8", page::html()) };
    let access = access.clone();
    let admit = move |path: RawPathParams, request: Request, next: Next| {
        let admitted = access.admit(path_part(&path, "token"), request.headers());
        let refused = refused.clone();
        async move {
            match admitted {
                Ok(()) => answer(Place::Viewer, request, next).await,
                Err(status) => {
                    refused();
                    (status, "this address is not ours\n").into_response()
                }
            }
        }
    };
    let below = |path: &str| format!("{at}/{{token}}/{path}");
    let mut routes = Router::new()
        .route(&below(""), get(html))
        .route(
            &below("page.css"),
            file("text/css; charset=utf-8", page::STYLE),
        )
        .route(
            &below("page.js"),
            file("text/javascript; charset=utf-8", page::SCRIPT),
        )
        .route(&below("api/recordings"), get(recordings))
        .route(&below("api/dropped"), post(dropped))
        .route(&below("api/search"), get(search))
        .route(&below("api/compare"), get(compared))
        .route(&below("api/rule"), get(rule))
        .route(&below("api/schema"), get(schema))
        .route(&below("api/{recording}/state"), get(state))
        .route(&below("api/{recording}/rows"), get(rows))
        .route(&below("api/{recording}/findings"), get(findings))
        .route(&below("api/{recording}/turns"), get(turns))
        .route(&below("api/{recording}/figures"), get(figures))
        .route(&below("api/{recording}/event"), get(event))
        .route(&below("{*rest}"), get(no_page))
        // Without a token or the slash behind it; these are refused.
        .route(&format!("{at}/"), get(no_page))
        .route(&format!("{at}/{{token}}"), get(no_page))
        .with_state(viewer.clone())
        .layer(middleware::from_fn(admit));
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        routes = routes.layer(SetResponseHeaderLayer::overriding(name, value));
    }
    routes
}

async fn no_page() -> ErrorResponse {
    not_found()
}

fn path_part<'p>(path: &'p RawPathParams, name: &str) -> &'p str {
    let part = path.iter().find(|(known, _)| *known == name);
    part.map_or("", |(_, part)| part)
}

/// The rows of the overview that have changed, once there are some.
async fn recordings(State(viewer): State<Viewer>, query: Query) -> Answer {
    let after = query.number::<u64>("after");
    if let (Some(known), false) = (after, query.has("now")) {
        let mut revision = viewer.overview.revision.subscribe();
        let change = revision.wait_for(|now| *now != known);
        let _ = timeout(LONG_POLL, change).await;
    }
    let changes = move || viewer.overview.changes(after.unwrap_or(0));
    json(move || Ok(changes()?.to_string())).await
}

/// The number of events of each recording that match the filter `q`, as lines of JSON; ended by the
/// page's disconnecting.
async fn search(State(viewer): State<Viewer>, query: Query) -> Answer {
    let filter = filter(&query)?.ok_or_else(not_found)?;
    let permit = Arc::clone(&viewer.long).acquire_owned().await;
    let (sender, receiver) = mpsc::channel::<Bytes>(MAX_WAITING);
    let work = move || {
        let _permit = permit;
        let ids = viewer.overview.newest_first().into_iter();
        let recordings = ids.filter_map(|id| Some((id, viewer.library.recording(id)?)));
        let is_wanted = || !sender.is_closed();
        search_all::search(recordings, &filter, is_wanted, |found| {
            // A receiver that is gone wants no more.
            let _ = sender.blocking_send(format!("{found}\n").into());
        });
    };
    spawn_blocking(|| panics::catch(Place::Viewer, work));
    let lines = unfold(receiver, |mut receiver| async {
        Some((Ok::<_, Infallible>(receiver.recv().await?), receiver))
    });
    Ok(respond("application/x-ndjson", Body::from_stream(lines)))
}

/// Two recordings, `a` and `b`, side by side.
async fn compared(State(viewer): State<Viewer>, query: Query) -> Answer {
    let recording = |name: &str| viewer.library.recording(query.number(name)?);
    let both = recording("a").zip(recording("b"));
    let (left, right) = both.ok_or_else(not_found)?;
    let permit = Arc::clone(&viewer.long).acquire_owned().await;
    json(move || {
        let _permit = permit;
        Ok(compare(&left, &right)?.to_string())
    })
    .await
}

/// Adds the recordings in dropped files: each has a member of the query with its name and its length
/// in bytes, and the body has their content. The answer has the indices of the recordings.
async fn dropped(State(viewer): State<Viewer>, request: Request) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let files = form_urlencoded::parse(query.as_bytes());
    let files = files.map(|(name, length)| Ok((name.into_owned(), length.parse()?)));
    let files: Result<Vec<_>, std::num::ParseIntError> = files.collect();
    let mut body: Body = request.into_body();
    let work = move || {
        let next = || {
            let frame = Handle::current().block_on(timeout(UPLOAD_PAUSE, body.frame()))?;
            let frame = frame.transpose().map_err(io::Error::other)?;
            Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
        };
        let files = files.map_err(|_| DropError::Malformed("described by the query"))?;
        let added = viewer.library.add_dropped(&files, next)?;
        viewer.overview.scan();
        Ok(added)
    };
    let added = spawn_blocking(|| panics::catch(Place::Viewer, work)).await;
    let added = added.ok().flatten().ok_or_else(fault)?;
    let added = added.map_err(|error| {
        let status = match error {
            DropError::Malformed(_) => StatusCode::BAD_REQUEST,
            DropError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            DropError::NotRecording(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            DropError::Io(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, error.to_string())
    })?;
    Ok(respond(JSON, json!(added).to_string()))
}

async fn rows(Opened(recording): Opened, query: Query) -> Answer {
    let filter = filter(&query)?;
    json(move || rows::rows(&recording, &query, filter.as_ref())).await
}

async fn findings(Opened(recording): Opened, query: Query) -> Answer {
    json(move || Ok(rows::findings(&recording, &query).to_string())).await
}

async fn turns(Opened(recording): Opened, query: Query) -> Answer {
    json(move || Ok(rows::turns(&recording, &query).to_string())).await
}

async fn figures(Opened(recording): Opened) -> Answer {
    json(move || Ok(rows::figures(&recording).to_string())).await
}

/// The line of an event, or its first `most` bytes; a header has its length.
async fn event(Opened(recording): Opened, query: Query) -> Answer {
    let at: usize = query.number("i").ok_or_else(not_found)?;
    let line = blocking(move || {
        let item = recording.content.index().items.get(at).copied();
        let item = item.ok_or(io::ErrorKind::NotFound)?;
        recording.content.span(&item, &item)
    });
    let mut line = line.await?;
    let length = [(LENGTH, line.len().to_string())];
    line.truncate(query.number("most").unwrap_or(usize::MAX));
    Ok((length, respond(TEXT, line)).into_response())
}

/// The state of a recording, once it is newer than the page's.
async fn state(Opened(recording): Opened, query: Query) -> Answer {
    if let Some(known) = query.number::<u64>("after") {
        let mut progress = recording.content.progress.subscribe();
        let change = progress.wait_for(|now| now.revision != known);
        // Without a change the page gets the same state, and asks again.
        let _ = timeout(LONG_POLL, change).await;
    }
    json(move || Ok(rows::state(&recording).to_string())).await
}

/// What a rule of the tables built in is for.
async fn rule(State(viewer): State<Viewer>, query: Query) -> Response {
    respond(JSON, (viewer.rules)(query.text("id")).to_string())
}

/// The members of ACP's types with their descriptions, of a version of ACP.
async fn schema(query: Query) -> Answer {
    let version = query.number("version").ok_or_else(not_found)?;
    let schema = Schema::of_version(version).ok_or_else(not_found)?;
    json(move || Ok(schema.descriptions().to_string())).await
}

/// The filter of a request, if it has one.
fn filter(query: &Query) -> Result<Option<Filter>, ErrorResponse> {
    match query.text("q").trim() {
        "" => Ok(None),
        text => {
            let filter = text.parse::<Filter>().map(Some);
            filter.map_err(|fault| (StatusCode::BAD_REQUEST, fault.to_string()))
        }
    }
}

/// Runs `work`, which reads files, on a thread for blocking calls.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ErrorResponse> {
    let done = spawn_blocking(|| panics::catch(Place::Viewer, work)).await;
    done.ok().flatten().ok_or_else(fault)?.map_err(|error| {
        let status = match error.kind() {
            io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            io::ErrorKind::FileTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, format!("this cannot be read: {error}"))
    })
}

/// The JSON text that `work` returns, which reads files.
async fn json(work: impl FnOnce() -> io::Result<String> + Send + 'static) -> Answer {
    Ok(respond(JSON, blocking(work).await?))
}

fn fault() -> ErrorResponse {
    let why = "a fault of the viewer; the log has the place";
    (StatusCode::INTERNAL_SERVER_ERROR, why.to_owned())
}

fn not_found() -> ErrorResponse {
    (StatusCode::NOT_FOUND, "there is nothing here".to_owned())
}

fn respond(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, kind)], body.into()).into_response()
}

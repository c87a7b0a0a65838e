//! The requests that the viewer answers.
//!
//! All of them only read. `state` with `after` waits for a change, so that the page can follow a
//! recording that grows. Any HTTP server can mount the viewer: it gets the rest of a path and
//! answers.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT_RANGES, ALLOW, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, RANGE};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::book::Book;
use super::door::seal;
use super::query::Query;
use super::shelf::Shelf;
use super::{page, rows};
use crate::cli::http::Answer;
use crate::dialect::Library;
use crate::recording::filter::{Fault, Filter};

/// Maximum wait of a request for a change.
const LONG_POLL: Duration = Duration::from_secs(20);

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The routes over a set of recordings.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Viewer {
    shelf: Arc<Shelf>,
}

/// An error response.
struct Refused(StatusCode, String);

impl Viewer {
    /// The recording that the file at `path` belongs to, or those in the folder `path`, also later
    /// ones and those being written.
    ///
    /// # Errors
    /// There is no readable recording.
    pub(in crate::cli) fn of(path: &Path) -> io::Result<Self> {
        let shelf = Arc::new(Shelf::of(path)?);
        Ok(Self { shelf })
    }

    /// Answers one request. `path` follows the mount point, which must end with a slash, because
    /// the page names its parts relative to it. The caller checks access.
    pub(in crate::cli) async fn answer<B>(&self, path: &str, request: &Request<B>) -> Answer {
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET");
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            return seal(answer);
        }
        let query = Query::new(request.uri().query().unwrap_or_default());
        let range = request.headers().get(RANGE).cloned();
        let done = self.at(path, query, range).await;
        seal(done.unwrap_or_else(|Refused(status, why)| say(status, TEXT, why)))
    }

    async fn at(
        &self,
        path: &str,
        query: Query,
        range: Option<HeaderValue>,
    ) -> Result<Answer, Refused> {
        match path {
            "" => return Ok(found("text/html; charset=utf-8", page::html())),
            "page.css" => return Ok(found("text/css; charset=utf-8", page::STYLE)),
            "page.js" => return Ok(found("text/javascript; charset=utf-8", page::SCRIPT)),
            "api/recordings" => {
                let shelf = Arc::clone(&self.shelf);
                let list = blocking(move || shelf.list()).await?;
                return Ok(found(JSON, list.to_string()));
            }
            "api/rule" => return Ok(found(JSON, rule(query.text("id")).to_string())),
            _ => {}
        }
        let place = path
            .strip_prefix("api/")
            .and_then(|rest| rest.split_once('/'));
        let (place, what) = place.ok_or_else(nothing)?;
        let place = place.parse().map_err(|_| nothing())?;
        let shelf = Arc::clone(&self.shelf);
        let (name, book) = blocking(move || shelf.book(place)).await?;
        match what {
            "state" => state(&name, &book, &query).await,
            "rows" => {
                let filter = asked(&query)?;
                let rows = blocking(move || rows::rows(&book, &query, filter.as_ref())).await?;
                Ok(found(JSON, rows))
            }
            "findings" => {
                let list = blocking(move || Ok(rows::findings(&book, &query))).await?;
                Ok(found(JSON, list.to_string()))
            }
            "turns" => {
                let turns = blocking(move || Ok(rows::turns(&book, &query))).await?;
                Ok(found(JSON, turns.to_string()))
            }
            "event" => {
                let at: usize = query.number("i").ok_or_else(nothing)?;
                let line = blocking(move || {
                    let item = book.index().items.get(at).copied();
                    let item = item.ok_or(io::ErrorKind::NotFound)?;
                    book.span(&item, &item)
                });
                ranged(line.await?, range.as_ref())
            }
            _ => Err(nothing()),
        }
    }
}

/// Rejects a request that is not admitted.
pub(super) fn refuse(status: StatusCode) -> Answer {
    seal(say(status, TEXT, "this request is not allowed"))
}

/// The filter of a query, if it has one.
fn asked(query: &Query) -> Result<Option<Filter>, Refused> {
    match query.text("q").trim() {
        "" => Ok(None),
        text => {
            let filter = text.parse::<Filter>();
            let refused = |fault: Fault| Refused(StatusCode::BAD_REQUEST, fault.to_string());
            Ok(Some(filter.map_err(refused)?))
        }
    }
}

/// The state of a recording, once it differs from the revision `after`.
async fn state(name: &str, book: &Arc<Book>, query: &Query) -> Result<Answer, Refused> {
    if let Some(known) = query.number::<u64>("after") {
        let mut progress = book.progress();
        let news = progress.wait_for(|now| now.revision != known);
        // After the timeout the page gets the same state, and asks again.
        let _ = tokio::time::timeout(LONG_POLL, news).await;
    }
    let (name, book) = (name.to_owned(), Arc::clone(book));
    let state = blocking(move || Ok(rows::state(&name, &book))).await?;
    Ok(found(JSON, state.to_string()))
}

/// The purpose of a built-in table's rule.
fn rule(id: &str) -> Value {
    let (dialect, rule) = id.split_once('/').unwrap_or_default();
    let library = Library::builtin().ok();
    let table = library
        .as_ref()
        .and_then(|library| library.table(dialect).ok());
    let rule = table.and_then(|table| table.rules.iter().find(|known| *known.id == *rule));
    match (table, rule) {
        (Some(table), Some(rule)) => {
            json!({"why": rule.why, "lossy": rule.lossy, "dialect": table.title})
        }
        _ => json!({}),
    }
}

/// All of `bytes`, or the one range that is requested (RFC 9110, 14).
fn ranged(bytes: Bytes, range: Option<&HeaderValue>) -> Result<Answer, Refused> {
    let length = bytes.len();
    let asked = range
        .and_then(|range| range.to_str().ok()?.strip_prefix("bytes="))
        .filter(|ranges| !ranges.contains(','));
    let mut answer = match asked {
        None => found(TEXT, bytes),
        Some(asked) => {
            let (from, to) = part(asked, length).ok_or_else(|| {
                let why = format!("there are {length} bytes");
                Refused(StatusCode::RANGE_NOT_SATISFIABLE, why)
            })?;
            let mut answer = say(StatusCode::PARTIAL_CONTENT, TEXT, bytes.slice(from..to));
            let place = format!("bytes {from}-{}/{length}", to - 1);
            let place = HeaderValue::from_str(&place).expect("digits are a header");
            answer.headers_mut().insert(CONTENT_RANGE, place);
            answer
        }
    };
    let bytes = HeaderValue::from_static("bytes");
    answer.headers_mut().insert(ACCEPT_RANGES, bytes);
    Ok(answer)
}

fn part(asked: &str, length: usize) -> Option<(usize, usize)> {
    let (first, last) = asked.split_once('-')?;
    let (from, to) = match (first, last) {
        ("", count) => (length.saturating_sub(count.parse().ok()?), length),
        (first, "") => (first.parse().ok()?, length),
        (first, last) => {
            let last: usize = last.parse().ok()?;
            (first.parse().ok()?, last.saturating_add(1).min(length))
        }
    };
    (from < to).then_some((from, to))
}

/// Runs file reads on a thread for blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refused> {
    let done = spawn_blocking(work).await.map_err(io::Error::other);
    done.and_then(|done| done).map_err(|error| {
        let status = if error.kind() == io::ErrorKind::NotFound {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        Refused(status, format!("this cannot be read: {error}"))
    })
}

fn nothing() -> Refused {
    Refused(StatusCode::NOT_FOUND, "there is nothing here".to_owned())
}

fn found(kind: &'static str, body: impl Into<Bytes>) -> Answer {
    say(StatusCode::OK, kind, body)
}

fn say(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_rfc() {
        for (asked, found) in [
            ("0-0", Some((0, 1))),
            ("2-", Some((2, 10))),
            ("-3", Some((7, 10))),
            ("-99", Some((0, 10))),
            ("5-99", Some((5, 10))),
            ("10-", None),
            ("-0", None),
            ("4-3", None),
            ("x-3", None),
            ("3", None),
        ] {
            assert_eq!(part(asked, 10), found, "{asked}");
        }
    }
}

//! What may be asked of the admin listener. Everything is read, nothing is written.
//!
//! Not here: the loop under it (see `cli::http`).

use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};

use super::report;
use super::server::Shared;
use crate::cli::http::{Answer, Desk};
use crate::observe::metrics::Unwanted;

const TEXT: &str = "text/plain; charset=utf-8";
/// Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4";
const JSON: &str = "application/json";

const INDEX: &str = "\
/metrics   for Prometheus
/healthz   200 while the relay lives
/readyz    200 while it takes clients, 503 before and once it was asked to end
/startupz  200 once its listeners are open
/status    what goes on, as JSON
";

impl Desk for Shared {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if !self.admits(request.headers()) {
            self.metrics.admin_refused(Unwanted::Page);
            return say(StatusCode::FORBIDDEN, TEXT, "this address is not ours\n");
        }
        let path = request.uri().path();
        if let (Some((door, viewer)), Some(rest)) = (&self.viewer, path.strip_prefix("/recordings"))
        {
            return match door.admit(rest, request.headers()) {
                Ok(path) => viewer.answer(path, &request).await,
                Err(status) => {
                    self.metrics.admin_refused(Unwanted::Recordings);
                    say(status, TEXT, "there is nothing here\n")
                }
            };
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n");
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            return answer;
        }
        self.at(path)
    }
}

impl Shared {
    fn at(&self, path: &str) -> Answer {
        match path {
            "/" => say(StatusCode::OK, TEXT, INDEX),
            "/metrics" => {
                let now = Instant::now();
                if self.asked.is_cancelled() {
                    self.metrics.drain(now);
                }
                say(StatusCode::OK, METRICS, self.metrics.scrape(now))
            }
            // An answer shows that the runtime runs.
            "/healthz" => say(StatusCode::OK, TEXT, "alive\n"),
            "/readyz" => say(when(self.state() == "serving"), TEXT, self.line()),
            "/startupz" => say(when(self.listeners().is_some()), TEXT, self.line()),
            "/status" => say(StatusCode::OK, JSON, format!("{}\n", report::status(self))),
            _ => say(StatusCode::NOT_FOUND, TEXT, INDEX),
        }
    }

    fn line(&self) -> String {
        format!("{}\n", self.state())
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(origins) = &self.origins else {
            return true;
        };
        let all = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
        let sites = headers.get_all("sec-fetch-site").into_iter();
        let sites = sites.map(HeaderValue::as_bytes);
        origins.admit(all(ORIGIN), all(HOST), sites).is_ok()
    }
}

const fn when(good: bool) -> StatusCode {
    if good {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

fn say(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let sniff = HeaderValue::from_static("nosniff");
    headers.insert("x-content-type-options", sniff);
    answer
}

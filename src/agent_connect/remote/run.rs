//! The paths of one run: start, stream, resume and cancel, in every generation.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LOCATION, HeaderMap};
use hyper::{Method, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::agent::RemoteSession;
use super::descriptor::{Descriptor, Generation};
use super::error::RemoteError;
use super::graph;
use super::run_event::{Interrupt, RemoteOutcome, messages, outcome};
use super::server::{RemoteResponse, RemoteServer, is_absent, segment};
use crate::jsonrpc::reply;
use crate::transport::http::client::{SseEvent, SseReader, read_body};
use crate::transport::http::content::is_type;

/// `block_timeout` of the older generation, in seconds.
const BLOCK_SECONDS: u64 = 60;
/// First and longest pause before a server that does not wait is polled again.
const PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// One run of an agent.
pub(super) struct RemoteRun<'a> {
    pub(super) server: &'a RemoteServer,
    pub(super) descriptor: &'a Descriptor,
    pub(super) session: &'a RemoteSession,
    /// Its id on the server, once known.
    pub(super) id: Mutex<Option<String>>,
}

/// The stream of a run's events.
pub(super) struct RunStream {
    body: Incoming,
    events: SseReader,
}

impl RemoteRun<'_> {
    /// Its id on the server.
    pub(super) fn run_id(&self) -> Result<String, RemoteError> {
        let id = self.id.lock();
        id.clone()
            .ok_or_else(|| RemoteError::internal("the server did not return the run's id"))
    }

    /// Sets its id on the server.
    pub(super) fn set_id(&self, id: &str) {
        *self.id.lock() = Some(id.to_owned());
    }

    /// Starts it and streams its events; `None` when the server does not stream.
    pub(super) async fn stream(
        &self,
        body: &Value,
        mode: &Value,
    ) -> Result<Option<RunStream>, RemoteError> {
        let mut body = body.clone();
        body["stream_mode"] = mode.clone();
        body["on_disconnect"] = json!("cancel");
        let path = format!("{}/stream", self.runs());
        let answer = self.server.open(Method::POST, &path, Some(&body)).await?;
        if is_absent(answer.status().as_u16()) {
            return Ok(None);
        }
        self.event_stream(answer).await
    }

    /// Streams its further events; `None` when the server does not support that.
    pub(super) async fn reopen_stream(&self) -> Result<Option<RunStream>, RemoteError> {
        let path = format!("{}/stream", self.path()?);
        let answer = self.server.open(Method::GET, &path, None).await?;
        if !answer.status().is_success() {
            return Ok(None);
        }
        self.event_stream(answer).await
    }

    /// Starts it and waits for its outcome.
    pub(super) async fn wait(&self, mut body: Value) -> Result<RemoteOutcome, RemoteError> {
        if self.descriptor.generation == Generation::New {
            let path = format!("{}/wait", self.runs());
            let response = self.server.wait(Method::POST, &path, Some(&body)).await?;
            if !response.is_absent() {
                let answer = response.json()?;
                if let Some(id) = answer["run"]["run_id"].as_str() {
                    self.set_id(id);
                }
                return match outcome(&answer) {
                    Some(outcome) => Ok(outcome),
                    None => self.output().await,
                };
            }
        } else if let Some(thread) = self.thread() {
            body["thread_id"] = json!(thread);
        }
        let path = self.runs();
        let response = self.server.post(&path, &body).await?;
        let run = response.json()?;
        self.set_id(
            run["run_id"]
                .as_str()
                .ok_or_else(|| RemoteError::internal("the server returned no run_id"))?,
        );
        // In the prose specification a run creates its own thread, which the next run names.
        if let Some(thread) = run["thread_id"].as_str()
            && !self.session.is_thread
            && self.descriptor.generation == Generation::Old
        {
            self.session.state().thread = Some(thread.to_owned());
        }
        self.output().await
    }

    /// Waits for its outcome.
    pub(super) async fn output(&self) -> Result<RemoteOutcome, RemoteError> {
        let run = self.path()?;
        let path = match self.descriptor.generation {
            Generation::LangGraph => return self.thread_outcome().await,
            Generation::New => format!("{run}/wait"),
            Generation::Old => format!("{run}/output?block_timeout={BLOCK_SECONDS}"),
        };
        let mut pause = PAUSE;
        loop {
            let start = Instant::now();
            let response = self.server.wait(Method::GET, &path, None).await?;
            match response.status {
                204 | 408 | 504 => {}
                _ if response.is_absent() => return self.poll(&run, &response).await,
                _ => {
                    if let Some(outcome) = outcome(&response.json()?) {
                        return Ok(outcome);
                    }
                }
            }
            // A server that does wait is asked again at once.
            if start.elapsed() < Duration::from_secs(1) {
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }

    /// Answers its interrupt.
    pub(super) async fn resume(
        &self,
        interrupt: &Interrupt,
        payload: Value,
    ) -> Result<(), RemoteError> {
        let body = match interrupt.wrapped {
            true => json!({ "interrupt_type": interrupt.name, "resume_payload": payload }),
            false => payload,
        };
        let path = self.path()?;
        self.server.post(&path, &body).await?.check()
    }

    /// Cancels it, if the server supports that; its further output is ignored.
    pub(super) async fn cancel(&self) {
        if self.run_id().is_err() {
            self.find_id().await;
        }
        let Ok(run) = self.path() else {
            return;
        };
        if self.descriptor.generation != Generation::Old {
            let path = format!("{run}/cancel?wait=false&action=interrupt");
            let response = self.server.post(&path, None).await;
            // 4xx: the run has already ended.
            if response.is_ok_and(|response| response.status < 500 && !response.is_absent()) {
                return;
            }
        }
        let response = self.server.delete(&run).await;
        if !response.is_ok_and(|response| response.is_success()) {
            tracing::warn!(run, "the server did not cancel the run; it continues");
        }
    }

    /// Finds the thread's current run, if the server has not sent its id yet.
    async fn find_id(&self) {
        if !self.session.is_thread || self.descriptor.generation == Generation::Old {
            return;
        }
        let response = self.server.get(&self.runs()).await;
        let Ok(Value::Array(runs)) = response.and_then(|response| response.json()) else {
            return;
        };
        let found = runs.iter().rfind(|run| run["status"] == "pending");
        if let Some(id) = found.and_then(|run| run["run_id"].as_str()) {
            self.set_id(id);
        }
    }

    /// Its outcome, by the state of its thread.
    async fn thread_outcome(&self) -> Result<RemoteOutcome, RemoteError> {
        let path = format!("/threads/{}/state", segment(&self.session.id));
        let response = self.server.get(&path).await?;
        Ok(graph::outcome(&response.json()?))
    }

    /// Polls the status of a run that cannot be waited for.
    async fn poll(&self, run: &str, absent: &RemoteResponse) -> Result<RemoteOutcome, RemoteError> {
        let mut pause = PAUSE;
        loop {
            let response = self.server.get(run).await?;
            if response.is_absent() {
                return Err(absent.to_error());
            }
            let shown = response.json()?;
            if !matches!(shown["status"].as_str(), Some("pending" | "running")) {
                break;
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
        let thread = self.thread().ok_or_else(|| absent.to_error())?;
        let path = format!("/threads/{}", segment(&thread));
        let response = self.server.get(&path).await?;
        let thread = response.json()?;
        Ok(RemoteOutcome::Result {
            values: thread["values"].as_object().cloned().unwrap_or_default(),
            messages: messages(&thread),
        })
    }

    async fn event_stream(
        &self,
        answer: Response<Incoming>,
    ) -> Result<Option<RunStream>, RemoteError> {
        if let Some(id) = id_in_location(answer.headers()) {
            self.set_id(&id);
        }
        let status = answer.status();
        if status.is_success() && is_type(answer.headers(), "text/event-stream") {
            return Ok(Some(RunStream {
                body: answer.into_body(),
                events: SseReader::new(self.server.limits().frame_from_network),
            }));
        }
        let body = read_body(answer.into_body(), self.server.limits().frame_from_network).await;
        let body = body.map_err(RemoteError::internal)?;
        if status.is_success() {
            let what = "the server did not answer with an event stream";
            return Err(RemoteError::internal(what));
        }
        Err(RemoteError::from_http(status.as_u16(), &body))
    }

    /// The path of the session's runs.
    fn runs(&self) -> String {
        match self.thread() {
            Some(thread) if self.descriptor.generation != Generation::Old => {
                format!("/threads/{}/runs", segment(&thread))
            }
            _ => "/runs".to_owned(),
        }
    }

    fn path(&self) -> Result<String, RemoteError> {
        Ok(format!("{}/{}", self.runs(), segment(&self.run_id()?)))
    }

    fn thread(&self) -> Option<String> {
        if self.session.is_thread {
            Some(self.session.id.clone())
        } else {
            self.session.state().thread.clone()
        }
    }
}

impl RunStream {
    /// The name of the next event and its data; `None` at the end. Data that is not JSON is
    /// skipped.
    pub(super) async fn next(&mut self) -> Result<Option<(String, Value)>, RemoteError> {
        loop {
            match self.events.next() {
                Some(SseEvent::Whole(data)) => {
                    if let Ok(data) = serde_json::from_slice(&data) {
                        let name = String::from_utf8_lossy(self.events.last_name());
                        return Ok(Some((name.into_owned(), data)));
                    }
                    continue;
                }
                Some(SseEvent::TooLong(_)) => {
                    let what = "the agent sent an event longer than the limit";
                    return Err(RemoteError::new(reply::TOO_LARGE, what));
                }
                None => {}
            }
            match self.body.frame().await {
                Some(Ok(part)) => {
                    if let Ok(data) = part.into_data() {
                        self.events.feed(data);
                    }
                }
                // The outcome of a run whose stream broke is queried.
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }
}

/// The run's id in the `Content-Location` of a stream, which comes before any event.
fn id_in_location(headers: &HeaderMap) -> Option<String> {
    let place = headers.get(CONTENT_LOCATION)?.to_str().ok()?;
    let (_, after) = place.split_once("/runs/")?;
    let id = after.split(['/', '?']).next()?;
    (!id.is_empty() && id != "stream").then(|| id.to_owned())
}

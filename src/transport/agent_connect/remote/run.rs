//! The paths of one run: start, stream, resume and cancel, in every generation.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LOCATION, HeaderMap};
use hyper::{Method, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::agent::Session;
use super::server::{Server, Told, is_absent, segment};
use crate::agent_connect::remote::descriptor::{Descriptor, Generation};
use crate::agent_connect::remote::failure::Failure;
use crate::agent_connect::remote::graph;
use crate::agent_connect::remote::heard::{Came, Interrupt, came, messages};
use crate::jsonrpc::reply;
use crate::transport::http::client::{Event, Sse, whole};
use crate::transport::http::content::is_of;

/// `block_timeout` of the older generation, in seconds.
const BLOCK: u64 = 60;
/// First and longest pause before a server that does not wait is polled again.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// One run of an agent.
pub(super) struct Run<'a> {
    pub(super) server: &'a Server,
    pub(super) known: &'a Descriptor,
    pub(super) session: &'a Session,
    /// Its id on the server, once known.
    pub(super) id: Mutex<Option<String>>,
}

/// The stream of a run's events.
pub(super) struct Stream {
    body: Incoming,
    events: Sse,
}

impl Run<'_> {
    /// Its id on the server.
    pub(super) fn named(&self) -> Result<String, Failure> {
        let known = self.id.lock();
        known
            .clone()
            .ok_or_else(|| Failure::internal("the server did not return the run's id"))
    }

    /// Sets its id on the server.
    pub(super) fn name(&self, id: &str) {
        let mut known = self.id.lock();
        *known = Some(id.to_owned());
    }

    /// Starts it and streams its events; `None` when the server does not stream.
    pub(super) async fn stream(
        &self,
        body: &Value,
        mode: &Value,
    ) -> Result<Option<Stream>, Failure> {
        let mut body = body.clone();
        body["stream_mode"] = mode.clone();
        body["on_disconnect"] = json!("cancel");
        let path = format!("{}/stream", self.runs());
        let answer = self.server.open(Method::POST, &path, Some(&body)).await?;
        if is_absent(answer.status().as_u16()) {
            return Ok(None);
        }
        self.opened(answer).await
    }

    /// Streams its further events; `None` when the server does not support that.
    pub(super) async fn stream_again(&self) -> Result<Option<Stream>, Failure> {
        let path = format!("{}/stream", self.path()?);
        let answer = self.server.open(Method::GET, &path, None).await?;
        if !answer.status().is_success() {
            return Ok(None);
        }
        self.opened(answer).await
    }

    /// Starts it and waits for its outcome.
    pub(super) async fn wait(&self, mut body: Value) -> Result<Came, Failure> {
        if self.known.generation == Generation::New {
            let path = format!("{}/wait", self.runs());
            let told = self.server.wait(Method::POST, &path, Some(&body)).await?;
            if !told.is_absent() {
                let answer = told.json()?;
                if let Some(id) = answer.pointer("/run/run_id").and_then(Value::as_str) {
                    self.name(id);
                }
                return match came(&answer) {
                    Some(came) => Ok(came),
                    None => self.output().await,
                };
            }
        } else if let Some(thread) = self.thread() {
            body["thread_id"] = json!(thread);
        }
        let path = self.runs();
        let told = self.server.post(&path, &body).await?;
        let run = told.json()?;
        let id = run.get("run_id").and_then(Value::as_str);
        self.name(id.ok_or_else(|| Failure::internal("the server returned no run_id"))?);
        // In the prose specification a run creates its own thread, which the next run names.
        if let Some(thread) = run.get("thread_id").and_then(Value::as_str)
            && !self.session.is_thread
            && self.known.generation == Generation::Old
        {
            self.session.notes().thread = Some(thread.to_owned());
        }
        self.output().await
    }

    /// Waits for its outcome.
    pub(super) async fn output(&self) -> Result<Came, Failure> {
        let run = self.path()?;
        let path = match self.known.generation {
            Generation::Graph => return self.state().await,
            Generation::New => format!("{run}/wait"),
            Generation::Old => format!("{run}/output?block_timeout={BLOCK}"),
        };
        let mut pause = PAUSE;
        loop {
            let asked = Instant::now();
            let told = self.server.wait(Method::GET, &path, None).await?;
            match told.status {
                204 | 408 | 504 => {}
                _ if told.is_absent() => return self.poll(&run, &told).await,
                _ => {
                    if let Some(came) = came(&told.json()?) {
                        return Ok(came);
                    }
                }
            }
            // A server that does wait is asked again at once.
            if asked.elapsed() < Duration::from_secs(1) {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST);
            }
        }
    }

    /// Answers its interrupt.
    pub(super) async fn resume(
        &self,
        interrupt: &Interrupt,
        payload: Value,
    ) -> Result<(), Failure> {
        let body = if interrupt.wrapped {
            json!({ "interrupt_type": interrupt.name, "resume_payload": payload })
        } else {
            payload
        };
        let path = self.path()?;
        let told = self.server.post(&path, &body).await?;
        if told.is_good() {
            Ok(())
        } else {
            Err(told.refusal())
        }
    }

    /// Cancels it, if the server supports that; its further output is ignored.
    pub(super) async fn cancel(&self) {
        if self.named().is_err() {
            self.find().await;
        }
        let Ok(run) = self.path() else {
            return;
        };
        if self.known.generation != Generation::Old {
            let path = format!("{run}/cancel?wait=false&action=interrupt");
            let told = self.server.post(&path, None).await;
            // 4xx: the run has already ended.
            if told.is_ok_and(|told| told.status < 500 && !told.is_absent()) {
                return;
            }
        }
        let told = self.server.delete(&run).await;
        if !told.is_ok_and(|told| told.is_good()) {
            tracing::warn!(run, "the server did not cancel the run; it continues");
        }
    }

    /// Finds the thread's current run, if the server has not sent its id yet.
    async fn find(&self) {
        if !self.session.is_thread || self.known.generation == Generation::Old {
            return;
        }
        let told = self.server.get(&self.runs()).await;
        let Ok(Value::Array(runs)) = told.and_then(|told| told.json()) else {
            return;
        };
        let goes_on = |run: &&Value| run.get("status").is_some_and(|status| status == "pending");
        let found = runs.iter().rfind(goes_on);
        if let Some(id) = found.and_then(|run| run.get("run_id")?.as_str()) {
            self.name(id);
        }
    }

    /// Its outcome, by the state of its thread.
    async fn state(&self) -> Result<Came, Failure> {
        let path = format!("/threads/{}/state", segment(&self.session.id));
        let told = self.server.get(&path).await?;
        Ok(graph::came(&told.json()?))
    }

    /// Polls the status of a run that cannot be waited for.
    async fn poll(&self, run: &str, absent: &Told) -> Result<Came, Failure> {
        let mut pause = PAUSE;
        loop {
            let told = self.server.get(run).await?;
            if told.is_absent() {
                return Err(absent.refusal());
            }
            let shown = told.json()?;
            let status = shown.get("status").and_then(Value::as_str);
            if !matches!(status, Some("pending" | "running")) {
                break;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
        let thread = self.thread().ok_or_else(|| absent.refusal())?;
        let path = format!("/threads/{}", segment(&thread));
        let told = self.server.get(&path).await?;
        let thread = told.json()?;
        let values = thread.get("values").and_then(Value::as_object);
        Ok(Came::Result {
            values: values.cloned().unwrap_or_default(),
            messages: messages(&thread),
        })
    }

    async fn opened(&self, answer: Response<Incoming>) -> Result<Option<Stream>, Failure> {
        if let Some(id) = located(answer.headers()) {
            self.name(&id);
        }
        let status = answer.status();
        if status.is_success() && is_of(answer.headers(), "text/event-stream") {
            return Ok(Some(Stream {
                body: answer.into_body(),
                events: Sse::new(self.server.limits().frame_from_network),
            }));
        }
        let body = whole(answer.into_body(), self.server.limits().frame_from_network).await;
        let body = body.map_err(Failure::internal)?;
        if status.is_success() {
            let what = "the server did not answer with an event stream";
            return Err(Failure::internal(what));
        }
        Err(Failure::refused(status.as_u16(), &body))
    }

    /// The path of the session's runs.
    fn runs(&self) -> String {
        match self.thread() {
            Some(thread) if self.known.generation != Generation::Old => {
                format!("/threads/{}/runs", segment(&thread))
            }
            _ => "/runs".to_owned(),
        }
    }

    fn path(&self) -> Result<String, Failure> {
        Ok(format!("{}/{}", self.runs(), segment(&self.named()?)))
    }

    fn thread(&self) -> Option<String> {
        if self.session.is_thread {
            Some(self.session.id.clone())
        } else {
            self.session.notes().thread.clone()
        }
    }
}

impl Stream {
    /// The name of the next event and its data; `None` at the end. Data that is not JSON is
    /// skipped.
    pub(super) async fn next(&mut self) -> Result<Option<(String, Value)>, Failure> {
        loop {
            match self.events.next() {
                Some(Event::Whole(data)) => {
                    if let Ok(data) = serde_json::from_slice(&data) {
                        let name = String::from_utf8_lossy(self.events.last_name());
                        return Ok(Some((name.into_owned(), data)));
                    }
                    continue;
                }
                Some(Event::TooLong(_)) => {
                    let what = "the agent sent an event longer than the limit";
                    return Err(Failure::new(reply::TOO_LARGE, what));
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
fn located(headers: &HeaderMap) -> Option<String> {
    let place = headers.get(CONTENT_LOCATION)?.to_str().ok()?;
    let (_, after) = place.split_once("/runs/")?;
    let id = after.split(['/', '?']).next()?;
    (!id.is_empty() && id != "stream").then(|| id.to_owned())
}

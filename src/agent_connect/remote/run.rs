//! A prompt as a run of the server: its paths in every generation (start, stream, resume, cancel), and
//! what the client is sent of it.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LOCATION, HeaderMap};
use hyper::{Method, Response};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::agent::{RemoteAgent, RemoteSession};
use super::server::{RemoteResponse, segment};
use super::threads::{key_required, session_id};
use crate::api::content::text_block;
use crate::api::descriptor::{Descriptor, Generation};
use crate::api::error::{RpcError, RpcResult};
use crate::api::input::{self, input};
use crate::api::question::{InterruptAction, interrupt_action, typed_answer};
use crate::api::run::{Interrupt, RunOutcome};
use crate::api::run_event::{self, RunEvent, graph_outcome, outcome, result};
use crate::api::sent_content::{SentContent, answer_text, message_ids};
use jsonrpc::reply;
use transport::http::client::{SseEvent, SseReader};
use transport::http::headers::is_type;

/// `block_timeout` of the older generation, in seconds.
const BLOCK_SECONDS: u64 = 60;
/// First and longest pause before a server that does not wait is polled again.
const PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Time limit for the server to confirm the cancellation of a run.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of earlier messages kept for an agent without threads.
const MAX_HISTORY: usize = 1 << 20;

/// A registered turn.
pub(super) struct PendingTurn {
    session: Arc<RemoteSession>,
    cancel: CancellationToken,
}

/// The run of a session's turn; the session holds its id and what was sent of it.
pub(super) struct RemoteRun<'a> {
    pub(super) agent: &'a RemoteAgent,
    pub(super) known: &'a Descriptor,
    pub(super) session: &'a RemoteSession,
}

/// The stream of a run's events.
pub(super) struct RunStream {
    body: Incoming,
    events: SseReader,
}

/// Registers a turn, so that its cancellation finds it.
///
/// # Errors
/// When the request is invalid, or another turn is in progress.
pub(super) fn register(agent: &RemoteAgent, params: &Value) -> RpcResult<PendingTurn> {
    let session = agent.session(session_id(params)?, true)?;
    let cancel = agent.closed.child_token();
    {
        let mut state = session.state();
        if state.turn.is_some() {
            let what = "a turn of this session is in progress";
            return Err(RpcError::new(reply::INVALID_REQUEST, what));
        }
        state.turn = Some(cancel.clone());
    }
    Ok(PendingTurn { session, cancel })
}

/// `session/prompt`.
pub(super) async fn prompt(
    agent: &RemoteAgent,
    params: &Value,
    pending: PendingTurn,
) -> RpcResult<Value> {
    let known = tokio::select! {
        known = agent.descriptor() => known?,
        () = pending.cancel.cancelled() => return Ok(stop("cancelled")),
    };
    if known.needs_key {
        return Err(key_required());
    }
    let session = &*pending.session;
    if session.is_thread && !known.has_threads() {
        agent.remove_session(&session.id);
        return Err(RpcError::new(-32002, "there is no such session"));
    }
    let run = RemoteRun {
        agent,
        known: &known,
        session,
    };
    // The stream stays open until the server has confirmed: some servers cancel a run whose stream
    // breaks, and then the cancel request would find no run.
    let mut work = std::pin::pin!(run.execute(params));
    tokio::select! {
        biased;
        () = pending.cancel.cancelled() => {
            let _ = timeout(CANCEL_TIMEOUT, run.cancel()).await;
            Ok(stop("cancelled"))
        }
        done = &mut work => done,
    }
}

impl RemoteRun<'_> {
    async fn execute(&self, params: &Value) -> RpcResult<Value> {
        let prompt = params["prompt"].as_array();
        let prompt = prompt.map(Vec::as_slice).unwrap_or_default();
        let text = input::prompt_text(prompt);
        let open = self.session.state().interrupt.take();
        let mut outcome = match open {
            Some(interrupt) => {
                let schema = self.known.resume_schema(&interrupt.name);
                let payload = typed_answer(&text, schema);
                self.resume_and_follow(&interrupt, payload, None).await?
            }
            None => {
                {
                    let mut state = self.session.state();
                    (state.run, state.sent) = (None, SentContent::new(state.old_ids.clone()));
                }
                let body = self.body(prompt, params)?;
                self.start(body).await?
            }
        };
        loop {
            let interrupt = match outcome {
                RunOutcome::Result {
                    values, messages, ..
                } => return Ok(self.finish(&text, &values, &messages).await),
                RunOutcome::Error(failure) => return Err(failure),
                RunOutcome::Interrupt(interrupt) => interrupt,
            };
            let schema = self.known.resume_schema(&interrupt.name);
            let (session, forms) = (&self.session.id, self.agent.state().forms);
            let action = interrupt_action(session, &self.id()?, &interrupt, schema, forms);
            let (payload, call) = match action {
                InterruptAction::Resume(payload) => (payload, None),
                InterruptAction::Inform(text) => {
                    self.send_message(text_block(&text)).await;
                    self.session.state().interrupt = Some(interrupt);
                    return Ok(stop("end_turn"));
                }
                InterruptAction::Ask(question) => {
                    if let Some(call) = &question.tool_call {
                        self.update(call).await;
                    }
                    let result = self.agent.request(question.method, &question.params).await;
                    let answer = question.answer(result.as_ref(), self.agent.default_permission);
                    let Some(payload) = answer else {
                        self.cancel().await;
                        return Ok(stop("cancelled"));
                    };
                    let granted = question.approves(&payload);
                    (payload, question.tool_call.map(|call| (call, granted)))
                }
            };
            outcome = self.resume_and_follow(&interrupt, payload, call).await?;
        }
    }

    /// The body that starts the run.
    fn body(&self, prompt: &[Value], params: &Value) -> RpcResult<Value> {
        let state = self.session.state();
        let history: &[Value] = match self.session.is_thread || state.thread.is_some() {
            true => &[],
            false => &state.history,
        };
        let input = input(self.known.input_schema(), prompt, history)?;
        let mut body = self.known.run_body("input", &input);
        let given = &params["_meta"]["agentConnect"];
        let config = [&state.meta["config"], &given["config"]];
        let config = config.into_iter().filter_map(Value::as_object).flatten();
        for (id, value) in config {
            body["config"][id] = value.clone();
        }
        // The request's own configuration overrides the options set before.
        for (id, value) in &state.options {
            let place = &mut body["config"]["configurable"];
            if place.get(id).is_none() {
                place[id] = value.clone();
            }
        }
        if let Some(tags) = given.get("tags") {
            body["config"]["tags"] = tags.clone();
        }
        // The session's metadata belongs to the thread and was sent when that was created.
        if let Some(metadata) = given.get("metadata") {
            body["metadata"] = metadata.clone();
        }
        Ok(body)
    }

    async fn start(&self, body: Value) -> RpcResult<RunOutcome> {
        match self.stream(&body).await? {
            Some(stream) => self.follow_to_end(stream).await,
            None => self.wait(body).await,
        }
    }

    /// Answers the run's interrupt and follows the run. The tool call for the interrupt ends first.
    async fn resume_and_follow(
        &self,
        interrupt: &Interrupt,
        payload: Value,
        call: Option<(Value, bool)>,
    ) -> RpcResult<RunOutcome> {
        let is_graph = self.known.generation == Generation::LangGraph;
        let command = json!({ "resume": payload });
        if !is_graph {
            self.resume(interrupt, payload).await?;
        }
        if let Some((call, granted)) = call {
            let status = if granted { "completed" } else { "failed" };
            let (kind, id) = ("tool_call_update", &call["toolCallId"]);
            self.update(&json!({ "sessionUpdate": kind, "toolCallId": id, "status": status }))
                .await;
        }
        // In LangGraph a new run carries the answer.
        if is_graph {
            return self.start(self.known.run_body("command", &command)).await;
        }
        match self.reopen_stream().await? {
            Some(stream) => self.follow_to_end(stream).await,
            None => self.output().await,
        }
    }

    /// Forwards a stream; if it ends without the outcome of the run, that is queried.
    async fn follow_to_end(&self, stream: RunStream) -> RpcResult<RunOutcome> {
        match self.follow(stream).await? {
            Some(outcome) => Ok(outcome),
            None => self.output().await,
        }
    }

    /// Forwards a stream until it ends; returns the outcome of the run, if the stream has it.
    async fn follow(&self, mut stream: RunStream) -> RpcResult<Option<RunOutcome>> {
        while let Some((name, data)) = stream.next().await? {
            self.set_id(&data["run_id"]);
            let event = match self.known.generation {
                Generation::LangGraph => run_event::parse_graph_event(&name, &data),
                Generation::New | Generation::Old => run_event::parse_event(&data),
            };
            let new = match event {
                RunEvent::Messages(messages) => self.session.state().sent.take_new(&messages),
                RunEvent::NewMessages(messages) => {
                    self.session.state().sent.add_messages(&messages)
                }
                RunEvent::Chunk(message) => {
                    let new = self.session.state().sent.add_chunk(&message);
                    new.into_iter().collect()
                }
                RunEvent::Update(update) => {
                    self.session.state().sent.record_update(&update);
                    self.update(&update).await;
                    continue;
                }
                RunEvent::Custom(custom) => {
                    let content = text_block(&custom.to_string());
                    self.send_chunk("agent_thought_chunk", content).await;
                    continue;
                }
                RunEvent::Outcome(outcome) => return Ok(Some(outcome)),
                RunEvent::Ignored => continue,
            };
            for block in new {
                self.send_message(block).await;
            }
        }
        Ok(None)
    }

    /// Ends the turn: sends what was not sent yet.
    async fn finish(&self, text: &str, values: &Map<String, Value>, messages: &[Value]) -> Value {
        let mut new = self.session.state().sent.take_new(messages);
        {
            let mut state = self.session.state();
            if state.sent.is_empty()
                && let Some(structured) = run_event::structured(values)
            {
                new.push(text_block(&structured));
            }
            state.old_ids.extend(message_ids(messages));
            if !self.session.is_thread && state.thread.is_none() {
                let answer = answer_text(messages);
                let turn = [input::message("human", text), input::message("ai", &answer)];
                state.history.extend(turn);
                let length =
                    |all: &[Value]| all.iter().map(|one| one.to_string().len()).sum::<usize>();
                while length(&state.history) > MAX_HISTORY {
                    state.history.remove(0);
                }
            }
        }
        for block in new {
            self.send_message(block).await;
        }
        stop(run_event::stop_reason(values))
    }

    async fn send_message(&self, content: Value) {
        self.send_chunk("agent_message_chunk", content).await;
    }

    async fn send_chunk(&self, kind: &str, content: Value) {
        self.update(&json!({ "sessionUpdate": kind, "content": content }))
            .await;
    }

    async fn update(&self, update: &Value) {
        self.agent.update(&self.session.id, update).await;
    }

    /// Its id on the server.
    pub(super) fn id(&self) -> RpcResult<String> {
        let id = self.session.state().run.clone();
        id.ok_or_else(|| RpcError::internal("the server did not return the run's id"))
    }

    /// Sets its id on the server, if that is given.
    pub(super) fn set_id(&self, id: &Value) {
        if let Some(id) = id.as_str() {
            self.session.state().run = Some(id.to_owned());
        }
    }

    /// Starts it and streams its events; `None` when the server does not stream.
    pub(super) async fn stream(&self, body: &Value) -> RpcResult<Option<RunStream>> {
        let Some(mode) = self.known.stream_mode() else {
            return Ok(None);
        };
        let mut body = body.clone();
        body["stream_mode"] = mode;
        body["on_disconnect"] = json!("cancel");
        let path = format!("{}/stream", self.runs());
        let answer = self.agent.server.open(Method::POST, &path, Some(&body));
        let stream = self.event_stream(answer.await?).await?;
        match stream {
            Err(refused) if !refused.is_absent() => Err(refused.to_error()),
            other => Ok(other.ok()),
        }
    }

    /// Streams its further events; `None` when the server does not support that.
    pub(super) async fn reopen_stream(&self) -> RpcResult<Option<RunStream>> {
        if self.known.stream_mode().is_none() {
            return Ok(None);
        }
        let path = format!("{}/stream", self.path()?);
        let answer = self.agent.server.open(Method::GET, &path, None).await?;
        Ok(self.event_stream(answer).await?.ok())
    }

    /// Starts it and waits for its outcome.
    pub(super) async fn wait(&self, mut body: Value) -> RpcResult<RunOutcome> {
        let server = &self.agent.server;
        if self.known.generation == Generation::New {
            let path = format!("{}/wait", self.runs());
            let response = server.wait(Method::POST, &path, Some(&body)).await?;
            if !response.is_absent() {
                let answer = response.json()?;
                self.set_id(&answer["run"]["run_id"]);
                return match outcome(&answer) {
                    Some(outcome) => Ok(outcome),
                    None => self.output().await,
                };
            }
        } else if let Some(thread) = self.thread() {
            body["thread_id"] = json!(thread);
        }
        let run = server.post(&self.runs(), &body).await?.json()?;
        self.set_id(&run["run_id"]);
        // In the prose specification a run creates its own thread, which the next run names.
        if let Some(thread) = run["thread_id"].as_str()
            && !self.session.is_thread
            && self.known.generation == Generation::Old
        {
            self.session.state().thread = Some(thread.to_owned());
        }
        self.output().await
    }

    /// Waits for its outcome.
    pub(super) async fn output(&self) -> RpcResult<RunOutcome> {
        let (server, run) = (&self.agent.server, self.path()?);
        let path = match self.known.generation {
            Generation::LangGraph => {
                let path = format!("/threads/{}/state", segment(&self.session.id));
                return Ok(graph_outcome(&server.get(&path).await?.json()?));
            }
            Generation::New => format!("{run}/wait"),
            Generation::Old => format!("{run}/output?block_timeout={BLOCK_SECONDS}"),
        };
        let (mut pause, mut cannot_wait) = (PAUSE, None);
        loop {
            let start = Instant::now();
            let path = if cannot_wait.is_some() { &run } else { &path };
            let response = server.wait(Method::GET, path, None).await?;
            match (response.status, &cannot_wait) {
                (204 | 408 | 504, _) => {}
                // The status of the run is polled.
                (_, None) if response.is_absent() => cannot_wait = Some(response),
                (_, Some(absent)) if response.is_absent() => return Err(absent.to_error()),
                (_, None) => {
                    if let Some(outcome) = outcome(&response.json()?) {
                        return Ok(outcome);
                    }
                }
                (_, Some(absent)) => {
                    let shown = response.json()?;
                    if !matches!(shown["status"].as_str(), Some("pending" | "running")) {
                        let thread = self.thread().ok_or_else(|| absent.to_error())?;
                        let path = format!("/threads/{}", segment(&thread));
                        let thread = server.get(&path).await?.json()?;
                        return Ok(result(&thread["values"], &thread));
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
    pub(super) async fn resume(&self, interrupt: &Interrupt, payload: Value) -> RpcResult<()> {
        let body = match interrupt.wrapped {
            true => json!({ "interrupt_type": interrupt.name, "resume_payload": payload }),
            false => payload,
        };
        let response = self.agent.server.post(&self.path()?, &body).await?;
        response.check()
    }

    /// Cancels it, if the server supports that; its further output is ignored.
    pub(super) async fn cancel(&self) {
        if self.id().is_err() {
            self.find_id().await;
        }
        let Ok(run) = self.path() else {
            return;
        };
        let server = &self.agent.server;
        if self.known.generation != Generation::Old {
            let path = format!("{run}/cancel?wait=false&action=interrupt");
            let response = server.request(Method::POST, &path, None).await;
            // 4xx: the run has already ended.
            if response.is_ok_and(|response| response.status < 500 && !response.is_absent()) {
                return;
            }
        }
        let response = server.request(Method::DELETE, &run, None).await;
        if !response.is_ok_and(|response| response.is_success()) {
            tracing::warn!(run, "the server did not cancel the run; it continues");
        }
    }

    /// Finds the thread's current run, if the server has not sent its id yet.
    async fn find_id(&self) {
        if !self.session.is_thread || self.known.generation == Generation::Old {
            return;
        }
        let response = self.agent.server.get(&self.runs()).await;
        let runs = response.and_then(|response| response.json());
        let runs = runs.as_ref().ok().and_then(Value::as_array);
        let mut runs = runs.into_iter().flatten();
        if let Some(run) = runs.rfind(|run| run["status"] == "pending") {
            self.set_id(&run["run_id"]);
        }
    }

    /// The stream of events in a response, or the whole response if it is a refusal.
    async fn event_stream(
        &self,
        answer: Response<Incoming>,
    ) -> RpcResult<Result<RunStream, RemoteResponse>> {
        if !answer.status().is_success() {
            return Ok(Err(self.agent.server.read(answer).await?));
        }
        if !is_type(answer.headers(), "text/event-stream") {
            let what = "the server did not answer with an event stream";
            return Err(RpcError::internal(what));
        }
        if let Some(id) = id_in_location(answer.headers()) {
            self.session.state().run = Some(id);
        }
        Ok(Ok(RunStream {
            body: answer.into_body(),
            events: SseReader::new(self.agent.server.limits().frame_from_network),
        }))
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

    fn path(&self) -> RpcResult<String> {
        Ok(format!("{}/{}", self.runs(), segment(&self.id()?)))
    }

    fn thread(&self) -> Option<String> {
        match self.session.is_thread {
            true => Some(self.session.id.clone()),
            false => self.session.state().thread.clone(),
        }
    }
}

impl Drop for PendingTurn {
    fn drop(&mut self) {
        self.session.state().turn = None;
    }
}

impl RunStream {
    /// The name of the next event and its data; `None` at the end. Data that is not JSON is
    /// skipped.
    pub(super) async fn next(&mut self) -> RpcResult<Option<(String, Value)>> {
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
                    return Err(RpcError::new(reply::TOO_LARGE, what));
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

fn stop(reason: &str) -> Value {
    json!({ "stopReason": reason })
}

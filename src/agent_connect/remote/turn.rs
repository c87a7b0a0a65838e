//! Executes a prompt as a run: starts, streams, resumes and cancels it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::agent::{RemoteAgent, RemoteSession};
use super::descriptor::Generation;
use super::error::RemoteError;
use super::graph;
use super::input::{self, input};
use super::payload::typed_answer;
use super::question::{self, InterruptAction};
use super::run::RemoteRun;
use super::run_event::{self, Interrupt, RemoteOutcome, RunEvent};
use super::sent_content::{self, SentContent};
use super::threads::{key_required, session_id};
use crate::agent_connect::api::content::text_block;
use crate::jsonrpc::reply;

/// Time limit for the server to confirm the cancellation of a run.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of earlier messages kept for an agent without threads.
const MAX_HISTORY: usize = 1 << 20;

/// A registered turn.
pub(super) struct PendingTurn {
    session: Arc<RemoteSession>,
    cancel: CancellationToken,
}

/// A turn in progress.
struct RunningTurn<'a> {
    agent: &'a RemoteAgent,
    session: &'a RemoteSession,
    run: &'a RemoteRun<'a>,
    sent: SentContent,
}

/// Registers a turn, so that its cancellation finds it.
///
/// # Errors
/// When the request is invalid, or another turn is in progress.
pub(super) fn register(agent: &RemoteAgent, params: &Value) -> Result<PendingTurn, RemoteError> {
    let session = agent.session(session_id(params)?, true)?;
    let cancel = agent.closed.child_token();
    {
        let mut state = session.state();
        if state.turn.is_some() {
            let what = "a turn of this session is in progress";
            return Err(RemoteError::new(reply::INVALID_REQUEST, what));
        }
        state.turn = Some(cancel.clone());
    }
    Ok(PendingTurn { session, cancel })
}

impl Drop for PendingTurn {
    fn drop(&mut self) {
        self.session.state().turn = None;
    }
}

/// `session/prompt`.
pub(super) async fn prompt(
    agent: &RemoteAgent,
    params: &Value,
    pending: PendingTurn,
) -> Result<Value, RemoteError> {
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
        return Err(RemoteError::new(-32002, "there is no such session"));
    }
    let run = RemoteRun {
        server: &agent.server,
        descriptor: &known,
        session,
        id: Mutex::default(),
    };
    let old_ids = session.state().old_ids.clone();
    let mut turn = RunningTurn {
        agent,
        session,
        run: &run,
        sent: SentContent::new(old_ids),
    };
    // The stream stays open until the server has confirmed: some servers cancel a run whose stream
    // breaks, and then the cancel request would find no run.
    let mut work = std::pin::pin!(turn.execute(params));
    tokio::select! {
        biased;
        () = pending.cancel.cancelled() => {
            let _ = timeout(CANCEL_TIMEOUT, run.cancel()).await;
            Ok(stop("cancelled"))
        }
        done = &mut work => done,
    }
}

impl RunningTurn<'_> {
    async fn execute(&mut self, params: &Value) -> Result<Value, RemoteError> {
        let prompt = params["prompt"].as_array();
        let prompt = prompt.map(Vec::as_slice).unwrap_or_default();
        let text = input::prompt_text(prompt);
        let open = self.session.state().open_interrupt.take();
        let mut outcome = match open {
            Some((id, interrupt, sent)) => {
                self.sent = sent;
                self.run.set_id(&id);
                let schema = self.run.descriptor.resume_schema(&interrupt.name);
                let payload = typed_answer(&text, schema);
                self.resume(&interrupt, payload, None).await?
            }
            None => {
                let body = self.body(prompt, params)?;
                self.start(body).await?
            }
        };
        loop {
            let interrupt = match outcome {
                RemoteOutcome::Result { values, messages } => {
                    return Ok(self.finish(&text, &values, &messages).await);
                }
                RemoteOutcome::Failed(failure) => return Err(failure),
                RemoteOutcome::Interrupt(interrupt) => interrupt,
            };
            let id = self.run.run_id()?;
            let schema = self.run.descriptor.resume_schema(&interrupt.name);
            let forms = self.agent.has_forms();
            let (payload, call) = match question::interrupt_action(
                &self.session.id,
                &id,
                &interrupt,
                schema,
                forms,
            ) {
                InterruptAction::Resume(payload) => (payload, None),
                InterruptAction::Inform(text) => {
                    self.send_message(text_block(&text)).await;
                    let sent = std::mem::take(&mut self.sent);
                    self.session.state().open_interrupt = Some((id, interrupt, sent));
                    return Ok(stop("end_turn"));
                }
                InterruptAction::Ask(question) => {
                    if let Some(call) = &question.tool_call {
                        self.update(call.clone()).await;
                    }
                    let result = self.agent.request(question.method, &question.params).await;
                    let answer = question.answer(result.as_ref(), self.agent.default_permission);
                    let Some(payload) = answer else {
                        self.run.cancel().await;
                        return Ok(stop("cancelled"));
                    };
                    let granted = question.approves(&payload);
                    (payload, question.tool_call.map(|call| (call, granted)))
                }
            };
            outcome = self.resume(&interrupt, payload, call).await?;
        }
    }

    /// The body that starts the run.
    fn body(&self, prompt: &[Value], params: &Value) -> Result<Value, RemoteError> {
        let known = self.run.descriptor;
        let state = self.session.state();
        let history: &[Value] = if self.session.is_thread || state.thread.is_some() {
            &[]
        } else {
            &state.history
        };
        let input = input(known.input_schema(), prompt, history)?;
        let mut body = known.run_body("input", &input);
        let given = &params["_meta"]["agentConnect"];
        let config = [&state.meta["config"], &given["config"]];
        let config = config.into_iter().filter_map(Value::as_object).flatten();
        let config: Map<String, Value> = config
            .map(|(id, value)| (id.clone(), value.clone()))
            .collect();
        if !config.is_empty() {
            body["config"] = Value::Object(config);
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

    async fn start(&mut self, body: Value) -> Result<RemoteOutcome, RemoteError> {
        if let Some(mode) = self.run.descriptor.stream_mode()
            && let Some(stream) = self.run.stream(&body, &mode).await?
            && let Some(outcome) = self.follow(stream).await?
        {
            return Ok(outcome);
        }
        // If a stream ended without an outcome, the run can be queried.
        if self.run.run_id().is_ok() {
            return self.run.output().await;
        }
        self.run.wait(body).await
    }

    /// Answers the run's interrupt and follows the run. The tool call for the interrupt ends first.
    async fn resume(
        &mut self,
        interrupt: &Interrupt,
        payload: Value,
        call: Option<(Value, bool)>,
    ) -> Result<RemoteOutcome, RemoteError> {
        let graph = self.run.descriptor.generation == Generation::LangGraph;
        if !graph {
            self.run.resume(interrupt, payload.clone()).await?;
        }
        if let Some((call, granted)) = call {
            let status = if granted { "completed" } else { "failed" };
            let id = &call["toolCallId"];
            let kind = "tool_call_update";
            let update = json!({ "sessionUpdate": kind, "toolCallId": id, "status": status });
            self.update(update).await;
        }
        // In LangGraph a new run carries the answer.
        if graph {
            let body = self
                .run
                .descriptor
                .run_body("command", &json!({ "resume": payload }));
            return self.start(body).await;
        }
        if self.run.descriptor.stream_mode().is_some()
            && let Some(stream) = self.run.reopen_stream().await?
            && let Some(outcome) = self.follow(stream).await?
        {
            return Ok(outcome);
        }
        self.run.output().await
    }

    /// Forwards a stream until it ends; returns the outcome of the run, if the stream has it.
    async fn follow(
        &mut self,
        mut stream: super::run::RunStream,
    ) -> Result<Option<RemoteOutcome>, RemoteError> {
        while let Some((name, data)) = stream.next().await? {
            if let Some(id) = data["run_id"].as_str() {
                self.run.set_id(id);
            }
            let event = match self.run.descriptor.generation {
                Generation::LangGraph => graph::event(&name, &data),
                Generation::New | Generation::Old => run_event::parse_event(&data),
            };
            match event {
                RunEvent::Messages(messages) => self.send_new(&messages).await,
                RunEvent::NewMessages(messages) => {
                    for block in self.sent.add_messages(&messages) {
                        self.send_message(block).await;
                    }
                }
                RunEvent::Chunk(message) => {
                    if let Some(block) = self.sent.add_chunk(&message) {
                        self.send_message(block).await;
                    }
                }
                RunEvent::Update(update) => {
                    self.sent.record_update(&update);
                    self.update(update).await;
                }
                RunEvent::Custom(custom) => {
                    let content = text_block(&custom.to_string());
                    self.send_chunk("agent_thought_chunk", content).await;
                }
                RunEvent::Outcome(outcome) => return Ok(Some(outcome)),
                RunEvent::Ignored => {}
            }
        }
        Ok(None)
    }

    /// Ends the turn: sends what was not sent yet.
    async fn finish(
        &mut self,
        text: &str,
        values: &Map<String, Value>,
        messages: &[Value],
    ) -> Value {
        self.send_new(messages).await;
        if self.sent.is_empty()
            && let Some(structured) = run_event::structured(values)
        {
            self.send_message(text_block(&structured)).await;
        }
        {
            let mut state = self.session.state();
            state.old_ids.extend(sent_content::message_ids(messages));
            if !self.session.is_thread && state.thread.is_none() {
                let answer = sent_content::answer_text(messages);
                let turn = [input::message("human", text), input::message("ai", &answer)];
                state.history.extend(turn);
                let length =
                    |all: &[Value]| all.iter().map(|one| one.to_string().len()).sum::<usize>();
                while length(&state.history) > MAX_HISTORY && !state.history.is_empty() {
                    state.history.remove(0);
                }
            }
        }
        stop(run_event::stop_reason(values))
    }

    async fn send_new(&mut self, messages: &[Value]) {
        for block in self.sent.take_new(messages) {
            self.send_message(block).await;
        }
    }

    async fn send_message(&self, content: Value) {
        self.send_chunk("agent_message_chunk", content).await;
    }

    async fn send_chunk(&self, kind: &str, content: Value) {
        let update = json!({ "sessionUpdate": kind, "content": content });
        self.update(update).await;
    }

    async fn update(&self, update: Value) {
        self.agent.update(&self.session.id, &update).await;
    }
}

fn stop(reason: &str) -> Value {
    json!({ "stopReason": reason })
}

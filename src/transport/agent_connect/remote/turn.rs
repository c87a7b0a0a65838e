//! Executes a prompt as a run: starts, streams, resumes and cancels it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::agent::{Agent, Session};
use super::run::Run;
use super::threads::{locked, named};
use crate::agent_connect::remote::ask::{self, Answer, Move};
use crate::agent_connect::remote::descriptor::Generation;
use crate::agent_connect::remote::failure::Failure;
use crate::agent_connect::remote::graph;
use crate::agent_connect::remote::heard::{self, Came, Event, Interrupt};
use crate::agent_connect::remote::input::{self, input};
use crate::agent_connect::remote::payload::typed;
use crate::agent_connect::remote::told::{self, Told};
use crate::agent_connect::run_request::text_block;
use crate::jsonrpc::reply;

/// Time limit for the server to confirm the cancellation of a run.
const FAREWELL: Duration = Duration::from_secs(5);
/// Maximum bytes of earlier messages kept for an agent without threads.
const REMEMBERED: usize = 1 << 20;

/// A registered turn.
pub(super) struct Begun {
    session: Arc<Session>,
    cancel: CancellationToken,
}

/// A turn in progress.
struct Turn<'a> {
    agent: &'a Agent,
    session: &'a Session,
    run: &'a Run<'a>,
    told: Told,
}

/// Registers a turn, so that its cancellation finds it; `None` when the request is invalid, or
/// another turn is in progress.
pub(super) fn begin(agent: &Agent, params: &Value) -> Option<Begun> {
    let session = agent.session(named(params).ok()?, true).ok()?;
    let cancel = agent.over.child_token();
    {
        let mut notes = session.notes();
        if notes.turn.is_some() {
            return None;
        }
        notes.turn = Some(cancel.clone());
    }
    Some(Begun { session, cancel })
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.session.notes().turn = None;
    }
}

/// `session/prompt`.
pub(super) async fn prompt(
    agent: &Agent,
    params: &Value,
    begun: Option<Begun>,
) -> Result<Value, Failure> {
    let Some(begun) = begun else {
        let id = named(params)?;
        let busy = agent.known(id).is_some();
        return Err(if busy {
            Failure::new(reply::INVALID_REQUEST, "a turn of this session is in progress")
        } else {
            Failure::new(reply::OVERLOADED, "too many sessions on one connection")
        });
    };
    let known = tokio::select! {
        known = agent.descriptor() => known?,
        () = begun.cancel.cancelled() => return Ok(ended("cancelled")),
    };
    if known.locked {
        return Err(locked());
    }
    let session = &*begun.session;
    if session.is_thread && !known.threads() {
        agent.forget(&session.id);
        return Err(Failure::new(-32002, "there is no such session"));
    }
    let run = Run {
        server: &agent.server,
        known: &known,
        session,
        id: Mutex::default(),
    };
    let old = session.notes().old.clone();
    let mut turn = Turn {
        agent,
        session,
        run: &run,
        told: Told::since(old),
    };
    // The stream stays open until the server has been told: some servers cancel a run whose stream
    // breaks, and then the cancel request would find no run.
    let mut work = std::pin::pin!(turn.go(params));
    tokio::select! {
        biased;
        () = begun.cancel.cancelled() => {
            let _ = timeout(FAREWELL, run.cancel()).await;
            Ok(ended("cancelled"))
        }
        done = &mut work => done,
    }
}

impl Turn<'_> {
    async fn go(&mut self, params: &Value) -> Result<Value, Failure> {
        let prompt = params.get("prompt").and_then(Value::as_array);
        let prompt = prompt.map(Vec::as_slice).unwrap_or_default();
        let text = input::text(prompt);
        let open = self.session.notes().open.take();
        let mut came = match open {
            Some((id, interrupt, told)) => {
                self.told = told;
                self.run.name(&id);
                let schema = self.run.known.resume_schema(&interrupt.name);
                let payload = typed(&text, schema);
                self.resume(&interrupt, payload, None).await?
            }
            None => {
                let body = self.body(prompt, params)?;
                self.start(body).await?
            }
        };
        loop {
            let interrupt = match came {
                Came::Result { values, messages } => {
                    return Ok(self.end(&text, &values, &messages).await);
                }
                Came::Failed(failure) => return Err(failure),
                Came::Interrupt(interrupt) => interrupt,
            };
            let id = self.run.named()?;
            let schema = self.run.known.resume_schema(&interrupt.name);
            let forms = self.agent.fills_forms();
            let (payload, call) = match ask::ask(&self.session.id, &id, &interrupt, schema, forms) {
                Move::Resume(payload) => (payload, None),
                Move::Tell(text) => {
                    self.say(text_block(&text)).await;
                    let told = std::mem::take(&mut self.told);
                    self.session.notes().open = Some((id, interrupt, told));
                    return Ok(ended("end_turn"));
                }
                Move::Ask(question) => {
                    if let Some(call) = &question.call {
                        self.update(with_kind(call.clone(), "tool_call")).await;
                    }
                    let result = self.agent.ask(question.method, &question.params).await;
                    let answer = question.answer(result.as_ref(), self.agent.unasked);
                    let granted = question.granted(&answer);
                    match answer {
                        Answer::Resume(payload) => {
                            (payload, question.call.map(|call| (call, granted)))
                        }
                        Answer::Stop => {
                            self.run.cancel().await;
                            return Ok(ended("cancelled"));
                        }
                    }
                }
            };
            came = self.resume(&interrupt, payload, call).await?;
        }
    }

    /// The body that starts the run.
    fn body(&self, prompt: &[Value], params: &Value) -> Result<Value, Failure> {
        let known = self.run.known;
        let notes = self.session.notes();
        let before: &[Value] = if self.session.is_thread || notes.thread.is_some() {
            &[]
        } else {
            &notes.before
        };
        let input = input(known.input_schema(), prompt, before)?;
        let mut body = known.body("input", &input);
        let said = params.pointer("/_meta/agentConnect");
        let all = [Some(&notes.meta), said];
        let merged = |name: &str| {
            let maps = all
                .iter()
                .filter_map(|meta| meta.as_ref()?.get(name)?.as_object());
            let merged: Map<String, Value> = maps.flat_map(Clone::clone).collect();
            (!merged.is_empty()).then_some(merged)
        };
        if let Some(config) = merged("config") {
            body["config"] = Value::Object(config);
        }
        // The request's own configuration overrides the options set before.
        for (id, value) in &notes.chosen {
            let place = &mut body["config"]["configurable"];
            if place.get(id).is_none() {
                place[id] = value.clone();
            }
        }
        if let Some(tags) = said.and_then(|said| said.get("tags")) {
            body["config"]["tags"] = tags.clone();
        }
        // The session's metadata belongs to the thread and was sent when that was created.
        if let Some(metadata) = said.and_then(|said| said.get("metadata")) {
            body["metadata"] = metadata.clone();
        }
        Ok(body)
    }

    async fn start(&mut self, body: Value) -> Result<Came, Failure> {
        if let Some(mode) = self.run.known.stream_mode()
            && let Some(stream) = self.run.stream(&body, &mode).await?
            && let Some(came) = self.follow(stream).await?
        {
            return Ok(came);
        }
        // If a stream ended without an outcome, the run can be queried.
        if self.run.named().is_ok() {
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
    ) -> Result<Came, Failure> {
        let graph = self.run.known.generation == Generation::Graph;
        if !graph {
            self.run.resume(interrupt, payload.clone()).await?;
        }
        if let Some((call, granted)) = call {
            let status = if granted { "completed" } else { "failed" };
            let over = json!({ "toolCallId": call["toolCallId"], "status": status });
            self.update(with_kind(over, "tool_call_update")).await;
        }
        // In LangGraph a new run carries the answer.
        if graph {
            let body = self
                .run
                .known
                .body("command", &json!({ "resume": payload }));
            return self.start(body).await;
        }
        if self.run.known.stream_mode().is_some()
            && let Some(stream) = self.run.stream_again().await?
            && let Some(came) = self.follow(stream).await?
        {
            return Ok(came);
        }
        self.run.output().await
    }

    /// Forwards a stream until it ends; returns the outcome of the run, if the stream has it.
    async fn follow(&mut self, mut stream: super::run::Stream) -> Result<Option<Came>, Failure> {
        while let Some((name, data)) = stream.next().await? {
            if let Some(id) = data.get("run_id").and_then(Value::as_str) {
                self.run.name(id);
            }
            let event = match self.run.known.generation {
                Generation::Graph => graph::event(&name, &data),
                Generation::New | Generation::Old => heard::event(&data),
            };
            match event {
                Event::Messages(messages) => self.tell(&messages).await,
                Event::More(messages) => {
                    for block in self.told.more(&messages) {
                        self.say(block).await;
                    }
                }
                Event::Piece(message) => {
                    if let Some(block) = self.told.piece(&message) {
                        self.say(block).await;
                    }
                }
                Event::Update(update) => {
                    self.told.pass(&update);
                    self.update(update).await;
                }
                Event::Custom(custom) => {
                    let content = text_block(&custom.to_string());
                    let update = json!({ "content": content });
                    self.update(with_kind(update, "agent_thought_chunk")).await;
                }
                Event::Came(came) => return Ok(Some(came)),
                Event::Nothing => {}
            }
        }
        Ok(None)
    }

    /// Ends the turn: sends what was not sent yet.
    async fn end(&mut self, text: &str, values: &Map<String, Value>, messages: &[Value]) -> Value {
        self.tell(messages).await;
        if self.told.is_empty()
            && let Some(structured) = heard::structured(values)
        {
            self.say(text_block(&structured)).await;
        }
        {
            let mut notes = self.session.notes();
            notes.old.extend(told::ids(messages));
            if !self.session.is_thread && notes.thread.is_none() {
                notes.before.push(input::message("human", text));
                notes
                    .before
                    .push(input::message("ai", &told::answer(messages)));
                let length =
                    |all: &[Value]| all.iter().map(|one| one.to_string().len()).sum::<usize>();
                while length(&notes.before) > REMEMBERED && !notes.before.is_empty() {
                    notes.before.remove(0);
                }
            }
        }
        ended(heard::stop_reason(values))
    }

    async fn tell(&mut self, messages: &[Value]) {
        for block in self.told.news(messages) {
            self.say(block).await;
        }
    }

    async fn say(&self, content: Value) {
        let update = json!({ "content": content });
        self.update(with_kind(update, "agent_message_chunk")).await;
    }

    async fn update(&self, update: Value) {
        self.agent.update(&self.session.id, &update).await;
    }
}

fn ended(reason: &str) -> Value {
    json!({ "stopReason": reason })
}

/// An update of this kind; `sessionUpdate` comes first.
fn with_kind(update: Value, kind: &str) -> Value {
    let mut whole = json!({ "sessionUpdate": kind });
    if let (Some(whole), Value::Object(members)) = (whole.as_object_mut(), update) {
        whole.extend(members);
    }
    whole
}

//! The exchanges in `tests/vectors/agntcy`: messages of a client and an agent, line by line.
//!
//! A case is a list of steps. An `http` step is a request and its answer, which is awaited before
//! the next step unless an agent has to receive it first; an `acp` step is a message, sent by the
//! test if it is the agent's and expected otherwise; an `sse` step has the events of a stream. The
//! `request_headers` of an `http` step replace the usual ones. Ids and times differ from run to
//! run: the first id at a place stands for the one in the case from then on. A case may begin in
//! the middle: its preconditions are set up first.

use std::collections::{HashMap, VecDeque};
use std::mem;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::exchanges;
use super::stage::{Agent, Client, Stage, human, introduction};
use crate::support::http::Events;
use crate::support::link::run;

/// Members with values of the server. `creation` is the request, which the cases abridge.
const OWN: [&str; 4] = ["created_at", "updated_at", "url", "creation"];
/// Members that hold an id.
const IDS: [&str; 4] = ["run_id", "thread_id", "agent_id", "checkpoint_id"];
/// The id of a missing object.
const NOTHING: &str = "00000000-0000-4000-8000-000000000000";
/// The session of cases that begin in one.
const SESSION: &str = "sess_a1";

struct Play {
    name: Value,
    client: Client,
    agent: Agent,
    /// Names of the case, and the real ones.
    names: HashMap<String, String>,
    ids: Ids,
    /// Whether the server may not have read the agent's last message yet.
    unread: bool,
    /// Messages to the agent that arrived before it was acknowledged.
    early: VecDeque<Value>,
    /// A request without its answer yet.
    pending: Option<(Value, JoinHandle<Answered>)>,
    stream: Option<Events>,
}

/// Ids of this program's requests: in the case, and real.
#[derive(Default)]
pub(super) struct Ids(HashMap<String, Value>);

enum Answered {
    Expected(u16, Value),
    Stream(Events),
}

#[test]
fn every_exchange_is_as_written() {
    let cases = exchanges("acp-agent-as-agntcy-server");
    assert!(cases.len() >= 24, "only {} cases", cases.len());
    for case in cases {
        run(play(&case));
    }
}

async fn play(case: &Value) {
    let steps = case["steps"].as_array().unwrap();
    let whole = case.to_string();
    let mut stage = Stage::open().await;
    let client = stage.client();
    let mut agent = stage.agent().await;
    let mut names = HashMap::new();
    let mut ids = Ids::default();
    let is_first = |step: &&Value| step["acp"]["method"] == "initialize";
    let asked = agent.receive("initialize").await;
    match steps.iter().find(is_first) {
        Some(step) => {
            ids.check(&case["name"], &step["acp"], &asked, &mut names);
        }
        None => {
            let mut capabilities = json!({ "loadSession": true, "sessionCapabilities": {} });
            if whole.contains("session/close") {
                capabilities["sessionCapabilities"]["close"] = json!({});
            }
            let logins = if whole.contains("claude-login") {
                json!([{ "id": "claude-login", "name": "Log in" }])
            } else {
                json!([])
            };
            agent
                .answer(&asked["id"], introduction(&capabilities, &logins))
                .await;
        }
    }
    let mut play = Play {
        name: case["name"].clone(),
        client,
        agent,
        names,
        ids,
        unread: false,
        early: VecDeque::new(),
        pending: None,
        stream: None,
    };
    if steps.iter().all(|step| !is_first(&step)) {
        play.set_up(steps).await;
    }
    for (at, step) in steps.iter().enumerate() {
        let ours = step["direction"] == "client_to_agent";
        if step["note"].is_string() || is_first(&step) {
        } else if step["http"].is_object() {
            play.settle().await;
            play.wait_until_read().await;
            let next = steps[at + 1..]
                .iter()
                .find(|step| !step["note"].is_string());
            let received = next.is_some_and(|next| next["direction"] == "client_to_agent");
            play.request(&step["http"]).await;
            if !received {
                play.settle().await;
            }
        } else if step["sse"].is_array() {
            play.settle().await;
            play.follow(step["sse"].as_array().unwrap()).await;
        } else if ours {
            play.receive(&step["acp"]).await;
        } else {
            play.send(&step["acp"]).await;
        }
    }
    play.settle().await;
}

impl Play {
    /// Sets up the preconditions of the case: the agent's id, its thread, its run.
    async fn set_up(&mut self, steps: &[Value]) {
        let found = self.client.post("/agents/search", json!({})).await;
        let real = found[0]["agent_id"].as_str().unwrap().to_owned();
        let mut paths = Vec::new();
        for step in steps {
            let http = &step["http"];
            paths.extend(http["path"].as_str());
            for agent in [
                &http["request"]["agent_id"],
                &http["response"][0]["agent_id"],
            ] {
                if let Some(agent) = agent.as_str().filter(|id| id.len() == 36 && *id != NOTHING) {
                    self.names.insert(agent.to_owned(), real.clone());
                }
            }
        }
        let part = |of: &str| {
            let mut found = paths.iter().filter_map(|path| {
                let rest = &path[path.find(of)? + of.len()..];
                Some(rest.split(['/', '?']).next().unwrap().to_owned())
            });
            found.find(|part| part.len() == 36 && part != NOTHING)
        };
        // This run creates its thread itself.
        let first = &steps[0]["http"]["path"];
        let made = first == "/threads" || first == "/runs";
        let thread = part("/threads/").filter(|_| !made);
        if let Some(thread) = &thread {
            let client = self.client;
            let made = tokio::spawn(async move {
                client
                    .post("/threads", json!({ "metadata": { "cwd": "/srv/work" } }))
                    .await
            });
            self.agent.open(SESSION).await;
            let made = made.await.unwrap();
            let id = made["thread_id"].as_str().unwrap().to_owned();
            self.names.insert(thread.clone(), id);
        }
        // A prompt without a run.
        if steps[0]["acp"]["method"] == "session/prompt" {
            let text = steps[0]["acp"]["params"]["prompt"][0]["text"]
                .as_str()
                .unwrap();
            let path = match &thread {
                Some(thread) => format!("/threads/{}/runs", self.names[thread]),
                None => "/runs".to_owned(),
            };
            let run = self
                .client
                .post(&path, json!({ "input": human(text) }))
                .await;
            if let Some(known) = part("/runs/") {
                let id = run["run_id"].as_str().unwrap().to_owned();
                self.names.insert(known, id);
            }
            if thread.is_none() {
                self.agent.open(SESSION).await;
            }
        }
    }

    async fn request(&mut self, http: &Value) {
        let mut path = http["path"].as_str().unwrap().to_owned();
        let mut body = http.get("request").map(Value::to_string);
        for (theirs, ours) in &self.names {
            path = path.replace(theirs, ours);
            body = body.map(|body| body.replace(theirs, ours));
        }
        let method = http["method"].as_str().unwrap().to_owned();
        let client = self.client;
        let stream = http["content_type"] == "text/event-stream";
        let fields = http["request_headers"].as_object().cloned();
        let answered = tokio::spawn(async move {
            if let Some(fields) = fields {
                let body = body.unwrap_or_default();
                let (status, body) = client.call_with(&method, &path, &fields, &body).await;
                return Answered::Expected(status, body);
            }
            let body = body.map(|body| serde_json::from_str(&body).unwrap());
            if stream {
                return Answered::Stream(client.events(&method, &path, body.as_ref()).await);
            }
            let (status, body) = client.call(&method, &path, body.as_ref()).await;
            Answered::Expected(status, body)
        });
        self.pending = Some((http.clone(), answered));
    }

    /// Waits for the answer to the last request, and checks it.
    async fn settle(&mut self) {
        let Some((http, answered)) = self.pending.take() else {
            return;
        };
        match answered.await.unwrap() {
            Answered::Stream(events) => self.stream = Some(events),
            Answered::Expected(status, body) => {
                assert_eq!(http["status"], status, "{}: {http}\n{body}", self.name);
                let result = covers(&http["response"], &body, &mut self.names);
                result.unwrap_or_else(|why| panic!("{}: {why}\n{http}\n{body}", self.name));
            }
        }
    }

    async fn follow(&mut self, expected: &[Value]) {
        let stream = self.stream.as_mut().expect("a stream is open");
        for event in expected {
            let data = loop {
                let (_, name, data) = stream.named().await.expect("an event");
                assert_eq!(event["event"], name);
                // The number of repeated states depends on the time.
                let again = data["type"] == "values" && data["status"] == "pending";
                if !again || event["data"]["status"] == "pending" {
                    break data;
                }
            };
            let result = covers(&event["data"], &data, &mut self.names);
            result.unwrap_or_else(|why| panic!("{}: {why}\n{event}\n{data}", self.name));
        }
        let last = &expected[expected.len() - 1]["data"];
        if last["type"] == "interrupt" || last["status"] == "success" {
            assert!(
                stream.named().await.is_none(),
                "{}: the stream continues",
                self.name
            );
        }
    }

    async fn receive(&mut self, expected: &Value) {
        let received = match self.early.pop_front() {
            Some(early) => early,
            None => self.agent.listen().await.expect("a message"),
        };
        self.ids
            .check(&self.name, expected, &received, &mut self.names);
    }

    async fn send(&mut self, message: &Value) {
        let message = self.ids.real(message);
        self.agent.send(&message).await;
        self.unread = true;
    }

    /// Waits until the server has read all messages of the agent, in order: the next request over
    /// HTTP might else be faster.
    async fn wait_until_read(&mut self) {
        if !mem::take(&mut self.unread) {
            return;
        }
        let question = json!({ "jsonrpc": "2.0", "id": "read?", "method": "_test/read" });
        self.agent.send(&question).await;
        loop {
            let message = self.agent.listen().await.expect("an answer");
            if message["id"] == question["id"] {
                return;
            }
            self.early.push_back(message);
        }
    }
}

impl Ids {
    /// A message of the case; an answer gets the real id.
    pub(super) fn real(&self, message: &Value) -> Value {
        let mut message = message.clone();
        if message["method"].is_null() {
            message["id"] = self.0[&message["id"].to_string()].clone();
        }
        message
    }

    /// Checks a message of this program, and records the id of a request.
    pub(super) fn check(
        &mut self,
        case: &Value,
        expected: &Value,
        received: &Value,
        names: &mut HashMap<String, String>,
    ) {
        let mut required = expected.clone();
        if let (Some(id), true) = (expected.get("id"), expected["method"].is_string()) {
            self.0.insert(id.to_string(), received["id"].clone());
            required["id"] = received["id"].clone();
        }
        let result = covers(&required, received, names);
        result.unwrap_or_else(|why| panic!("{case}: {why}\n{expected}\n{received}"));
    }
}

/// Whether all expected members are there; more may be.
pub(super) fn covers(
    expected: &Value,
    got: &Value,
    names: &mut HashMap<String, String>,
) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(required), Value::Object(have)) => {
            for (name, value) in required {
                let Some(found) = have.get(name) else {
                    return Err(format!("{name} is missing"));
                };
                if OWN.contains(&name.as_str()) {
                    continue;
                }
                if IDS.contains(&name.as_str())
                    && let (Some(theirs), Some(ours)) = (value.as_str(), found.as_str())
                {
                    names
                        .entry(theirs.to_owned())
                        .or_insert_with(|| ours.to_owned());
                }
                covers(value, found, names).map_err(|why| format!("{name}: {why}"))?;
            }
            Ok(())
        }
        (Value::Array(required), Value::Array(have)) if required.len() == have.len() => required
            .iter()
            .zip(have)
            .try_for_each(|(required, have)| covers(required, have, names)),
        (Value::String(required), Value::String(have)) => {
            let required = names.get(required).unwrap_or(required);
            if required == have {
                Ok(())
            } else {
                Err(format!("{required:?} is expected, not {have:?}"))
            }
        }
        (Value::Null, _) => Ok(()),
        _ if expected == got => Ok(()),
        _ => Err(format!("{expected} is expected, not {got}")),
    }
}

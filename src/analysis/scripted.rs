//! Scripted conversations of a v1 and a v2 peer, run through a relay in virtual time.
//!
//! A conversation has `name`, `steps` and, optionally, `policies`, of which only
//! `hybrid-initialize=on` is not the default of a relay; a step is `{"from", "in", "out"}`,
//! what a side sends and what the relay then sends to either, or `{"after_ms", "out"}`. Compared is
//! what each side gets, in order. Ids that the relay makes match up to renaming, and what it says of
//! itself is not compared: texts of errors, `_meta["acp-relay"]`, `data.relay`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use conversation::offline::OfflineRelay;
use conversation::{DialectChoice, DialectOptions};
use dialect::versions::{HybridInitialize, VersionPolicies};
use dialect::{Library, VectorResult};
use jsonrpc::{Frame, Side, reply};

/// One conversation; other members are for readers of the file.
#[derive(Debug, Deserialize)]
pub(super) struct ScriptedConversation {
    name: String,
    #[serde(default)]
    policies: HashMap<String, String>,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    from: Option<Side>,
    #[serde(rename = "in")]
    input: Option<Value>,
    after_ms: Option<u64>,
    #[serde(default)]
    out: Vec<Output>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    to: Side,
    msg: Value,
    /// It goes to an agent that was started again.
    #[serde(default)]
    fresh: bool,
}

/// A conversation while it runs.
struct Run {
    relay: OfflineRelay,
    elapsed: Duration,
    names: Names,
}

/// The names that the relay has made, by those of the script, and the other way round.
#[derive(Default)]
struct Names {
    actual: HashMap<String, String>,
    expected: HashMap<String, String>,
    /// Ids of requests that the relay has made, by those of the script, for each side.
    ids: [HashMap<String, Value>; 2],
}

impl ScriptedConversation {
    /// Whether a line is a conversation.
    pub(super) fn is_one(line: &str) -> bool {
        serde_json::from_str::<Map<String, Value>>(line)
            .is_ok_and(|object| object.contains_key("steps"))
    }

    /// Runs it; the fault names each step that differs.
    pub(super) fn run(&self, library: &Arc<Library>) -> VectorResult {
        let faults = match self.policies() {
            Ok(policies) => self.play(library, policies),
            Err(fault) => vec![fault],
        };
        VectorResult {
            name: self.name.clone(),
            way: "",
            fault: (!faults.is_empty()).then(|| faults.join("; ")),
            diff: Vec::new(),
            skipped: None,
        }
    }

    fn policies(&self) -> Result<VersionPolicies, String> {
        let mut policies = VersionPolicies {
            hybrid_initialize: HybridInitialize::On,
            ..VersionPolicies::default()
        };
        for (name, value) in &self.policies {
            policies.set(name, value).map_err(|error| error.0)?;
        }
        Ok(policies)
    }

    fn play(&self, library: &Arc<Library>, policies: VersionPolicies) -> Vec<String> {
        let plain = DialectChoice::Canonical;
        let dialects = match DialectOptions::new(library, &plain, &plain) {
            Ok(dialects) => dialects.with_versions(Arc::default(), policies, [None; 2]),
            Err(error) => return vec![error.to_string()],
        };
        let mut run = Run {
            relay: OfflineRelay::new(dialects, false),
            elapsed: Duration::ZERO,
            names: Names::default(),
        };
        let mut faults = Vec::new();
        for (at, step) in (1..).zip(&self.steps) {
            let got = match run.take(step) {
                Ok(got) => got,
                Err(fault) => {
                    faults.push(format!("step {at}: {fault}"));
                    break;
                }
            };
            for peer in [Side::Client, Side::Agent] {
                let expected: Vec<_> = step.out.iter().filter(|out| out.to == peer).collect();
                if let Err(fault) = run.names.compare(peer, &expected, &got[peer as usize]) {
                    faults.push(format!("step {at}: {fault}"));
                }
            }
        }
        faults
    }
}

impl Run {
    /// Does a step; returns what each side gets, and whether it is a new agent.
    fn take(&mut self, step: &Step) -> Result<[VecDeque<(Value, bool)>; 2], String> {
        match (step.from, &step.input, step.after_ms) {
            (Some(from), Some(input), None) if *input == json!({"eof": true}) => {
                self.relay.end(from);
            }
            (Some(from), Some(input), None) => {
                let input = self.names.input(from, input);
                let frame = Frame::from(input.to_string().into_bytes());
                self.relay.receive(from, frame);
            }
            (None, None, Some(ms)) => {
                self.elapsed += Duration::from_millis(ms);
                self.relay.pass_time(self.elapsed);
            }
            _ => return Err("a step has `from` and `in`, or `after_ms`".to_owned()),
        }
        let mut got = [VecDeque::new(), VecDeque::new()];
        for peer in [Side::Client, Side::Agent] {
            while let Some((frame, fresh)) = self.relay.sent(peer) {
                let message = serde_json::from_slice(frame.as_bytes());
                let message = message.map_err(|error| format!("no JSON was sent: {error}"))?;
                got[peer as usize].push_back((message, fresh));
            }
        }
        Ok(got)
    }
}

impl Names {
    /// A message of the script as the relay knows it: with the ids that the relay has made.
    fn input(&self, from: Side, message: &Value) -> Value {
        let mut message = self.replace(message, &self.actual);
        let actual = |id: &Value| self.ids[from as usize].get(&id.to_string()).cloned();
        let place = match message.get("method") {
            None => "/id",
            Some(_) => "/params/requestId",
        };
        if let Some(id) = message.pointer_mut(place)
            && let Some(own) = actual(id)
        {
            *id = own;
        }
        message
    }

    /// Compares what a side gets.
    fn compare(
        &mut self,
        peer: Side,
        expected: &[&Output],
        got: &VecDeque<(Value, bool)>,
    ) -> Result<(), String> {
        let name = peer.name();
        for (at, expected) in expected.iter().enumerate() {
            let Some((message, fresh)) = got.get(at) else {
                return Err(format!("the {name} does not get {}", expected.msg));
            };
            if expected.fresh != *fresh {
                let how = if *fresh { "a new" } else { "the old" };
                return Err(format!("{how} agent gets {message}"));
            }
            self.learn(&expected.msg, message);
            self.learn_id(peer, &expected.msg, message);
            let mut own = self.replace(message, &self.expected);
            if let (Some(id), Some(wanted)) = (own.get_mut("id"), expected.msg.get("id"))
                && self.ids[peer as usize].get(&wanted.to_string()) == Some(id)
            {
                *id = wanted.clone();
            }
            let (mut wanted, mut own) = (compared(&expected.msg), compared(&own));
            forgive(&mut wanted, &mut own);
            if wanted != own {
                return Err(format!(
                    "the {name} gets {message} instead of {}",
                    expected.msg
                ));
            }
        }
        match got.get(expected.len()) {
            Some((message, _)) => Err(format!("the {name} gets {message}, which is not expected")),
            None => Ok(()),
        }
    }

    /// Learns the names that the relay has made in place of those of the script.
    fn learn(&mut self, expected: &Value, actual: &Value) {
        match (expected, actual) {
            (Value::String(expected), Value::String(actual))
                if expected.starts_with("acpb-") && actual.starts_with("acpb-") =>
            {
                let known =
                    self.actual.contains_key(expected) || self.expected.contains_key(actual);
                if !known {
                    self.actual.insert(expected.clone(), actual.clone());
                    self.expected.insert(actual.clone(), expected.clone());
                }
            }
            (Value::Array(expected), Value::Array(actual)) => {
                let pairs = expected.iter().zip(actual);
                pairs.for_each(|(expected, actual)| self.learn(expected, actual));
            }
            (Value::Object(expected), Value::Object(actual)) => {
                for (name, expected) in expected {
                    if let Some(actual) = actual.get(name) {
                        self.learn(expected, actual);
                    }
                }
            }
            _ => {}
        }
    }

    /// Learns the id of a request that the relay has made.
    fn learn_id(&mut self, peer: Side, expected: &Value, actual: &Value) {
        let is_request = expected.get("method").is_some() && actual.get("method").is_some();
        if let (Some(wanted), Some(own), true) = (expected.get("id"), actual.get("id"), is_request)
            && wanted != own
        {
            self.ids[peer as usize].insert(wanted.to_string(), own.clone());
        }
    }

    /// The value with other names in it.
    fn replace(&self, value: &Value, names: &HashMap<String, String>) -> Value {
        match value {
            Value::String(text) => match names.get(text) {
                Some(name) => Value::String(name.clone()),
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.replace(item, names)).collect(),
            Value::Object(members) => {
                let members = members.iter();
                let replaced =
                    members.map(|(name, value)| (name.clone(), self.replace(value, names)));
                Value::Object(replaced.collect())
            }
            _ => value.clone(),
        }
    }
}

/// What is compared of a message: without what the relay says of itself.
fn compared(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(compared).collect(),
        Value::Object(members) => {
            let mut made = Map::new();
            for (name, value) in members {
                let mut value = compared(value);
                let own = match &name[..] {
                    "_meta" => "acp-relay",
                    "data" => "relay",
                    _ => "",
                };
                let removed = value.as_object_mut().and_then(|object| object.remove(own));
                if removed.is_some() && value.as_object().is_some_and(Map::is_empty) {
                    continue;
                }
                if name == "error" && value.get("code").is_some() {
                    value["message"] = Value::Null;
                    // The relay's own codes for an agent that is gone.
                    if [reply::PEER_LOST, reply::AGENT_EXITED]
                        .map(Value::from)
                        .contains(&value["code"])
                    {
                        value["code"] = json!(-32603);
                    }
                }
                made.insert(name.clone(), value);
            }
            Value::Object(made)
        }
        _ => value.clone(),
    }
}

/// Removes what the paper leaves open: the time of an emulated list, the order of the answers to a
/// batch, and the name of an agent that has stated none.
fn forgive(expected: &mut Value, actual: &mut Value) {
    let lists = (
        expected.pointer("/result/sessions"),
        actual.pointer_mut("/result/sessions"),
    );
    if let (Some(Value::Array(expected)), Some(Value::Array(actual))) = lists {
        for (expected, actual) in expected.iter().zip(actual) {
            if expected.get("updatedAt").is_none()
                && let Some(actual) = actual.as_object_mut()
            {
                actual.remove("updatedAt");
            }
        }
    }
    if let (Value::Array(expected), Value::Array(actual)) = (&mut *expected, &mut *actual) {
        expected.sort_by_key(Value::to_string);
        actual.sort_by_key(Value::to_string);
    }
    let is_invented = actual.pointer("/result/info/version") == Some(&json!("unknown"));
    if is_invented && let Some(info) = expected.pointer("/result/info").cloned() {
        actual["result"]["info"] = info;
    }
}

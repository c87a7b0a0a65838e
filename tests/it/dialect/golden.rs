//! The golden vectors and the examples of all tables, read from their dialect: all results are
//! canonical.
//!
//! Whether a result equals the vector's is tested in `dialect`; here the official types and the
//! checker decide, also on the results of a context.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use acp_relay::dialect::{Translator, Way};
use acp_relay::jsonrpc::Side;
use serde_json::Value;

use super::official_types::{deviates, known};
use super::pass;

/// One vector in progress: the peer with the dialect is the sender of its message.
struct Play<'l> {
    name: &'l str,
    peer: Side,
    translator: Translator,
    /// The canonical methods of requests in flight, by sender and id.
    asked: HashMap<(Side, String), String>,
    faults: Vec<String>,
}

pub(super) fn side(line: &Value) -> Side {
    match line["direction"].as_str() {
        Some("client_to_agent") => Side::Client,
        _ => Side::Agent,
    }
}

/// Methods of some peers that are not in the stable v1: drafts, and one of older releases.
const UNSTABLE: [&str; 4] = [
    "session/fork",
    "session/set_model",
    "nes/accept",
    "nes/reject",
];

/// Whether only a guess could make it canonical; its deviation is tested with `canon`.
fn unrepaired(vector: &Value) -> bool {
    let note = vector["note"].as_str().unwrap_or_default();
    note.starts_with("unrepaired")
}

/// All vectors of this repository.
pub(super) fn vectors() -> Vec<Value> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/dialect");
    let paths = fs::read_dir(own).unwrap();
    let mut paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    paths.sort();
    let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    let text: String = texts.collect();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The examples of the tables as vectors.
pub(super) fn examples() -> Vec<Value> {
    let mut all = Vec::new();
    for table in super::library().tables() {
        for rule in &table.rules {
            for example in &rule.examples() {
                let only = rule.base.only.map_or("both", Way::name);
                let way = example.get("way").map_or(only, |way| way.as_str().unwrap());
                let mut vector = Value::Object(example.clone());
                vector["name"] = format!("{} {}", table.name, rule.id).into();
                vector["dialect_msg"] = vector["dialect"].take();
                vector["dialect"] = table.name.as_str().into();
                vector["direction"] = match rule.on.from {
                    Side::Client => "client_to_agent".into(),
                    Side::Agent => "agent_to_client".into(),
                };
                vector["flow"] = if way == "write" { "c2d" } else { "d2c" }.into();
                all.push(vector);
            }
        }
    }
    all
}

#[test]
fn results_of_vectors_and_examples_are_canonical() {
    let library = super::library();
    let all = [vectors(), examples()].concat();
    let (mut faults, mut checked) = (Vec::new(), 0);
    for vector in &all {
        let peer = side(vector);
        let Ok(program) = library.program(vector["dialect"].as_str().unwrap()) else {
            continue;
        };
        let mut play = Play {
            name: vector["name"].as_str().unwrap(),
            peer,
            translator: Translator::new(peer, program),
            asked: HashMap::new(),
            faults: Vec::new(),
        };
        for line in vector["context"].as_array().into_iter().flatten() {
            play.receive(side(line), line);
        }
        // A vector that is only written has no message from the peer.
        if vector["roundtrip"] == true || vector["flow"] != "c2d" {
            let before = play.faults.len();
            play.receive(peer, vector);
            checked += 1;
            if unrepaired(vector) {
                play.faults.truncate(before);
            }
        }
        faults.extend(play.faults);
    }
    assert!(checked > 300, "only {checked} were checked");
    assert!(faults.is_empty(), "{}\n{}", faults.len(), faults.join("\n"));
}

impl Play<'_> {
    fn receive(&mut self, from: Side, line: &Value) {
        let reads = from == self.peer;
        let message = if reads {
            &line["dialect_msg"]
        } else {
            &line["canonical_msg"]
        };
        if !message.is_object() {
            return;
        }
        if !reads {
            self.learn(from, message);
        }
        let [forwarded, replies] = pass(&mut self.translator, reads, message).values();
        if reads {
            forwarded
                .iter()
                .for_each(|made| self.check(from, made, message));
        } else {
            let to = from.other();
            replies
                .iter()
                .for_each(|made| self.check(to, made, message));
        }
    }

    fn learn(&mut self, from: Side, message: &Value) {
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            self.asked.insert((from, id.to_string()), method.to_owned());
        }
    }

    fn check(&mut self, from: Side, made: &Value, of: &Value) {
        self.learn(from, made);
        let answered = self.asked.get(&(from.other(), made["id"].to_string()));
        let method = match made["method"].as_str() {
            // A method that neither v1 nor a rule has passes unchanged.
            Some(method) if made == of && !known(method) => return,
            Some(method) => method.to_owned(),
            None => match answered {
                Some(method) => method.clone(),
                None => return,
            },
        };
        if UNSTABLE.contains(&&*method) {
            return;
        }
        if let Some(found) = deviates(made, &method) {
            self.faults
                .push(format!("{}: {found}\n  {of}\n  {made}", self.name));
        }
    }
}

//! The golden vectors and the examples of all tables, read from their dialect: whatever comes of
//! them is canonical.
//!
//! That they are what the vector expects is tested elsewhere (see `dialect`); here the official
//! types and the checker judge, also what a context adds.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use acp_relay::dialect::{Library, Translator};
use acp_relay::jsonrpc::{Frame, Side};
use serde_json::Value;

use super::line::{scanned, value};
use super::speech::{deviates, known};

/// One vector under way: the peer that speaks the dialect is the one whose message it is about.
struct Play<'l> {
    name: &'l str,
    peer: Side,
    translator: Translator,
    /// The methods of requests in flight, by asker and id, as canonical knows them.
    asked: HashMap<(Side, String), String>,
    faults: Vec<String>,
}

pub(super) fn side(line: &Value) -> Side {
    match line["direction"].as_str() {
        Some("client_to_agent") => Side::Client,
        _ => Side::Agent,
    }
}

/// What some peers have beside the stable v1: a draft, and a method of older releases.
const UNSTABLE: [&str; 2] = ["session/fork", "session/set_model"];

/// Whether nothing but a guess could make it canonical; that it is not is tested with `canon`.
fn unrepaired(vector: &Value) -> bool {
    let note = vector["note"].as_str().unwrap_or_default();
    note.starts_with("unrepaired")
}

/// All vectors of this repository.
pub(super) fn vectors() -> Vec<Value> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/dialect");
    let paths = fs::read_dir(own).unwrap();
    let mut paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    let lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The examples of the tables as vectors.
pub(super) fn examples() -> Vec<Value> {
    let mut all = Vec::new();
    for (file, text) in Library::builtin_files() {
        let table: Value = serde_json::from_str(text).unwrap();
        for rule in table["rules"].as_array().into_iter().flatten() {
            for example in rule["examples"].as_array().into_iter().flatten() {
                let mut vector = example.clone();
                vector["name"] = format!("{file} {}", rule["id"]).into();
                vector["dialect_msg"] = example["dialect"].clone();
                vector["dialect"] = table["dialect"].clone();
                let from = rule["on"]["from"] == "client";
                vector["direction"] = if from {
                    "client_to_agent"
                } else {
                    "agent_to_client"
                }
                .into();
                let only = rule.get("only").unwrap_or(&Value::Null);
                if example.get("way").unwrap_or(only) == "write" {
                    vector["flow"] = "c2d".into();
                }
                all.push(vector);
            }
        }
    }
    all
}

#[test]
fn whatever_comes_of_a_vector_is_canonical() {
    let library = super::library();
    let all = [vectors(), examples()].concat();
    let (mut faults, mut judged) = (Vec::new(), 0);
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
        // One that is only written is no message of the peer's.
        if vector["roundtrip"] == true || vector["flow"] != "c2d" {
            let before = play.faults.len();
            play.receive(peer, vector);
            judged += 1;
            if unrepaired(vector) {
                play.faults.truncate(before);
            }
        }
        faults.extend(play.faults);
    }
    assert!(judged > 300, "only {judged} were judged");
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
        let frame = Frame::from(message.to_string());
        let at = scanned(&frame);
        if reads {
            let outcome = self.translator.read(&frame, &at);
            for made in outcome.frames(&frame) {
                self.judge(from, &value(&made), message);
            }
        } else {
            self.learn(from, message);
            let outcome = self.translator.write(&frame, &at);
            for made in outcome.replies {
                self.judge(from.other(), &value(&made), message);
            }
        }
    }

    fn learn(&mut self, from: Side, message: &Value) {
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            self.asked.insert((from, id.to_string()), method.to_owned());
        }
    }

    fn judge(&mut self, from: Side, made: &Value, of: &Value) {
        self.learn(from, made);
        let answered = self.asked.get(&(from.other(), made["id"].to_string()));
        let method = match made["method"].as_str() {
            // What v1 does not know and no rule names passes as it came.
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

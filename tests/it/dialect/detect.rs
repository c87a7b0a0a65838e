//! Which dialect a peer is recognised by, from the first messages of its conversation.
//!
//! The cases are data (`vectors/detect/openings.jsonl`): captures, the seed documents' opening
//! exchanges, peers by name, and canonical peers without a dialect.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use acp_relay::dialect::table::{Rule, Selector};
use acp_relay::dialect::{Detector, Way};
use acp_relay::jsonrpc::{Frame, Kind, Limits, Scanned, Side, scan};
use serde_json::Value;

/// The first dialect that each side is recognised by.
fn recognised(opening: &[(Side, Value)]) -> [Option<String>; 2] {
    let tables = super::library().tables();
    let mut found = [None, None];
    let mut handshakes = [Detector::default(), Detector::default()];
    let mut asked: BTreeMap<(bool, String), String> = BTreeMap::new();
    for (from, message) in opening {
        let frame = Frame::from(message.to_string());
        let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
            continue;
        };
        let client = *from == Side::Client;
        let id = message["id"].to_string();
        let method = match at.kind {
            Kind::Request => {
                asked.insert((client, id), at.method(&frame).into_owned());
                None
            }
            Kind::Notification => None,
            Kind::Result | Kind::Error => asked.remove(&(!client, id)),
        };
        let own = &mut found[*from as usize];
        if own.is_none() {
            let now =
                handshakes[*from as usize].detect(tables, *from, &frame, &at, method.as_deref());
            *own = now.map(|now| now.dialect);
        }
    }
    found
}

pub(super) fn vectors(folder: &str, file: &str) -> Vec<Value> {
    let root = env!("CARGO_MANIFEST_DIR");
    let path: PathBuf = [root, "tests", "vectors", folder, file].iter().collect();
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The messages of a capture.
pub(super) fn transcript(file: &str) -> Vec<(Side, Value)> {
    let lines = vectors("transcripts", file).into_iter();
    let reported = lines.filter(|line| line.get("msg").is_some());
    reported
        .map(|line| {
            let side = if line["dir"] == "c2a" {
                Side::Client
            } else {
                Side::Agent
            };
            (side, line["msg"].clone())
        })
        .collect()
}

#[test]
fn peers_are_recognised_by_their_first_messages() {
    let cases = vectors("detect", "openings.jsonl");
    let mut wrong = Vec::new();
    let (mut known, mut undetected) = (BTreeSet::new(), 0);
    for case in &cases {
        let opening: Vec<(Side, Value)> = match case["transcript"].as_str() {
            Some(file) => transcript(file),
            None => {
                let lines = case["opening"].as_array().unwrap().iter();
                lines
                    .map(|line| {
                        let side = match line["from"].as_str().unwrap() {
                            "client" => Side::Client,
                            "agent" => Side::Agent,
                            other => panic!("no side: {other}"),
                        };
                        (side, line["msg"].clone())
                    })
                    .collect()
            }
        };
        let found = recognised(&opening);
        for (side, name) in [(Side::Client, "client"), (Side::Agent, "agent")] {
            let expected = case[name].as_str();
            let own = found[side as usize].as_deref();
            if own != expected {
                wrong.push(format!(
                    "{}: {name} {own:?}, not {expected:?}",
                    case["name"]
                ));
            }
            known.extend(expected.map(str::to_owned));
        }
        undetected += usize::from(case["client"].is_null() && case["agent"].is_null());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(undetected > 20, "only {undetected} cases have no dialect");
    // Every table with clues has a case.
    let tables = super::library().tables().iter();
    let silent: Vec<&str> = tables
        .filter(|table| !table.detect.is_empty() && !known.contains(&table.name))
        .map(|table| table.name.as_str())
        .collect();
    assert!(silent.is_empty(), "no case for {silent:?}");
}

/// Whether agents of a dialect receive anything that canonical agents do not.
fn names_agents(name: &str) -> bool {
    let stated = |rule: &Rule| rule.on.from == Side::Client && rule.base.only != Some(Way::Read);
    let stack = super::library().stack(name).unwrap();
    let mut own = stack
        .iter()
        .filter(|layer| layer.writes && layer.table.name != "loose-v1");
    own.any(|layer| layer.table.rules.iter().any(stated))
}

#[test]
fn an_update_does_not_override_an_earlier_declaration() {
    let mut guarded = 0;
    for table in super::library().tables() {
        for clue in &table.detect {
            let late = matches!(&clue.on, Selector::Method(names) if names.canonical.as_deref() == Some("session/update"));
            if late && names_agents(&table.name) {
                let name = &table.name;
                assert!(
                    !clue.stated.0.is_empty(),
                    "{name} is recognised by an update alone"
                );
                guarded += 1;
            }
        }
    }
    assert!(guarded > 3, "only {guarded} clues were checked");
}

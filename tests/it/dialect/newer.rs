//! Messages of v1 that the official types lack: methods and members of the unstable schema, of
//! later versions and of extensions. All of it crosses every dialect unchanged.
//!
//! The messages are data (`vectors/speech/newer.jsonl`), each with the dialects that cannot carry
//! it or its answer (`lost_in`). Not here: messages of the official types (see `roundtrip`).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use acp_relay::jsonrpc::Side;
use serde_json::{Value, json};

use super::detect::vectors;
use super::line::{Line, Received};
use super::official_types::begun;

/// The part of a message and its answer that does not arrive; `None` when all does.
fn lost(line: &mut Line, case: &Value) -> Option<String> {
    let from = match case["from"].as_str().unwrap() {
        "client" => Side::Client,
        "agent" => Side::Agent,
        other => panic!("no side: {other}"),
    };
    let mut message = case.clone();
    let members = message.as_object_mut().unwrap();
    members.retain(|name, _| name == "method" || name == "params");
    members.insert("jsonrpc".into(), json!("2.0"));
    let own = message.pointer_mut("/params/sessionId");
    if let Some(own) = own.filter(|own| **own == "s1") {
        *own = line.session(from).into();
    }
    let answer = case["answer"].as_object();
    if answer.is_some() {
        message["id"] = json!(format!("newer-{}", case["method"]));
    }
    let received = line.send(from, &message);
    let Some(got) = arrived(&received, &message, &["method", "params"]) else {
        return Some(describe(&message, &received));
    };
    let mut back = json!({ "jsonrpc": "2.0", "id": got["id"] });
    for (name, value) in answer? {
        back[name] = value.clone();
    }
    let received = line.send(from.other(), &back);
    let answered = arrived(&received, &back, &["result", "error"]);
    let fits = answered.is_some_and(|got| got["id"] == message["id"]);
    (!fits).then(|| describe(&back, &received))
}

/// The message as sent, in these members; further messages may arrive with it.
fn arrived<'h>(received: &'h Received, sent: &Value, members: &[&str]) -> Option<&'h Value> {
    let same = |got: &&Value| members.iter().all(|name| got.get(name) == sent.get(name));
    let here = received.here.is_empty();
    received.there.iter().find(same).filter(|_| here)
}

fn describe(sent: &Value, received: &Received) -> String {
    let Received {
        there, here, rules, ..
    } = received;
    format!("{sent}\n  by {rules:?}\n  there {there:?}\n  here {here:?}")
}

#[test]
fn messages_outside_the_official_types_cross_every_dialect() {
    let library = super::library();
    let mut faults = String::new();
    for (nth, case) in vectors("speech", "newer.jsonl").iter().enumerate() {
        let listed = case["lost_in"].as_array().into_iter().flatten();
        let listed: BTreeSet<&str> = listed.map(|name| name.as_str().unwrap()).collect();
        for table in library.tables() {
            let mut line = begun(&library.program(&table.name).unwrap());
            let found = lost(&mut line, case);
            if found.is_some() != listed.contains(table.name.as_str()) {
                let found = found.unwrap_or_else(|| "it arrives".to_owned());
                let _ = writeln!(faults, "line {}, {}: {found}", nth + 1, table.name);
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

//! Faults of the protocol, one file of cases: `tests/vectors/inspect/lint.txt`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{answer, recording, vectors};

#[test]
fn each_fault_is_found_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let cases = fs::read_to_string(vectors().join("inspect/lint.txt")).unwrap();
    let mut seen = BTreeSet::new();
    for (at, case) in cases.split("\n## ").enumerate().skip(1) {
        let (title, text) = case.split_once('\n').unwrap();
        let (name, ids) = title.split_once(": ").unwrap();
        let wanted: Vec<&str> = ids.split_whitespace().filter(|id| *id != "none").collect();
        let lines = text.lines().filter(|line| !line.is_empty());
        let lines = lines.map(|line| {
            let (dir, message) = line.split_once(' ').unwrap();
            let dir = if dir == ">" { "c2a" } else { "a2c" };
            let body = match message.strip_prefix('{') {
                Some(rest) => format!(r#""msg":{{"jsonrpc":"2.0",{rest}"#),
                None => format!(r#""raw":{}"#, Value::from(message)),
            };
            format!("{{\"dir\":\"{dir}\",\"ts\":0,{body}}}\n")
        });
        let file = recording(folder.path(), &format!("c{at}"), &lines.collect::<String>());
        let found = lint(&file, "", wanted.iter().any(|id| weight(id) == "error"));
        assert_eq!(found, wanted, "{name}");
        seen.extend(found);
    }
    let list = answer(&["lint", "--list"], 0);
    for line in list.lines() {
        let id = line.split_whitespace().nth(1).unwrap();
        // A capture has no gaps; numbers beyond all range and forgiven values are canon's.
        let elsewhere = [
            "missing-events",
            "number-range",
            "schema-forgiven",
            "not-json-rpc",
        ];
        assert!(
            seen.contains(id) || elsewhere.contains(&id) || id.starts_with("schema-"),
            "{id} has no case"
        );
    }
}

#[test]
fn a_filter_and_a_weight_decide_what_fails() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(
        folder.path(),
        "x",
        "{\"dir\":\"a2c\",\"ts\":0,\"raw\":\"hello\"}\n",
    );
    assert_eq!(lint(&file, "", true), ["noise"]);
    assert_eq!(lint(&file, "not lint:noise", false), [""; 0]);
    assert_eq!(lint(&file, "lint:no* and from:agent", true), ["noise"]);
}

fn weight(id: &str) -> String {
    let list = answer(&["lint", "--list"], 0);
    let line = list
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(id));
    line.unwrap_or_else(|| panic!("no rule {id}"))
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned()
}

fn lint(file: &str, filter: &str, fails: bool) -> Vec<String> {
    let found = answer(&["lint", "--json", file, filter], i32::from(fails));
    let id = |line: &str| {
        let finding: Value = serde_json::from_str(line).unwrap();
        finding["id"].as_str().unwrap().to_owned()
    };
    found.lines().map(id).collect()
}

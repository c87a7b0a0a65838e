//! The commands around mapping tables, run as a user runs them.

mod drafted;
mod explain;
mod schema;
mod short;
mod translate;

use std::fs;
use std::path::Path;

use acp_relay::dialect::Library;
use serde_json::{Value, json};

use crate::support::link::run as block_on;
use crate::support::program::{Outcome, run};

fn relay(args: &[&str], input: &str) -> Outcome {
    let mut outcome = None;
    block_on(async { outcome = Some(run(args, input).await) });
    outcome.unwrap()
}

fn answer(args: &[&str], code: i32) -> Value {
    let outcome = relay(args, "");
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// A small table of a user, with one rule.
fn table(name: &str) -> Value {
    json!({
        "format": 1,
        "dialect": name,
        "title": "Shouts",
        "rules": [{
            "id": "shout",
            "why": "It shouts.",
            "on": {"from": "agent", "method": {"dialect": "SHOUT", "canonical": "_shout"}},
            "rows": [{"dialect": "/LOUD", "canonical": "/loud"}],
            "examples": [{
                "dialect": {"jsonrpc": "2.0", "method": "SHOUT", "params": {"LOUD": 1}},
                "canonical": {"jsonrpc": "2.0", "method": "_shout", "params": {"loud": 1}}
            }]
        }]
    })
}

fn write(folder: &Path, name: &str, value: &Value) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("{value:#}")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The faults that `dialect check` finds in a table.
fn faults(table: &Value) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "table.json", table);
    let all = answer(&["dialect", "check", "--json", &file], 1);
    let faults = all["files"][0]["faults"].as_array().unwrap().clone();
    let line = |fault: &Value| (fault["line"].as_u64(), fault["column"].as_u64());
    assert!(faults.is_sorted_by_key(line), "in the file's order");
    for fault in &faults {
        assert!(
            line(fault) > (Some(1), Some(1)) && fault["file"] == file,
            "{fault}"
        );
        assert!(fault["remedy"] != "", "{fault}");
    }
    faults
}

fn names(list: &Value) -> Vec<&str> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn list_names_built_in_tables_and_user_tables() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "mine.json", &table("mine"));
    let own = write(folder.path(), "other.txt", &table("elephant"));
    let built_in = answer(&["dialect", "list", "--json"], 0);
    let dir = folder.path().to_str().unwrap();
    let given = ["--dialect-dir", dir, "--table", &own];
    let all = answer(&[&["dialect", "list", "--json"][..], &given].concat(), 0);
    let mut expected = names(&built_in);
    expected.retain(|name| *name != "elephant");
    expected.extend(["mine", "elephant"]);
    assert_eq!(names(&all), expected, "one is replaced");
    let elephant = all.as_array().unwrap().last().unwrap();
    assert_eq!(elephant["builtin"], false);
    assert_eq!(elephant["file"], own);
    let text = relay(&["dialect", "list"], "").stdout;
    assert!(text.starts_with("NAME  "), "{text}");
    assert_eq!(text.lines().count(), names(&built_in).len() + 1);
    for name in names(&built_in) {
        let shown = relay(&["dialect", "show", name], "").stdout;
        assert!(shown.starts_with(&format!("{name}: ")), "{shown}");
    }
}

/// Given as files they are validated, too.
#[test]
fn the_built_in_tables_have_no_faults() {
    let mappings = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings");
    let all = answer(&["dialect", "check", "--strict", "--json", mappings], 0);
    assert_eq!(all["faults"], 0);
    // The program reads its own tables without expanding short forms.
    for (file, text) in Library::builtin_files() {
        let table: Value = serde_json::from_str(text).unwrap();
        let is_short = |key: &&str| table.get(*key).is_some();
        assert!(
            !["update", "method", "answers"].iter().any(is_short),
            "{file}"
        );
    }
    assert!(all["files"].as_array().unwrap().len() > 50);
}

#[test]
fn test_runs_golden_vectors() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/vectors/dialect/copilot.jsonl"
    );
    let all = answer(&["dialect", "test", "--json", file], 0);
    let results = all["results"].as_array().unwrap();
    assert!(results.len() > 50 && all["passed"] == results.len() && all["failed"] == 0);
    let text = relay(&["dialect", "test", file], "").stdout;
    assert_eq!(text.lines().count(), results.len() + 1, "and a summary");
    assert!(text.starts_with(&format!("ok   {file}:1 ")), "{text}");
}

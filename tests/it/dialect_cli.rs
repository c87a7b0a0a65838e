//! The commands around mapping tables, run as a user runs them.

mod explain;
mod schema;
mod translate;

use std::fs;
use std::path::Path;

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

/// A small table of a user's, with one rule.
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

fn names(list: &Value) -> Vec<&str> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn list_names_the_built_in_tables_and_the_users() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "mine.json", &table("mine"));
    let own = write(folder.path(), "other.txt", &table("elephant"));
    let built_in = answer(&["dialect", "list", "--json"], 0);
    assert!(names(&built_in).contains(&"elephant"));
    assert!(!names(&built_in).contains(&"mine"));
    let dir = folder.path().to_str().unwrap();
    let all = answer(
        &[
            "dialect",
            "list",
            "--json",
            "--dialect-dir",
            dir,
            "--table",
            &own,
        ],
        0,
    );
    assert_eq!(
        names(&all).len(),
        names(&built_in).len() + 1,
        "one is replaced"
    );
    let elephant = all
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "elephant")
        .unwrap();
    assert_eq!(elephant["builtin"], false);
    assert_eq!(elephant["file"], own);
    let text = relay(&["dialect", "list"], "").stdout;
    assert!(text.starts_with("NAME  "), "{text}");
    assert_eq!(text.lines().count(), names(&built_in).len() + 1);
}

#[test]
fn show_tells_the_two_columns_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut mine = table("mine");
    mine["extends"] = json!(["loose-v1"]);
    let own = write(folder.path(), "mine.json", &mine);
    let text = relay(
        &["dialect", "show", "mine", "--table", &own, "--examples"],
        "",
    )
    .stdout;
    for wanted in [
        "mine: Shouts",
        "shout  (mine; from agent, SHOUT ⇄ _shout)",
        "  It shouts.",
        "  /LOUD  ⇄  /loud",
        r#"dialect   {"jsonrpc":"2.0","method":"SHOUT""#,
        "(loose-v1; ",
    ] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
    let flat = answer(&["dialect", "show", "mine", "--table", &own, "--json"], 0);
    assert_eq!(flat["tables"], json!(["mine", "loose-v1"]));
    let rules = flat["rules"].as_array().unwrap();
    assert_eq!(rules[0]["table"], "mine");
    assert!(rules.len() > 5 && rules[1..].iter().all(|rule| rule["table"] == "loose-v1"));
    let one = [
        "dialect", "show", "mine", "--table", &own, "--rule", "shout", "--json",
    ];
    assert_eq!(answer(&one, 0)["rules"].as_array().unwrap().len(), 1);
}

#[test]
fn every_built_in_table_can_be_shown() {
    for name in names(&answer(&["dialect", "list", "--json"], 0)) {
        let outcome = relay(&["dialect", "show", name], "");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(
            outcome.stdout.starts_with(&format!("{name}: ")),
            "{}",
            outcome.stdout
        );
    }
}

#[test]
fn what_is_not_known_is_a_fault_of_usage() {
    for args in [
        &["dialect", "show", "nobody"][..],
        &["dialect", "show", "elephant", "--rule", "nothing"],
        &["translate", "--from", "nobody"],
        &["translate"],
        &["translate", "--from", "elephant", "--agent", "elephant"],
        &["dialect"],
        &["dialect", "test"],
    ] {
        let outcome = relay(args, "");
        assert_eq!(outcome.code, Some(64), "{args:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
    for args in [
        &["dialect", "check", "/nowhere"][..],
        &["dialect", "test", "/nowhere"],
        &["translate", "--from", "elephant", "/nowhere"],
        &["dialect", "list", "--dialect-dir", "/nowhere"],
    ] {
        assert_eq!(relay(args, "").code, Some(66), "{args:?}");
    }
}

#[test]
fn check_finds_no_fault_in_the_built_in_tables() {
    let all = answer(&["dialect", "check", "--json"], 0);
    assert_eq!(all["faults"], 0);
    assert!(all["files"].as_array().unwrap().len() > 10);
}

#[test]
fn check_tells_all_faults_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut bad = table("bad");
    bad["rules"][0]["rows"] = json!([{"dialect": "LOUD", "canonical": "/loud", "defualt": 1}]);
    bad["rules"][0]["examples"] = json!([]);
    let bad = write(folder.path(), "bad.json", &bad);
    let mut wrong = table("wrong");
    wrong["rules"][0]["examples"][0]["canonical"]["params"]["loud"] = json!(2);
    let wrong = write(folder.path(), "wrong.json", &wrong);
    let mut lost = table("lost");
    lost["extends"] = json!(["nobody"]);
    let lost = write(folder.path(), "lost.json", &lost);
    let good = write(folder.path(), "good.json", &table("good"));
    let all = answer(
        &["dialect", "check", "--json", &bad, &wrong, &lost, &good],
        1,
    );
    let faults = |at: usize| all["files"][at]["faults"].as_array().unwrap();
    let places: Vec<&str> = faults(0)
        .iter()
        .map(|fault| fault["pointer"].as_str().unwrap())
        .collect();
    for wanted in [
        "/rules/0",
        "/rules/0/rows/0/dialect",
        "/rules/0/rows/0/defualt",
    ] {
        assert!(places.contains(&wanted), "no {wanted} in {places:?}");
    }
    let line = |fault: &Value| fault["line"].as_u64().unwrap();
    assert!(faults(0).is_sorted_by_key(line), "in the file's order");
    for fault in faults(0) {
        assert_eq!(fault["rule"], "shout");
        assert_eq!(fault["file"], bad);
        assert!(line(fault) > 4, "{fault}");
    }
    assert!(
        faults(0)
            .iter()
            .any(|fault| fault["remedy"] == "did you mean `default`?")
    );
    assert_eq!(faults(1)[0]["pointer"], "/rules/0/examples/0");
    assert_eq!(faults(2)[0]["pointer"], "/extends");
    assert_eq!(faults(3).len(), 0);
    let text = relay(&["dialect", "check", &wrong, &good], "");
    assert_eq!(text.code, Some(1));
    assert!(
        text.stdout.contains(&format!("{wrong}:"))
            && text.stdout.contains("rule `shout`, /rules/0/examples/0: ")
    );
    assert!(
        text.stdout
            .contains(&format!("{good}: no faults; 1 rule, 1 example\n"))
    );
    assert!(text.stdout.ends_with("faults\n"), "{}", text.stdout);
}

#[test]
fn checked_tables_may_build_on_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut upper = table("a-upper");
    upper["extends"] = json!(["b-lower"]);
    upper["rules"] = json!([]);
    write(folder.path(), "a.json", &upper);
    write(folder.path(), "b.json", &table("b-lower"));
    let dir = folder.path().to_str().unwrap();
    assert_eq!(answer(&["dialect", "check", "--json", dir], 0)["faults"], 0);
}

#[test]
fn a_faulty_table_stops_everything_else() {
    let folder = tempfile::tempdir().unwrap();
    let bad = write(folder.path(), "bad.json", &json!({"format": 2}));
    let outcome = relay(&["dialect", "list", "--table", &bad], "");
    assert_eq!(outcome.code, Some(65));
    assert_eq!(outcome.stdout, "");
    assert!(
        outcome.stderr.contains("this table needs a newer version"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn test_runs_golden_vectors() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/vectors/dialect/copilot.jsonl"
    );
    let all = answer(&["dialect", "test", "--json", file], 0);
    assert_eq!(all["failed"], 0);
    let results = all["results"].as_array().unwrap();
    assert!(results.len() > 50 && all["passed"] == results.len());
    let text = relay(&["dialect", "test", file], "").stdout;
    assert_eq!(
        text.lines().count(),
        results.len() + 1,
        "a line each, and a summary"
    );
    assert!(text.starts_with(&format!("ok   {file}:1 ")), "{text}");
}

#[test]
fn test_fails_where_one_vector_does() {
    let folder = tempfile::tempdir().unwrap();
    let own = write(folder.path(), "mine.json", &table("mine"));
    let vector = |name: &str, loud: i32| {
        json!({
            "name": name, "dialect": "mine", "direction": "agent_to_client", "roundtrip": true,
            "dialect_msg": {"jsonrpc": "2.0", "method": "SHOUT", "params": {"LOUD": 1}},
            "canonical_msg": {"jsonrpc": "2.0", "method": "_shout", "params": {"loud": loud}},
        })
    };
    let file = folder.path().join("v.jsonl");
    let path = file.to_str().unwrap();
    fs::write(&file, format!("{}\n\n", vector("good", 1))).unwrap();
    assert_eq!(
        answer(&["dialect", "test", "--json", "--table", &own, path], 0)["passed"],
        2
    );
    assert_eq!(
        relay(&["dialect", "test", path], "").code,
        Some(1),
        "the dialect is not known"
    );
    fs::write(
        &file,
        format!("{}\n{}\nno vector\n", vector("good", 1), vector("bad", 2)),
    )
    .unwrap();
    let all = answer(&["dialect", "test", "--json", "--table", &own, path], 1);
    assert_eq!(
        (&all["vectors"], &all["passed"], &all["failed"]),
        (&json!(3), &json!(2), &json!(3))
    );
    let text = relay(&["dialect", "test", "-q", "--table", &own, path], "");
    assert_eq!(text.code, Some(1));
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert!(
        lines[0].starts_with(&format!("FAIL {path}:2 mine bad read: ")),
        "{lines:?}"
    );
    assert_eq!(lines[3], "3 vectors: 2 passed, 3 failed");
    fs::write(&file, "\n").unwrap();
    assert_eq!(
        relay(&["dialect", "test", path], "").code,
        Some(1),
        "nothing was run"
    );
}

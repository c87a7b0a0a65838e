//! The commands around mapping tables, run as a user runs them.

mod explain;
mod schema;
mod translate;
mod vectors;

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
fn show_prints_both_columns_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut mine = table("mine");
    mine["extends"] = json!(["loose-v1"]);
    let own = write(folder.path(), "mine.json", &mine);
    let text = relay(
        &["dialect", "show", "mine", "--table", &own, "--examples"],
        "",
    )
    .stdout;
    for expected in [
        "mine: Shouts",
        "shout  (mine; from agent, SHOUT ⇄ _shout)",
        "  It shouts.",
        "  /LOUD  ⇄  /loud",
        r#"dialect   {"jsonrpc":"2.0","method":"SHOUT""#,
        "(loose-v1; ",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
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
fn unknown_names_are_usage_errors() {
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
fn a_mistyped_name_gets_the_nearest_one_as_a_hint() {
    let expected = [
        ("elefant", "elephant"),
        ("gorefccui", "goref-ccui"),
        ("zed-legcy", "zed-legacy"),
        ("jetbrain", "jetbrains"),
    ];
    for (typed, meant) in expected {
        let outcome = relay(&["dialect", "show", typed], "");
        assert_eq!(outcome.code, Some(64));
        let tip = format!("no dialect is called `{typed}`; did you mean `{meant}`?\n");
        assert!(outcome.stderr.ends_with(&tip), "{}", outcome.stderr);
    }
    let outcome = relay(&["dialect", "show", "xyz"], "");
    assert!(outcome.stderr.contains("known are "), "{}", outcome.stderr);
}

#[test]
fn show_prints_inherited_rules_and_their_tables() {
    let folder = tempfile::tempdir().unwrap();
    let mut lower = table("lower");
    lower["shapes"] =
        json!({"s": [{"name": "one", "when": {"dialect": {"/a": 1}, "canonical": {"/a": 2}}}, {}]});
    lower["memory"] = json!({"kept": {"from": "agent", "method": "session/update", "at": "/a", "per": "session"}});
    lower["rules"][0]["id"] = json!("deep");
    let mut upper = table("upper");
    upper["extends"] = json!(["lower"]);
    write(folder.path(), "lower.json", &lower);
    write(folder.path(), "upper.json", &upper);
    let dir = folder.path().to_str().unwrap();
    let text = relay(&["dialect", "show", "upper", "--dialect-dir", dir], "").stdout;
    let places = [
        "upper: Shouts",
        "  extends    lower",
        "shout  (upper; ",
        "below it, lower: Shouts",
        "  memory     kept ",
        "deep  (lower; ",
        "shape s  (lower)",
        "  case 1 one",
        "  case 2",
        "    is forwarded unchanged",
    ];
    let mut rest = text.as_str();
    for place in places {
        let Some((_, after)) = rest.split_once(place) else {
            panic!("no {place:?} where it belongs in\n{text}");
        };
        rest = after;
    }
    let one = [
        "dialect",
        "show",
        "upper",
        "--dialect-dir",
        dir,
        "--rule",
        "deep",
    ];
    let text = relay(&one, "").stdout;
    assert!(
        text.contains("deep  (lower; ") && !text.contains("(upper; "),
        "{text}"
    );
}

#[test]
fn check_finds_no_fault_in_the_built_in_tables() {
    let all = answer(&["dialect", "check", "--json"], 0);
    assert_eq!(all["faults"], 0);
    assert!(all["files"].as_array().unwrap().len() > 10);
}

#[test]
fn check_reports_all_faults_at_once() {
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
    for expected in [
        "/rules/0",
        "/rules/0/rows/0/dialect",
        "/rules/0/rows/0/defualt",
    ] {
        assert!(places.contains(&expected), "no {expected} in {places:?}");
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

/// One fault does not hide another, whatever part of the table it makes unreadable.
#[test]
fn faults_of_all_kinds_are_reported_together() {
    let folder = tempfile::tempdir().unwrap();
    let mut bad = table("bad");
    bad["titel"] = json!("mistyped");
    bad["extends"] = json!(["loose-v"]);
    bad["rules"][0]["on"] = json!({"from": "agnet"});
    bad["rules"][0]["rows"][0] = json!({"dialect": "LOUD", "canonical": "/loud", "defualt": 1});
    let second = json!({
        "id": "second", "why": "w", "on": {"from": "agent", "method": "second"},
        "rows": [{"dialect": "/a", "canonical": "/b", "values": {"x": 1, "y": 1}}],
    });
    bad["rules"].as_array_mut().unwrap().push(second);
    let bad = write(folder.path(), "bad.json", &bad);
    let all = answer(&["dialect", "check", "--json", &bad], 1);
    let faults = all["files"][0]["faults"].as_array().unwrap();
    let mut places: Vec<&str> = faults
        .iter()
        .map(|fault| fault["pointer"].as_str().unwrap())
        .collect();
    assert!(faults.iter().all(|fault| fault["remedy"] != ""));
    assert!(faults.is_sorted_by_key(|fault| fault["line"].as_u64()));
    places.sort_unstable();
    assert_eq!(
        places,
        [
            "/extends",
            "/rules/0/on",
            "/rules/0/on/from",
            "/rules/0/rows/0/defualt",
            "/rules/0/rows/0/dialect",
            "/rules/1",
            "/rules/1/rows/0/values",
            "/titel",
        ]
    );
    let remedies: Vec<&Value> = faults.iter().map(|fault| &fault["remedy"]).collect();
    let extends =
        "write `loose-v1` if that is meant, or add the table with --table or --dialect-dir";
    assert!(remedies.contains(&&json!(extends)), "{remedies:?}");
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
fn a_faulty_table_stops_every_command() {
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

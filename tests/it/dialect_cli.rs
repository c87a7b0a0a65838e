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

#[test]
fn show_prints_both_columns_reasons_and_inherited_rules() {
    let folder = tempfile::tempdir().unwrap();
    let mut lower = table("lower");
    lower["shapes"] =
        json!({"s": [{"name": "one", "when": {"dialect": {"/a": 1}, "canonical": {"/a": 2}}}, {}]});
    lower["memory"] = json!({"kept": {"from": "agent", "method": "session/update", "at": "/a", "per": "session"}});
    lower["rules"][0]["id"] = json!("deep");
    lower["rules"][0]["lossy"] = json!("much");
    lower["rules"][0]["rows"] = json!([
        {"dialect": "/k", "canonical": "/k", "values": {"x": "one"}, "read_values": [[2, "two"]]},
        {"dialect": "/l", "canonical": "/l", "each": {"shape": "s"}},
        {"dialect": "/m", "canonical": "/n", "each": [{"dialect": "/o", "canonical": "/p", "as": "tool_text"}]},
        {"canonical": "/q", "default": false, "only": "read"}
    ]);
    let mut upper = table("upper");
    upper["extends"] = json!(["lower"]);
    write(folder.path(), "lower.json", &lower);
    write(folder.path(), "upper.json", &upper);
    let dir = folder.path().to_str().unwrap();
    let show = ["dialect", "show", "upper", "--dialect-dir", dir];
    let text = relay(&[&show[..], &["--examples"]].concat(), "").stdout;
    insta::assert_snapshot!(text.replace(dir, "DIR"));
    let text = relay(&[&show[..], &["--rule", "deep"]].concat(), "").stdout;
    assert!(
        text.contains("deep  (lower; ") && !text.contains("(upper; "),
        "{text}"
    );
    let flat = answer(&[&show[..], &["--json"]].concat(), 0);
    assert_eq!(flat["tables"], json!(["upper", "lower"]));
    let of: Vec<&Value> = flat["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["table"])
        .collect();
    assert_eq!(of, ["upper", "lower"]);
    let one = answer(&[&show[..], &["--rule", "shout", "--json"]].concat(), 0);
    assert_eq!(one["rules"].as_array().unwrap().len(), 1);
}

#[test]
fn exit_codes_tell_usage_from_data_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let newer = write(folder.path(), "newer.json", &json!({"format": 2}));
    let cases: [(u8, &[&str], &str); 15] = [
        (
            64,
            &["dialect", "show", "elefant"],
            "did you mean `elephant`?",
        ),
        (
            64,
            &["dialect", "show", "gorefccui"],
            "did you mean `goref-ccui`?",
        ),
        (
            64,
            &["dialect", "show", "zed-legcy"],
            "did you mean `zed-legacy`?",
        ),
        (64, &["dialect", "show", "xyz"], "known are "),
        (
            64,
            &["dialect", "show", "elephant", "--rule", "nothing"],
            "it has ",
        ),
        (
            64,
            &["translate", "--from", "nobody"],
            "no dialect is called `nobody`",
        ),
        (
            64,
            &["translate", "--from", "elephant", "--agent", "elephant"],
            "",
        ),
        (64, &["translate"], ""),
        (64, &["dialect"], ""),
        (64, &["dialect", "test"], ""),
        (
            65,
            &["dialect", "list", "--table", &newer],
            "this table needs a newer version",
        ),
        (
            66,
            &["dialect", "check", "/nowhere"],
            "cannot read /nowhere",
        ),
        (66, &["dialect", "test", "/nowhere"], "cannot read /nowhere"),
        (
            66,
            &["translate", "--from", "elephant", "/nowhere"],
            "cannot read /nowhere",
        ),
        (
            66,
            &["dialect", "list", "--dialect-dir", "/nowhere"],
            "cannot read /nowhere",
        ),
    ];
    for (code, args, expected) in cases {
        let outcome = relay(args, "");
        assert_eq!(outcome.code, Some(code.into()), "{args:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{args:?}");
        assert!(outcome.stderr.contains(expected), "{args:?}: {outcome:?}");
    }
}

/// One fault does not hide another, whatever part of the table it makes unreadable.
#[test]
fn faults_of_all_kinds_are_reported_together() {
    let mut bad = table("bad");
    bad["titel"] = json!("mistyped");
    bad["extends"] = json!(["loose-v"]);
    bad["detect"] = json!([{"agentInfo": {"name": "a"}, "update": {"/x": 1}}]);
    bad["rules"][0]["on"] = json!({"from": "agnet"});
    bad["rules"][0]["rows"][0] = json!({"dialect": "LOUD", "canonical": "/loud", "defualt": 1});
    let second = json!({
        "id": "second", "why": "w", "on": {"from": "agent", "method": "second"},
        "rows": [
            {"dialect": "/a", "canonical": "/b", "values": {"x": 1, "y": 1}},
            {"dialect": "/c", "canonical": "/b/deep", "as": "basename"},
        ],
    });
    bad["rules"].as_array_mut().unwrap().push(second);
    let found = faults(&bad);
    let mut places: Vec<(&str, &str)> = found
        .iter()
        .map(|fault| {
            (
                fault["pointer"].as_str().unwrap(),
                fault["remedy"].as_str().unwrap(),
            )
        })
        .collect();
    places.sort_unstable();
    assert_eq!(
        places,
        [
            (
                "/detect/0",
                "say all in one guard, as initialize_result with /agentInfo/name"
            ),
            (
                "/extends",
                "write `loose-v1` if that is meant, or add the table with --table or --dialect-dir"
            ),
            ("/rules/0/on", "add method, or answers, or errors_of"),
            ("/rules/0/on/from", "did you mean `agent`?"),
            ("/rules/0/rows/0/defualt", "did you mean `default`?"),
            ("/rules/0/rows/0/dialect", "see RFC 6901"),
            ("/rules/1", "add one message in both columns"),
            (
                "/rules/1/rows",
                "keep one, or give each the way it is for with `only`"
            ),
            (
                "/rules/1/rows/0/values",
                "put the pair that is not written back into `read_values`"
            ),
            (
                "/rules/1/rows/1/as",
                "add `lossy` to the rule and say what is lost"
            ),
            ("/titel", "did you mean `title`?"),
        ]
    );
    for fault in &found {
        let of_rule = match fault["pointer"].as_str().unwrap().get(..8) {
            Some("/rules/0") => json!("shout"),
            Some("/rules/1") => json!("second"),
            _ => Value::Null,
        };
        assert_eq!(fault["rule"], of_rule);
    }
}

#[test]
fn check_reports_each_file_and_tables_may_build_on_each_other() {
    // Given as files they are validated, too.
    let mappings = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings");
    let all = answer(&["dialect", "check", "--json", mappings], 0);
    assert_eq!(all["faults"], 0, "of the built-in tables");
    assert!(all["files"].as_array().unwrap().len() > 50);
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = table("wrong");
    wrong["rules"][0]["examples"][0]["canonical"]["params"]["loud"] = json!(2);
    let wrong = write(folder.path(), "wrong.json", &wrong);
    let mut upper = table("a-upper");
    upper["extends"] = json!(["b-lower"]);
    let upper = write(folder.path(), "a.json", &upper);
    let alone = answer(&["dialect", "check", "--json", &upper], 1);
    assert_eq!(alone["files"][0]["faults"][0]["pointer"], "/extends");
    let lower = write(folder.path(), "b.json", &table("b-lower"));
    let text = relay(&["dialect", "check", &wrong, &upper, &lower], "");
    assert_eq!(text.code, Some(1));
    let lines: Vec<&str> = text.stdout.lines().collect();
    let [first, .., last_but, last] = &lines[..] else {
        panic!("{text:?}")
    };
    assert!(first.starts_with(&format!("{wrong}:")), "{first}");
    assert!(
        first.contains("rule `shout`, /rules/0/examples/0: "),
        "{first}"
    );
    assert_eq!(*last_but, format!("{lower}: no faults; 1 rule, 1 example"));
    assert_eq!(*last, "3 tables, 2 faults");
}

//! Mapping tables that are too large, endless or slow to check.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::link::run as block_on;
use crate::support::program::{Outcome, run};

fn relay(args: &[&str]) -> Outcome {
    block_on(run(args, ""))
}

/// A table with so many rules for the same messages; `differ` gives each its own condition.
fn table(rules: usize, differ: bool) -> Value {
    let rule = |at: usize| {
        let mut rule = json!({"id": format!("r{at}"), "why": "w",
            "on": {"from": "agent", "method": "session/update"}, "examples": [{}]});
        if differ {
            let guard = json!({"/update/x": format!("x{at}")});
            rule["when"] = json!({"dialect": guard, "canonical": guard});
        }
        rule
    };
    let rules: Vec<Value> = (0..rules).map(rule).collect();
    json!({"format": 1, "dialect": "many", "title": "T", "rules": rules})
}

fn write(folder: &Path, name: &str, table: &Value) -> String {
    let path = folder.join(name);
    fs::write(&path, table.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_table_must_be_a_regular_file_of_at_most_a_mebibyte() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [pipe, long] = ["pipe.json", "long.json"].map(path);
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let listed = path("");
    File::create(&long).unwrap().set_len(1 << 40).unwrap();
    let irregular = "it is not a regular file";
    let limit = "it is longer than 1 MiB";
    let pair = ["--", "true"];
    for (args, file, why) in [
        (
            ["dialect", "list", "--table", "/dev/zero"],
            "/dev/zero",
            irregular,
        ),
        (["dialect", "list", "--table", &pipe], &pipe, irregular),
        (["dialect", "list", "--table", &long], &long, limit),
        (["dialect", "list", "--dialect-dir", &listed], &long, limit),
        (["dialect", "check", "--json", &pipe], &pipe, irregular),
        (
            ["connect", "--table=/dev/zero", pair[0], pair[1]],
            "/dev/zero",
            irregular,
        ),
    ] {
        let outcome = relay(&args);
        assert_eq!(outcome.code, Some(66), "{args:?} {outcome:?}");
        let stated = format!("cannot read {file}: {why}");
        assert!(outcome.stderr.contains(&stated), "{args:?} {outcome:?}");
    }
}

#[test]
fn many_rules_with_equal_conditions_are_refused_with_a_bounded_list_of_faults() {
    let folder = tempfile::tempdir().unwrap();
    let equal = write(folder.path(), "equal.json", &table(3000, false));
    let outcome = relay(&["dialect", "list", "--table", &equal]);
    assert_eq!(outcome.code, Some(65), "{outcome:?}");
    let clashes = outcome.stderr.matches("both this rule and").count();
    assert_eq!(clashes, 100);
    let more = "there are more faults than these 100; correct these first";
    assert!(outcome.stderr.contains(more), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("both this rule and `r0`"),
        "{}",
        outcome.stderr
    );
    let apart = write(folder.path(), "apart.json", &table(500, true));
    let outcome = relay(&["dialect", "list", "--table", &apart]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

//! `dialect test`: golden vectors, one a line; skipped ones are reported.

use std::fs;

use serde_json::{Value, json};

use super::{answer, relay, table, write};

/// A vector of the table `mine` with other members.
fn vector(more: &[(&str, Value)]) -> String {
    let mut vector = json!({
        "name": "v", "dialect": "mine", "direction": "agent_to_client", "roundtrip": true,
        "context": [{"direction": "client_to_agent", "dialect_msg": null, "canonical_msg": null}],
        "dialect_msg": {"jsonrpc": "2.0", "method": "SHOUT", "params": {"LOUD": 1}},
        "canonical_msg": {"jsonrpc": "2.0", "method": "_shout", "params": {"loud": 1}},
    });
    for (key, value) in more {
        vector[*key] = value.clone();
    }
    format!("{vector}\n")
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

#[test]
fn test_reports_failed_and_skipped_vectors_and_unknown_keys() {
    let folder = tempfile::tempdir().unwrap();
    let own = write(folder.path(), "mine.json", &table("mine"));
    let file = folder.path().join("v.jsonl");
    let path = file.to_str().unwrap();
    let run = |text: &str, table: &[&str]| {
        fs::write(&file, text).unwrap();
        let args = [&["dialect", "test", path], table].concat();
        let outcome = relay(&args, "");
        let all = answer(&[&args[..], &["--json"]].concat(), outcome.code.unwrap());
        let lines = outcome.stdout.lines().map(str::to_owned);
        (outcome.code, lines.collect::<Vec<String>>(), all)
    };
    let mine = ["--table", &own];
    let wrong = json!({"jsonrpc": "2.0", "method": "_shout", "params": {"loud": 2}});
    let bad = vector(&[("name", json!("bad")), ("canonical_msg", wrong)]);
    let three = format!("{}\n{bad}no vector\n", vector(&[]));
    let (code, lines, all) = run(&three, &mine);
    assert_eq!(code, Some(1));
    assert!(
        lines[2].starts_with(&format!("FAIL {path}:3 mine bad read: ")),
        "{lines:?}"
    );
    assert_eq!(lines[5], "3 vectors: 2 passed, 3 failed");
    let counts = ["vectors", "passed", "failed"].map(|key| all[key].as_u64());
    assert_eq!(counts, [Some(3), Some(2), Some(3)]);
    fs::write(&file, &three).unwrap();
    let quiet = relay(&["dialect", "test", "-q", "--table", &own, path], "");
    assert_eq!(quiet.stdout.lines().count(), 4, "failures and the summary");
    assert_eq!(run(&vector(&[]), &[]).0, Some(1), "an unknown dialect");
    assert_eq!(run("\n", &mine).0, Some(1), "nothing was run");

    let partly = vector(&[("wire", json!("x\n")), ("http", json!({}))]);
    let (code, lines, all) = run(&partly, &mine);
    assert_eq!(code, Some(0));
    for (line, key) in lines[2..].iter().zip(["wire", "http"]) {
        let skipped = format!("skip {path}:1 mine v: skipped: `{key}` is not run here");
        assert_eq!(*line, skipped);
    }
    assert_eq!(lines[4], "1 vector: 2 passed, 0 failed, 2 skipped");
    assert_eq!((&all["passed"], &all["skipped"]), (&json!(2), &json!(2)));
    let third = &all["results"][2];
    assert_eq!(
        (&third["skipped"], &third["passed"]),
        (&json!("wire"), &json!(false))
    );

    let context = json!([{"direction": "agent_to_client", "dialect": {}}]);
    for (key, value, expected) in [
        (
            "roundtirp",
            json!(true),
            "unknown field `roundtirp`, expected one of `name`, ",
        ),
        (
            "flow",
            json!("both"),
            "unknown variant `both`, expected `d2c` or `c2d`",
        ),
        (
            "direction",
            json!("up"),
            "unknown variant `up`, expected `agent_to_client` or ",
        ),
        (
            "context",
            context,
            "unknown field `dialect`, expected one of `direction`, ",
        ),
    ] {
        let (code, lines, _) = run(&vector(&[(key, value)]), &mine);
        assert_eq!(code, Some(1), "{key}");
        assert!(lines[0].contains(expected), "no {expected:?} in {lines:?}");
        assert_eq!(lines[1], "1 vector: 0 passed, 1 failed");
    }
}

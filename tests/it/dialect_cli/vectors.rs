//! `dialect test`: golden vectors, one a line; skipped ones are reported.

use std::fs;

use serde_json::{Value, json};

use super::{answer, relay, table, write};

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
fn test_fails_if_one_vector_fails() {
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

#[test]
fn test_reports_skipped_vectors_and_unknown_keys() {
    let folder = tempfile::tempdir().unwrap();
    let own = write(folder.path(), "mine.json", &table("mine"));
    let vector = |more: &[(&str, Value)]| {
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
    };
    let file = folder.path().join("v.jsonl");
    let path = file.to_str().unwrap();
    let args = ["dialect", "test", "--table", &own, path];
    fs::write(
        &file,
        vector(&[("wire", json!("x\n")), ("http", json!({}))]),
    )
    .unwrap();
    let text = relay(&args, "");
    assert_eq!(text.code, Some(0), "{text:?}");
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert_eq!(
        lines[2],
        format!("skip {path}:1 mine v: skipped: `wire` is not run here")
    );
    assert_eq!(
        lines[3],
        format!("skip {path}:1 mine v: skipped: `http` is not run here")
    );
    assert_eq!(lines[4], "1 vector: 2 passed, 0 failed, 2 skipped");
    let all = answer(&[&args[..], &["--json"]].concat(), 0);
    assert_eq!((&all["passed"], &all["skipped"]), (&json!(2), &json!(2)));
    assert_eq!(all["results"][2]["skipped"], "wire");
    assert_eq!(all["results"][2]["passed"], false);

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
            "unknown variant `up`, expected `agent_to_client` or `client_to_agent`",
        ),
        (
            "context",
            context,
            "unknown field `dialect`, expected one of `direction`, ",
        ),
    ] {
        fs::write(&file, vector(&[(key, value)])).unwrap();
        let text = relay(&args, "");
        assert_eq!(text.code, Some(1), "{key}");
        assert!(
            text.stdout.contains(expected),
            "no {expected:?} in {}",
            text.stdout
        );
        assert!(
            text.stdout.ends_with("1 vector: 0 passed, 1 failed\n"),
            "{}",
            text.stdout
        );
    }
}

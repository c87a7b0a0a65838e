//! Recordings in which a dialect was translated, played again at either edge.
//!
//! The agents are captures of real ones, behind a relay that translates them into the dialect. What
//! that loses is lost before the recording begins: what was recorded must come out unchanged.

use std::path::{Path, PathBuf};

use acp_relay::jsonrpc::Side;
use acp_relay::replay::{IgnoreRules, Script, compare};

use super::captures::{captures, run_recorded};
use crate::support::link::run;
use crate::support::program;

const RELAY: &str = env!("CARGO_BIN_EXE_acp-relay");

/// Plays the client of `file` to `agent`, behind a relay that records into `into`; returns the
/// recording, and whether the conversation was the same.
async fn record(file: &Path, into: &Path, dialect: &str, agent: &[&str]) -> (PathBuf, bool) {
    let mut args = vec!["replay", "client", file.to_str().unwrap()];
    args.extend(["--edge", "client", "--settle", "200ms", "--"]);
    args.extend([RELAY, "connect", "--client-dialect", "canonical"]);
    args.extend(["--agent-dialect", dialect, "--record-redact", "full"]);
    args.extend(["--record", into.to_str().unwrap()]);
    args.extend(agent);
    let (recording, code) = run_recorded(&args, into).await;
    (recording, code == 0)
}

/// Asserts that two recordings hold the same conversation at an edge.
fn assert_same(one: &Path, two: &Path, edge: Side, what: &str) {
    let open = |path: &Path| Script::open(path, edge).unwrap();
    let compared = compare(&open(one), &open(two), &IgnoreRules::default());
    assert!(compared.steps > 5, "{what}: {compared:?}");
    assert_eq!(compared.differences, [], "{what}");
}

#[test]
fn translated_recordings_are_played_unchanged_at_either_edge() {
    let mut translated = 0;
    for capture in captures("transcripts") {
        for dialect in ["elephant", "goref"] {
            // Each has its own time: together they take a minute on a busy machine.
            translated += usize::from(run(play(capture.clone(), dialect)));
        }
    }
    assert!(translated >= 5, "{translated} were translated at all");
}

/// Records and replays `capture` with its agent in `dialect`; returns whether anything was
/// translated.
async fn play(capture: PathBuf, dialect: &'static str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let what = format!("{} in {dialect}", capture.display());
    let played = format!("replay:{}?match=order", capture.display());
    let agent = ["--", RELAY, "connect", "--client-dialect", dialect];
    let agent = [&agent[..], &["--agent-dialect", "canonical", &played]].concat();
    let (first, _) = record(&capture, &dir.path().join("1"), dialect, &agent).await;
    let text = std::fs::read_to_string(&first).unwrap();
    let translated = text.contains("\"rules\":[");
    let verified = program::run(&["inspect", "verify", first.to_str().unwrap()], "").await;
    assert_eq!(verified.code, Some(0), "{what}: {verified:?}");
    let again = verified.stdout.contains("translations repeated");
    assert_eq!(again, translated, "{what}: {verified:?}");
    if translated {
        let first = first.to_str().unwrap();
        let stats = program::run(&["inspect", "stats", "--json", first], "").await;
        let stats: serde_json::Value = serde_json::from_str(&stats.stdout).unwrap();
        assert!(!stats["rules"].as_object().unwrap().is_empty(), "{what}");
        for method in stats["methods"].as_array().unwrap() {
            let opens = ["initialize", "session/new"].contains(&method["method"].as_str().unwrap());
            assert!(
                !opens || method["took"]["count"] == method["requests"],
                "{what}: {method}"
            );
        }
    }

    // What the client received, sent again.
    let file = first.to_str().unwrap();
    let agent = ["--", RELAY, "replay", "agent", file];
    let (again, same) = record(&first, &dir.path().join("2"), "canonical", &agent).await;
    assert!(same, "{what}, at the client's edge");
    assert_same(&first, &again, Side::Client, &what);
    let two = again.to_str().unwrap();
    let diff = program::run(&["inspect", "diff", "--at", "client", file, two], "").await;
    assert_eq!(diff.code, Some(0), "{what}: {diff:?}");

    // What the agent sent, translated again.
    let played = format!("replay:{file}?edge=agent");
    let (again, same) = record(&first, &dir.path().join("3"), dialect, &[&played]).await;
    assert!(same, "{what}, at the agent's edge");
    assert_same(&first, &again, Side::Client, &what);
    assert_same(&first, &again, Side::Agent, &what);
    translated
}

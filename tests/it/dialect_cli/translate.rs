//! `translate`: lines in, lines out, with context and reasons.

use serde_json::{Value, json};

use super::relay;
use crate::support::program::run_unread;

const NEW: &str = r#"{"dir":"c2a","ts":1.50,"msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}}"#;
const NEW_RESULT: &str =
    r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}}"#;
const PROMPT: &str = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"\u0068i"}]}}}"#;
const PLAN: &str = r#"{"ts":3.0,"msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","n":1.00,"update":{"sessionUpdate":"plan","steps":[{"description":"one","status":"pending"}]}}},"dir":"a2c","more":1}"#;
const ASK: &str = r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"title":"May I?","options":[{"optionId":"a","name":"A","kind":"allow_once"},{"optionId":"r","name":"R","kind":"reject_once"}]}}}"#;
const REFUSAL: &str = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":7,"result":{"cancelled":true}}}"#;
const CANONICAL_REFUSAL: &str =
    r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"cancelled"}}}}"#;
const RAW: &str = r#"{"dir":"a2c","raw":"oops"}"#;

fn lines(all: &[&str]) -> String {
    all.iter().map(|line| format!("{line}\n")).collect()
}

fn message(line: &str) -> Value {
    serde_json::from_str::<Value>(line).unwrap()["msg"].clone()
}

#[test]
fn a_transcript_becomes_canonical_with_its_context() {
    let input = lines(&[NEW, NEW_RESULT, PROMPT, PLAN, ASK, REFUSAL, RAW, "noise"]);
    let outcome = relay(&["translate", "--from", "copilot-overseer"], &input);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let got: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(
        got[..3],
        [NEW, NEW_RESULT, PROMPT],
        "untouched lines keep their bytes"
    );
    assert!(
        got[3].starts_with(r#"{"ts":3.0,"msg":{"jsonrpc":"2.0","#),
        "{}",
        got[3]
    );
    assert!(
        got[3].contains(r#""n":1.00"#) && got[3].ends_with(r#"},"dir":"a2c","more":1}"#),
        "{}",
        got[3]
    );
    assert_eq!(
        message(got[3])["params"]["update"],
        json!({"sessionUpdate": "plan", "entries": [{"content": "one", "status": "pending", "priority": "medium"}]})
    );
    assert_eq!(
        message(got[4])["params"]["sessionId"],
        "s",
        "known from earlier messages"
    );
    assert_eq!(got[5], CANONICAL_REFUSAL);
    assert_eq!(
        got[6..],
        [RAW, "noise"],
        "lines without a message are copied"
    );
    assert!(
        outcome
            .stderr
            .contains("line 8: copied, because it is no message"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_transcript_comes_back_from_canonical() {
    let there = relay(
        &["translate", "--from", "copilot-overseer"],
        &lines(&[NEW, NEW_RESULT, PROMPT, PLAN, ASK, REFUSAL]),
    );
    let back = relay(&["translate", "--to", "copilot-overseer"], &there.stdout);
    assert_eq!(back.code, Some(0), "{back:?}");
    for (line, expected) in back
        .stdout
        .lines()
        .zip([NEW, NEW_RESULT, PROMPT, PLAN, ASK, REFUSAL])
    {
        let (mut got, mut expected) = (message(line), message(expected));
        for all in [&mut got, &mut expected] {
            // The dialect writes it on initialize only.
            all.as_object_mut().unwrap().remove("jsonrpc");
        }
        assert_eq!(got, expected);
    }
    assert_eq!(back.stdout.lines().count(), 6);
}

#[test]
fn a_named_dialect_is_not_replaced_by_detection() {
    let shows = r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"text":true,"images":true}}}}}"#;
    let initialize = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}}"#;
    let input = lines(&[initialize, shows, NEW]);
    for agent in ["canonical", "kimi"] {
        let args = ["translate", "--client", "canonical", "--agent", agent];
        let outcome = relay(&args, &input);
        assert!(!outcome.stderr.contains("speaks"), "{}", outcome.stderr);
        assert_eq!(outcome.stdout.lines().last(), Some(NEW), "{agent}");
    }
    let outcome = relay(&["translate", "--agent", "auto"], &input);
    assert!(
        outcome.stderr.contains("the agent speaks copilot-overseer"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn explain_prints_the_rule_the_reason_and_the_changes() {
    let args = ["translate", "--from", "copilot-overseer", "--explain"];
    let outcome = relay(&args, &lines(&[NEW, PLAN]));
    for expected in [
        "line 2, session/update from the agent: copilot-overseer → canonical\n",
        "  rule copilot-overseer/plan-steps: Plans travel as steps",
        "  - /params/update/steps [{",
        "  + /params/update/entries [{",
    ] {
        assert!(
            outcome.stderr.contains(expected),
            "no {expected:?} in\n{}",
            outcome.stderr
        );
    }
    let args = [&args[..], &["--json"]].concat();
    let outcome = relay(&args, &lines(&[NEW, PLAN, "noise"]));
    let stated: Vec<Value> = outcome
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(stated.len(), 1, "only what was changed");
    assert_eq!(stated[0]["line"], 2);
    assert_eq!(stated[0]["rules"][0]["rule"], "copilot-overseer/plan-steps");
    assert_eq!(stated[0]["changes"][0]["at"], "/params/update/steps");
    assert_eq!(stated[0]["changes"][1]["after"][0]["content"], "one");
}

const INITIALIZE: &str = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}}"#;
const ABOUT: &str = r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"text":true,"images":true}}}}}"#;

#[test]
fn auto_detects_the_dialect() {
    let input = lines(&[INITIALIZE, ABOUT, NEW, NEW_RESULT, PLAN]);
    for args in [
        &["translate", "--from", "auto"][..],
        &["translate", "--agent", "auto"],
    ] {
        let outcome = relay(args, &input);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let got: Vec<&str> = outcome.stdout.lines().collect();
        assert_eq!((got[0], got[3]), (INITIALIZE, NEW_RESULT));
        // The agent to which it is written receives `jsonrpc` on initialize only.
        let has_jsonrpc = message(got[2]).get("jsonrpc").is_some();
        assert_eq!(has_jsonrpc, args.contains(&"--from"));
        let capabilities = &message(got[1])["result"]["agentCapabilities"];
        assert_eq!(capabilities["promptCapabilities"], json!({"image": true}));
        assert!(message(got[4])["params"]["update"]["entries"].is_array());
        let stated = "line 2: the agent speaks copilot-overseer, as its ";
        assert!(outcome.stderr.contains(stated), "{}", outcome.stderr);
    }
    let args = ["translate", "--from", "auto", "--explain", "--json"];
    let stated = relay(&args, &input).stderr;
    let first: Value = serde_json::from_str(stated.lines().next().unwrap()).unwrap();
    assert_eq!(first["line"], 2);
    assert_eq!(first["recognised"]["side"], "agent");
    assert_eq!(first["recognised"]["dialect"], "copilot-overseer");
}

#[test]
fn auto_does_not_change_captures_of_real_agents() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/transcripts");
    let file = format!("{folder}/ts-sdk-example-agent-1.9.0.jsonl");
    let outcome = relay(&["translate", "--from", "auto", &file], "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout, std::fs::read_to_string(file).unwrap());
}

#[test]
fn translate_succeeds_if_its_reader_leaves_early() {
    let input = format!("{NEW}\n").repeat(100);
    let output = run_unread(&["translate", "--from", "canonical"], input.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

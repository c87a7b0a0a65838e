//! The cost of turns and the use of contexts, from messages of real agents.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::jsonrpc::Side;
use serde_json::Value;

use super::series::Counted;
use super::stage::Scrape;

/// The token counters after a capture: input, output.
const CAPTURES: [(&str, [f64; 2]); 2] = [
    // Each report is the total of the session so far.
    ("copilot-1.0.102", [1400., 280.]),
    // Each report is that of its turn: nine of 100 and 20, and two cancelled ones without usage.
    ("opencode-1.18.33", [900., 180.]),
];

fn play(counted: &mut Counted, capture: &str) {
    let path = format!("tests/vectors/transcripts/{capture}.jsonl");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let from = match line["dir"].as_str() {
            Some("c2a") => Side::Client,
            Some("a2c") => Side::Agent,
            _ => continue,
        };
        counted.send(from, line["msg"].to_string());
    }
}

fn tokens(counted: &Counted) -> [f64; 2] {
    let scrape = Scrape::read(&counted.metrics.scrape(Instant::now()));
    ["input", "output"].map(|kind| scrape.value("acp_relay_tokens_total", &[("type", kind)]))
}

#[test]
fn session_totals_and_turn_reports_give_the_tokens_spent() {
    for (capture, expected) in CAPTURES {
        let mut counted = Counted::new();
        play(&mut counted, capture);
        assert_eq!(tokens(&counted), expected, "{capture}");
    }
}

#[test]
fn the_context_ratio_is_that_of_the_last_report() {
    let mut counted = Counted::new();
    play(&mut counted, "copilot-1.0.102");
    let scrape = Scrape::read(&counted.metrics.scrape(Instant::now()));
    let ratio = scrape.value("acp_relay_context_used_ratio", &[("agent", "test")]);
    assert!(ratio > 0.01 && ratio < 1., "{ratio}");
}

/// A turn of `session` that ends with this usage.
fn turn(counted: &mut Counted, id: usize, session: &str, usage: &str) {
    let prompt = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"{session}"}}}}"#
    );
    counted.send(Side::Client, prompt);
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"end_turn","usage":{usage}}}}}"#
    );
    counted.send(Side::Agent, answer);
}

#[test]
fn sessions_are_counted_separately_and_invalid_usage_is_ignored() {
    let mut counted = Counted::new();
    let report = |input: &str| format!(r#"{{"inputTokens":{input},"outputTokens":1}}"#);
    turn(&mut counted, 1, "a", &report("10"));
    turn(&mut counted, 2, "b", &report("7"));
    turn(&mut counted, 3, "a", &report("30"));
    assert_eq!(tokens(&counted), [37., 2.]);
    for (id, usage) in [
        "null",
        "[]",
        "7",
        r#"{"inputTokens":-1}"#,
        r#"{"inputTokens":1.5}"#,
        r#"{"inputTokens":"9"}"#,
        r#"{"inputTokens":99999999999999999999}"#,
        r#"{"inputTokens":1000000000000000}"#,
        r#"{"inputTokens":null,"other":{"inputTokens":5}}"#,
    ]
    .into_iter()
    .enumerate()
    {
        turn(&mut counted, 10 + id, &format!("odd-{id}"), usage);
    }
    let [input, _] = tokens(&counted);
    // A number in quotes counts as a number.
    assert_eq!(input, 37. + 9.);
    for update in [
        r#""used":1"#,
        r#""used":1,"size":0"#,
        r#""used":null,"size":2"#,
    ] {
        let update = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"a","update":{{"sessionUpdate":"usage_update",{update}}}}}}}"#
        );
        counted.send(Side::Agent, update);
    }
    let scrape = Scrape::read(&counted.metrics.scrape(Instant::now()));
    assert!(!scrape.samples.contains_key("acp_relay_context_used_ratio"));
}

#[test]
fn a_thousand_sessions_are_not_all_remembered() {
    let mut counted = Counted::new();
    for id in 0..1000 {
        turn(
            &mut counted,
            id,
            &format!("s-{id}"),
            r#"{"inputTokens":3,"outputTokens":2}"#,
        );
    }
    assert_eq!(tokens(&counted), [3000., 2000.]);
}

#[test]
fn an_update_gap_is_between_two_updates_of_one_turn() {
    let mut counted = Counted::new();
    let start = Instant::now();
    let mut notify = |from, method: &str, name: &str, millis, ask| {
        let text = match method {
            "session/prompt" => format!(
                r#"{{"jsonrpc":"2.0","id":{ask},"method":"session/prompt","params":{{"sessionId":"{name}"}}}}"#
            ),
            _ => format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{name}"}}}}"#
            ),
        };
        counted.send_at(from, text, start + Duration::from_millis(millis));
    };
    // Before the turn, and the first of it: no gap.
    notify(Side::Agent, "session/update", "a", 0, 0);
    notify(Side::Client, "session/prompt", "a", 10, 1);
    notify(Side::Agent, "session/update", "a", 500, 0);
    // Of another session, and sent by a client: no gap either.
    notify(Side::Agent, "session/update", "b", 600, 0);
    notify(Side::Client, "session/update", "a", 700, 0);
    notify(Side::Agent, "session/update", "a", 2500, 0);
    notify(Side::Agent, "session/update", "a", 2600, 0);
    let scrape = Scrape::read(&counted.metrics.scrape(Instant::now()));
    let of = |part: &str| scrape.value(&format!("acp_relay_update_gap_seconds_{part}"), &[]);
    assert_eq!(of("count"), 2.);
    assert!((of("sum") - 2.1).abs() < 1e-6, "{}", of("sum"));
    // They stay when the conversation has ended.
    let metrics = Arc::clone(&counted.metrics);
    drop(counted);
    let scrape = Scrape::read(&metrics.scrape(Instant::now()));
    assert_eq!(scrape.value("acp_relay_update_gap_seconds_count", &[]), 2.);
}

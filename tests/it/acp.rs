//! What `check` finds: cases as data, and conversations that are canonical or nearly so.

mod cli;
pub(crate) mod generate;
pub(crate) mod official;
mod repairs;
mod schema_files;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use acp_relay::acp::{CheckedMessage, Checker, Violation};
use acp_relay::jsonrpc::{Frame, Kind, Side, printable};
use serde_json::Value;

fn vectors(folder: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "vectors", folder]
        .iter()
        .collect()
}

/// Each line of each file of a folder, with its place.
fn cases(folder: &str) -> Vec<(String, Value)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(vectors(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for (at, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
            cases.push((
                format!("{name}:{}", at + 1),
                serde_json::from_str(line).unwrap(),
            ));
        }
    }
    cases
}

fn side(value: &Value) -> Option<Side> {
    match value.as_str() {
        Some("client") => Some(Side::Client),
        Some("agent") => Some(Side::Agent),
        None => None,
        Some(other) => panic!("no side: {other}"),
    }
}

fn frame(value: &Value) -> Frame {
    Frame::from(value.to_string())
}

pub(crate) fn describe(deviations: &[Violation]) -> Vec<String> {
    deviations
        .iter()
        .map(|one| {
            format!(
                "{} {} {} expects {}",
                one.kind, one.consequence, one.pointer, one.expected
            )
        })
        .collect()
}

#[test]
fn check_finds_the_deviations_of_each_case() {
    let cases = cases("canon");
    assert!(cases.len() > 50);
    for (place, case) in cases {
        let mut conversation = Checker::new(false);
        for before in case["before"].as_array().into_iter().flatten() {
            let verdict = conversation.check(side(&before[0]), &frame(&before[1]));
            assert_eq!(describe(&verdict.violations), [""; 0], "{place}: before");
        }
        let message = match case.get("raw") {
            Some(raw) => Frame::from(raw.as_str().unwrap().to_owned()),
            None => frame(&case["message"]),
        };
        let verdict = conversation.check(side(&case["from"]), &message);
        let found = describe(&verdict.violations);
        let expected = case["deviations"].as_array().unwrap();
        assert_eq!(
            found.len(),
            expected.len(),
            "{place} {}: {found:#?}",
            case["name"]
        );
        for (deviation, expected) in verdict.violations.iter().zip(expected) {
            let word = |at: usize| expected[at].as_str().unwrap();
            let (kind, severity) = (
                deviation.kind.to_string(),
                deviation.consequence.to_string(),
            );
            let got = (&*kind, &*severity, deviation.pointer.as_str());
            assert_eq!(
                got,
                (word(0), word(1), word(2)),
                "{place} {}: {found:#?}",
                case["name"]
            );
            if let Some(required) = expected.get(3).and_then(Value::as_str) {
                assert_eq!(deviation.expected, required, "{place}");
            }
        }
        if let Some(expected) = case.get("side") {
            assert_eq!(verdict.from, side(expected), "{place}");
        }
        if let Some(expected) = case.get("method") {
            assert_eq!(verdict.method.as_deref(), expected.as_str(), "{place}");
        }
    }
}

/// The canonical halves of the dialect vectors, context included. A vector whose note begins with
/// `unrepaired` deviates: only a guess could repair it.
#[test]
fn canonical_messages_do_not_deviate() {
    let mut received = 0;
    let mut wrong = Vec::new();
    for (place, case) in cases("dialect") {
        let mut conversation = Checker::new(false);
        let from = |case: &Value| match case["direction"].as_str() {
            Some("client_to_agent") => Side::Client,
            Some("agent_to_client") => Side::Agent,
            other => panic!("{place}: no direction: {other:?}"),
        };
        let repaired = |line: &Value| {
            let note = line["note"].as_str().unwrap_or_default();
            !note.starts_with("unrepaired")
        };
        let mut receive = |from: Side, message: &Value, repaired: bool| {
            let all = match message {
                Value::Null => return,
                Value::Array(all) => all.as_slice(),
                one => std::slice::from_ref(one),
            };
            for message in all {
                received += 1;
                let verdict: CheckedMessage = conversation.check(Some(from), &frame(message));
                if verdict.violations.is_empty() != repaired {
                    wrong.push(format!(
                        "{place}: {message}: {:?}",
                        describe(&verdict.violations)
                    ));
                }
            }
        };
        for context in case["context"].as_array().into_iter().flatten() {
            receive(from(context), &context["canonical_msg"], repaired(context));
        }
        receive(from(&case), &case["canonical_before"], true);
        receive(from(&case), &case["canonical_msg"], repaired(&case));
        receive(from(&case), &case["canonical_after"], true);
        receive(from(&case).other(), &case["canonical_reply"], true);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(received > 200, "only {received} messages");
}

/// Every deviation in the captures of real agents, checked one by one; `*` is any index.
#[test]
fn deviations_in_captures() {
    let listed = fs::read_to_string(vectors("transcripts").join("deviations.tsv")).unwrap();
    let listed = listed.lines().filter(|line| !line.starts_with('#'));
    let expected: BTreeMap<(String, String), usize> = listed
        .map(|line| {
            let (what, count) = line.rsplit_once('\t').unwrap();
            let (file, what) = what.split_once('\t').unwrap();
            ((file.to_owned(), what.to_owned()), count.parse().unwrap())
        })
        .collect();
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut conversations: BTreeMap<String, Checker> = BTreeMap::new();
    let mut answers = 0;
    for (place, line) in cases("transcripts") {
        let file = place.split(".jsonl").next().unwrap().to_owned();
        let from = match line["dir"].as_str() {
            Some("c2a") => Side::Client,
            Some("a2c") => Side::Agent,
            _ => continue,
        };
        let conversation = conversations
            .entry(file.clone())
            .or_insert_with(|| Checker::new(false));
        let verdict = conversation.check(Some(from), &frame(&line["msg"]));
        answers += usize::from(verdict.kind == Some(Kind::Result) && verdict.checked);
        for one in verdict.violations {
            let pointer: Vec<&str> = one
                .pointer
                .split('/')
                .map(|step| {
                    if step.parse::<u32>().is_ok() {
                        "*"
                    } else {
                        step
                    }
                })
                .collect();
            let method = verdict.method.as_deref().unwrap_or("-");
            let what = format!("{} {method} {}", one.kind, pointer.join("/"));
            *found.entry((file.clone(), what)).or_default() += 1;
        }
    }
    assert_eq!(found, expected);
    assert!(
        answers > 100,
        "only {answers} answers were matched and checked"
    );
}

/// A deviation quotes the value, truncated and on one line.
#[test]
fn deviations_are_printed_on_one_short_line() {
    let long = "x\n\u{202e}".repeat(5000);
    let message = serde_json::json!({
        "jsonrpc": long, "id": 1, "method": "session/update",
        "params": {"sessionId": 5, &*long: long, "update": long}, "more": long,
    });
    let verdict = Checker::new(false).check(Some(Side::Agent), &frame(&message));
    assert!(
        verdict.violations.len() >= 4,
        "{:#?}",
        describe(&verdict.violations)
    );
    for one in verdict.violations {
        assert!(
            one.found.as_deref().map_or(0, str::len) < 300,
            "{:?}",
            one.found
        );
        assert!(one.expected.len() < 300, "{}", one.expected);
        let line = printable(format!("{:?} {}", one.found, one.pointer).as_bytes());
        assert!(!line.contains(['\n', '\u{202e}']), "{line}");
    }
}

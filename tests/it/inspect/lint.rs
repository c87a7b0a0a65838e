//! Violations of the protocol, one file of cases: `tests/vectors/inspect/lint.txt`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use acp_relay::analysis::lint::{Linter, RULES, Severity};
use acp_relay::recording::{EventKind, Header, RecordedEvent, open};

use super::{CAPTURES, answer, capture, import, recording, vectors};

#[test]
fn lint_finds_exactly_the_violations_of_each_case() {
    let folder = tempfile::tempdir().unwrap();
    let cases = fs::read_to_string(vectors().join("inspect/lint.txt")).unwrap();
    let mut seen = BTreeSet::new();
    for (at, case) in cases.split("\n## ").enumerate().skip(1) {
        let (title, _) = case.split_once('\n').unwrap();
        let (name, ids) = title.split_once(": ").unwrap();
        let expected: Vec<&str> = ids.split_whitespace().filter(|id| *id != "none").collect();
        let file = recording(folder.path(), &format!("c{at}"), &to_capture(case));
        let severity = |id: &&str| RULES.iter().find(|rule| rule.id == *id).unwrap().severity;
        let fails = expected.iter().any(|id| severity(id) == Severity::Error);
        let found = answer(&["lint", "--json", &file], i32::from(fails));
        let id = |line: &str| {
            let finding: Value = serde_json::from_str(line).unwrap();
            finding["id"].as_str().unwrap().to_owned()
        };
        let found: Vec<String> = found.lines().map(id).collect();
        assert_eq!(found, expected, "{name}");
        seen.extend(found);
    }
    let list = answer(&["lint", "--list"], 0);
    for (rule, line) in RULES.iter().zip(list.lines()) {
        assert!(line.contains(rule.id), "{line}");
        // A capture has no gaps; the others are tested in canon.
        let elsewhere = ["missing-events", "schema-forgiven", "not-json-rpc"];
        assert!(
            seen.contains(rule.id)
                || elsewhere.contains(&rule.id)
                || rule.id.starts_with("schema-"),
            "{} has no case",
            rule.id
        );
    }
}

/// All parts of each case and capture: from any event on, and up to any event.
#[test]
fn events_outside_a_segment_cause_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<_> = CAPTURES
        .map(|name| import(folder.path(), &capture(name), &name.replace('.', "-")))
        .into();
    let cases = fs::read_to_string(vectors().join("inspect/lint.txt")).unwrap();
    for (at, case) in cases.split("\n## ").enumerate().skip(1) {
        files.push(recording(
            folder.path(),
            &format!("c{at}"),
            &to_capture(case),
        ));
    }
    for file in &files {
        let events: Vec<RecordedEvent> = open(file.as_ref())
            .unwrap()
            .events()
            .map(Result::unwrap)
            .collect();
        let whole = found(&events, false);
        for at in (1..events.len()).step_by(1 + events.len() / 40) {
            let late = found(&events[at..], false);
            let early = found(&events[..at], true);
            for part in [&late, &early] {
                assert!(part.is_subset(&whole), "{file} at {at}: {part:?}");
            }
        }
    }
}

/// The findings in a segment that may have others before it, and after it.
fn found(events: &[RecordedEvent], goes_on: bool) -> BTreeSet<(u64, &'static str)> {
    let mut linter = Linter::default();
    linter.begin(&Header {
        first: events[0].n,
        ..Header::default()
    });
    for event in events {
        linter.add(event);
    }
    if goes_on {
        let mut last = events[0].clone();
        last.kind = EventKind::End {
            rotated: true,
            reason: String::new(),
            digest: String::new(),
        };
        linter.add(&last);
    }
    let findings = linter.end().into_iter();
    findings
        .map(|finding| (finding.n, finding.rule.id))
        .collect()
}

/// The lines of a case as a capture.
fn to_capture(case: &str) -> String {
    let lines = case.lines().skip(1).filter(|line| !line.is_empty());
    let lines = lines.map(|line| {
        let (dir, message) = line.split_once(' ').unwrap();
        let dir = if dir == ">" { "c2a" } else { "a2c" };
        let body = match message.strip_prefix('{') {
            Some(rest) => format!(r#""msg":{{"jsonrpc":"2.0",{rest}"#),
            None => format!(r#""raw":{}"#, Value::from(message)),
        };
        format!("{{\"dir\":\"{dir}\",\"ts\":0,{body}}}\n")
    });
    lines.collect()
}

#[test]
fn findings_are_selected_by_the_duration_of_their_exchange() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"dir":"c2a","ts":0,"msg":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}}
{"dir":"a2c","ts":3,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}
"#;
    let file = recording(folder.path(), "slow", text);
    let found = |filter: &str, code| {
        let found = answer(&["lint", "--json", &file, "--filter", filter], code);
        found.lines().count()
    };
    assert_eq!([found("dur>2s", 1), found("dur>5s", 0)], [1, 0]);
}

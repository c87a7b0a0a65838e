//! The filter language: its meaning, the position of its errors, and that any text is either a
//! filter or an error.

use std::sync::LazyLock;

use acp_relay::analysis::filter::{DerivedFields, Field, Filter};
use acp_relay::jsonrpc::Choice as _;
use acp_relay::recording::{Parsed, RecordedEvent, parse_line};
use proptest::prelude::*;
use serde_json::{Value, json};

/// One of the events of the vectors.
static EVENT: LazyLock<RecordedEvent> = LazyLock::new(|| event(&vectors()["events"][0]));

/// Whether the filter matches the event.
fn holds(filter: &str) -> bool {
    let fields = DerivedFields {
        duration: Some(2_500_000),
        lint: &["late-history"],
    };
    let filter: Filter = filter.parse().unwrap_or_else(|fault| panic!("{fault}"));
    filter.matches(&EVENT, fields)
}

/// The cases that all parsers of the language share.
fn vectors() -> Value {
    let text = std::fs::read_to_string(super::vectors().join("inspect/filter.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A line of a recording, with its checksum.
fn event(members: &Value) -> RecordedEvent {
    let text = members.to_string();
    let open = &text[..text.len() - 1];
    let sum = crc32c::crc32c(open.as_bytes());
    match parse_line(&format!("{open},\"crc\":\"{sum:08x}\"}}\n").into()) {
        Parsed::Event(event) => *event,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn each_filter_term_matches_its_events() {
    let vectors = vectors();
    let events: Vec<RecordedEvent> = (vectors["events"].as_array().unwrap().iter())
        .map(event)
        .collect();
    for case in vectors["matches"].as_array().unwrap() {
        let text = case["filter"].as_str().unwrap();
        let filter: Filter = text.parse().unwrap_or_else(|fault| panic!("{fault}"));
        let inverse: Filter = match text.trim() {
            "" => "not n>=0".parse().unwrap(),
            text => format!("not ({text})").parse().unwrap(),
        };
        let mut found = Vec::new();
        for event in &events {
            let facts = &vectors["facts"][event.n.to_string()];
            let lint = facts["lint"].as_array().into_iter().flatten();
            let lint: Vec<&str> = lint.filter_map(Value::as_str).collect();
            let took = facts["took"].as_u64();
            let fields = DerivedFields {
                duration: took,
                lint: &lint,
            };
            if filter.matches(event, fields) {
                found.push(event.n);
            }
            let holds = [
                filter.matches(event, fields),
                inverse.matches(event, fields),
            ];
            assert_ne!(holds[0], holds[1], "{text} and its inverse of {}", event.n);
        }
        assert_eq!(json!(found), case["n"], "{text}");
    }
}

#[test]
fn examples_of_the_help_are_valid_filters() {
    for field in Field::ALL {
        let (example, what) = field.description();
        assert!(example.starts_with(field.name()) && !what.is_empty());
        assert!(example.parse::<Filter>().is_ok(), "{example}");
    }
}

#[test]
fn an_error_points_at_the_place() {
    for case in vectors()["faults"].as_array().unwrap() {
        let (filter, why) = (
            case["filter"].as_str().unwrap(),
            case["why"].as_str().unwrap(),
        );
        let place = |at: usize| usize::try_from(case["at"][at].as_u64().unwrap()).unwrap();
        let at = place(0)..place(1);
        let fault = filter.parse::<Filter>().unwrap_err();
        assert_eq!(fault.at, at, "{fault}");
        assert!(fault.reason.contains(why), "{fault}");
        let shown = fault.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let marks = lines[2];
        assert_eq!(
            (lines[1], marks.find('^')),
            (format!("  {filter}").as_str(), Some(at.start + 2))
        );
    }
    let deep = format!("{}n:1{}", "(".repeat(2_000), ")".repeat(2_000));
    assert!(deep.parse::<Filter>().unwrap_err().reason.contains("deep"));
}

/// Texts that resemble filters.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "n:1",
        "n>",
        "dir:<",
        "dur>=1s",
        "and",
        "or",
        "not",
        "(",
        ")",
        "\"",
        "\\",
        " ",
        ":",
        "=",
        "text:\"a b\"",
        "kind:mark",
        "*",
        "µ",
        "\u{1b}",
        "x",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Filters, by construction.
fn filters() -> impl Strategy<Value = String> {
    let term = prop::sample::select(vec!["n:7", "dir:>", "dur>2s", "\"foo\"", "kind:request"]);
    term.prop_map(str::to_owned)
        .prop_recursive(6, 40, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|inner| format!("not {inner}")),
                inner.clone().prop_map(|inner| format!("({inner})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
                (inner.clone(), inner).prop_map(|(a, b)| format!("({a} or {b})")),
            ]
        })
}

proptest! {
    #[test]
    fn any_text_is_a_filter_or_an_error_within_it(text in prop_oneof![pieces(), any::<String>()]) {
        match text.parse::<Filter>() {
            Ok(filter) => {
                prop_assert_eq!(filter.to_string(), text);
                let held = filter.matches(&EVENT, DerivedFields::default());
                let again: Filter = filter.to_string().parse().unwrap();
                prop_assert_eq!(again.matches(&EVENT, DerivedFields::default()), held);
            }
            Err(fault) => {
                prop_assert!(text.get(fault.at.clone()).is_some());
                prop_assert!(fault.to_string().contains('^'));
            }
        }
    }

    #[test]
    fn and_or_and_not_follow_boolean_logic(a in filters(), b in filters()) {
        let (x, y) = (holds(&a), holds(&b));
        prop_assert_eq!(holds(&format!("({a}) and ({b})")), x && y);
        prop_assert_eq!(holds(&format!("({a}) ({b})")), x && y);
        prop_assert_eq!(holds(&format!("({a}) or ({b})")), x || y);
        prop_assert_eq!(holds(&format!("not ({a})")), !x);
    }
}

//! The filter language: what it means, where it points when it is wrong, and that any text is
//! either a filter or an error.

use acp_relay::recording::filter::{FIELDS, Facts, Filter};
use acp_relay::recording::{Body, Event, Message, MessageKind, What};
use acp_relay::wire::Side;
use proptest::prelude::*;

/// An update of the agent: event 7, at 1.5 s.
fn update() -> Event {
    let body = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"ab12-34","update":{"sessionUpdate":"tool_call","toolCallId":"call_9","title":"Read Foo \"bar\""}}}"#;
    Event {
        n: 7,
        t: 1_500_000,
        w: 0,
        what: What::Message(Box::new(Message {
            hop: Side::Agent,
            to: Side::Client,
            id: None,
            method: Some("session/update".to_owned()),
            session: Some("ab12-34".to_owned()),
            kind: Some(MessageKind::Notification),
            answers: None,
            of: None,
            rules: vec!["goose/modes".to_owned()],
            patch: None,
            redacted: Vec::new(),
            body: Body::Json(body.into()),
        })),
    }
}

/// What each event is said to be, by itself.
fn holds(filter: &str, event: &Event) -> bool {
    let facts = Facts {
        took: Some(2_500_000),
        lint: &["late-history"],
    };
    let filter: Filter = filter.parse().unwrap_or_else(|fault| panic!("{fault}"));
    filter.matches(event, facts)
}

#[test]
fn each_term_asks_what_it_says() {
    let event = update();
    for filter in [
        "",
        "method:session/update",
        "method:session/*",
        "method:*/update",
        "session:ab12",
        "session:*-34",
        "kind:notification",
        "kind:message",
        "dir:<",
        "from:agent",
        "at:agent",
        "update:tool_call",
        "tool:call",
        "text:foo",
        r#"text:"Foo \"bar""#,
        r#""read foo""#,
        "text:sessionUpdate",
        "rule:goose/*",
        "lint:*",
        "n=7",
        "n:7",
        "n>=7 n<=7",
        "t>1s t<1m30s t<1.6 t>=1500ms",
        "dur>2s and dur<2500.1ms",
        "size>100 size<1k",
        "not kind:request",
        "kind:request or dir:<",
        "(kind:request or dir:<) and not (n>7)",
        "not not n:7",
        "kind:request and n:1 or dir:<",
        "method:session/update and session:ab12 and dur>2s and dir:< and text:\"foo\" and lint:*",
    ] {
        assert!(holds(filter, &event), "{filter}");
        if !filter.is_empty() {
            assert!(!holds(&format!("not ({filter})"), &event), "not {filter}");
        }
    }
    for filter in [
        "method:session",
        "session:b12",
        "kind:answer",
        "dir:>",
        "at:client",
        "id:*",
        "note:*",
        "text:nowhere",
        "lint:early*",
        "n>7",
        "dur<2s",
        "kind:request or n<7 and dir:<",
    ] {
        assert!(!holds(filter, &event), "{filter}");
    }
    let mark = Event {
        what: What::Mark("look here".to_owned()),
        ..update()
    };
    assert!(holds("kind:mark and \"HERE\" and not dir:<", &mark));
}

#[test]
fn examples_of_the_help_are_filters() {
    for (_, name, example, _) in FIELDS {
        assert!(example.starts_with(name));
        assert!(example.parse::<Filter>().is_ok(), "{example}");
    }
}

#[test]
fn an_error_points_at_the_place() {
    for (filter, at, why) in [
        ("method", 0..6, "text:method"),
        ("metod:x", 0..5, "no such field"),
        ("n:1 and", 7..7, "missing at the end"),
        ("n:1 or or n:2", 7..9, "missing before"),
        ("n:1 )", 4..5, "never opened"),
        ("not (n:1", 4..5, "never closed"),
        ("dur>soon", 4..8, "150ms"),
        ("dur>2 parsecs", 6..13, "text:parsecs"),
        ("size>2x", 5..7, "10k"),
        ("kind:wish", 5..9, "request"),
        ("text:\"x", 5..7, "never closed"),
        ("method>x", 6..7, "is a text"),
        ("n: 1", 1..2, "right after"),
        (":x", 0..1, "field is missing"),
        ("dir:=", 4..5, "< >"),
    ] {
        let fault = filter.parse::<Filter>().unwrap_err();
        assert_eq!(fault.at, at, "{fault}");
        assert!(fault.why.contains(why), "{fault}");
        let shown = fault.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let marks = lines[2];
        assert_eq!(
            (lines[1], marks.find('^')),
            (format!("  {filter}").as_str(), Some(at.start + 2))
        );
    }
    let deep = format!("{}n:1{}", "(".repeat(2_000), ")".repeat(2_000));
    assert!(deep.parse::<Filter>().unwrap_err().why.contains("deep"));
}

/// Texts that are nearly filters.
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
                let held = filter.matches(&update(), Facts::default());
                let again: Filter = filter.to_string().parse().unwrap();
                prop_assert_eq!(again.matches(&update(), Facts::default()), held);
            }
            Err(fault) => {
                prop_assert!(text.get(fault.at.clone()).is_some());
                prop_assert!(fault.to_string().contains('^'));
            }
        }
    }

    #[test]
    fn joining_is_logic(a in filters(), b in filters()) {
        let event = update();
        let (x, y) = (holds(&a, &event), holds(&b, &event));
        prop_assert_eq!(holds(&format!("({a}) and ({b})"), &event), x && y);
        prop_assert_eq!(holds(&format!("({a}) ({b})"), &event), x && y);
        prop_assert_eq!(holds(&format!("({a}) or ({b})"), &event), x || y);
        prop_assert_eq!(holds(&format!("not ({a})"), &event), !x);
    }
}
